//! Envoy's `admission_control` in front of `adaptive_concurrency`, in one chain, as users configure them.
//!
//! Each decides alone. The replies of the second pass back through the first, which counts their 503 as a failure of the
//! upstream: refusals cause refusals.
//!
//! Source: Envoy 1.40, `FilterManager::sendLocalReply`, which runs the response filters of the whole chain,
//! <https://github.com/envoyproxy/envoy/blob/main/source/common/http/filter_manager.cc>; the filters themselves
//! are in [`super::admission_control`] and [`super::adaptive_concurrency`].

use std::time::Duration;

use tidegate_core::Instant;

use super::adaptive_concurrency::Gradient;
use super::admission_control::AdmissionControl;
use crate::contender::{Admission, Ask, Contender, ContenderView, Done, Made};
use crate::kind::{ContenderKind, Make};
use crate::scenario::Scenario;

pub(super) const KIND: ContenderKind = ContenderKind {
    name: "both",
    title: "Envoy admission_control and adaptive_concurrency",
    make: Make::Published(make),
};

fn make(scenario: &Scenario, seed: u64) -> Made {
    Ok(Box::new(Both {
        first: AdmissionControl::new(scenario, seed),
        second: Gradient::new(seed),
    }))
}

struct Both {
    first: AdmissionControl,
    second: Gradient,
}

impl Contender for Both {
    fn admit(&mut self, ask: &Ask<'_>, now: Instant) -> Admission {
        let verdict = self.first.admit(ask, now);
        if verdict != Admission::Admit {
            return verdict;
        }
        let verdict = self.second.admit(ask, now);
        if verdict != Admission::Admit {
            self.first.record(ask.worker, false, now);
        }
        verdict
    }

    fn complete(&mut self, done: &Done, now: Instant) {
        self.second.complete(done, now);
        self.first.complete(done, now);
    }

    fn tick_every(&self) -> Option<Duration> {
        self.second.tick_every()
    }

    fn tick(&mut self, now: Instant) {
        self.second.tick(now);
    }

    fn view(&self, upstream: usize, now: Instant) -> ContenderView {
        self.second.view(upstream, now)
    }
}

#[cfg(test)]
mod tests {
    use super::super::trial::{at, first_ask};
    use super::*;

    #[test]
    fn the_first_takes_the_refusals_of_the_second_for_failures() {
        let text = "name='t'\ntitle='t'\nprose='p'\nseed=1\nduration='9s'\n[[clients]]\nload=[{at='0s',x=1.0}]";
        let scenario = Scenario::parse(text, "test").unwrap();
        let mut both = make(&scenario, 1).unwrap();
        // While minRTT is measured only 3 are admitted.
        let mut reasons = Vec::new();
        for _ in 0..40 {
            if let Admission::Shed { reason, .. } = both.admit(&first_ask(), at(0)) {
                reasons.push(reason);
            }
        }
        assert_eq!(reasons[0], "limit");
        assert!(reasons.contains(&"admission_control"), "{reasons:?}");
    }
}
