//! How busy a service is: the share of its slots' time that is work.

use std::time::Duration;

use crate::contender::WorkBegun;

/// One service, in this second and in the last.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ServiceLoad {
    work: Duration,
    slots: u32,
    busy: f64,
}

impl ServiceLoad {
    /// Adds work that begins. All of it counts in the second in which it begins.
    pub(super) fn add(&mut self, begun: &WorkBegun) {
        self.work += begun.work;
        self.slots = begun.slots;
    }

    /// Ends a second.
    pub(super) fn roll(&mut self, second: Duration) {
        let work = std::mem::take(&mut self.work).as_secs_f64();
        self.busy = work / (second.as_secs_f64() * f64::from(self.slots.max(1)));
    }

    /// Share of the slots' time in the last second that was work; may exceed 1.
    pub(super) const fn busy(&self) -> f64 {
        self.busy
    }
}
