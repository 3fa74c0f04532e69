//! A worker follows the directives of its leader. Those that it follows already change nothing, and are not read.

use super::Registry;
use super::ids::Ids;
use super::place::Rest;
use crate::config::Config;
use crate::exchange::{Directives, PackedDirective};
use crate::time::Instant;
use crate::upstream::UpstreamId;

impl Registry {
    /// Returns a function that tells whether a directive of a leader is followed already. It need not search if called in the
    /// order of hashes.
    pub(crate) fn following(&self) -> impl FnMut(u64, &PackedDirective<'_>) -> bool {
        let mut ids = Ids::new(&self.by_hash);
        move |leader, entry| {
            leader == self.leader
                && match ids.find(entry.upstream) {
                    Some(id) => self.places.get(id).follows(entry),
                    None => self.unseen.has(entry),
                }
        }
    }

    /// As [`Engine::adopt`](crate::Engine::adopt).
    pub(crate) fn adopt(
        &mut self,
        config: &Config,
        directives: &Directives<'_>,
        now: Instant,
    ) -> Vec<UpstreamId> {
        let mut granted = Vec::new();
        self.led_at = now;
        if directives.leader != self.leader {
            self.follow_leader(directives.leader);
        }
        let mut ids = Ids::new(&self.by_hash);
        for entry in directives.unread() {
            let Some(id) = ids.find(entry.upstream) else {
                if !self.unseen.has(&entry)
                    && let Some(directive) = entry.directive()
                {
                    self.unseen.keep(directive, entry.stamp, config);
                }
                continue;
            };
            let place = self.places.get_mut(id);
            if !place.follows(&entry) {
                let Some(directive) = entry.directive() else {
                    continue;
                };
                let policy = config.policy(place.rule);
                place.slot.adopt(&directive, policy, now);
                place.followed = entry.stamp;
                place.is_shown.set(false);
                if !place.is_settled() {
                    place.rest = Rest::AWAKE;
                }
                if directive.epoch != 0 || directive.grants.is_some() {
                    granted.push(id);
                }
            }
            if place.is_awake() {
                place.slot.mark_introduced();
            }
        }
        granted
    }

    fn follow_leader(&mut self, leader: u64) {
        self.leader = leader;
        for (_, place) in self.places.iter_mut() {
            place.slot.mark_unknown();
            place.begin_anew();
        }
        self.unseen.forget_stamps();
    }
}
