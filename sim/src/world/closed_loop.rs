//! Callers in a closed loop: the next request of each is due when the one before it has ended.

use std::time::Duration;

use super::call::SimCall;
use super::clock::START;
use super::event::WorldEvent;
use super::run::SimWorld;

impl SimWorld<'_> {
    /// Schedules the first request of each caller.
    pub(super) fn expect_members(&mut self) {
        for member in 0..self.members.len() {
            let first = self.members.get(member);
            if let Some(at) = first.and_then(|one| one.first(self.scenario, Duration::ZERO)) {
                self.expect_of(member, at);
            }
        }
    }

    /// A request of a caller has ended, with an answer 200 or without one: schedules its next one, if the story is not over by then.
    pub(super) fn expect_after(&mut self, member: usize, is_answered: bool) {
        let ended = self.now.saturating_since(START);
        let caller = self.members.get_mut(member);
        if let Some(at) = caller.and_then(|one| one.next(self.scenario, ended, is_answered)) {
            self.expect_of(member, at);
        }
    }

    fn expect_of(&mut self, member: usize, at: Duration) {
        let caller = self.members.get_mut(member);
        let Some(arrival) = caller.and_then(|caller| caller.request(self.scenario, at)) else {
            return;
        };
        self.open += 1;
        let call = self.calls.insert(SimCall {
            member: Some(member),
            ..SimCall::new(arrival)
        });
        self.push(START + at, WorldEvent::Due { call });
    }
}

#[cfg(test)]
mod tests {
    use crate::roster;
    use crate::scenario::Scenario;
    use crate::world::tally::BinCounts;
    use crate::world::{play_with, tally_with};

    #[test]
    fn a_run_that_keeps_no_requests_has_the_same_counts() {
        let text = "name='t'\ntitle='t'\nprose='p'\nseed=7\nduration='10s'\n[[clients]]\ndeadline='100ms'\n\
            closed_loop={callers=[{at='0s', count=40}, {at='4s', count=20}, {at='7s', count=60}], \
            after_failure={kind='constant', mean='10ms'}}";
        let scenario = Scenario::parse(text, "test").unwrap();
        let none = roster::all()
            .into_iter()
            .find(|kind| kind.name == "none")
            .unwrap();
        let crate::kind::Make::Published(make) = none.make else {
            panic!("a contender without hindsight");
        };
        let kept = play_with(&scenario, &make).unwrap();
        let tallied = tally_with(&scenario, &make).unwrap();
        let mut all = BinCounts::default();
        let bins = &tallied.tally.bins;
        bins.iter().for_each(|bin| all.add(&bin.counts));
        let objective = scenario.slo.latency;
        let good = kept.records.iter().filter(|one| one.is_good(objective));
        let good = u64::try_from(good.count()).unwrap();
        // What ends after the last bin is in none.
        assert!(good > 1_000 && good - all.good <= 60, "{good} {}", all.good);
        assert_eq!(all.offered, kept.asked);
    }
}
