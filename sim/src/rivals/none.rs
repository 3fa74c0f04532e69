//! No protection: every request is admitted. What the upstream does about overload is up to the upstream.

use tidegate_core::Instant;

use crate::contender::{Admission, Ask, Contender, ContenderView, Done, Made};
use crate::kind::{ContenderKind, Make};
use crate::scenario::Scenario;

pub(super) const KIND: ContenderKind = ContenderKind {
    name: "none",
    title: "no protection",
    make: Make::Published(make),
};

struct Unprotected;

fn make(_scenario: &Scenario, _seed: u64) -> Made {
    Ok(Box::new(Unprotected))
}

impl Contender for Unprotected {
    fn admit(&mut self, _ask: &Ask<'_>, _now: Instant) -> Admission {
        Admission::Admit
    }

    fn complete(&mut self, _done: &Done, _now: Instant) {}

    fn view(&self, _upstream: usize, _now: Instant) -> ContenderView {
        ContenderView::default()
    }
}
