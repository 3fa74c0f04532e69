//! A worker follows the directives of its leader. Those that it follows already change nothing, and are not read.

use super::Registry;
use super::ids::Ids;
use super::place::{Rest, is_same};
use crate::config::Config;
use crate::exchange::{Directives, PackedDirective};
use crate::time::Instant;
use crate::upstream::UpstreamId;

/// Who follows directives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FollowerRole {
    /// The worker that has decided them, whose laws know all that is in them.
    Leader,
    /// Another one.
    Worker,
}

impl Registry {
    /// Returns a function that tells whether a directive of a leader is followed already. It need not search if called in the
    /// order of hashes.
    pub(crate) fn following(&self) -> impl FnMut(u64, &PackedDirective<'_>) -> bool {
        let mut ids = Ids::new(&self.by_hash);
        move |leader, entry| {
            leader == self.leader
                && match ids.find(entry.upstream) {
                    Some(id) if self.places.led(id).is_none() => self.places.get(id).follows(entry),
                    Some(_) | None => self.unseen.has(entry),
                }
        }
    }

    /// As [`Engine::adopt`](crate::Engine::adopt).
    pub(crate) fn adopt(
        &mut self,
        config: &Config,
        directives: &Directives<'_>,
        role: FollowerRole,
        now: Instant,
    ) -> Vec<UpstreamId> {
        let mut granted = Vec::new();
        self.led_at = now;
        if directives.leader != self.leader {
            self.follow_leader(directives.leader);
        }
        let mut ids = Ids::new(&self.by_hash);
        for entry in directives.unread() {
            let id = ids.find(entry.upstream);
            if let Some(id) = id
                && let Some(led) = self.places.led_mut(id)
            {
                if !is_same(led.followed, &entry)
                    && let Some(directive) = entry.directive()
                {
                    led.followed = entry.stamp;
                    led.is_shown.set(false);
                    if directive.has_grants() {
                        granted.push(id);
                    }
                    if role == FollowerRole::Worker {
                        self.unseen.keep(directive, entry.stamp, config);
                    }
                }
                continue;
            }
            let Some(id) = id else {
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
                if directive.has_grants() {
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
        for led in self.places.all_led_mut() {
            led.begin_anew();
        }
        self.unseen.forget_stamps();
    }
}
