//! What is printed, and what errors are.

use std::net::SocketAddr;

use socket2::{Domain, Socket, Type};

use super::*;

const CIRCUITS: &str = r#"{"revision":7,"now_ns":5000000,"circuits":[
    {"plane":0,"input":1,"output":3,"state":"up","manual":true,"setup_at_ns":100000000,"up_from_ns":110000000,"until_ns":null},
    {"plane":0,"input":2,"output":0,"state":"setting-up","manual":false,"setup_at_ns":200000000,"up_from_ns":210000000,"until_ns":300000000}]}"#;
const DEMAND: &str = r#"{"revision":7,"now_ns":5,"demand_bytes":[[0,1500000],[0,0]],"sent_bytes":[[0,3000000],[0,0]],
    "over_ocs_bytes":[[0,0],[0,0]],"backlog_bytes":[[0,7],[0,0]]}"#;
const COFLOWS: &str = r#"{"revision":7,"now_ns":5,"coflows":[{"id":4,"name":"sort, again","state":"finished","arrival_ns":0,
    "pairs":[{"from":0,"to":1,"bytes":1000}],"asked_bytes":1000,"received_bytes":1000,"over_ocs_bytes":250,"finished_ns":9,
    "cct_ns":1234567,"bound_ns":1000000}]}"#;
const PORTS: &str = r#"{"revision":7,"now_ns":5,"uplinks_at_ns":4,"uplinks":[{"up_bytes":1,"down_bytes":2}],"ports":[{"plane":0,"rack":0,"sends_to":1,"receives_from":null,"faulty":null,
    "crossed_packets":2,"crossed_bytes":3000,"late_packets":0,"misdelivered_packets":0},{"plane":0,"rack":1,"sends_to":null,
    "receives_from":0,"faulty":"no light","crossed_packets":0,"crossed_bytes":0,"late_packets":1,"misdelivered_packets":0}]}"#;
const POLICY: &str =
    r#"{"name":"p","interval":"100ms","elephants":{"admit":"all","threshold":"0B"},"probes":true}"#;

/// An answer as text; of hosts, only the first has a name.
fn rendered(what: ShowCommand, output: OutputFormat, answer: &str) -> Result<String, CliError> {
    render(what, output, answer, &["h0-0".to_owned()])
}

