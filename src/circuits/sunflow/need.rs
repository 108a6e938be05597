//! What one coflow still needs of the circuits, by pair of ports, sparse.

use std::sync::Arc;

use crate::units::Span;

/// A set of ports as bits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PortSet(Vec<u64>);

impl PortSet {
    /// All of `n` ports.
    pub fn all(n: usize) -> Self {
        let mut p = Self(vec![u64::MAX; n.div_ceil(64)]);
        if let (Some(last), false) = (p.0.last_mut(), n.is_multiple_of(64)) {
            *last = (1 << (n % 64)) - 1;
        }
        p
    }
    pub fn has(&self, port: u32) -> bool {
        self.0[port as usize / 64] >> (port % 64) & 1 == 1
    }
    pub fn add(&mut self, port: u32) {
        self.0[port as usize / 64] |= 1 << (port % 64);
    }
    pub fn remove(&mut self, port: u32) {
        self.0[port as usize / 64] &= !(1 << (port % 64));
    }
    /// The ports that are also in `words`, ascending.
    pub fn and<'a>(&'a self, words: &'a [u64]) -> impl Iterator<Item = u32> + 'a {
        self.0
            .iter()
            .zip(words)
            .enumerate()
            .flat_map(|(k, (a, b))| bits(a & b).map(move |bit| k as u32 * 64 + bit))
    }
    /// The words of bits.
    pub fn words(&self) -> &[u64] {
        &self.0
    }
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.and(&self.0)
    }
}

/// The lowest bit from `from` to before `to` that is set in both.
pub(super) fn lowest(a: &[u64], b: &[u64], from: u32, to: u32) -> Option<u32> {
    let first = from / 64;
    for (k, (a, b)) in (first..to.div_ceil(64)).zip(a.iter().zip(b).skip(first as usize)) {
        let word = a & b & if k == first { u64::MAX << (from % 64) } else { u64::MAX };
        if word != 0 {
            return Some(k * 64 + word.trailing_zeros()).filter(|&bit| bit < to);
        }
    }
    None
}

/// The highest bit from `from` to before `to` that is set in both.
pub(super) fn highest(a: &[u64], b: &[u64], from: u32, to: u32) -> Option<u32> {
    let last = to.checked_sub(1)? / 64;
    for k in (from / 64..=last).rev() {
        let below =
            if k == last && !to.is_multiple_of(64) { (1 << (to % 64)) - 1 } else { u64::MAX };
        let word = a[k as usize] & b[k as usize] & below;
        if word != 0 {
            return Some(k * 64 + 63 - word.leading_zeros()).filter(|&bit| bit >= from);
        }
    }
    None
}

fn bits(mut word: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        (word != 0).then(|| {
            let bit = word.trailing_zeros();
            word &= word - 1;
            bit
        })
    })
}

/// What one side's port still has: nanoseconds of light, and for how many pairs.
type PortNeed = (u64, u32);

/// Nanoseconds of light that one coflow still needs, by pair of an input and an output port. A pair
/// that needs none any more keeps its number.
#[derive(Clone, Debug)]
pub struct LightNeed {
    words: usize,
    /// By number of a pair: its input and output, ascending.
    pairs: Arc<[(u32, u32)]>,
    /// By number of a pair: what it still needs.
    rest: Vec<u64>,
    /// By input: the number of its first pair.
    first: Arc<[u32]>,
    /// By input, then by word: the outputs to which it still must send.
    rows: Vec<u64>,
    /// By output, then by word: the inputs from which it still must hear.
    columns: Vec<u64>,
    inputs: Vec<PortNeed>,
    outputs: Vec<PortNeed>,
    pending: usize,
}

impl LightNeed {
    /// `light` for pairs of `ports` ports each side: (input, output, nanoseconds), ascending, no
    /// pair twice, none of zero.
    pub fn new(ports: usize, light: &[(u32, u32, u64)]) -> Self {
        let words = ports.div_ceil(64);
        let mut need = Self {
            words,
            pairs: light.iter().map(|l| (l.0, l.1)).collect(),
            rest: light.iter().map(|l| l.2).collect(),
            first: (0..ports as u32).map(|i| light.partition_point(|l| l.0 < i) as u32).collect(),
            rows: vec![0; words * ports],
            columns: vec![0; words * ports],
            inputs: vec![(0, 0); ports],
            outputs: vec![(0, 0); ports],
            pending: light.len(),
        };
        for &(i, j, ns) in light {
            need.rows[i as usize * words + j as usize / 64] |= 1 << (j % 64);
            need.columns[j as usize * words + i as usize / 64] |= 1 << (i % 64);
            for port in [&mut need.inputs[i as usize], &mut need.outputs[j as usize]] {
                *port = (port.0.saturating_add(ns), port.1 + 1);
            }
        }
        need
    }

    /// Number of ports on each side.
    pub fn ports(&self) -> usize {
        self.first.len()
    }

    /// Pairs that still need light.
    pub fn pending(&self) -> usize {
        self.pending
    }

    /// The input and the output of a pair.
    pub fn pair(&self, number: u32) -> (u32, u32) {
        self.pairs[number as usize]
    }

    /// The number of a pair that still needs light. O(log R).
    pub fn find(&self, input: u32, output: u32) -> Option<u32> {
        self.needs(input, output).then(|| self.number(input, output))
    }

    fn number(&self, input: u32, output: u32) -> u32 {
        let from = self.first[input as usize];
        let to = self.first.get(input as usize + 1).map_or(self.pairs.len() as u32, |&f| f);
        from + self.pairs[from as usize..to as usize].partition_point(|p| p.1 < output) as u32
    }

    /// What a pair still needs.
    pub fn rest(&self, number: u32) -> Span {
        Span(self.rest[number as usize])
    }

    /// A pair had light for `ns`, at most what it needs.
    pub fn use_light(&mut self, number: u32, ns: u64) {
        let (i, j) = self.pairs[number as usize];
        self.rest[number as usize] -= ns;
        let through = self.rest[number as usize] == 0 && ns > 0;
        for port in [&mut self.inputs[i as usize], &mut self.outputs[j as usize]] {
            *port = (port.0.saturating_sub(ns), port.1 - u32::from(through));
        }
        if through {
            self.rows[i as usize * self.words + j as usize / 64] &= !(1 << (j % 64));
            self.columns[j as usize * self.words + i as usize / 64] &= !(1 << (i % 64));
            self.pending -= 1;
        }
    }

    /// The busiest port's light, and `delta` for each of its pairs: no schedule of circuits that
    /// are all dark is faster. O(R).
    pub fn bound(&self, delta: Span) -> Span {
        let port = |p: &PortNeed| Span(p.0) + delta * u64::from(p.1);
        self.inputs.iter().chain(&self.outputs).map(port).max().unwrap_or_default()
    }

    fn needs(&self, input: u32, output: u32) -> bool {
        self.rows[input as usize * self.words + output as usize / 64] >> (output % 64) & 1 == 1
    }

    /// By word: the outputs to which `input` still must send.
    pub(super) fn row(&self, input: u32) -> &[u64] {
        &self.rows[input as usize * self.words..][..self.words]
    }

    /// By word: the inputs from which `output` still must hear.
    pub(super) fn column(&self, output: u32) -> &[u64] {
        &self.columns[output as usize * self.words..][..self.words]
    }
}
