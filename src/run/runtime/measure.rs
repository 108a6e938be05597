//! What this machine can really carry: small emulations whose circuits all send at once, larger and
//! larger.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use serde::Serialize;

use crate::circuits::timetable::Reservation;
use crate::coflows::bounds::payload_rate;
use crate::coflows::elephants::Admit;
use crate::coflows::{CoflowSpec, FlowSpec};
use crate::fabric::Fabric;
use crate::ids::{CoflowId, HostId, PlaneId, RackId};
use crate::kernel::msg::Tcp;
use crate::kernel::network::EmulatedNetwork;
use crate::kernel::scale::Capacity;
use crate::kernel::traffic::Traffic;
use crate::kernel::{Clock, KernelFabric, Mechanism};
use crate::plan::Op;
use crate::topology::{Plane, StopMode, Topology};
use crate::units::{BitRate, Bytes, Span, Time};

pub mod loads;
pub mod switches;

/// Share of its nominal payload rate that a rack must carry for its circuit to be honest.
pub const HONEST: f64 = 0.95;
/// Slow start, and the queues' filling, are over by then.
const WARM_UP: Span = Span::millis(300);
/// How long bytes are counted.
const COUNTED: Span = Span::millis(700);
/// What one look costs, building and taking down included.
const LOOK: Span = Span::millis(1_200);
/// A look that was not honest and had this average gets a second chance.
const CLOSE: f64 = 0.85;
/// Numbers of racks that are tried: each a fifth to a half more than the one before.
const RACKS: [usize; 13] = [2, 3, 4, 6, 8, 12, 16, 20, 24, 32, 48, 64, 96];

/// One look: `racks` racks, each sending at its circuit's rate to the next.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CircuitLook {
    /// Number of racks, one host each.
    pub racks: usize,
    /// Every circuit's rate.
    #[serde(rename = "rate_bps")]
    pub rate: BitRate,
    /// Rate of all circuits together.
    #[serde(rename = "total_bps")]
    pub total: BitRate,
    /// Share of its nominal payload rate that the average rack carried, 0..=1.
    #[serde(rename = "average_share")]
    pub average: f64,
    /// What the worst rack carried.
    #[serde(rename = "worst_share")]
    pub worst: f64,
}

impl CircuitLook {
    /// Whether every rack had all its rate.
    pub fn honest(&self) -> bool {
        self.worst >= HONEST
    }
}

/// What share of the processors' time others take now, 0..=1, seen over `span`; zero where the
/// kernel does not say.
pub fn others(span: Span) -> f64 {
    let (begun, clock) = (processor_time(), Clock::start());
    clock.sleep_until(Time::ZERO + span);
    match (begun, processor_time()) {
        (Some((busy, all)), Some((busy_now, all_now))) if all_now > all => {
            (busy_now - busy) as f64 / (all_now - all) as f64
        }
        _ => 0.0,
    }
}

/// Ticks spent working (or stolen by the host of a virtual machine), and all ticks.
fn processor_time() -> Option<(u64, u64)> {
    let text = std::fs::read_to_string("/proc/stat").ok()?;
    let ticks: Vec<u64> = text
        .lines()
        .next()?
        .split_whitespace()
        .skip(1)
        .take(8)
        .map_while(|w| w.parse().ok())
        .collect();
    let all: u64 = ticks.iter().sum();
    let idle = ticks.get(3)? + ticks.get(4)?;
    Some((all - idle, all))
}