#[test]
fn answers_become_tables_and_csv() {
    let mut all = String::new();
    let cases = [
        (ShowCommand::Circuits, CIRCUITS),
        (ShowCommand::Demand, DEMAND),
        (ShowCommand::Coflows, COFLOWS),
        (ShowCommand::Ports, PORTS),
        (ShowCommand::Policy, POLICY),
    ];
    for (what, answer) in cases {
        for output in [OutputFormat::Table, OutputFormat::Csv] {
            all += &format!("{what:?}\n{}\n", rendered(what, output, answer).unwrap());
        }
    }
    let all: Vec<&str> = all.lines().map(str::trim_end).collect();
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn decisions_have_a_row_each_and_one_for_each_placement_that_lost() {
    let limits = |pair, pairs, bytes| {
        format!(
            r#"{{"pair_ns":{pair},"port_ns":7,"interfaces_ns":0,"switches_ns":0,"circuit_pairs":{pairs},"circuit_bytes":{bytes},"core_bytes":0}}"#
        )
    };
    let best = format!(
        r#"{{"racks":[{{"rack":3,"tasks":2}}],"slots_ns":0,"shuffle_ns":1000000,"limits":{},"others_ns":0,"price_ns":1000000}}"#,
        limits(1_000_000, 2, 40_000_000)
    );
    let other = format!(
        r#"{{"racks":[{{"rack":1,"tasks":2}}],"slots_ns":5000000,"shuffle_ns":7,"limits":{},"others_ns":9,"price_ns":5000016}}"#,
        limits(3, 0, 0)
    );
    let answer = format!(
        r#"{{"now_ns":5,"run":1,"policy":"joint","jobs":[{{"id":4,"name":"sort-1"}}],"decisions":[
        {{"job":4,"stage":0,"at_ns":1000000,"turn":{{"place":1,"of":3,"by":"work","value_ns":2000000000}},"rule":"home","again":false,
        "racks":[{{"rack":0,"tasks":8}}],"open":[{{"rack":0,"slots":9}},{{"rack":2,"slots":1}}],"losers":0,"lost":[]}},
        {{"job":4,"stage":1,"at_ns":2000000,"turn":null,"rule":"least-price","again":true,"racks":[{{"rack":3,"tasks":2}}],"open":[],
        "estimate":{best},"losers":12,"lost":[{other}]}}]}}"#
    );
    let table = rendered(ShowCommand::Decisions, OutputFormat::Table, &answer).unwrap();
    let lines: Vec<&str> = table.lines().map(str::trim).collect();
    let words = |line: &str| {
        line.split("  ").map(str::trim).filter(|w| !w.is_empty()).collect::<Vec<_>>().join("|")
    };
    let rows: Vec<String> = lines[3..].iter().map(|l| words(l)).collect();
    assert_eq!(
        rows,
        [
            "sort-1|0|1ms|1 of 3, work 2s|home; free: r0: 9, r2: 1|r0: 8|-|-|-|-|-|-",
            "sort-1|1|2ms|-|least price of 13; placed again|r3: 2|0ns|1ms|pair|40MB in 2 pairs|0ns|1ms",
            "lost by 4ms|r1: 2|5ms|7ns|ports|-|9ns|5ms",
        ],
        "{table}"
    );
    let csv = rendered(ShowCommand::Decisions, OutputFormat::Csv, &answer).unwrap();
    let rows: Vec<&str> = csv.lines().skip(1).collect();
    assert_eq!(
        rows,
        [
            "sort-1,0,1000000,1,3,work,2000000000,home,false,false,0,0:8,0:9 2:1,,,,,,,,,,,,,",
            "sort-1,1,2000000,,,,,least-price,true,false,12,3:2,,,,0,1000000,1000000,7,0,0,2,40000000,0,0,1000000",
            "sort-1,1,2000000,,,,,least-price,true,true,12,1:2,,,,5000000,7,3,7,0,0,0,0,0,9,5000016",
        ]
    );
}

#[test]
fn what_is_asked_of_decisions_is_in_the_path() {
    use clap::Parser as _;
    let asked = |line: &str| {
        let argv = ["heliostat", "show"].into_iter().chain(line.split(' '));
        let crate::cli::Command::Show(args) =
            crate::cli::Cli::try_parse_from(argv).unwrap().command
        else {
            panic!("not show")
        };
        path(&args)
    };
    assert_eq!(asked("decisions"), "/api/v1/jobs/decisions");
    assert_eq!(
        asked("decisions --job a&b/1 --stage 2"),
        "/api/v1/jobs/decisions?job=a%26b%2F1&stage=2"
    );
}

