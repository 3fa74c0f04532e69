//! Envoy's `admission_control` as an upstream filter of the cluster, as Envoy Gateway configures it.
//!
//! In the listener's chain all upstreams share one success rate, and a dead one makes the others pay. As a filter of
//! the cluster each upstream has its own. Formula and settings are those of [`super::admission_control`]: a
//! `BackendTrafficPolicy` that sets nothing passes nothing on, so that Envoy's defaults hold.
//!
//! Source: Envoy Gateway, `api/v1alpha1/admission_control.go` and `internal/xds/translator/admission_control.go` in
//! <https://github.com/envoyproxy/gateway> (pull request 8872); Envoy 1.40, `upstream_codec_filter.cc` in
//! <https://github.com/envoyproxy/envoy/tree/main/source/common/router>.
//!
//! Edges: every worker has its own window here as well. Only what the upstream itself answers passes such a filter. A
//! connection that is refused or breaks resets the stream below it, and the reply to a timeout is the router's, above
//! it: neither is counted, so that an upstream that refuses connections looks like one without traffic.

use tidegate_core::{Failure, Instant, Outcome};

use super::admission_control::AdmissionControl;
use crate::contender::{Admission, Ask, Contender, ContenderView, Done, Made};
use crate::kind::{ContenderKind, Make};
use crate::scenario::Scenario;

pub(super) const KIND: ContenderKind = ContenderKind {
    name: "admission-control-upstream",
    title: "Envoy admission_control for each cluster (Envoy Gateway)",
    make: Make::Published(make),
};

fn make(scenario: &Scenario, seed: u64) -> Made {
    let clusters = (0..).zip(&scenario.upstreams);
    let filters =
        clusters.map(|(index, _)| AdmissionControl::new(scenario, seed.wrapping_add(index)));
    Ok(Box::new(OfClusters {
        filters: filters.collect(),
    }))
}

/// One filter for each upstream, by its index.
struct OfClusters {
    filters: Vec<AdmissionControl>,
}

impl Contender for OfClusters {
    fn admit(&mut self, ask: &Ask<'_>, now: Instant) -> Admission {
        let filter = self.filters.get_mut(ask.upstream);
        filter.map_or(Admission::Admit, |filter| filter.admit(ask, now))
    }

    fn complete(&mut self, done: &Done, now: Instant) {
        if matches!(
            done.outcome,
            Outcome::Failure(Failure::Connection | Failure::Timeout)
        ) {
            return;
        }
        if let Some(filter) = self.filters.get_mut(done.upstream) {
            filter.complete(done, now);
        }
    }

    fn view(&self, _upstream: usize, _now: Instant) -> ContenderView {
        ContenderView::default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::trial::{FAILURE, at, done, first_ask, send};
    use super::*;

    fn two_upstreams() -> Box<dyn Contender> {
        let text = "name='t'\ntitle='t'\nprose='p'\nseed=1\nduration='9s'\n\
            [[upstreams]]\nname='a'\n[[upstreams]]\nname='b'\n\
            [[clients]]\nupstream='a'\nload=[{at='0s',x=1.0}]\n\
            [[clients]]\nupstream='b'\nload=[{at='0s',x=1.0}]";
        make(&Scenario::parse(text, "test").unwrap(), 1).unwrap()
    }

    #[test]
    fn a_dead_upstream_does_not_make_another_pay() {
        let mut filter = two_upstreams();
        let admitted = (0..2_000).filter(|_| send(filter.as_mut(), FAILURE, 0));
        let admitted = admitted.count();
        // 0.2 x 2,000 with a standard deviation of 18.
        assert!((320..480).contains(&admitted), "{admitted}");
        let other = Ask {
            upstream: 1,
            ..first_ask()
        };
        let verdicts = (0..100).map(|_| filter.admit(&other, at(0)));
        assert!(verdicts.into_iter().all(|v| v == Admission::Admit));
    }

    #[test]
    fn what_is_no_answer_of_the_upstream_is_not_counted() {
        let mut filter = two_upstreams();
        for failure in [Failure::Connection, Failure::Timeout] {
            for _ in 0..100 {
                filter.complete(&done(Outcome::Failure(failure), 1), at(0));
            }
        }
        let verdicts = (0..100).map(|_| filter.admit(&first_ask(), at(0)));
        assert!(verdicts.into_iter().all(|v| v == Admission::Admit));
    }
}
