//! Flips: nothing is lost or misdelivered, the dark time is what was asked for, and other ports do
//! not notice.

use std::collections::BTreeMap;
use std::ops::Range;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use heliostat::circuits::timetable::{Reservation, Timetable};
use heliostat::coflows::elephants::Admit;
use heliostat::fabric::Fabric;
use heliostat::ids::{PlaneId, RackId};
use heliostat::kernel::Mechanism;
use heliostat::kernel::netns;
use heliostat::kernel::network::Node;
use heliostat::kernel::switcher::{LateChange, Lateness};
use heliostat::plan::Op;
use heliostat::units::{BitRate, Span, Time};

use super::packets::{Arrivals, Flood, Sent, Sink};
use super::support::{Bench, topology};
use crate::tries::{Timing, TooSlow};

/// Writes a rotation ahead: from `first` on, every `period` all inputs of `inputs` move on to the
/// next of their outputs.
pub struct Rotation {
    pub first: Time,
    pub period: Span,
    pub delta: Span,
    /// By input: the outputs that it visits in turn.
    pub turns: Vec<(u32, Vec<u32>)>,
}

impl Rotation {
    fn reservation(&self, input: usize, k: u64) -> Reservation {
        let (i, outputs) = &self.turns[input];
        let setup_at = self.first + self.period * k;
        Reservation {
            plane: PlaneId(0),
            input: RackId(*i),
            output: RackId(outputs[k as usize % outputs.len()]),
            setup_at,
            up_from: setup_at + self.delta,
            until: setup_at + self.period,
        }
    }

    /// Writes periods, two ahead of the clock; returns the times that the calls took, a whole
    /// reconfiguration each. It returns when the last one is written; [`Rotation::wait`] waits for
    /// it.
    ///
    /// # Errors
    /// A reservation was written after its setup was to begin: the test itself was late.
    pub fn write(&self, b: &mut Bench, periods: Range<u64>) -> Result<Vec<Span>, TooSlow> {
        let mut took = vec![];
        for k in periods {
            // When k - 2 has ended there is room, and k is two periods away.
            b.clock.sleep_until((self.first + self.period * k).saturating_sub(self.period * 2));
            let ops: Vec<Op> =
                (0..self.turns.len()).map(|i| Op::Reserve(self.reservation(i, k))).collect();
            let begun = b.clock.now();
            let results = b.fabric.apply(&ops, begun);
            took.push(b.clock.now().since(begun));
            let (ended, setup) = (b.clock.now(), self.first + self.period * k);
            in_time!(ended < setup, "period {k} was written {} after it began", ended.since(setup));
            assert!(results.iter().all(|r| r.outcome.is_ok()), "{results:?}");
        }
        Ok(took)
    }

    /// Waits for the beginning of a period.
    pub fn wait(&self, b: &Bench, period: u64) {
        b.clock.sleep_until(self.first + self.period * period);
    }
}

fn quantiles(mut v: Vec<Span>) -> [Span; 3] {
    v.sort_unstable();
    [v[v.len() / 2], v[v.len() * 99 / 100], v[v.len() - 1]]
}

/// No circuit is up any more, so the queues run empty: then what was admitted has crossed, come
/// back, or had no room.
fn every_packet_is_accounted_for(b: &mut Bench) {
    let deadline = b.clock.now() + Span::secs(2);
    loop {
        let Some(a) = b.fabric.admitted().expect("counted") else { return };
        if a.admitted == a.crossed + a.sent_back + a.dropped {
            return println!("{a:?}");
        }
        assert!(b.clock.now() < deadline, "packets are lost: {a:?}");
        b.clock.sleep_until(b.clock.now() + Span::millis(1));
    }
}

/// What the kernel counted at a link.
#[derive(Clone, Copy, Debug, Default)]
struct AtLink {
    received: u64,
    sent: u64,
    /// Packets that found the other end's queue of the kernel full.
    full: u64,
}

/// The counters of a node's links by name.
fn links(node: &Node) -> BTreeMap<String, AtLink> {
    // The file of the thread's own namespace, whatever that of the process is.
    let text =
        netns::within(node.ns.as_fd(), || std::fs::read_to_string("/proc/thread-self/net/dev"))
            .expect("counters");
    let link = |line: &str| {
        let (name, numbers) = line.split_once(':')?;
        let n: Vec<u64> =
            numbers.split_whitespace().map(|w| w.parse().expect("a number")).collect();
        Some((name.trim().to_owned(), AtLink { received: n[1], sent: n[9], full: n[11] }))
    };
    text.lines().skip(2).filter_map(link).collect()
}

