//! Callers in a closed loop: the next request of each is due when the one before it has ended.

use std::time::Duration;

use tidegate_core::UpstreamKey;

use super::call::SimCall;
use super::clock::START;
use super::event::WorldEvent;
use super::run::SimWorld;
use crate::scenario::Callers;

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

    /// Decides through which proxy a caller sends: always the same one, unless that is away.
    pub(super) fn place_member(&mut self, call: usize, member: usize) {
        let own = member.checked_rem(self.proxies.len()).unwrap_or(0);
        let is_away = self.proxies.get(own).is_some_and(|proxy| proxy.is_away);
        let proxy = if is_away { self.any_proxy() } else { own };
        let named = self.client(call).and_then(|client| client.cohort.as_ref());
        let cohort = match named {
            Some(name) => UpstreamKey::hash(name, None),
            None if self.tells_cohorts() => {
                Callers::cohort_of(u32::try_from(member).unwrap_or(u32::MAX))
            }
            // Each request has a cohort of its own, as in the open loop.
            None => rand::Rng::random(&mut self.chance.placement),
        };
        if let Some(entry) = self.calls.get_mut(call) {
            entry.proxy = proxy;
            entry.cohort = cohort;
        }
    }

    fn tells_cohorts(&self) -> bool {
        let mut clients = self.scenario.clients.iter();
        clients.any(|client| client.cohort.is_some())
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
