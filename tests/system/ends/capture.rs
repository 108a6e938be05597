//! Packets of a running network in a file: what was sent is there, on both mechanisms, and the file
//! is whole however it ends.

use std::fs::File;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::InterfaceDescriptionOption;
use pcap_file::pcapng::{Block, PcapNgReader};

use crate::support::*;

/// The interfaces of a file, and its packets, each with the interface that it names. Every block
/// must be whole.
fn read(file: &Path) -> (Vec<String>, Vec<(String, EnhancedPacketBlock<'static>)>) {
    let mut reader =
        PcapNgReader::new(File::open(file).expect("the file")).expect("a section header");
    let (mut names, mut packets) = (vec![], vec![]);
    while let Some(block) = reader.next_block() {
        match block.expect("a whole block").into_owned() {
            Block::InterfaceDescription(i) => {
                assert!(
                    i.options.contains(&InterfaceDescriptionOption::IfTsResol(9)),
                    "nanoseconds"
                );
                let name = i.options.iter().find_map(|o| {
                    if let InterfaceDescriptionOption::IfName(n) = o {
                        Some(n.to_string())
                    } else {
                        None
                    }
                });
                names.push(name.expect("a name"));
            }
            Block::EnhancedPacket(p) => packets.push((names[p.interface_id as usize].clone(), p)),
            other => panic!("no other blocks: {other:?}"),
        }
    }
    (names, packets)
}

/// Whether a frame is an echo request (8) or reply (0) over IPv4.
fn is_echo(p: &EnhancedPacketBlock, kind: u8) -> bool {
    p.data.len() > 34 && p.data[12..14] == [8, 0] && p.data[23] == 1 && p.data[34] == kind
}

/// `heliostat capture` as it runs, listening already.
fn capture(network: &str, place: &str, to: &Path, more: &[&str]) -> std::process::Child {
    let mut c = heliostat();
    c.args(["capture", place, "--name", network, "--to"]).arg(to).args(more).stderr(Stdio::piped());
    let child = c.spawn().expect("the program starts");
    // Section header and interfaces are written once it listens.
    until("the file begins", || std::fs::metadata(to).is_ok_and(|m| m.len() > 0));
    child
}

fn pings(d: &Daemon, count: &str) {
    let o = d.exec("h0-0", &["ping", "-q", "-c", count, "-i", "0.01", "-Q", "8", "10.1.0.2"]);
    assert!(o.status.success(), "{}", said(&o));
}

#[test]
fn packets_of_circuits_and_hosts_are_written_on_both_mechanisms() {
    let test = "packets_of_circuits_and_hosts_are_written_on_both_mechanisms";
    if !root(test) {
        return;
    }
    let _turn = together();
    let scratch = Scratch::new("capture");
    for mechanism in ["timed", "netlink"] {
        let name = unique(&format!("cap-{mechanism}"));
        let policy = scratch.write("p.yaml", "name: hand\ninterval: 50ms\nelephants: {admit: all}\ndemand: backlog\nscheduler: manual\n");
        let d = Daemon::start(
            &name,
            &["--policy", policy.to_str().expect("text"), "--mechanism", mechanism],
        );
        let o = output(heliostat().args([
            "set",
            "--controller",
            &d.api(),
            "circuits",
            "r0-r1",
            "r1-r0",
        ]));
        assert!(o.status.success(), "{}", said(&o));
        let lit = || {
            d.show("circuits")["circuits"]
                .as_array()
                .is_some_and(|c| c.len() == 2 && c.iter().all(|c| c["state"] == "up"))
        };
        until("both circuits have light", lit);

        let began = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
        let (port, host) = (scratch.0.join("port.pcapng"), scratch.0.join("host.pcapng"));
        let on_port = capture(&name, "r0-ocs0", &port, &[]);
        let mut on_host = capture(&name, "h1-0", &host, &["--packets", "20"]);
        pings(&d, "30");
        assert!(on_host.wait().expect("our child").success());
        kill(on_port.id(), "INT");
        let o = on_port.wait_with_output().expect("our child");
        assert!(o.status.success() && said(&o).contains(" packets of r0-ocs0\n"), "{}", said(&o));
        let ended = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");

        let (names, packets) = read(&port);
        assert_eq!(names, ["tor0/ocs0"], "{mechanism}");
        let echoes = |kind: u8, sent: bool| {
            let flag = EnhancedPacketOption::Flags(if sent { 2 } else { 1 });
            packets.iter().filter(|(_, p)| is_echo(p, kind) && p.options.contains(&flag)).count()
        };
        assert_eq!(
            (echoes(8, true), echoes(0, false)),
            (30, 30),
            "{mechanism}: every ping went over the circuits"
        );
        let stamps: Vec<Duration> = packets.iter().map(|(_, p)| p.timestamp).collect();
        assert!(
            stamps.iter().all(|t| (began..ended).contains(t)),
            "{mechanism}: {began:?} to {ended:?}: {stamps:?}"
        );
        assert!(stamps.iter().any(|t| t.subsec_nanos() % 1000 > 0), "finer than microseconds");
        let (names, packets) = read(&host);
        assert_eq!((names, packets.len()), (vec!["h1-0/eth0".to_owned()], 20), "{mechanism}");
        std::fs::remove_file(&port).and_then(|()| std::fs::remove_file(&host)).expect("our files");
    }
}

#[test]
fn a_capture_ends_in_time_goes_to_a_pipe_and_says_what_is_not_there() {
    let test = "a_capture_ends_in_time_goes_to_a_pipe_and_says_what_is_not_there";
    if !root(test) {
        return;
    }
    let _turn = together();
    let (name, scratch) = (unique("cap"), Scratch::new("capend"));
    let d = Daemon::start(&name, &[]);
    let capture = |place: &str, more: &[&str]| {
        output(heliostat().args(["capture", place, "--name", &name]).args(more))
    };
    let piped = capture("tor0", &["--to", "-", "--duration", "50ms"]);
    let file = scratch.0.join("piped.pcapng");
    std::fs::write(&file, &piped.stdout).expect("a file");
    let (names, _) = read(&file);
    assert_eq!(names, ["tor0/eps0", "tor0/ocs0", "tor0/host0", "tor0/host1"], "{}", said(&piped));
    for (place, code, why) in [
        ("r0-ocs9", 3, "no interface ocs9; there are "),
        ("r9-ocs0", 3, "no node tor9"),
        ("h0-0/eth9", 3, "there are eth0"),
    ] {
        let o = capture(place, &["--to", "-"]);
        assert!(o.status.code() == Some(code) && said(&o).contains(why), "{place}: {}", said(&o));
    }
    let o = capture("h0-0", &["--to", "/nowhere/x.pcapng"]);
    assert!(o.status.code() == Some(1) && said(&o).contains("/nowhere/x.pcapng"), "{}", said(&o));
    // It ends with its network, also where nothing can end it on the network's way out.
    let ended = scratch.0.join("ended.pcapng");
    let last = self::capture(&name, "tor0", &ended, &[]);
    kill(d.pid(), "KILL");
    let o = last.wait_with_output().expect("our child");
    assert!(o.status.success() && said(&o).contains(" packets of tor0\n"), "{}", said(&o));
    let names = read(&ended).0;
    assert_eq!(names.len(), 4, "the file is whole: {names:?}");
    drop(d);
    let o = output(heliostat().args(["clean", &name]));
    assert!(o.status.success(), "{}", said(&o));
    assert_nothing_left(&name);
}