/// Builds a ring of circuits (rack r sends to rack r + 1), lets every rack send one TCP flow, and
/// counts what arrives. Takes a little more than a second.
///
/// # Errors
/// What the kernel refused.
pub fn look(racks: usize, rate: BitRate, mechanism: Mechanism) -> io::Result<CircuitLook> {
    let plane = Plane {
        id: PlaneId(0),
        rate,
        delta: Span::millis(1),
        stop: StopMode::NotAllStop,
        duplex: false,
    };
    let topology = Arc::new(Topology::uniform(
        "doctor",
        racks,
        1,
        BitRate(rate.0 * 2),
        BitRate(rate.0 / 10),
        vec![plane],
    ));
    let (clock, tcp) = (Clock::start(), Tcp::default());
    let net = EmulatedNetwork::build(topology.clone(), "heliostat:doctor", Some(tcp))?;
    let mut fabric = KernelFabric::install(net, mechanism, Admit::Marked, clock)?;
    let hosts: Arc<Vec<OwnedFd>> = fabric.host_namespaces()?;
    ring(&mut fabric, clock, racks)?;
    let traffic = Traffic::start(topology, hosts, clock, tcp.congestion, |_| {})?;
    let enough = Bytes(rate.bytes_per_second().saturating_mul(60));
    for r in 0..racks {
        let flow =
            FlowSpec { from: HostId::from(r), to: HostId::from((r + 1) % racks), bytes: enough };
        let spec = CoflowSpec::new(CoflowId::from(r), "", clock.now(), vec![flow]);
        traffic.launch(&spec, |_, _| true);
    }
    clock.sleep_until(clock.now() + WARM_UP);
    let (begun, before) = (clock.now(), received(&traffic, racks));
    clock.sleep_until(begun + COUNTED);
    let (ended, after) = (clock.now(), received(&traffic, racks));
    let nominal = payload_rate(rate).0 as f64 * ended.since(begun).as_secs_f64() / 8.0;
    let shares: Vec<f64> =
        before.iter().zip(&after).map(|(b, a)| a.saturating_sub(*b) as f64 / nominal).collect();
    Ok(CircuitLook {
        racks,
        rate,
        total: BitRate(rate.0 * racks as u64),
        average: shares.iter().sum::<f64>() / racks as f64,
        worst: shares.into_iter().fold(f64::INFINITY, f64::min),
    })
}

fn ring(fabric: &mut KernelFabric, clock: Clock, racks: usize) -> io::Result<()> {
    // Writing the operations takes time too.
    let at = clock.now() + fabric.notice() + Span::millis(5);
    let up_from = at + Span::millis(1);
    let circuit = |r: usize| Reservation {
        plane: PlaneId(0),
        input: RackId::from(r),
        output: RackId::from((r + 1) % racks),
        setup_at: at,
        up_from,
        until: Time::MAX,
    };
    let ops: Vec<Op> = (0..racks).map(|r| Op::Reserve(circuit(r))).collect();
    let results = fabric.apply(&ops, clock.now());
    clock.sleep_until(up_from + Span::millis(5));
    results.into_iter().try_for_each(|r| r.outcome.map(drop).map_err(io::Error::other))
}

/// By rack, the bytes that it has got across.
fn received(traffic: &Traffic, racks: usize) -> Vec<u64> {
    let mut by_rack = vec![0; racks];
    for (id, pairs) in traffic.progress() {
        by_rack[id.index()] = pairs.iter().map(|p| p.bytes.0).sum();
    }
    by_rack
}

/// Measures the three classes of [`Capacity`]: for each the largest number of racks that all have
/// their rate. `time` is shared out evenly; `seen` is called at every look.
///
/// # Errors
/// What the kernel refused.
pub fn capacity(
    mechanism: Mechanism,
    time: Span,
    mut seen: impl FnMut(&CircuitLook),
) -> io::Result<Capacity> {
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
    let guess = Capacity::assumed(cores);
    let looks = (time.0 / LOOK.0 / 3).max(2) as usize;
    let mut class = |rate: BitRate, guess: BitRate| {
        let mut second_chance = true;
        climb(rate, start(rate, guess), looks, |racks| {
            let l = look(racks, rate, mechanism).inspect(&mut seen)?;
            // What disturbs a look only ever makes it worse.
            let again = !l.honest() && l.average > CLOSE && std::mem::take(&mut second_chance);
            let l2 = if again {
                look(racks, rate, mechanism).inspect(&mut seen)?
            } else {
                return Ok(l);
            };
            Ok(if l2.worst > l.worst { l2 } else { l })
        })
    };
    Ok(Capacity {
        fast: class(BitRate::mbit(1000), guess.fast)?,
        middle: class(BitRate::mbit(250), guess.middle)?,
        slow: class(BitRate::mbit(100), guess.slow)?,
        measured: true,
    })
}

