//! What is planned and how it is shown.

use clap::Parser;

use super::*;
use crate::cli::{Cli, Command};

fn args(line: &str) -> Result<Args, clap::Error> {
    let all = format!("heliostat plan circuits --matrix m {line}");
    let cli = Cli::try_parse_from(all.split_whitespace())?;
    let Command::Plan(p) = cli.command else { unreachable!() };
    let crate::cli::plan::PlanCommand::Circuits(a) = p.what else { panic!("not circuits") };
    Ok(a)
}

fn shown(line: &str, demand: &DemandMatrix, output: OutputFormat) -> String {
    let a = args(line).unwrap();
    render(&report(&a, demand, &plan(&a, demand).unwrap()), output)
}

#[test]
fn a_plan_in_three_forms() {
    let d = DemandMatrix::from_rows(&[&[0, 70, 20], &[0, 0, 30], &[0, 0, 0]]);
    let line = "--algorithm sunflow --delta 10ns --rate 8Gb/s";
    let table = shown(line, &d, OutputFormat::Table);
    assert!(table.contains("completion time") && table.contains("110ns"), "{table}");
    assert!(table.contains("1.000"), "{table}");
    let csv = shown(line, &d, OutputFormat::Csv);
    assert_eq!(
        csv,
        "plane,from,to,setup_at_ns,up_from_ns,until_ns,bytes\n0,0,1,0,10,80,70\n0,0,2,80,90,110,20\n0,1,2,0,10,40,30\n"
    );
    let json: serde_json::Value =
        serde_json::from_str(&shown(line, &d, OutputFormat::Json)).unwrap();
    assert_eq!(
        (&json["completion_ns"], &json["lower_bound_ns"], &json["algorithm"]),
        (&110.into(), &110.into(), &"sunflow".into())
    );
    let a = args(line).unwrap();
    let bars = picture(&report(&a, &d, &plan(&a, &d).unwrap())).bars;
    let dark = bars.iter().filter(|b| b.title.contains("dark")).count();
    assert_eq!((bars.len(), dark, bars[1].title.as_str()), (6, 3, "r0 -> r1: 10ns to 80ns, 70B"));
}

/// On planes for which they cannot plan ahead, algorithms are asked every interval, and get
/// through.
#[test]
fn planes_that_allow_no_plan_are_cleared_interval_by_interval() {
    let d = DemandMatrix::from_rows(&[&[0, 70, 20], &[0, 0, 30], &[0, 0, 0]]);
    for line in [
        "--algorithm bvn --duplex",
        "--algorithm eclipse --duplex",
        "--algorithm sunflow --stop-mode all-stop",
    ] {
        let a = args(&format!("{line} --delta 10ns --rate 8Gb/s --interval 50ns")).unwrap();
        assert!(plan(&a, &d).unwrap().completion.is_some(), "{line}");
        let a = args(&format!("{line} --delta 10ns --rate 8Gb/s")).unwrap();
        assert!(plan(&a, &d).unwrap().completion.is_some(), "{line}");
    }
}

#[test]
fn names_and_values_are_checked() {
    let said = |line| args(line).unwrap_err().to_string();
    assert!(
        said("--algorithm fastest").contains("unknown name `fastest`; allowed: `"),
        "{}",
        said("--algorithm fastest")
    );
    assert!(said("--algorithm bvn --rate 0b/s").contains("above zero"));
    assert!(said("--algorithm bvn --planes 0").contains("1..=64"));
    assert!(args("--algorithm bvn --stop-mode all-stop --duplex").unwrap().duplex);
}
