//! Who calls, and the books that are kept about it.

use super::SHARDS;
use super::{Shard, at_index, home};
use crate::fleet::demand::Senders;
use crate::fleet::ledger::{BINS_PER_SECOND, Share};
use crate::fleet::plan::Fleet;

/// One caller.
#[derive(Debug)]
pub(super) struct Caller {
    pub(super) proxy: u32,
    /// Of the second under way.
    pub(super) now: Share,
    /// Of the judged part of the phase under way.
    pub(super) phase: Share,
}

/// The callers of a shard's proxies, and who of them sends how much.
pub(super) fn callers(fleet: &Fleet, shard: u32) -> (Vec<Caller>, Senders) {
    let mut senders = Senders {
        times: fleet.heavy.map_or(1, |heavy| heavy.times),
        ..Senders::default()
    };
    let mut callers = Vec::new();
    for number in 0..fleet.scenario.proxies {
        let (proxy, weight) = (fleet.proxy_of(number), fleet.weight_of(number));
        senders.of_weight += f64::from(weight);
        if home(proxy) != shard {
            continue;
        }
        let class = if weight > 1 {
            &mut senders.heavy
        } else {
            &mut senders.light
        };
        class.push(callers.len());
        let share = Share {
            is_heavy: weight > 1,
            ..Share::default()
        };
        callers.push(Caller {
            proxy: proxy / SHARDS,
            now: share,
            phase: share,
        });
    }
    (callers, senders)
}

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

    /// Closes the accounts of the callers' second that ends at `end`, and of a phase that does.
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
