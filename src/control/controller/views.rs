//! What the API shows of a controller.

use super::Controller;
use crate::circuits::Matching;
use crate::circuits::SetBy;
use crate::demand::DemandMatrix;
use crate::histogram::Histograms;
use crate::ids::PlaneId;
use crate::meter::DurationMeter;
use crate::placement::advisor::NetworkState;
use crate::record::{self, CircuitState, CircuitView, PlaneDark, PortView, Snapshot, Stats};
use crate::units::Time;

impl Controller {
    /// Everything that the API shows, at `now`. O(planes x racks + circuits), whatever number of
    /// coflows is open.
    pub fn snapshot(&self, now: Time, mechanism: &str) -> Snapshot {
        let zero = DemandMatrix::zero(self.topology.rack_count());
        let seen = self.last.as_ref();
        Snapshot {
            revision: self.revision,
            now,
            mechanism: mechanism.into(),
            policy: self.policy.clone(),
            circuits: self.circuit_views(now),
            ports: self.port_views(now),
            demand: self.demand.clone(),
            sent: seen.map_or_else(|| zero.clone(), |s| s.sent.clone()),
            over_ocs: seen.map_or_else(|| zero.clone(), |s| s.over_ocs.clone()),
            backlog: seen.map_or_else(|| zero.clone(), |s| s.backlog.clone()),
            coflows: self.accounts.views(),
            proposals: self.promises.views(now),
            held: self.promises.held(now).collect(),
            ground: self.ground(now),
            stats: self.stats_now(),
            histograms: self.histograms(),
            paths: self.paths.view(),
            switches: None,
            queues: None,
            failures: self.failures.values().cloned().collect(),
            tampered: self.world.tampered().cloned(),
        }
    }

    /// What placements are judged by, at `now`. O(planes x racks + circuits + open coflows, and the
    /// pairs of those that have changed).
    pub fn standing(&self, now: Time) -> NetworkState {
        record::standing(self.ground(now), self.accounts.live(), self.promises.held(now))
    }

    /// The same without coflows.
    fn ground(&self, now: Time) -> NetworkState {
        let from = self.next_cycle.max(now) + self.policy.lead + self.notice;
        NetworkState {
            now,
            from,
            circuits: self.scheduler.set_by() == SetBy::Scheduler,
            threshold: self.policy.elephant_threshold,
            up: self.current(from),
            usable: self.usable(),
            coflows: vec![],
        }
    }

    fn stats_now(&self) -> Stats {
        let m = &self.meters;
        let by_plane = |(plane, (asked, achieved)): (&PlaneId, &(DurationMeter, DurationMeter))| {
            PlaneDark { plane: plane.0, asked: asked.quantiles(), achieved: achieved.quantiles() }
        };
        Stats {
            poll: m.poll.quantiles(),
            decide: m.decide.quantiles(),
            apply: m.apply.quantiles(),
            cycle: m.cycle.quantiles(),
            dark_asked: m.dark_asked.quantiles(),
            dark_achieved: m.dark_achieved.quantiles(),
            dark_by_plane: m.dark_by_plane.iter().map(by_plane).collect(),
            ..self.stats.clone()
        }
    }

    fn histograms(&self) -> Histograms {
        let m = &self.meters;
        Histograms {
            poll: m.poll.histogram().clone(),
            decide: m.decide.histogram().clone(),
            apply: m.apply.histogram().clone(),
            cycle: m.cycle.histogram().clone(),
            dark_asked: m.dark_asked.histogram().clone(),
            dark_achieved: m.dark_achieved.histogram().clone(),
            cct: self.accounts.completion_times().clone(),
        }
    }

    fn circuit_views(&self, now: Time) -> Vec<CircuitView> {
        let live = self.wanted.timetable.iter().filter(|r| r.until > now);
        live.map(|r| CircuitView {
            plane: r.plane,
            input: r.input,
            output: r.output,
            state: match (r.setup_at <= now, r.is_up(now)) {
                (_, true) => CircuitState::Up,
                (true, false) => CircuitState::SettingUp,
                (false, false) => CircuitState::Promised,
            },
            manual: self.manual.output(r.plane, r.input) == Some(r.output),
            setup_at: r.setup_at,
            up_from: r.up_from,
            until: (r.until < Time::MAX).then_some(r.until),
        })
        .collect()
    }

    fn port_views(&self, now: Time) -> Vec<PortView> {
        let mut views = Vec::new();
        for plane in &self.topology.planes {
            let mut up = Matching::empty(self.topology.rack_count());
            for r in self.wanted.timetable.iter().filter(|r| r.plane == plane.id && r.is_up(now)) {
                up.connect(r.input, r.output);
            }
            let mut from = vec![None; self.topology.rack_count()];
            up.pairs().for_each(|(i, j)| from[j.index()] = Some(i));
            views.extend(self.topology.racks.iter().map(|rack| PortView {
                plane: plane.id,
                rack: rack.id,
                sends_to: up.output(rack.id),
                receives_from: from[rack.id.index()],
                faulty: self.faults.why((plane.id, rack.id)).map(str::to_owned),
                counters:
                    self.last.as_ref().map_or_else(Default::default, |s| {
                        s.ports[plane.id.index()][rack.id.index()]
                    }),
            }));
        }
        views
    }
}