/// No circuit is up any more: all that ToRs sent to the OCS has come out at a ToR, at the other end
/// of its circuit or, too late for that, where it came from. The links count that under every
/// mechanism. Returns the packets that the kernel had no room for.
fn every_packet_comes_out(b: &Bench) -> u64 {
    let (net, deadline) = (b.fabric.network(), b.clock.now() + Span::secs(2));
    loop {
        let tors: Vec<AtLink> =
            net.tors.iter().filter_map(|t| links(&t.node).remove("ocs0")).collect();
        assert_eq!(tors.len(), net.tors.len(), "every ToR has a port to the OCS");
        let full: u64 =
            net.ocs.iter().flat_map(|o| links(&o.node).into_values()).map(|l| l.full).sum();
        let (sent, received): (u64, u64) =
            (tors.iter().map(|l| l.sent).sum(), tors.iter().map(|l| l.received).sum());
        if sent == received + full {
            println!("{sent} packets went to the OCS, {received} came out of it");
            return full + tors.iter().map(|l| l.full).sum::<u64>();
        }
        assert!(
            b.clock.now() < deadline,
            "packets are lost in the OCS: {sent} sent, {received} came out, {full} had no room; {tors:?}"
        );
        b.clock.sleep_until(b.clock.now() + Span::millis(1));
    }
}

/// How late the changes of circuits were made, for a line of figures.
pub fn lateness(b: &Bench) -> String {
    let told = |Lateness { changes, p50, p99, max }| {
        format!("; {changes} flips late by p50 {p50} p99 {p99} max {max}")
    };
    b.fabric.lateness().map_or_else(String::new, told)
}

/// Time by which the kernel may put off the delivery of a packet after its `send` returned: packets
/// sent this short before an edge are not judged.
const EDGE: Span = Span::micros(300);
/// Upper bound of the time by which a busy machine puts off a delivery.
const BUSY_EDGE: Span = Span::millis(10);

/// What became of the packets of a flood.
#[derive(Debug, Default)]
struct Judged {
    /// Packets that were judged.
    judged: u64,
    /// Packets that came out before the light, sent in the dark.
    leaked: u64,
    /// As these, but they came out in the light or later: a late delivery may have been.
    perhaps_leaked: u64,
    /// Packets sent in the light, long before its end, that did not come out.
    lost: u64,
    /// As these, shortly before its end: a late delivery may have met the dark.
    perhaps_lost: u64,
    /// Packets that came out at another rack than the one they were sent to.
    wrong: u64,
    /// Times without light, as the packets show them: of those changes at both edges of which the
    /// flood did not pause.
    dark: Vec<Span>,
}

impl Judged {
    /// `got`: by rack, from 1, when each packet came out. `slack(t)`: how late an input may be set
    /// that is due at `t`.
    fn new(
        rotation: &Rotation,
        n: u64,
        sent: &[Sent],
        got: &[Arrivals],
        slack: impl Fn(Time) -> Span,
    ) -> Self {
        let mut j = Self::default();
        for k in 1..n {
            let (now, before) = (rotation.reservation(0, k), rotation.reservation(0, k - 1));
            let arrivals = |r: &Reservation| &got[r.output.index() - 1].at;
            let inside = sent.partition_point(|p| p.before < now.setup_at)
                ..sent.partition_point(|p| p.before < now.until);
            let first = inside.clone().find(|&p| arrivals(&now).contains_key(&sent[p].id));
            let last = (0..sent.partition_point(|p| p.before < now.up_from))
                .rev()
                .find(|&p| arrivals(&before).contains_key(&sent[p].id));
            if let (Some(f), Some(l)) = (first, last)
                && l < f
            {
                let paused = |p: usize| sent[p + 1].before.since(sent[p].after) > EDGE;
                j.dark.extend(
                    (!paused(l) && !paused(f - 1)).then(|| sent[f].before.since(sent[l].after)),
                );
            }
            let slacks = [slack(now.setup_at), slack(now.up_from)];
            sent[inside].iter().for_each(|p| j.judge(p, &now, got, slacks));
        }
        j
    }

