//! A model of three hosts with random clocks, for the laws of `large` and `lines`.

use proptest::prelude::*;

use super::super::bundle::{WORK_PER_BYTE, bytes};
use super::PairService;
use super::large::Large;
use super::lines::PairLines;
use crate::demand::hedera::Elephants;

const HOSTS: u32 = 3;

/// A flow, by its list.
#[derive(Clone, Copy)]
struct ListedFlow {
    due: u128,
    /// The work left when large flows were last asked for, or when it began.
    before: u128,
}

/// Clocks, flows by pair, the clock of each pair, and what is under test.
struct ModelNetwork {
    readings: Vec<u128>,
    places: Vec<PairService>,
    flows: Vec<Vec<ListedFlow>>,
    waiting: Vec<super::BundleEnds>,
    lines: PairLines,
    large: Large,
}

impl ModelNetwork {
    fn new(least: &[u128]) -> Self {
        let pairs = (HOSTS * HOSTS) as usize;
        let mut large = Large::default();
        large.begin(HOSTS as usize, pairs, least);
        Self {
            readings: vec![0; 2 * HOSTS as usize],
            places: vec![PairService::default(); pairs],
            flows: vec![Vec::new(); pairs],
            waiting: (0..pairs).map(|_| std::iter::empty().collect()).collect(),
            lines: PairLines::default(),
            large,
        }
    }

    fn service(&self, pair: usize) -> u128 {
        self.places[pair].service(|l| self.readings[l])
    }

    /// Advances the clocks; flows that are due end.
    fn pass(&mut self, by: &[u64]) {
        self.readings.iter_mut().zip(by).for_each(|(r, &by)| *r += u128::from(by));
        for pair in 0..self.flows.len() {
            let service = self.service(pair);
            let list = &mut self.flows[pair];
            while let Some((k, due)) = list
                .iter()
                .map(|f| f.due)
                .enumerate()
                .min_by_key(|f| f.1)
                .filter(|f| f.1 <= service)
            {
                list.remove(k);
                self.waiting[pair].pop(due);
                self.lines.change(pair as u32);
                self.large.pop(pair as u32, due);
                self.places[pair].link = self.places[pair].link.filter(|_| !list.is_empty());
            }
        }
    }

    fn push(&mut self, pair: u32, units: u64, receiver: bool) {
        let (k, left) = (pair as usize, u128::from(units) + 1);
        let due = self.service(k) + left;
        self.flows[k].push(ListedFlow { due, before: left });
        self.waiting[k].push(due);
        self.lines.change(pair);
        self.large.push(pair, due, left);
        if self.places[k].link.is_none() {
            self.go_over(pair, receiver);
        }
    }

    fn go_over(&mut self, pair: u32, receiver: bool) {
        let (k, old) = (pair as usize, self.places[pair as usize]);
        let link = if receiver { HOSTS + pair % HOSTS } else { pair / HOSTS };
        if !self.flows[k].is_empty() && old.link != Some(link) {
            let new = PairService {
                link: Some(link),
                ahead: self.service(k).wrapping_sub(self.readings[link as usize]),
            };
            self.places[k] = new;
            self.lines.go_over(pair, old, new);
            self.large.go_over(pair);
        }
    }

    /// Cancels every second flow of a pair.
    fn cancel(&mut self, pair: u32) {
        let k = pair as usize;
        let mut second = false;
        self.flows[k].retain(|_| {
            second = !second;
            second
        });
        self.large.keep(pair, self.flows[k].iter().map(|f| f.due));
        self.places[k].link = self.places[k].link.filter(|_| !self.flows[k].is_empty());
        self.waiting = self.flows.iter().map(|f| f.iter().map(|f| f.due).collect()).collect();
        self.lines.clear();
    }

    fn left(&self, pair: usize) -> impl Iterator<Item = u128> {
        let service = self.service(pair);
        self.flows[pair].iter().map(move |f| f.due - service)
    }

    /// The backlog, by lines and by going through all flows.
    fn look(&mut self, most: u128) -> [Vec<u64>; 2] {
        let slow = (0..self.flows.len())
            .map(|k| bytes(self.left(k).map(|left| left.min(most)).sum()).0)
            .collect();
        [self.lines.bytes(most, &self.readings, &mut self.waiting, &self.places), slow]
    }

    /// The large flows, as they are kept and by going through all flows.
    fn ask(&mut self, least: &[u128]) -> [Elephants; 2] {
        let mut slow = vec![0; self.flows.len()];
        for k in 0..self.flows.len() {
            slow[k] = self.flows[k].iter().filter(|f| f.before >= least[k / HOSTS as usize]).count()
                as u64;
            let service = self.service(k);
            self.flows[k].iter_mut().for_each(|f| f.before = f.due - service);
        }
        [self.large.ask(&self.readings, &self.places), Elephants::from_cells(HOSTS as usize, slow)]
    }
}

proptest! {
    #![proptest_config(crate::testing::drawn(256))]

    #[test]
    fn what_is_kept_of_pairs_is_what_their_flows_have(
        steps in prop::collection::vec(
            (prop::collection::vec(0..40u64, 6), 0..HOSTS * HOSTS, any::<bool>(), prop::option::of(0..200u64), 0..8u8),
            0..60,
        ),
        most in 0..150u128, least in prop::collection::vec(0..150u128, 3),
        scale in prop::sample::select(vec![1, WORK_PER_BYTE as u64 / 3, WORK_PER_BYTE as u64 * 1_000, 1 << 56]),
    ) {
        let (most, least) = (most * u128::from(scale), least.into_iter().map(|l| l * u128::from(scale)).collect::<Vec<_>>());
        let mut m = ModelNetwork::new(&least);
        for (by, pair, receiver, size, look) in steps {
            m.pass(&by.iter().map(|by| by * (scale / 3).max(1)).collect::<Vec<_>>());
            match size {
                Some(size) => m.push(pair, size * scale, receiver),
                None if look == 0 => m.cancel(pair),
                None => m.go_over(pair, receiver),
            }
            // Not after every step, so that several steps come between two looks.
            if look & 1 > 0 {
                let [lines, slow] = m.look(most);
                prop_assert_eq!(lines, slow);
            }
            if look & 2 > 0 {
                let [large, slow] = m.ask(&least);
                prop_assert_eq!(large, slow);
            }
        }
    }
}
