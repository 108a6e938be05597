//! Jobs in the shape of TPC-H's 22 queries: a tree of joins of the tables that a query names, then
//! what groups and sorts their result.
//!
//! Published, by the benchmark's specification (TPC, revision 2.17 and 3.0, sections 2.4 and
//! 4.2.5), is which tables a query reads, those of its subqueries too; whether it has groups and an
//! order; the sizes of the tables. A stage reads each table. So a query of t tables has t stages
//! that read, t - 1 joins, one stage if its result has groups and one if it has an order or no
//! groups: 2 to 18 stages. Measured on Spark (Decima's file, [`super::decima`]) they are 2 to 18 as
//! well, at most three more or fewer of a query.
//!
//! Ours, drawn from the seed where nothing is published: in which order the tables are joined (any
//! two of what is there, so that trees are bushy as Spark's). A read table passes on a 32nd to a
//! half of its bytes, a join a quarter to all of what it receives, groups a hundredth. A table is
//! read whole.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::draws::{exponential, log_uniform};
use super::job_model::JobModel;
use super::jobs::{EdgeSpec, JobList, JobSpec, StageSpec};
use crate::ids::JobId;
use crate::units::{Bytes, Span, Time};

/// Bytes of the whole database, as in Corral's section 6.3.
pub const DATABASE: u64 = 200_000_000_000;

/// A table of the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TpchTable {
    /// The lines of the orders: two thirds of all bytes.
    Lineitem,
    /// Orders.
    Orders,
    /// Parts by supplier.
    Partsupp,
    /// Parts.
    Part,
    /// Customers.
    Customer,
    /// Suppliers.
    Supplier,
    /// 25 nations.
    Nation,
    /// 5 regions.
    Region,
}

use TpchTable::{Customer, Lineitem, Nation, Orders, Part, Partsupp, Region, Supplier};

/// All tables.
pub const TABLES: [TpchTable; 8] =
    [Lineitem, Orders, Partsupp, Part, Customer, Supplier, Nation, Region];

impl TpchTable {
    /// Rows at scale factor 1, and bytes of a row (section 4.2.5).
    const fn rows(self) -> (u64, u64) {
        match self {
            Lineitem => (6_001_215, 112),
            Orders => (1_500_000, 104),
            Partsupp => (800_000, 144),
            Part => (200_000, 155),
            Customer => (150_000, 179),
            Supplier => (10_000, 159),
            Nation => (25, 128),
            Region => (5, 124),
        }
    }

    /// Its part of a database of [`DATABASE`] bytes. Nations and regions are as many whatever the
    /// scale, so they do not grow.
    pub fn bytes(self) -> Bytes {
        let size = |t: Self| t.rows().0 * t.rows().1;
        match self {
            Nation | Region => Bytes(size(self)),
            _ => {
                let all: u64 = TABLES.iter().map(|&t| size(t)).sum();
                Bytes((u128::from(DATABASE) * u128::from(size(self)) / u128::from(all)) as u64)
            }
        }
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Lineitem => "lineitem",
            Orders => "orders",
            Partsupp => "partsupp",
            Part => "part",
            Customer => "customer",
            Supplier => "supplier",
            Nation => "nation",
            Region => "region",
        }
    }
}

/// What follows the joins of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tail {
    /// One sum over everything: a stage.
    Sum,
    /// An order without groups: a stage.
    Sorted,
    /// Groups, then their order: two stages.
    Grouped,
}

