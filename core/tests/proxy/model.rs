//! What must hold of breakers and numbers.

use std::collections::BTreeMap;

use tidegate_core::{BreakerState, Directives, Event, Learned, UpstreamId};

/// The breaker's diagram, followed by the leader's events.
#[derive(Debug, Default)]
pub(crate) struct Diagram {
    states: BTreeMap<u64, Place>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Closed,
    Open,
    Ramp,
}

impl From<BreakerState> for Place {
    fn from(state: BreakerState) -> Self {
        match state {
            BreakerState::Closed => Self::Closed,
            BreakerState::Open { .. } => Self::Open,
            BreakerState::Ramp { .. } => Self::Ramp,
        }
    }
}

impl Diagram {
    /// Another leader begins with what it knows.
    pub(crate) fn expect_anything(&mut self) {
        self.states.clear();
    }

    /// Follows one decision: each upstream takes one step of the diagram at most, and is where its event says.
    pub(crate) fn follow(
        &mut self,
        events: &[Event],
        directives: &Directives<'_>,
        may_disarm: bool,
        hash: impl Fn(UpstreamId) -> u64,
    ) {
        for event in events {
            let (upstream, to) = match event {
                Event::Tripped { upstream, .. } => (*upstream, Place::Open),
                Event::Ramping { upstream } => (*upstream, Place::Ramp),
                Event::Reset { upstream } => (*upstream, Place::Closed),
                Event::LimitReason { .. } => continue,
            };
            if let Some(from) = self.states.insert(hash(upstream), to) {
                let is_drawn = match (from, to) {
                    (_, Place::Open) => true,
                    (from, Place::Ramp) => from == Place::Open,
                    (from, Place::Closed) => {
                        from == Place::Ramp || may_disarm && from == Place::Open
                    }
                };
                assert!(is_drawn, "{from:?} to {to:?}");
            }
        }
        for entry in directives.entries() {
            let place = Place::from(entry.breaker);
            let known = *self.states.entry(entry.upstream).or_insert(place);
            assert_eq!(known, place, "no change without an event");
        }
    }
}

/// Everything learned is a number, and none is negative.
pub(crate) fn check_numbers(learned: &Learned) {
    let Learned { limit, breaker } = learned;
    let numbers = [
        limit.floor.low.get(),
        limit.floor.mean.get(),
        limit.floor.tail.get(),
        limit.latest.low.get(),
        limit.latest.tail.get(),
        limit.capacity.get(),
        limit.hold.unwrap_or_default().get(),
        limit.ceiling.map_or(0.0, |ceiling| ceiling.limit.get()),
        limit.burst_gain.get(),
        breaker.rates.failures.get(),
        breaker.rates.outcomes.get(),
    ];
    assert!(
        numbers
            .iter()
            .all(|number| number.is_finite() && *number >= 0.0),
        "{learned:?}"
    );
    assert!(breaker.rates.failures.get() <= 1.0, "{learned:?}");
    assert!(limit.burst_gain.get() <= 2.0, "{learned:?}");
}