    fn judge(&mut self, p: &Sent, now: &Reservation, got: &[Arrivals], [dark, light]: [Span; 2]) {
        let reached = [0, 1].map(|s| got[s].at.get(&p.id));
        let target = now.output.index() - 1;
        let in_dark = p.before >= now.setup_at + dark && p.after + EDGE < now.up_from;
        let in_light = p.before >= now.up_from + light && p.after + EDGE < now.until;
        self.judged += u64::from(in_dark || in_light);
        if let (true, Some(&at)) = (in_dark, reached[0].or(reached[1])) {
            *(if at < now.up_from { &mut self.leaked } else { &mut self.perhaps_leaked }) += 1;
        }
        if in_light && reached[target].is_none() {
            *(if p.after + BUSY_EDGE < now.until {
                &mut self.lost
            } else {
                &mut self.perhaps_lost
            }) += 1;
        }
        self.wrong += u64::from(reached[1 - target].is_some());
    }
}

/// With `netlink` a thread sets the inputs: how late it was, by its own clock, with what was due at
/// `t`. A thread that slept over several instants does what was due at the last of them; what it
/// has not done yet may be late for ever.
fn set_late(late: &[LateChange], t: Time) -> Span {
    late.get(late.partition_point(|l| l.due < t))
        .map_or(Span::secs(3600), |l| (l.due + l.by).since(t))
}

fn dark_time(mechanism: Mechanism, delta: Span) -> Timing {
    let mut b = Bench::new(
        topology(5, BitRate::mbit(10_000), BitRate::mbit(100), delta),
        mechanism,
        Admit::Marked,
    );
    b.connect(&[(3, 4)]);
    let stop = Arc::new(AtomicBool::new(false));
    let sinks: Vec<Sink> = [1, 2, 4].map(|r| Sink::start(&b, r, stop.clone())).into();
    let period = delta + Span::millis(20);
    let first = b.clock.now() + Span::millis(500);
    let rotation = Rotation { first, period, delta, turns: vec![(0, vec![1, 2])] };
    let moving = Flood::start(&b, 0, stop.clone(), Span::micros(15), move |t| {
        1 + (t.since(first).0 / period.0 % 2) as u32
    });
    let fixed = Flood::start(&b, 3, stop.clone(), Span::micros(100), |_| 4);
    let n = 100;
    let written = rotation.write(&mut b, 0..n);
    rotation.wait(&b, n);
    stop.store(true, Relaxed);
    let (sent, kept) = (moving.join(), fixed.join());
    let got: Vec<Arrivals> = sinks.into_iter().map(Sink::join).collect();
    written?;
    let overflowed: u32 = got.iter().map(|a| a.overflowed).sum();
    in_time!(overflowed == 0, "the test did not read {overflowed} packets in time");
    let late = b.fabric.late();
    let slack = |t| {
        if mechanism == Mechanism::Timed {
            Span::ZERO
        } else {
            set_late(&late, t).max(Span::millis(1)) * 2
        }
    };
    let j = Judged::new(&rotation, n, &sent, &got, slack);
    let gap = kept.iter().filter(|p| !got[2].at.contains_key(&p.id)).count();
    in_time!(
        j.dark.len() >= 10,
        "the flood paused at the edges of all but {} changes",
        j.dark.len()
    );
    let [p50, p99, max] = quantiles(j.dark.clone());
    println!(
        "{} dark time asked {delta}: achieved p50 {p50} p99 {p99} max {max}; {} packets judged: leaked {}, lost {}, wrong rack {}; \
         the port beside lost {gap} of {}{}",
        mechanism.name(),
        j.judged,
        j.leaked + j.perhaps_leaked,
        j.lost + j.perhaps_lost,
        j.wrong,
        kept.len(),
        lateness(&b)
    );
    assert_eq!(
        (j.leaked, j.lost, j.wrong, gap),
        (0, 0, 0, 0),
        "leaked, lost, at a wrong rack, and lost at the port beside"
    );
    in_time!(
        (j.perhaps_leaked, j.perhaps_lost) == (0, 0),
        "{} packets crossed too late",
        j.perhaps_leaked + j.perhaps_lost
    );
    in_time!(j.judged > 10_000, "too few packets to judge: {}", j.judged);
    in_time!(
        mechanism != Mechanism::Timed || p50.0.abs_diff(delta.0) < 1_000_000,
        "dark for {p50}"
    );
    Ok(())
}

/// Each has the machine alone.
mod alone {
    use super::*;
    use crate::kernel::support::each_mechanism_alone;