/// Queries 1 to 22: the tables in the order of their texts, those of subqueries behind, and what
/// follows the joins.
pub const QUERIES: [(&[TpchTable], Tail); 22] = [
    (&[Lineitem], Tail::Grouped),
    (&[Part, Supplier, Partsupp, Nation, Region, Partsupp, Supplier, Nation, Region], Tail::Sorted),
    (&[Customer, Orders, Lineitem], Tail::Grouped),
    (&[Orders, Lineitem], Tail::Grouped),
    (&[Customer, Orders, Lineitem, Supplier, Nation, Region], Tail::Grouped),
    (&[Lineitem], Tail::Sum),
    (&[Supplier, Lineitem, Orders, Customer, Nation, Nation], Tail::Grouped),
    (&[Part, Supplier, Lineitem, Orders, Customer, Nation, Nation, Region], Tail::Grouped),
    (&[Part, Supplier, Lineitem, Partsupp, Orders, Nation], Tail::Grouped),
    (&[Customer, Orders, Lineitem, Nation], Tail::Grouped),
    (&[Partsupp, Supplier, Nation, Partsupp, Supplier, Nation], Tail::Grouped),
    (&[Orders, Lineitem], Tail::Grouped),
    (&[Customer, Orders], Tail::Grouped),
    (&[Lineitem, Part], Tail::Sum),
    (&[Supplier, Lineitem, Lineitem], Tail::Grouped),
    (&[Partsupp, Part, Supplier], Tail::Grouped),
    (&[Lineitem, Part, Lineitem], Tail::Sum),
    (&[Customer, Orders, Lineitem, Lineitem], Tail::Grouped),
    (&[Lineitem, Part], Tail::Sum),
    (&[Supplier, Nation, Partsupp, Part, Lineitem], Tail::Sorted),
    (&[Supplier, Lineitem, Orders, Nation, Lineitem, Lineitem], Tail::Grouped),
    (&[Customer, Customer, Orders], Tail::Grouped),
];

/// The number of a query of these jobs by the job's name, such as 5 of `q5-12`.
pub fn query_of(name: &str) -> Option<usize> {
    let (number, rest) = name.strip_prefix('q')?.split_once('-')?;
    rest.parse::<u64>().ok()?;
    number.parse().ok().filter(|n| (1..=QUERIES.len()).contains(n))
}

/// Queries as jobs: every 22 of them are all queries, in an order that the seed draws. Gaps between
/// arrivals are exponential. O(tasks).
pub(super) fn draw(
    name: String,
    model: &JobModel,
    (n, seed): (usize, u64),
    mean_gap: Span,
) -> JobList {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let (mut at, mut left) = (Time::ZERO, Vec::new());
    let jobs = (0..n).map(|k| {
        if left.is_empty() {
            left = (0..QUERIES.len()).collect();
        }
        let query = left.swap_remove(rng.random_range(0..left.len()));
        let job = job(k, query, at, model, &mut rng);
        at += exponential(&mut rng, mean_gap);
        job
    });
    JobList::new(name, jobs.collect())
}

/// A query under construction.
struct QueryPlan<'a> {
    model: &'a JobModel,
    rng: &'a mut ChaCha8Rng,
    stages: Vec<StageSpec>,
    edges: Vec<EdgeSpec>,
}

/// What a stage passes on: its place, and bytes.
type Passed = (usize, u64);

impl QueryPlan<'_> {
    /// A stage that reads a table, and passes on a part of it. A table that is read again has a
    /// number.
    fn read(&mut self, table: TpchTable) -> Passed {
        let again =
            self.stages.iter().filter(|s| s.name.split('-').next() == Some(table.name())).count();
        let name = if again == 0 {
            table.name().into()
        } else {
            format!("{}-{}", table.name(), again + 1)
        };
        let bytes = table.bytes();
        let tasks = self.model.tasks(bytes, Bytes::ZERO).0;
        let times = self.model.times(tasks, bytes, self.model.map_rate, self.rng);
        self.stages.push(StageSpec {
            name,
            tasks,
            times,
            input: bytes,
            output: Bytes::ZERO,
            streams: false,
        });
        (self.stages.len() - 1, log_uniform(bytes.0 / 32, bytes.0 / 2, self.rng.random()))
    }

    /// A stage behind others. Returns its place and what it receives.
    fn stage(&mut self, name: String, from: &[Passed]) -> Passed {
        let received = from.iter().map(|p| p.1).sum::<u64>();
        let tasks = self.model.tasks(Bytes(received), Bytes(received)).1.max(1);
        let times = self.model.times(tasks, Bytes(received), self.model.reduce_rate, self.rng);
        let own = self.stages.len();
        self.stages.push(StageSpec {
            name,
            tasks,
            times,
            input: Bytes::ZERO,
            output: Bytes::ZERO,
            streams: false,
        });
        self.edges
            .extend(from.iter().map(|&(stage, bytes)| EdgeSpec::even(stage, own, Bytes(bytes))));
        (own, received)
    }
}