#[test]
fn paths_and_switches_are_shown() {
    let answer = r#"{"revision":7,"now_ns":5,"policy":"hit","cost":9000000,"paths":[{"from":0,"to":7,"switches":["leaf0","spine1","leaf3"],
        "by":"manual","held":false,"bytes":3000000,"rate_bps":500000000}],"switches":[{"name":"leaf0","tier":"access","load_bps":500000000,
        "capacity_bps":null,"pairs":1},{"name":"spine1","tier":"core","load_bps":0,"capacity_bps":1000000000,"pairs":0}]}"#;
    let csv = |what| rendered(what, OutputFormat::Csv, answer).unwrap();
    assert_eq!(
        csv(ShowCommand::Paths),
        "from,to,ports,switches,by,held,bytes,rate_bps\nh0-0,7,,leaf0 spine1 leaf3,manual,false,3000000,500000000\n"
    );
    let types = answer.replacen(
        r#""rate_bps":500000000}"#,
        r#""rate_bps":500000000,"types":["access","core","access"],"types_unmet":true}"#,
        1,
    );
    let lines = rendered(ShowCommand::Paths, OutputFormat::Csv, &types).unwrap();
    assert!(
        lines.starts_with("from,to,ports,switches,by,held,bytes,rate_bps,types,types_unmet\n"),
        "{lines}"
    );
    assert!(lines.ends_with(",access core access,true\n"), "{lines}");
    assert!(
        rendered(ShowCommand::Paths, OutputFormat::Table, &types)
            .unwrap()
            .contains("access core access (not met)")
    );
    let ports = "to,link,rate_bps,sent_bps,bytes,packets,drops,backlog_bytes";
    let want = format!(
        "switch,tier,pairs,load_bps,capacity_bps,{ports}\nleaf0,access,1,500000000,,,,,,,,,\nspine1,core,0,0,1000000000,,,,,,,,\n"
    );
    assert_eq!(csv(ShowCommand::Switches), want, "nothing is measured in virtual time");
    let to = |to: &str, bytes| {
        format!(
            r#"{{"to":"{to}","link":null,"rate_bps":1000,"sent_bps":8,"bytes":{bytes},"packets":3,"drops":1,"backlog_bytes":66}}"#
        )
    };
    let ports =
        format!(r#""pairs":1,"strays":0,"ports":[{},{}]}},"#, to("r0", 4000), to("spine1", 5000));
    let measured = answer.replacen(r#""pairs":1},"#, &ports, 1);
    let lines = rendered(ShowCommand::Switches, OutputFormat::Csv, &measured).unwrap();
    assert!(
        lines.contains(
            "\nleaf0,access,1,500000000,,spine1,,1000,8,5000,3,1,66\nspine1,core,0,0,1000000000,,"
        ),
        "{lines}"
    );
    let lines = rendered(ShowCommand::Switches, OutputFormat::Table, &measured).unwrap();
    assert!(
        lines.contains("9kB")
            && lines.contains("5kB")
            && lines.contains("16b/s")
            && lines.contains(" 6 "),
        "sums and ports: {lines}"
    );
    let table = rendered(ShowCommand::Paths, OutputFormat::Table, answer).unwrap();
    assert!(
        table.contains("leaf0 > spine1 > leaf3")
            && table.contains("not yet")
            && table.contains("500Mb/s"),
        "{table}"
    );
}

#[test]
fn queues_are_shown() {
    let queue = |priority: &str, bytes: u64| {
        format!(
            r#"{{"priority":{priority},"bytes":{bytes},"packets":{},"drops":2,"backlog_bytes":0}}"#,
            bytes / 1000
        )
    };
    let quiet = r#"{"priority":7,"bytes":0,"packets":0,"drops":0,"backlog_bytes":0}"#;
    let port = format!(
        r#"{{"node":"h0-0","port":"eth0","to":"tor0","rate_bps":1000000,"queues":[{},{},{quiet}]}}"#,
        queue("null", 5000),
        queue("0", 7000)
    );
    let answer = format!(r#"{{"revision":1,"now_ns":5,"measured_ns":4,"ports":[{port}]}}"#);
    let head = "node,port,to,rate_bps,priority,bytes,packets,drops,backlog_bytes\n";
    let lines = "h0-0,eth0,tor0,1000000,short,5000,5,2,0\nh0-0,eth0,tor0,1000000,0,7000,7,2,0\nh0-0,eth0,tor0,1000000,7,0,0,0,0\n";
    assert_eq!(
        rendered(ShowCommand::Queues, OutputFormat::Csv, &answer).unwrap(),
        format!("{head}{lines}")
    );
    let table = rendered(ShowCommand::Queues, OutputFormat::Table, &answer).unwrap();
    assert!(
        table.contains("7kB")
            && table.contains("1Mb/s")
            && table.lines().filter(|l| l.contains("h0-0")).count() == 2,
        "{table}"
    );
    let none = r#"{"revision":1,"now_ns":5,"measured_ns":null,"ports":[]}"#;
    assert_eq!(rendered(ShowCommand::Queues, OutputFormat::Csv, none).unwrap(), head);
}

#[test]
fn a_topology_and_stats_are_shown() {
    let t =
        crate::config::read_topology(&crate::testing::shipped("topologies/hybrid-4x2.yaml"), "t")
            .unwrap();
    let answer = serde_json::to_string(&wire::Topology::from(&t)).unwrap();
    let table = rendered(ShowCommand::Topology, OutputFormat::Table, &answer).unwrap();
    assert!(
        table.contains("20:1") && table.contains("1Gb/s, delta 10ms, not-all-stop, simplex"),
        "{table}"
    );
    let csv = rendered(ShowCommand::Topology, OutputFormat::Csv, &answer).unwrap();
    assert!(csv.contains("\nh3-1,r3,2,1000000000,100000000\n"), "{csv}");
    let json = rendered(ShowCommand::Topology, OutputFormat::Json, &answer).unwrap();
    assert_eq!(serde_json::from_str::<wire::Topology>(&json).unwrap(), wire::Topology::from(&t));
}

#[test]
fn what_is_empty_is_said_and_what_has_not_happened_is_left_out() {
    let none = r#"{"revision":7,"now_ns":2500000000,"circuits":[]}"#;
    assert_eq!(
        rendered(ShowCommand::Circuits, OutputFormat::Table, none).unwrap(),
        "no circuits, 2.5s after the daemon's start\n"
    );
    assert!(
        rendered(ShowCommand::Circuits, OutputFormat::Csv, none)
            .unwrap()
            .starts_with("plane,input"),
        "programs get the header"
    );
    let mine = rendered(ShowCommand::Circuits, OutputFormat::Table, CIRCUITS).unwrap();
    let policys = rendered(
        ShowCommand::Circuits,
        OutputFormat::Table,
        &CIRCUITS.replace(r#""manual":true"#, r#""manual":false"#),
    )
    .unwrap();
    assert!(mine.contains("by hand") && !policys.contains("by hand"), "{policys}");
    let quiet = r#"{"count":0,"p50_ns":0,"p99_ns":0,"max_ns":0}"#;
    let measured = r#"{"count":2,"p50_ns":1000,"p99_ns":2000,"max_ns":3000}"#;
    let stats = format!(
        r#"{{"revision":1,"now_ns":5,"mechanism":"timed","cycles":3,"late_cycles":0,"missed_cycles":0,"fallbacks":0,"circuits_set":0,
        "poll":{quiet},"decide":{measured},"apply":{quiet},"cycle":{quiet},"dark_asked":{quiet},"dark_achieved":{quiet},
        "probes_ok":0,"probes_wrong":1,"probes_lost":0,"failures":[]}}"#
    );
    let table = rendered(ShowCommand::Stats, OutputFormat::Table, &stats).unwrap();
    assert!(
        table.contains("1us / 2us / 3us")
            && table.contains("probes wrong")
            && table.contains("late cycles"),
        "{table}"
    );
    assert!(
        ["probes ok", "poll", "fallbacks", "failures"].iter().all(|w| !table.contains(w)),
        "{table}"
    );
    let csv = rendered(ShowCommand::Stats, OutputFormat::Csv, &stats).unwrap();
    assert!(
        csv.contains("poll_p50_ns,0")
            && csv.contains("decide_p99_ns,2000")
            && csv.contains("fallbacks,0"),
        "{csv}"
    );
}

#[test]
fn what_is_not_an_answer_is_an_error() {
    for answer in ["", "{}", "[]", "<html>"] {
        assert_eq!(
            rendered(ShowCommand::Circuits, OutputFormat::Table, answer).unwrap_err().code(),
            1
        );
    }
}

#[test]
fn no_daemon_is_code_4_and_a_wrong_url_is_usage() {
    // A port that is taken, where nothing listens.
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
    let silent = socket.local_addr().unwrap().as_socket().unwrap();
    let args = |url: String| Args {
        what: ShowCommand::Ports,
        job: None,
        stage: None,
        output: OutputFormat::Table,
        watch: None,
        place: Where { controller: Some(url), ..Where::default() },
    };
    assert_eq!(run(&args(format!("http://{silent}"))).unwrap_err().code(), 4);
    for bad in ["ftp://x", "http://", "localhost:1", "http://a/b/c"] {
        assert_eq!(run(&args(bad.into())).unwrap_err().code(), 2, "{bad}");
    }
}

#[test]
fn everything_is_shown_from_a_server() {
    use crate::api;
    use crate::control::{Controller, policy::CircuitPolicy};
    use crate::runtime::handle::Handle;
    let text = crate::testing::shipped("topologies/fat-tree-4.yaml");
    let topology = std::sync::Arc::new(crate::config::read_topology(&text, "t").unwrap());
    let controller =
        Controller::new(topology.clone(), CircuitPolicy::default(), Time::ZERO, Span::ZERO);
    let (handle, _ends) =
        Handle::new(topology, Default::default(), controller.snapshot(Time::ZERO, "test"), 0);
    let token = "0123456789abcdef";
    let listen = Some(([127, 0, 0, 1], 0).into());
    let server = api::serve(
        handle,
        api::ServerOptions { listen, token: Some(token.into()), ..api::ServerOptions::default() },
    )
    .unwrap();
    let controller = format!("http://{}/", server.address.unwrap());
    let client = |token: Option<&str>| Client::new(&controller, token.map(Into::into));
    let known = client(Some(token)).unwrap();
    for what in <ShowCommand as clap::ValueEnum>::value_variants() {
        let answer = known.get(what.path()).unwrap();
        for output in [OutputFormat::Table, OutputFormat::Csv, OutputFormat::Json] {
            assert!(!rendered(*what, output, &answer).unwrap().is_empty());
        }
    }
    let refused = CliError::from(client(None).unwrap().get("/api/v1/stats").unwrap_err());
    assert!(refused.code() == 1 && refused.to_string().contains("Bearer"), "{refused}");
}

#[test]
fn a_second_look_at_the_demand_tells_rates() {
    let demand = |now: u64, sent: u64, ocs: u64| -> wire::Demand {
        parse(&format!(
            r#"{{"revision":7,"now_ns":{now},"demand_bytes":[[0,0],[0,0]],"sent_bytes":[[0,{sent}],[9,0]],
            "over_ocs_bytes":[[0,{ocs}],[0,0]],"backlog_bytes":[[0,0],[0,0]]}}"#
        ))
        .unwrap()
    };
    // 50 MB in half a second are 800 Mb/s, and three quarters of them went over circuits; the other
    // pair sent nothing.
    let told = rates(
        &demand(1_000_000_000, 10_000_000, 1_000_000),
        &demand(1_500_000_000, 60_000_000, 38_500_000),
    );
    let line: Vec<&str> = told.lines().last().unwrap().split_whitespace().collect();
    assert_eq!(line.join(" "), "r0 r1 800Mb/s 75.0%", "{told}");
    assert!(told.contains("in the last 500ms") && !told.contains("r1   r0"), "{told}");
    let same = demand(1_500_000_000, 60_000_000, 1);
    assert_eq!(
        rates(&same, &demand(1_700_000_000, 60_000_000, 1)),
        "nothing was sent in the last 200ms\n"
    );
    assert!(rates(&same, &same).starts_with("nothing"), "no time has passed");
}

