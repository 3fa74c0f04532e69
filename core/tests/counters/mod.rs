//! Counts that several engines share, as a proxy's gauges are shared by its workers.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use tidegate_core::{Counter, Counters, UpstreamId};

/// One set of counts; a clone counts in the same set. Engines that share one must meet their upstreams in the same
/// order, so that a handle means the same to each.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shared(Rc<RefCell<BTreeMap<(UpstreamId, Counter), i64>>>);

impl Shared {
    /// The plain value, which a bug could make negative.
    pub(crate) fn read(&self, upstream: UpstreamId, counter: Counter) -> i64 {
        let counts = self.0.borrow();
        counts
            .get(&(upstream, counter))
            .copied()
            .unwrap_or_default()
    }

    fn add(&self, upstream: UpstreamId, counter: Counter, change: i64) {
        *self.0.borrow_mut().entry((upstream, counter)).or_default() += change;
    }
}

impl Counters for Shared {
    fn raise(&mut self, upstream: UpstreamId, counter: Counter) -> Option<u64> {
        self.add(upstream, counter, 1);
        self.value(upstream, counter)
    }

    fn lower(&mut self, upstream: UpstreamId, counter: Counter, by: u64) {
        self.add(upstream, counter, -i64::try_from(by).unwrap());
    }

    fn value(&mut self, upstream: UpstreamId, counter: Counter) -> Option<u64> {
        Some(u64::try_from(self.read(upstream, counter)).unwrap_or_default())
    }
}
