//! What somebody who knows the capacity would have got out of a run.
//!
//! The oracle takes the arrivals as they were and the behaviour of the upstream
//! over time, and runs a fluid server: work drains at the rate of the slots, in
//! order of arrival. It admits a request if and only if its answer still comes
//! within the objective's latency. Failures that do not depend on load hit the
//! oracle as well: they reduce what an admitted request is worth. While the
//! upstream is down nothing can be got out of it, and nothing is admitted.
//!
//! An upstream of several endpoints is one such server for each, and arrivals go to
//! them one after the other: the oracle chooses what to admit, not where it goes.
//!
//! Edges: retries are not in the list (the oracle's callers need none); the
//! spread of service times is not simulated, only the mean, so that a run may
//! reach slightly more or less than 1.0 of it.

use std::time::Duration;

use crate::arrivals::Arrival;
use crate::profile::Behaviour;
use crate::scenario::{Scenario, Stages, UpstreamProfile};

/// The oracle's verdict on one request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Verdict {
    /// Whether it would have been admitted.
    pub admitted: bool,
    /// Expected number of good answers: 0 when not admitted, 1 when nothing else is wrong.
    pub good: f64,
}

impl Verdict {
    /// Nothing can be got out of it.
    const NOTHING: Self = Self {
        admitted: false,
        good: 0.0,
    };
}

/// Judges every arrival of a scenario; the verdicts are in the order of `arrivals`.
#[must_use]
pub fn judge(scenario: &Scenario, arrivals: &[Arrival]) -> Vec<Verdict> {
    let slo = scenario.slo.latency;
    let mut servers: Vec<Server> = scenario
        .upstreams
        .iter()
        .map(|profile| Server::new(profile, slo))
        .collect();
    arrivals
        .iter()
        .map(|arrival| {
            let target = scenario
                .clients
                .get(arrival.client)
                .map(|client| client.upstream.as_str());
            let server = servers
                .iter_mut()
                .find(|server| Some(server.name.as_str()) == target);
            server.map_or(Verdict::NOTHING, |server| server.judge(arrival))
        })
        .collect()
}

/// One upstream: its endpoints, of which each arrival meets the next.
struct Server {
    name: String,
    stages: Stages,
    endpoints: Vec<Endpoint>,
    turn: usize,
}

impl Server {
    fn new(profile: &UpstreamProfile, slo: Duration) -> Self {
        let endpoint = |index| Endpoint::new(profile.stages_of(index), slo);
        Self {
            name: profile.name.clone(),
            stages: profile.stages(),
            endpoints: (0..profile.max_endpoints()).map(endpoint).collect(),
            turn: 0,
        }
    }

    fn judge(&mut self, arrival: &Arrival) -> Verdict {
        let in_rotation = behaviour(&self.stages, arrival.at).map_or(1, |now| now.endpoints);
        let in_rotation = usize::try_from(in_rotation).unwrap_or(usize::MAX).max(1);
        let index = self.turn % in_rotation;
        self.turn = self.turn.wrapping_add(1);
        let endpoint = self.endpoints.get_mut(index);
        endpoint.map_or(Verdict::NOTHING, |endpoint| endpoint.judge(arrival))
    }
}

/// A fluid server with the stages of one endpoint.
struct Endpoint {
    stages: Stages,
    slo: Duration,
    /// Work in line, in slot-seconds.
    backlog: f64,
    now: Duration,
}

impl Endpoint {
    const fn new(stages: Stages, slo: Duration) -> Self {
        Self {
            stages,
            slo,
            backlog: 0.0,
            now: Duration::ZERO,
        }
    }

    fn judge(&mut self, arrival: &Arrival) -> Verdict {
        self.drain_until(arrival.at);
        let up = behaviour(&self.stages, arrival.at).filter(|behaviour| behaviour.mode.is_up());
        let Some(behaviour) = up else {
            return Verdict::NOTHING;
        };
        let service = behaviour.service_for(&arrival.path).mean();
        let on_time = 1.0 - late_share(behaviour, &arrival.path, self.slo);
        let correct = 1.0 - behaviour.errors.map_or(0.0, |errors| errors.share);
        let deadline = arrival.at + self.slo.saturating_sub(service);
        let admitted = self.work_until(arrival.at, deadline) >= self.backlog;
        if admitted {
            // A request that fails at once holds no slot.
            self.backlog += service.as_secs_f64() * correct;
        }
        Verdict {
            admitted,
            good: if admitted { on_time * correct } else { 0.0 },
        }
    }

