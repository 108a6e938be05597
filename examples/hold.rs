use heliostat::control::policy::*;
use heliostat::fabric::kernel::Mechanism;
use heliostat::ids::*;
use heliostat::runtime::emulation::*;
use heliostat::topology::*;
use heliostat::units::*;
use std::sync::Arc;
fn main() {
    let plane = Plane { id: PlaneId(0), rate: BitRate::mbit(1000), delta: Span::millis(10), stop: StopMode::NotAllStop, duplex: false };
    let t = Arc::new(Topology::uniform("t", 3, 1, BitRate::mbit(2000), BitRate::mbit(100), vec![plane]));
    let o = Options { name: "hold".into(), mechanism: Some(Mechanism::Netlink), base: "/tmp/hstest".into(), attach: None };
    let e = Emulation::start(t, Policy { scheduler: SchedulerKind::Manual, ..Policy::default() }, &o).unwrap();
    std::thread::sleep(std::time::Duration::from_secs(1));
    for n in ["tor0", "ocs0"] {
        for c in [
            "tc -s filter show dev eps0",
            "tc -s class show dev eps0",
            "tc -s filter show dev ocs0 ingress",
            "tc filter show dev tor0 ingress",
            "ip rule",
            "ip route show table 100",
        ] {
            println!("== {n} {c}");
            let _ = std::process::Command::new("sh").arg("-c").arg(format!("ip netns exec hold-{n} {c}")).status();
        }
    }
    let _ = std::process::Command::new("sh")
        .arg("-c")
        .arg("ip netns exec hold-h0-0 ping -c2 -W1 10.1.0.2; ip netns exec hold-tor0 tc -s class show dev eps0 | head -40")
        .status();
    drop(e);
}
