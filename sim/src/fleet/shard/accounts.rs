//! The accounts that a shard keeps of its callers.

use super::Shard;
use super::place::at_index;
use crate::fleet::ledger::BINS_PER_SECOND;

impl Shard<'_> {
    pub(super) fn look(&mut self, index: u32) {
        let is_second = (at_index(index) + 1).is_multiple_of(BINS_PER_SECOND);
        let (in_service, waiting) = self.service.occupancy();
        if let Some(bin) = self.ledger.bins.get_mut(at_index(index)) {
            bin.levels.held = self.in_flight;
            bin.levels.in_service = in_service;
            bin.levels.waiting = waiting;
            if is_second {
                for proxy in &self.proxies {
                    bin.levels.add(proxy.look(self.now));
                }
            }
        }
        if is_second {
            self.end_second((at_index(index) + 1) / BINS_PER_SECOND);
        }
    }

    /// Closes the callers' accounts of the second that ends at `end`, and of a phase that ends then.
    pub(super) fn end_second(&mut self, end: usize) {
        let phases = self.fleet.phases.iter();
        let is_within = |from: u32, to: u32| at_index(from) < end && end <= at_index(to);
        let judged = phases.clone().any(|p| is_within(p.settled_s, p.to_s));
        let ends = self
            .fleet
            .phases
            .iter()
            .position(|p| at_index(p.to_s) == end);
        let shares = ends.and_then(|phase| self.ledger.shares.get_mut(phase));
        let mut done = Vec::new();
        if let Some(evenness) = self.ledger.seconds.get_mut(end.saturating_sub(1)) {
            for caller in &mut self.callers {
                evenness.add(&caller.now);
                if judged {
                    caller.phase.offered += caller.now.offered;
                    caller.phase.admitted += caller.now.admitted;
                }
                (caller.now.offered, caller.now.admitted) = (0, 0);
                if ends.is_some() {
                    done.push(caller.phase);
                    (caller.phase.offered, caller.phase.admitted) = (0, 0);
                }
            }
        }
        if let Some(shares) = shares {
            *shares = done;
        }
    }
}