    /// 1,000 flips under TCP load: four racks, each of which turns to the three others.
    #[test]
    fn a_thousand_flips_lose_nothing() {
        each_mechanism_alone("a_thousand_flips_lose_nothing", |mechanism| {
            let (period, delta) = (Span::millis(32), Span::millis(10));
            let topology = topology(4, BitRate::mbit(1000), BitRate::mbit(100), delta);
            let standing =
                Bench::standing_circuits_carry(topology.clone(), mechanism, Admit::Marked);
            let mut b = Bench::new(topology, mechanism, Admit::Marked);
            let flows: Vec<_> = (0..4u32)
                .flat_map(|i| (1..4).map(move |s| (i, (i + s) % 4, 4_000_000_000, true)))
                .collect();
            b.launch(&[flows]);
            let turns = (0..4).map(|i| (i, (1..4).map(|s| (i + s) % 4).collect())).collect();
            let rotation = Rotation { first: b.clock.now() + period * 3, period, delta, turns };
            let took = rotation.write(&mut b, 0..250)?;
            rotation.wait(&b, 250);
            let seen = b.fabric.observe(b.clock.now()).expect("observed");
            let late: u64 = seen.ports.iter().flatten().map(|p| p.late_packets).sum();
            let wrong: u64 = seen.ports.iter().flatten().map(|p| p.misdelivered).sum();
            // The four circuits are lit at the same time, so this is the rate of all in the light,
            // beside that of circuits that stay.
            let light = (period.0 - delta.0) as f64 / 1e9 * 250.0;
            let share = seen.over_ocs.total() as f64 * 8.0 / (light * standing);
            let [p50, p99, max] = quantiles(took);
            println!(
                "{} 1000 flips: sent back late {late}, misdelivered {wrong}; circuits carried {:.1} % of what they do when they stay, {:.0} Mb/s; one call for 4 ports p50 {p50} p99 {p99} max {max}{}",
                mechanism.name(),
                share * 100.0,
                standing / 1e6,
                lateness(&b)
            );
            every_packet_is_accounted_for(&mut b);
            let crossed: u64 = seen.ports.iter().flatten().map(|p| p.crossed_packets).sum();
            let full = every_packet_comes_out(&b);
            in_time!(
                full <= crossed / 1000,
                "the kernel had no room for {full} of {crossed} packets between two links"
            );
            assert_eq!(wrong, 0);
            // A machine that stalls longer than the guard is late, under either mechanism; what is
            // late is sent back, not lost.
            in_time!(late <= crossed / 100, "{late} of {crossed} packets came too late");
            in_time!(share > 0.35, "circuits carried {share} of what they do when they stay");
            Ok(())
        });
    }

    /// A flood of small packets from rack 0, whose circuit alternates between racks 1 and 2, beside
    /// a circuit that stays.
    #[test]
    fn the_dark_time_is_exact_and_others_do_not_blink() {
        each_mechanism_alone("the_dark_time_is_exact_and_others_do_not_blink", |mechanism| {
            for delta in [Span::millis(10), Span::millis(1)] {
                dark_time(mechanism, delta)?;
            }
            Ok(())
        });
    }

    /// One reconfiguration of all 16 ports, as the daemon writes it: all of it is taken, and takes
    /// a small part of an interval.
    #[test]
    fn sixteen_ports_are_reconfigured_at_once() {
        each_mechanism_alone("sixteen_ports_are_reconfigured_at_once", |mechanism| {
            let delta = Span::millis(2);
            let mut b = Bench::new(
                topology(16, BitRate::mbit(100), BitRate::mbit(10), delta),
                mechanism,
                Admit::Marked,
            );
            let turns = (0..16).map(|i| (i, (1..16).map(|s| (i + s) % 16).collect())).collect();
            let rotation = Rotation {
                first: b.clock.now() + Span::millis(60),
                period: Span::millis(20),
                delta,
                turns,
            };
            let [p50, p99, max] = quantiles(rotation.write(&mut b, 0..100)?);
            rotation.wait(&b, 100);
            println!(
                "{} 16 ports: p50 {p50} p99 {p99} max {max}{}",
                mechanism.name(),
                lateness(&b)
            );
            let next = Rotation { first: b.clock.now() + Span::secs(1), ..rotation };
            let wanted: Timetable = (0..16).map(|i| next.reservation(i, 0)).collect();
            let ops: Vec<Op> = wanted.iter().map(|r| Op::Reserve(*r)).collect();
            assert!(b.fabric.apply(&ops, b.clock.now()).iter().all(|r| r.outcome.is_ok()));
            assert_eq!(
                b.fabric.observe(b.clock.now()).expect("observed").programmed.timetable,
                wanted
            );
            in_time!(p50 < Span::millis(2), "half of the reconfigurations took {p50} or longer");
            Ok(())
        });
    }
}