/// Where to begin: the largest number of racks that the table allows.
fn start(rate: BitRate, guess: BitRate) -> usize {
    RACKS.iter().rposition(|&n| n as u64 * rate.0 <= guess.0).unwrap_or(0)
}

/// Goes down while a look is not honest, up while it is, at most `looks` times; a step never leads
/// back. Gives the largest honest total, or, when even two racks are too many, what those two
/// carried.
fn climb(
    rate: BitRate,
    start: usize,
    looks: usize,
    mut look: impl FnMut(usize) -> io::Result<CircuitLook>,
) -> io::Result<BitRate> {
    let mut k = start;
    let (mut good, mut bad) = (None, None);
    let mut carried = BitRate(0);
    for _ in 0..looks {
        let l = look(RACKS[k])?;
        if l.honest() {
            good = Some(k);
            if k + 1 == RACKS.len() || bad == Some(k + 1) {
                break;
            }
            k += 1;
        } else {
            bad = Some(k);
            carried = BitRate((l.total.0 as f64 * l.average) as u64);
            if k == 0 || good == Some(k - 1) {
                break;
            }
            // Far too much is left in longer steps.
            k = if l.average < 0.6 {
                k.saturating_sub(3).max(good.map_or(0, |g| g + 1))
            } else {
                k - 1
            };
        }
    }
    Ok(good.map_or(carried, |g| BitRate(rate.0 * RACKS[g] as u64)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Climbs on a machine that carries `limit` b/s.
    fn found(limit: u64, start: usize, looks: usize) -> (u64, usize) {
        let rate = BitRate::mbit(1000);
        let mut tried = 0;
        let total = climb(rate, start, looks, |racks| {
            tried += 1;
            let share = (limit as f64 / (rate.0 * racks as u64) as f64).min(1.0);
            Ok(CircuitLook {
                racks,
                rate,
                total: BitRate(rate.0 * racks as u64),
                average: share,
                worst: share,
            })
        });
        (total.expect("nothing fails").0 / 1_000_000_000, tried)
    }

    #[test]
    fn the_largest_honest_size_is_found_from_above_and_from_below() {
        assert_eq!(found(20_000_000_000, 7, 9), (20, 2));
        assert_eq!(found(20_000_000_000, 4, 9), (20, 5));
        assert_eq!(found(20_000_000_000, 12, 9), (20, 4));
        assert_eq!(found(5_000_000_000, 7, 9).0, 4);
        assert_eq!(found(1_000_000_000_000, 7, 9), (96, 6));
    }

    #[test]
    fn a_machine_that_is_too_slow_for_two_racks_says_what_they_carried() {
        assert_eq!(found(1_000_000_000, 0, 9), (1, 1));
        assert_eq!(found(1_000_000_000, 3, 2).0, 1);
    }

    #[test]
    fn looks_are_bounded() {
        for limit in [0, 1, 7, 30, 200] {
            for start in 0..RACKS.len() {
                assert!(found(limit * 1_000_000_000, start, 4).1 <= 4);
            }
        }
    }

    #[test]
    fn the_start_is_within_the_table() {
        assert_eq!(RACKS[start(BitRate::mbit(1000), BitRate::mbit(20_000))], 20);
        assert_eq!(RACKS[start(BitRate::mbit(250), BitRate::mbit(100))], 2);
        assert_eq!(RACKS[start(BitRate::mbit(100), BitRate::mbit(1_000_000))], 96);
    }
}
