//! Solver calls alone, on the matrices of `support`: `cargo bench --bench matching` (pin it:
//! `taskset -c 1`).

use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use heliostat::circuits::Matching;
use heliostat::circuits::matching::{Prices, bipartite, bipartite_from, edmonds, greedy};
use heliostat::demand::DemandMatrix;

mod support;

type Solver = fn(&DemandMatrix) -> Matching;

fn cold(c: &mut Criterion) {
    let solvers: [(&str, Solver); 3] = [
        ("bipartite", |d| bipartite(d, None)),
        ("edmonds", |d| edmonds(d, None)),
        ("greedy", greedy),
    ];
    for (name, solve) in solvers {
        let mut group = c.benchmark_group(name);
        group.sample_size(10).measurement_time(Duration::from_secs(2));
        for class in ['a', 'b', 'c', 'd', 'e', 'g', 'x', 'y'] {
            for racks in [64, 256, 1024] {
                let d = support::matrix(class, racks);
                group.bench_with_input(BenchmarkId::new(class.to_string(), racks), &d, |b, d| {
                    b.iter(|| solve(black_box(d)))
                });
            }
        }
        group.finish();
    }
}

fn warm(c: &mut Criterion) {
    let mut group = c.benchmark_group("bipartite, warm");
    group.sample_size(10).measurement_time(Duration::from_secs(2));
    for name in ["w1", "w2", "w3"] {
        for racks in [128, 512, 1024] {
            let steps = support::sequence(name, racks, 4);
            let mut before = Prices::default();
            bipartite_from(&mut before, &steps[0], None);
            group.bench_with_input(BenchmarkId::new(name, racks), &steps[1], |b, d| {
                b.iter_batched(
                    || before.clone(),
                    |mut p| bipartite_from(&mut p, black_box(d), None),
                    criterion::BatchSize::SmallInput,
                );
            });
        }
    }
    group.finish();
}

criterion_group!(benches, cold, warm);
criterion_main!(benches);
