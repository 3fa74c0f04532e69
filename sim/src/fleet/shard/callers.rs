//! The callers of a shard.

use super::place::{SHARDS, home};
use crate::fleet::demand::Senders;
use crate::fleet::ledger::Share;
use crate::fleet::plan::Fleet;

/// One caller.
#[derive(Debug)]
pub(super) struct FleetCaller {
    pub(super) proxy: u32,
    /// In the current second.
    pub(super) now: Share,
    /// In the judged part of the current phase.
    pub(super) phase: Share,
}

/// The callers of a shard's proxies, and how much each of them sends.
pub(super) fn callers(fleet: &Fleet, shard: u32) -> (Vec<FleetCaller>, Senders) {
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
        callers.push(FleetCaller {
            proxy: proxy / SHARDS,
            now: share,
            phase: share,
        });
    }
    (callers, senders)
}