    fn drain_until(&mut self, at: Duration) {
        self.backlog = (self.backlog - self.work_until(self.now, at)).max(0.0);
        self.now = at;
    }

    /// Slot-seconds that can be worked off from `from` to `to`.
    fn work_until(&self, from: Duration, to: Duration) -> f64 {
        let ends = self
            .stages
            .iter()
            .skip(1)
            .map(|(at, _)| *at)
            .chain(std::iter::once(Duration::MAX));
        let stages = self.stages.iter().zip(ends);
        stages
            .filter(|((_, behaviour), _)| behaviour.mode.is_up())
            .map(|((start, behaviour), end)| {
                let length = end.min(to).saturating_sub((*start).max(from));
                f64::from(behaviour.slots) * length.as_secs_f64()
            })
            .sum()
    }
}

/// The behaviour at a time.
fn behaviour(stages: &Stages, at: Duration) -> Option<&Behaviour> {
    let next = stages.partition_point(|(from, _)| *from <= at);
    let current = next.checked_sub(1).and_then(|index| stages.get(index));
    current.map(|(_, behaviour)| behaviour)
}

/// Share of answers that are too late however little is in line: those that take so long by themselves, and those
/// that are delayed behind their slot.
fn late_share(behaviour: &Behaviour, path: &str, slo: Duration) -> f64 {
    let law = behaviour.service_for(path);
    let (share, by) = behaviour
        .delay
        .map_or((0.0, Duration::ZERO), |delay| (delay.share, delay.by));
    let delayed = slo
        .checked_sub(by)
        .map_or(1.0, |left| law.share_above(left));
    (1.0 - share) * law.share_above(slo) + share * delayed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrivals::schedule;

    fn scenario(load: &str, upstream: &str) -> Scenario {
        let text = format!(
            "name='t'\ntitle='t'\nprose='p'\nseed=3\nduration='20s'\n[[clients]]\nload={load}\n[[upstreams]]\nname='main'\n{upstream}"
        );
        Scenario::parse(&text, "test").unwrap()
    }

    fn good_per_second(scenario: &Scenario, from: u64, to: u64) -> f64 {
        let arrivals = schedule(scenario);
        let verdicts = judge(scenario, &arrivals);
        let window = Duration::from_secs(from)..Duration::from_secs(to);
        let good: f64 = arrivals
            .iter()
            .zip(&verdicts)
            .filter(|(a, _)| window.contains(&a.at))
            .map(|(_, v)| v.good)
            .sum();
        good / f64::from(u32::try_from(to - from).unwrap())
    }

    #[test]
    fn admits_everything_below_capacity() {
        let s = scenario("[{at='0s', x=0.7}]", "");
        assert!(
            judge(&s, &schedule(&s))
                .iter()
                .all(|verdict| verdict.admitted)
        );
    }

    #[test]
    fn gets_the_capacity_out_of_an_overload() {
        let s = scenario("[{at='0s', x=5.0}]", "");
        let good = good_per_second(&s, 1, 20);
        assert!(
            (399.0..=401.0).contains(&good),
            "capacity is 400 a second, found {good}"
        );
    }

    #[test]
    fn follows_a_capacity_that_halves() {
        let s = scenario("[{at='0s', x=2.0}]", "timeline=[{at='10s', slots=8}]");
        let good = good_per_second(&s, 11, 20);
        assert!((199.0..=201.0).contains(&good), "{good}");
    }

    #[test]
    fn gets_nothing_out_of_a_dead_upstream() {
        let s = scenario(
            "[{at='0s', x=0.7}]",
            "timeline=[{at='5s', mode='fail'}, {at='10s', mode='serve'}]",
        );
        assert!(good_per_second(&s, 5, 10) < 1e-9);
        assert!(good_per_second(&s, 10, 20) > 260.0);
    }

    #[test]
    fn is_hit_by_errors_that_do_not_depend_on_load() {
        let s = scenario(
            "[{at='0s', x=0.5}]",
            "behaviour={errors={share=0.3}, delay={share=0.2, by='500ms'}}",
        );
        let share = good_per_second(&s, 0, 20) / 200.0;
        assert!(
            (share - 0.56).abs() < 0.03,
            "0.7 x 0.8 of 200 a second, found {share}"
        );
    }
}
