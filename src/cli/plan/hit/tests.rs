//! The tables of a plan: the preference matrix for people, and costs of switches.

use super::*;
use crate::placement::hit::wave::How;

fn shipped(file: &str) -> Topology {
    config::read_topology(&crate::testing::shipped(&format!("topologies/{file}.yaml")), file)
        .unwrap()
}

fn job(maps: u32, reduces: u32) -> JobList {
    let text = format!(
        "name: x\njobs: [{{name: a, maps: {maps}, map_time: 1s, shuffle: 60MB, reduces: {reduces}, reduce_time: 1s}}]"
    );
    config::read_jobs(&text, "f").unwrap()
}

fn planned(jobs: &JobList, t: &Topology, units: Units) -> (HitPlan, Switches) {
    let net = Switches::new(t, units);
    let options = HitPlanOptions { how: How::default(), seed: 1, matrix: true };
    (plan(&jobs.jobs[0], t, &net, t.hosts.iter().map(|h| h.slots).collect(), options).unwrap(), net)
}

#[test]
fn every_task_of_the_first_wave_shows_its_best_hosts_and_no_more_than_fit_a_line() {
    let (t, jobs) = (shipped("tree-64"), job(40, 10));
    let (p, net) = planned(&jobs, &t, Units::default());
    assert_eq!(
        p.grades.iter().map(|g| (g.stage, g.saved.len(), g.saved[0].len())).collect::<Vec<_>>(),
        [(1, 10, 64), (0, 40, 64)]
    );
    let rows = tasks(&jobs.jobs[0], &p, &t, &net);
    assert_eq!(rows.rows.len(), 50);
    for (row, task) in rows.rows.iter().zip(&p.tasks) {
        let told: Vec<&str> = row[4].split(", ").collect();
        assert!((1..=BEST).contains(&told.len()) && row[4].len() < 100, "{row:?}");
        let all = row_of(&p, task.stage, task.task).unwrap();
        let most = *all.iter().max().unwrap();
        assert!(told[0].ends_with(&saving(most)), "{row:?}");
        let first = told[0].split([' ', '.']).next().unwrap();
        assert_eq!(all[t.host_by_name(first).unwrap().index()], most, "{row:?}");
    }
}

#[test]
fn equal_hosts_of_one_switch_are_told_together() {
    let mut t = shipped("tree-64");
    t.hosts[2].slots = 0;
    let net = Switches::new(&t, Units::default());
    let mut row = vec![-5_000_000; 64];
    row[..5].copy_from_slice(&[7, 7, 99_000_000, 7, 8]);
    assert_eq!(best(&row, &t, &net), "h1-0 8B, h0-0..h0-1 7B, h0-3 7B, h1-1..h1-3 -5MB");
}

#[test]
fn costs_of_switches_count_and_are_read() {
    assert_eq!(units("1, 5,9"), Ok(Units { access: 1, aggregation: 5, core: 9 }));
    for bad in ["", "1", "1,2", "1,2,3,4", "1,2,x", "1,2,-3", "1,2,1000001"] {
        assert!(units(bad).unwrap_err().contains("as 1,5,9"), "{bad}");
    }
    let (t, jobs) = (shipped("tree-64"), job(16, 4));
    let (even, net) = planned(&jobs, &t, Units::default());
    let (dear, dear_net) = planned(&jobs, &t, Units { access: 1, aggregation: 5, core: 9 });
    let cost = |p: &HitPlan, net: &Switches| {
        p.flows.iter().map(|f| u128::from(f.bytes) * u128::from(net.cost(&f.list))).sum::<u128>()
    };
    assert_eq!((cost(&even, &net), cost(&dear, &dear_net)), (even.lists.after, dear.lists.after));
    for (p, net) in [(&even, &net), (&dear, &dear_net)] {
        let crossed: u128 =
            p.flows.iter().map(|f| u128::from(f.bytes) * f.list.0.len() as u128).sum();
        let (bytes, each) = crossing(p, net);
        assert!(
            (each - crossed as f64 / bytes as f64).abs() < 1e-9,
            "switches are counted whatever they cost"
        );
    }
    assert!(crossing(&dear, &dear_net).1 <= 5.0);
}
