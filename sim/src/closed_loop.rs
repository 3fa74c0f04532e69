//! What the callers of closed loops do: when they send, what, and how long they pause.
//!
//! When a caller sends depends on its answers, so it cannot be drawn before the run. What it sends, and how long it pauses, is
//! drawn from random streams of its own: the same seed gives each caller the same requests one after the other, and the same
//! pauses where the answers are alike, whichever contender it calls, in the simulator and on real sockets.

use std::time::Duration;

use crate::arrivals::{self, Arrival};
use crate::rng::{self, Generator, RngPurpose};
use crate::scenario::{ClosedLoop, Scenario};

/// One caller of a pool.
#[derive(Debug, Clone)]
pub struct LoopCaller {
    client: usize,
    member: u32,
    requests: Generator,
    conduct: Generator,
}

impl LoopCaller {
    /// Every caller that closed loops of a scenario ever have, client by client.
    #[must_use]
    pub fn all(scenario: &Scenario) -> Vec<Self> {
        let mut callers = Vec::new();
        for (client, stream) in (0..scenario.clients.len()).zip(0..) {
            let most = closed_loop(scenario, client).map_or(0, ClosedLoop::most);
            let generator = |purpose| rng::generator(scenario.seed, purpose);
            callers.extend((0..most).map(|member| Self {
                client,
                member,
                requests: generator(RngPurpose::LoopRequests(stream, member)),
                conduct: generator(RngPurpose::LoopConduct(stream, member)),
            }));
        }
        callers
    }

    /// The index of its client in the scenario.
    #[must_use]
    pub const fn client(&self) -> usize {
        self.client
    }

    /// When it sends for the first time, from the start of the run, in a run that is played from `begun` on; none if it never does.
    #[must_use]
    pub fn first(&self, scenario: &Scenario, begun: Duration) -> Option<Duration> {
        self.active_from(scenario, begun)
    }

    /// When it sends again after a request that ended at `ended`, with an answer 200 or without one; none if it does not before
    /// the end of the story.
    pub fn next(
        &mut self,
        scenario: &Scenario,
        ended: Duration,
        is_answered: bool,
    ) -> Option<Duration> {
        let law = closed_loop(scenario, self.client)?.pause_after(is_answered);
        let pause = law.map_or(Duration::ZERO, |law| law.sample(&mut self.conduct));
        self.active_from(scenario, ended.saturating_add(pause))
    }

    /// The request that it sends at time `at`.
    pub fn request(&mut self, scenario: &Scenario, at: Duration) -> Option<Arrival> {
        let client = scenario.clients.get(self.client)?;
        let draws = (&mut self.requests, &mut self.conduct);
        Some(arrivals::arrival(at, self.client, client, draws.0, draws.1))
    }

    fn active_from(&self, scenario: &Scenario, at: Duration) -> Option<Duration> {
        let from = closed_loop(scenario, self.client)?.active_from(self.member, at);
        from.filter(|from| *from < scenario.duration)
    }
}

fn closed_loop(scenario: &Scenario, client: usize) -> Option<&ClosedLoop> {
    scenario.clients.get(client)?.closed_loop.as_ref()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario(seed: u64) -> Scenario {
        let text = format!(
            "name='t'\ntitle='t'\nprose='p'\nseed={seed}\nduration='9s'\n[[clients]]\nload=[{{at='0s', x=0.5}}]\n\
             [[clients]]\npaths={{'/a'=0.5, '/b'=0.5}}\n\
             closed_loop={{callers=[{{at='1s', count=2}}, {{at='4s', count=1}}, {{at='6s', count=3}}], \
             think={{kind='lognormal', mean='100ms', sigma=0.5}}, after_failure={{kind='constant', mean='1s'}}}}"
        );
        Scenario::parse(&text, "test").unwrap()
    }

    #[test]
    fn callers_come_in_their_time_and_stop_with_the_story() {
        let story = scenario(1);
        let second = Duration::from_secs;
        let callers = LoopCaller::all(&story);
        for (begun, expected) in [(0, [1, 1, 6]), (5, [5, 6, 6]), (7, [7, 7, 7])] {
            let firsts = callers.iter().map(|one| one.first(&story, second(begun)));
            let firsts: Vec<_> = firsts.collect();
            assert_eq!(firsts, expected.map(|at| Some(second(at))), "{begun}");
        }
        assert!(callers.iter().all(|caller| caller.client() == 1));
        // Caller, end of a request without an answer, and when it sends again.
        for (member, ended, again) in [
            (0, 2, Some(3)),
            (0, 3, Some(4)),
            (1, 2, Some(3)),
            (1, 3, Some(6)),
            (1, 7, Some(8)),
            (1, 8, None),
            (0, 10, None),
        ] {
            let next = callers[member].clone().next(&story, second(ended), false);
            assert_eq!(next, again.map(second), "{member} at {ended}");
        }
    }

    #[test]
    fn each_caller_has_the_same_requests_and_pauses_whatever_the_others_do() {
        let drawn = |seed, member: usize| {
            let story = scenario(seed);
            let mut caller = LoopCaller::all(&story).swap_remove(member);
            let mut drawn = Vec::new();
            for _ in 0..20 {
                let request = caller.request(&story, Duration::ZERO).unwrap();
                let pause = caller.next(&story, Duration::from_secs(6), true).unwrap();
                drawn.push((request.path, pause));
            }
            drawn
        };
        assert_eq!(drawn(1, 0), drawn(1, 0));
        assert_ne!(drawn(1, 0), drawn(1, 1), "another caller");
        assert_ne!(drawn(1, 0), drawn(2, 0), "another seed");
    }
}
