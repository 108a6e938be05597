//! Files that commands in virtual time read: what does not fit, what is left out, and what is no
//! file to read.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::*;

/// What would be written in our own format and could not be read again is refused, with a way out.
#[test]
fn a_workload_too_long_for_yaml_is_not_written_as_yaml() {
    let scratch = Scratch::new("long");
    let to = scratch.0.join("long");
    let synth = |format: &str| {
        let mut c = heliostat();
        c.args([
            "workload",
            "synth",
            "--racks",
            "150",
            "--coflows",
            "100",
            "--format",
            format,
            "--to",
        ]);
        output(c.arg(&to))
    };
    let o = synth("yaml");
    assert!(
        o.status.code() == Some(2) && said(&o).contains("--format trace") && !to.exists(),
        "{}",
        said(&o)
    );
    assert!(synth("trace").status.success() && to.exists());
    let o = output(heliostat().args(["workload", "stats"]).arg(&to));
    assert!(
        o.status.success()
            && String::from_utf8_lossy(&o.stdout).contains("short narrow: coflows, bytes"),
        "{}",
        said(&o)
    );
}

#[test]
fn results_of_the_form_before_are_read_by_all_that_read_results() {
    let scratch = Scratch::new("old");
    let [old, new] = [file("tests/results/coflows-1.json"), scratch.0.join("new.json")];
    let mut c = heliostat();
    c.arg("simulate")
        .arg(topology())
        .args(["--policy", "c-through", "--workload"])
        .arg(file("tests/results/shuffle-4.yaml"));
    let o = output(c.arg("--json").arg(&new));
    assert!(o.status.success(), "{}", said(&o));
    let o = output(heliostat().args(["compare", "-o", "csv"]).args([&old, &new]));
    let told = String::from_utf8_lossy(&o.stdout).into_owned();
    // Ports to a rack have had a queue for each source rack since, which scan-1 feels.
    let same = |l: &&str| l.ends_with(",1.000000") && !l.starts_with("scan-1,");
    assert!(
        told.lines().count() == 8 && told.lines().filter(same).count() == 6,
        "the same run, then and now: {told}{}",
        said(&o)
    );
    for (command, what, to) in [
        ("plot", &old, "a.svg"),
        ("plot", &file("tests/results/jobs-1.json"), "b.svg"),
        ("report", &old, "a.html"),
    ] {
        let o = output(heliostat().arg(command).arg(what).arg("--to").arg(scratch.0.join(to)));
        assert!(o.status.success(), "{command}: {}", said(&o));
    }
    let page = std::fs::read_to_string(scratch.0.join("a.html")).expect("the page");
    assert!(
        page.contains("\"makespan_ns\":3794588399"),
        "the report has the numbers under their new names"
    );
    let o = output(
        heliostat().arg("compare").args([&scratch.write("later.json", "{\"format\": 3}"), &new]),
    );
    assert!(
        o.status.code() == Some(3) && said(&o).contains("format 3; this version reads 2"),
        "{}",
        said(&o)
    );
}

/// Eight hosts; files that name more ends than these, in each format.
#[test]
fn what_does_not_fit_is_an_error_or_folded_and_said() {
    let scratch = Scratch::new("fold");
    let simulate = |file: &Path, with: &[&str]| {
        let mut c = heliostat();
        c.args(["simulate", "hybrid-4x2", "--policy", "varys", "--workload"]).arg(file).args(with);
        output(&mut c)
    };
    let nodes = scratch.write("fold.cm", "Nodes 64\nConnections 2\n0->8 id 1 start 0 size 4000000\n1->33 id 2 start 0 size 4000000\n");
    let ports = scratch.write("fold.txt", "100 1\n1 0 1 0 1 96:4.0\n");
    let custom = scratch.write("custom.txt", "CUSTOM 1 12 12 1 9 1 12 2 13\n");
    for (file, what, folded) in [
        (
            &nodes,
            "flow 0: node 8 has no host: 34 nodes do not fit on the 8 hosts of hybrid-4x2",
            "34 nodes folded on 8 hosts, 2 of 2 flows within",
        ),
        (
            &ports,
            "coflow 1: port 96 has no host: 100 ports do not fit on the 8 hosts",
            "100 ports folded on 8 hosts, 1 of 1 flows within",
        ),
        (&custom, "12 ports do not fit on the 8 hosts", "12 ports folded on 8 hosts"),
    ] {
        let o = simulate(file, &[]);
        assert!(
            o.status.code() == Some(3) && said(&o).contains(what) && said(&o).contains("--fold"),
            "{}",
            said(&o)
        );
        let o = output(heliostat().arg("check").arg(file).arg(topology()));
        assert!(o.status.code() == Some(3) && said(&o).contains(what), "{}", said(&o));
        let json = scratch.0.join("r.json");
        let o = simulate(file, &["--fold", "--json", json.to_str().expect("a path")]);
        assert!(o.status.success(), "{}", said(&o));
        let (out, err) = (
            String::from_utf8_lossy(&o.stdout).into_owned(),
            String::from_utf8_lossy(&o.stderr).into_owned(),
        );
        assert!(
            out.contains(&format!("(!) {folded}"))
                && err.contains(&format!("note: {}: {folded}", file.display())),
            "{out}{err}"
        );
        let result: serde_json::Value =
            serde_json::from_slice(&std::fs::read(&json).expect("a result")).expect("JSON");
        assert!(
            result["caveats"][0]["kind"] == "folded"
                && result["origin"]["options"]["fold"] == "true",
            "{}",
            result["caveats"]
        );
        assert!(
            output(heliostat().arg("check").arg("--fold").arg(file).arg(topology()))
                .status
                .success()
        );
    }
    // What fits is not bent, however many ends the head announces.
    let fits =
        scratch.write("fits.cm", "Nodes 64\nConnections 1\n0->7 id 1 start 0 size 4000000\n");
    let o = simulate(&fits, &[]);
    assert!(o.status.success() && !said(&o).contains("(!)"), "{}", said(&o));
}

