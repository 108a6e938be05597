//! Demand matrices that are drawn the same way on every machine: the classes on which circuit
//! solvers differ.
//!
//! | class | what |
//! |---|---|
//! | a | dense, uniform |
//! | b | sparse and skewed, Solstice's workload: 4 heavy and 12 light destinations a rack |
//! | c | one dominant permutation, hot rows and noise |
//! | d | all equal: one huge tie |
//! | e | uniform in {0, 1, 2, 3} |
//! | g | gravity: `r_i * c_j`, log-uniform; the worst case of Hungarian solvers |
//! | x | incast: a sixteenth of the racks receives |
//! | y | half of the racks is idle |
//!
//! Sequences for warm starts: `w1` (class b, every entry drifts by up to 1 % a step), `w2` (class
//! b, 5 % of the rows are drawn again each step), `w3` (class g with the drift of `w1`).

use heliostat::demand::DemandMatrix;

const TOP: u64 = 100_000_000_000;

/// splitmix64.
struct Draw(u64);

impl Draw {
    fn new(tag: &str, racks: usize) -> Self {
        let hash = tag.bytes().fold(0xcbf2_9ce4_8422_2325u64, |h, b| {
            (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3)
        });
        let mut d = Self(hash ^ (racks as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        d.next();
        d
    }
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
    fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(n)) >> 64) as u64
    }
    fn range(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }
    /// One cycle through all (Sattolo): no fixed point.
    fn derangement(&mut self, n: usize) -> Vec<usize> {
        let mut p: Vec<usize> = (0..n).collect();
        for i in (1..n).rev() {
            p.swap(i, self.below(i as u64) as usize);
        }
        p
    }
    /// `x` with up to `permille` more or less.
    fn jitter(&mut self, x: u64, permille: u64) -> u64 {
        let part = |k: u64| (u128::from(x) * u128::from(k) / 1000) as u64;
        let (low, high) = (part(1000 - permille), part(1000 + permille));
        self.range(low, high.max(low))
    }
    /// Log-uniform in [1, 2^bits).
    fn factor(&mut self, bits: u64) -> u64 {
        let e = self.below(bits);
        (1 << e) + self.below(1 << e)
    }
}

/// Class `a`, `b`, `c`, `d`, `e`, `g`, `x` or `y` in bytes (`e`: small integers).
pub fn matrix(class: char, racks: usize) -> DemandMatrix {
    drawn(class, racks, 0)
}

/// [`matrix`] from a seed; that of seed 0 is [`matrix`] itself.
pub fn drawn(class: char, racks: usize, seed: u64) -> DemandMatrix {
    let r = racks;
    let seed = if seed == 0 { String::new() } else { seed.to_string() };
    let mut g = Draw::new(&format!("{class}{}{seed}", if class == 'e' { 's' } else { 'B' }), r);
    let mut d = vec![0u64; r * r];
    match class {
        'a' => d.iter_mut().for_each(|c| *c = g.range(1, TOP)),
        'b' => d = skewed(&mut g, r),
        'c' => d = dominant(&mut g, r),
        'd' => d.fill(TOP / 10),
        'e' => d.iter_mut().for_each(|c| *c = g.range(0, 3)),
        'g' => d = gravity(&mut g, r),
        'x' => {
            let hot = g.derangement(r);
            for &j in &hot[..(r / 16).max(2)] {
                (0..r).for_each(|i| d[i * r + j] = g.range(1, TOP));
            }
        }
        'y' => {
            for i in 0..r / 2 {
                for _ in 0..3 {
                    let j = g.below(r as u64) as usize;
                    if i != j {
                        d[i * r + j] += g.range(1, TOP);
                    }
                }
            }
        }
        other => panic!("no class {other}"),
    }
    demand(r, &d)
}

/// `steps` matrices of sequence `w1`, `w2` or `w3`.
pub fn sequence(name: &str, racks: usize, steps: usize) -> Vec<DemandMatrix> {
    let mut g = Draw::new(&format!("{name}B"), racks);
    let mut d = if name == "w3" { gravity(&mut g, racks) } else { skewed(&mut g, racks) };
    if name == "w3" {
        (0..racks).for_each(|i| d[i * racks + i] = 0);
    }
    let mut out = vec![demand(racks, &d)];
    while out.len() < steps {
        if name == "w2" {
            redraw_rows(&mut g, racks, &mut d);
        } else {
            d.iter_mut().filter(|x| **x > 0).for_each(|x| *x = g.jitter(*x, 10));
        }
        out.push(demand(racks, &d));
    }
    out
}

fn demand(racks: usize, cells: &[u64]) -> DemandMatrix {
    DemandMatrix::zero(racks).map_pairs(|i, j, _| cells[i.index() * racks + j.index()])
}

fn skewed(g: &mut Draw, r: usize) -> Vec<u64> {
    let mut d = vec![0; r * r];
    for k in 0..16 {
        let to = g.derangement(r);
        for (i, j) in to.into_iter().enumerate() {
            d[i * r + j] += g.jitter(if k < 4 { TOP * 7 / 10 / 4 } else { TOP * 3 / 10 / 12 }, 100);
        }
    }
    d
}

fn dominant(g: &mut Draw, r: usize) -> Vec<u64> {
    let noise = TOP / 1000;
    let to = g.derangement(r);
    let mut hot = vec![false; r];
    g.derangement(r)[..(r / 8).max(1)].iter().for_each(|&k| hot[k] = true);
    let mut d = vec![0; r * r];
    for i in 0..r {
        for j in 0..r {
            let x = g.range(1, noise) + if to[i] == j { noise * r as u64 / 2 } else { 0 };
            d[i * r + j] = (if hot[i] { 10 * x } else { x }).min(8 * TOP);
        }
    }
    d
}

fn gravity(g: &mut Draw, r: usize) -> Vec<u64> {
    let rows: Vec<u64> = (0..r).map(|_| g.factor(18)).collect();
    let columns: Vec<u64> = (0..r).map(|_| g.factor(18)).collect();
    (0..r * r).map(|k| rows[k / r] * columns[k % r]).collect()
}

fn redraw_rows(g: &mut Draw, r: usize, d: &mut [u64]) {
    for _ in 0..(r / 20).max(1) {
        let i = g.below(r as u64) as usize;
        d[i * r..(i + 1) * r].fill(0);
        for k in 0..16 {
            let j = g.below(r as u64 - 1) as usize;
            let j = j + usize::from(j >= i);
            d[i * r + j] += g.jitter(if k < 4 { TOP * 7 / 40 } else { TOP * 3 / 120 }, 100);
        }
    }
}