fn job(k: usize, query: usize, arrival: Time, model: &JobModel, rng: &mut ChaCha8Rng) -> JobSpec {
    let (recurring, queue) =
        (rng.random_range(0..100) < model.recurring, rng.random_range(0..model.queues.max(1)));
    let (tables, tail) = QUERIES[query];
    let mut plan = QueryPlan { model, rng, stages: Vec::new(), edges: Vec::new() };
    let mut parts: Vec<Passed> = tables.iter().map(|&t| plan.read(t)).collect();
    for join in 1..tables.len() {
        let mut take = || parts.swap_remove(plan.rng.random_range(0..parts.len()));
        let both = [take(), take()];
        let (own, received) = plan.stage(format!("join-{join}"), &both);
        parts.push((own, log_uniform(received / 4, received, plan.rng.random())));
    }
    let mut last = parts[0];
    let names: &[&str] = match tail {
        Tail::Sum => &["sum"],
        Tail::Sorted => &["sort"],
        Tail::Grouped => &["group", "sort"],
    };
    for &name in names {
        let (own, received) = plan.stage(name.into(), &[last]);
        last = (own, if name == "sort" { received } else { (received / 100).max(1) });
    }
    let QueryPlan { mut stages, mut edges, .. } = plan;
    stages[last.0].output = Bytes(last.1);
    edges.sort_unstable_by_key(|e| (e.from, e.to));
    JobSpec {
        id: JobId(0),
        name: format!("q{}-{k}", query + 1),
        queue,
        arrival,
        recurring,
        stages,
        edges,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::workload::decima;
    use crate::workload::job_model::Preset;

    fn drawn(n: usize, seed: u64) -> JobList {
        draw("t".into(), &Preset::Tpch.model(), (n, seed), Span::secs(1))
    }

    /// Stages of a query: each table is read, each but one is joined, and the result is summed,
    /// sorted, or grouped and sorted.
    fn stages((tables, tail): (&[TpchTable], Tail)) -> usize {
        2 * tables.len() - 1 + if tail == Tail::Grouped { 2 } else { 1 }
    }

    #[test]
    fn the_tables_are_the_specifications() {
        // Section 4.2.5: 641, 149, 110, 30, 26 and 2 MB, of 956 MB.
        for (table, mb) in TABLES.iter().zip([641.0, 149.0, 110.0, 30.0, 26.0, 2.0]) {
            let share = table.bytes().0 as f64 / DATABASE as f64;
            assert!((share - mb / 956.0).abs() < 0.02, "{table:?}: {share}");
        }
        assert_eq!((Nation.bytes(), Region.bytes()), (Bytes(3_200), Bytes(620)));
        let read = |t: TpchTable| QUERIES.iter().filter(|q| q.0.contains(&t)).count();
        assert_eq!(TABLES.map(read), [17, 12, 5, 8, 8, 10, 9, 3]);
        assert_eq!((stages(QUERIES[5]), stages(QUERIES[1])), (2, 18));
    }

    #[test]
    fn a_query_is_a_tree_of_joins() {
        let list = drawn(22, 1);
        let q5 = list.jobs.iter().find(|j| query_of(&j.name) == Some(5)).unwrap();
        let names: Vec<&str> = q5.stages.iter().map(|s| s.name.as_str()).collect();
        let want = [
            "customer", "orders", "lineitem", "supplier", "nation", "region", "join-1", "join-2",
            "join-3", "join-4", "join-5",
        ];
        assert_eq!((&names[..11], &names[11..]), (&want[..], &["group", "sort"][..]));
        // 134 GB in blocks of 256 MB.
        let lineitem = &q5.stages[2];
        assert_eq!((lineitem.tasks, lineitem.input.0.div_ceil(256_000_000)), (524, 524));
        assert!(
            q5.recurring
                && q5.stages[12].output.0 > 0
                && q5.stages[..12].iter().all(|s| s.output.0 == 0)
        );
    }

    proptest! {
        #![proptest_config(crate::testing::drawn(256))]

        #[test]
        fn every_seed_gives_whole_queries(seed in any::<u64>(), n in 0usize..50) {
            let list = drawn(n, seed);
            prop_assert_eq!(&list, &drawn(n, seed));
            let mut times = [0usize; 22];
            for j in &list.jobs {
                prop_assert_eq!(j.check(), Ok(()));
                let query = query_of(&j.name).unwrap();
                times[query - 1] += 1;
                let asked = QUERIES[query - 1];
                prop_assert_eq!(j.stages.len(), stages(asked));
                // Every stage but the last hands all that it passes on to one other: a tree, with
                // the tables as its leaves.
                let next = |s: usize| j.edges.iter().filter(|e| e.from == s).count();
                prop_assert!((0..j.stages.len()).all(|s| next(s) == usize::from(s + 1 < j.stages.len())));
                let read: Vec<Bytes> = j.stages.iter().map(|s| s.input).filter(|b| b.0 > 0).collect();
                prop_assert_eq!(read, asked.0.iter().map(|t| t.bytes()).collect::<Vec<_>>());
                for (s, stage) in j.stages.iter().enumerate() {
                    let came: u64 = stage.input.0 + j.edges_into(s).map(|e| e.bytes.0).sum::<u64>();
                    let went: u64 = stage.output.0 + j.edges.iter().filter(|e| e.from == s).map(|e| e.bytes.0).sum::<u64>();
                    prop_assert!(went <= came && went > 0 && (stage.input.0 > 0) == (j.edges_into(s).count() == 0));
                }
            }
            // As many of each query, or one more.
            prop_assert!(times.iter().all(|&t| t == n / 22 || t == n.div_ceil(22)));
        }
    }

    #[test]
    fn seeds_draw_other_queries_and_other_joins() {
        let order = |seed| {
            drawn(15, seed).jobs.iter().map(|j| query_of(&j.name).unwrap()).collect::<Vec<_>>()
        };
        assert_ne!(order(1), order(2));
        let joins = |seed| {
            drawn(22, seed).jobs.into_iter().find(|j| query_of(&j.name) == Some(8)).unwrap().edges
        };
        assert_ne!(joins(1), joins(2));
        assert_eq!(
            (
                query_of("q22-0"),
                query_of("q23-0"),
                query_of("q0-1"),
                query_of("job-1"),
                query_of("q1-x")
            ),
            (Some(22), None, None, None, None)
        );
    }

    /// Against Spark's plans of the same queries, as Decima's authors measured them.
    #[test]
    fn measured_queries_have_these_shapes() {
        let Some(dir) = crate::testing::traces("decima-tpch") else { return };
        let unpacked = std::process::Command::new("gzip")
            .arg("-dc")
            .arg(dir.join("tpch_decima.json.gz"))
            .output()
            .expect("gzip is there");
        let text = String::from_utf8(unpacked.stdout).unwrap();
        let queries = decima::parse(&text).unwrap();
        let all: Vec<_> = queries.iter().filter(|q| q.size == "100g").collect();
        assert_eq!(all.len(), 22);
        let (mut off, mut readers, mut ours) = (0, [0.0, 0.0], [0.0, 0.0]);
        let list = drawn(22, 1);
        for q in all {
            let asked = QUERIES[q.query as usize - 1];
            let by = stages(asked).abs_diff(q.stages.len());
            assert!(
                by <= 3,
                "query {}: {} stages, and {} measured",
                q.query,
                stages(asked),
                q.stages.len()
            );
            off += by;
            // Tasks that read, and all tasks.
            let leaf = |s: &&decima::QueryStage| s.parents.is_empty();
            readers[0] += q.stages.iter().filter(leaf).map(|s| f64::from(s.num_tasks)).sum::<f64>();
            readers[1] += asked.0.iter().map(|t| t.bytes().0 as f64 / DATABASE as f64).sum::<f64>();
            let job =
                list.jobs.iter().find(|j| query_of(&j.name) == Some(q.query as usize)).unwrap();
            ours[0] += job.input_bytes().0 as f64;
            ours[1] += job.shuffle_bytes().0 as f64;
        }
        assert!(off <= 22, "{off}: one stage a query in the mean");
        // What is read, in whole databases: 593 blocks of lineitem are 67 % of one there.
        let measured = readers[0] / (593.0 / 0.67);
        assert!(
            (measured - readers[1]).abs() < 0.1 * measured,
            "{measured} and {readers:?} databases are read"
        );
        println!(
            "stages off: {off} of 22 queries; databases read {measured:.1} and {:.1}; {:.0} % shuffled",
            readers[1],
            ours[1] / ours[0] * 100.0
        );
    }
}