#[test]
fn records_that_are_left_out_are_counted() {
    let scratch = Scratch::new("leftout");
    let simulate = |file: &Path, with: &[&str]| {
        let mut c = heliostat();
        let o = output(
            c.args([
                "simulate",
                "hybrid-4x2",
                "--policy",
                "varys",
                "--policy",
                "eps-only",
                "--workload",
            ])
            .arg(file)
            .args(with),
        );
        assert!(o.status.success(), "{}", said(&o));
        (
            String::from_utf8_lossy(&o.stdout).into_owned(),
            String::from_utf8_lossy(&o.stderr).into_owned(),
        )
    };
    let trace = scratch.write("t.txt", "4 2\n1 0 2 0 1 2 2:0.0 3:5.0\n2 10 1 0 2 0:1.0 3:2.0\n");
    let (out, err) = simulate(&trace, &[]);
    assert!(
        out.contains("(!) varys, eps-only: 2 flows without bytes left out")
            && err.contains("2 flows without bytes left out"),
        "{out}{err}"
    );
    let (out, err) = simulate(&trace, &["--local", "drop"]);
    assert!(
        out.contains("1 flows within a host (--local drop) left out")
            && err.contains("within a host"),
        "{out}{err}"
    );
    let flows = scratch.write("f.txt", "0 1 0 5\n0 2 5000 5\n3 3 700 9\n");
    let (out, _) = simulate(&flows, &["--local", "drop"]);
    assert!(
        out.contains("1 flows without bytes left out") && out.contains("1 flows within a host"),
        "{out}"
    );
    // Jobs where coflows are run.
    let (out, err) = simulate(&file("workloads/jobs-8.yaml"), &[]);
    assert!(
        out.contains("shuffles of 24 jobs as coflows, tasks spread evenly")
            && err.contains("note: "),
        "{out}{err}"
    );
}

/// Every reader of a file, with what it must not wait for, read to its end, or take for text.
#[test]
fn no_reader_waits_for_a_pipe_reads_a_device_or_takes_bytes_for_text() {
    let scratch = Scratch::new("read");
    let at = |name: &str| scratch.0.join(name);
    assert!(Command::new("mkfifo").arg(at("pipe")).status().expect("mkfifo").success());
    std::fs::write(at("packed"), b"\x1f\x8b\x08\0\0\0\0\0").expect("written");
    std::fs::write(at("latin"), b"name: caf\xe9\n").expect("written");
    std::fs::write(at("array.npy"), b"\x93NUMPY\x01\0v\0").expect("written");
    // A terabyte, if all of it were read.
    std::fs::File::create(at("sparse")).and_then(|f| f.set_len(1 << 40)).expect("made");
    let readers: [(&str, &[&str]); 9] = [
        ("check FILE", &[]),
        ("replay FILE", &[]),
        ("compare FILE FILE", &[]),
        ("report FILE --to OUT", &[]),
        ("plot FILE --to OUT.svg", &[]),
        ("plan circuits --matrix FILE --algorithm bvn", &["latin", "sparse"]),
        ("simulate FILE --policy varys --workload shuffle-4", &[]),
        ("simulate hybrid-4x2 --policy varys --workload FILE", &[]),
        ("workload stats FILE", &[]),
    ];
    let what = [
        (at("pipe"), "it is a device or a named pipe; allowed: a file"),
        ("/dev/zero".into(), "it is a device or a named pipe; allowed: a file"),
        (scratch.0.clone(), ""),
        (at("packed"), "packed by gzip: unpack it first"),
        (at("array.npy"), "an array of NumPy (.npy)"),
        (at("latin"), ""),
        (at("sparse"), ""),
    ];
    for (reader, apart) in readers {
        for (file, told) in &what {
            let name = file.file_name().and_then(|n| n.to_str()).unwrap_or_default();
            let out = at("out").display().to_string();
            let words = reader
                .split(' ')
                .map(|w| w.replace("FILE", &file.display().to_string()).replace("OUT", &out));
            let mut c = Command::new("timeout");
            c.args(["60", env!("CARGO_BIN_EXE_heliostat")]).args(words).stdin(Stdio::null());
            let (o, case) = (output(&mut c), format!("{reader} of {name}"));
            assert_eq!(o.status.code(), Some(3), "{case}: {}", said(&o));
            assert!(said(&o).len() < 3000, "{case}: {} bytes", said(&o).len());
            if !apart.contains(&name) {
                assert!(
                    said(&o).contains(told) && said(&o).contains(&*file.to_string_lossy()),
                    "{case}: {}",
                    said(&o)
                );
            }
            if name == "latin" && reader.contains("check") {
                assert!(
                    said(&o).contains("latin:1:10: byte 0xe9 is not UTF-8"),
                    "{case}: {}",
                    said(&o)
                );
            }
        }
    }
}