#[test]
fn no_circuits_now_says_how_many_there_were_and_planes_have_dark_times_of_their_own() {
    let quiet = r#"{"count":0,"p50_ns":0,"p99_ns":0,"max_ns":0}"#;
    let dark = r#"{"count":1,"p50_ns":10000000,"p99_ns":11000000,"max_ns":12000000}"#;
    let stats = |set: u64| {
        format!(
            r#"{{"revision":1,"now_ns":5,"mechanism":"timed","cycles":3,"late_cycles":0,"missed_cycles":0,"fallbacks":0,"circuits_set":{set},
            "poll":{quiet},"decide":{quiet},"apply":{quiet},"cycle":{quiet},"dark_asked":{quiet},"dark_achieved":{quiet},
            "dark_by_plane":[{{"plane":1,"asked":{dark},"achieved":{dark}}}],"probes_ok":0,"probes_wrong":0,"probes_lost":0,"failures":[]}}"#
        )
    };
    let told = |set| were_set(&parse(&stats(set)).unwrap());
    assert_eq!(told(0), "none was set since the start\n");
    assert!(
        told(1).starts_with("1 circuit set since the start")
            && told(34).starts_with("34 circuits set"),
        "{}",
        told(34)
    );
    let table = rendered(ShowCommand::Stats, OutputFormat::Table, &stats(1)).unwrap();
    assert!(
        table.contains("plane 1: dark achieved, p50 / p99 / max")
            && table.contains("10ms / 11ms / 12ms"),
        "{table}"
    );
    let csv = rendered(ShowCommand::Stats, OutputFormat::Csv, &stats(1)).unwrap();
    assert!(csv.contains("plane_1_dark_asked_p99_ns,11000000"), "{csv}");
}
