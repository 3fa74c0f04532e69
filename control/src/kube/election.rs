//! Who of several replicas writes: a Lease, as a machine that is told everything.
//!
//! Replicas agree by one object that the API server changes for one of them at
//! a time. Whoever holds it renews it; it is free when it was given back, or
//! when it has not changed for its whole duration *as seen from here*, so that
//! no two clocks are compared. A holder counts its own time from before it
//! asked, stops writing when that is over, and a renewal that comes late finds
//! it stopped already.
//!
//! ```text
//!              it is free, and our write of it was taken
//!   Following -------------------------------------------> Leading
//!       ^                                                     |
//!       |   another holds it, or no renewal within the term   |
//!       +-----------------------------------------------------+
//!       |                                                     |
//!       |  stop                        stop: it is given back |
//!       +----------------------> Ended <----------------------+
//! ```
//!
//! The method is that of the clients that Kubernetes itself is built from.

use std::time::{Duration, Instant};

/// Shortest time that a lease may hold: it counts whole seconds, and three renewals must fit.
const MIN_DURATION: Duration = Duration::from_secs(3);

/// How long a lease holds, and how often it is renewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Others wait this long after the last change; whole seconds.
    pub duration: Duration,
}

impl Timing {
    /// How long a holder goes on without a renewal: two thirds of the duration. The rest is for what it had begun.
    #[must_use]
    pub fn term(self) -> Duration {
        self.duration * 2 / 3
    }

    /// Between two looks at the lease.
    #[must_use]
    pub fn pause(self) -> Duration {
        self.duration * 2 / 15
    }

    /// Longest time that a write may take that was begun as a leader.
    #[must_use]
    pub fn margin(self) -> Duration {
        self.duration.saturating_sub(self.term())
    }

    /// Whether it can work.
    #[must_use]
    pub fn is_sound(self) -> bool {
        self.duration >= MIN_DURATION
    }
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            duration: Duration::from_secs(15),
        }
    }
}

/// A lease as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// Who holds it; `None`: nobody.
    pub holder: Option<String>,
    /// How long it holds since its last change.
    pub duration: Duration,
    /// How often it has passed from one to another.
    pub transitions: i32,
    /// Changes with every change of it.
    pub resource_version: String,
}

/// What is to be written into the lease; only if it is as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Who holds it from now on; `None`: it is given back.
    pub holder: Option<String>,
    /// See [`Held::transitions`].
    pub transitions: i32,
    /// Whether its holder changes.
    pub is_new: bool,
    /// The version that it must still have; `None`: it must not exist.
    pub resource_version: Option<String>,
}

/// The machine; see the diagram.
#[derive(Debug)]
pub struct Election {
    identity: String,
    timing: Timing,
    state: State,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    Following {
        seen: Option<Sighting>,
    },
    Leading {
        /// When the request left that took or renewed it.
        since: Instant,
        held: Option<Held>,
    },
    Ended,
}

/// A version of the lease, and when it was seen first.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Sighting {
    resource_version: String,
    at: Instant,
}

impl Election {
    /// A replica that leads nothing yet.
    #[must_use]
    pub const fn new(identity: String, timing: Timing) -> Self {
        Self {
            identity,
            timing,
            state: State::Following { seen: None },
        }
    }

    /// Until when this replica may write; `None`: it may not.
    #[must_use]
    pub fn leads_until(&self) -> Option<Instant> {
        match &self.state {
            State::Leading { since, .. } => since.checked_add(self.timing.term()),
            State::Following { .. } | State::Ended => None,
        }
    }

    /// The lease was read (`None`: there is none). Returns what is to be written, if anything.
    pub fn read(&mut self, lease: Option<Held>, now: Instant) -> Option<Claim> {
        self.expire(now);
        if self.state == State::Ended {
            return None;
        }
        let is_ours = lease.as_ref().is_some_and(|held| self.holds(held));
        if matches!(self.state, State::Leading { .. }) && !is_ours {
            self.state = State::Following { seen: None };
        }
        let Some(held) = lease else {
            return Some(self.claim(None));
        };
        if is_ours || held.holder.is_none() || self.is_expired(&held, now) {
            return Some(self.claim(Some(&held)));
        }
        None
    }

    /// What [`Election::read`] said was written at the server; it was asked to at `asked`.
    pub fn taken(&mut self, held: Held, asked: Instant) {
        if self.state != State::Ended && self.holds(&held) {
            self.state = State::Leading {
                since: asked,
                held: Some(held),
            };
        }
    }

    /// The lease could not be read or written. What was had lasts to the end of its term.
    pub fn failed(&mut self, now: Instant) {
        self.expire(now);
    }

    /// The end. Returns what is to be written, so that others need not wait.
    pub fn stop(&mut self) -> Option<Claim> {
        let before = std::mem::replace(&mut self.state, State::Ended);
        let State::Leading {
            held: Some(held), ..
        } = before
        else {
            return None;
        };
        Some(Claim {
            holder: None,
            transitions: held.transitions,
            is_new: true,
            resource_version: Some(held.resource_version),
        })
    }

    fn expire(&mut self, now: Instant) {
        if self.leads_until().is_some_and(|until| until <= now) {
            self.state = State::Following { seen: None };
        }
    }

    fn holds(&self, held: &Held) -> bool {
        held.holder.as_deref() == Some(self.identity.as_str())
    }

    /// Whether somebody else's lease has not changed for as long as it holds.
    fn is_expired(&mut self, held: &Held, now: Instant) -> bool {
        let State::Following { seen } = &mut self.state else {
            return false;
        };
        match seen {
            Some(seen) if seen.resource_version == held.resource_version => {
                now.saturating_duration_since(seen.at) >= held.duration
            }
            _ => {
                *seen = Some(Sighting {
                    resource_version: held.resource_version.clone(),
                    at: now,
                });
                false
            }
        }
    }

    fn claim(&self, held: Option<&Held>) -> Claim {
        let is_new = held.is_none_or(|held| !self.holds(held));
        let before = held.map_or(0, |held| held.transitions);
        let passes = held.is_some() && is_new;
        Claim {
            holder: Some(self.identity.clone()),
            transitions: before.saturating_add(i32::from(passes)),
            is_new,
            resource_version: held.map(|held| held.resource_version.clone()),
        }
    }
}
