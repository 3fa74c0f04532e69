//! Chooses the replica that writes, as a state machine without I/O or a clock.
//!
//! Replicas agree through one Lease object that the API server changes for one of
//! them at a time. The holder renews it. The lease is free when it was released,
//! or when *this replica* has not seen it change for its whole duration, so that
//! no two clocks are compared. A holder's term starts when it sends its request.
//! It stops writing when its term is over, even if the answer to a renewal is
//! still on its way.
//!
//! ```text
//!              the lease is free, and our write of it succeeded
//!   Following -------------------------------------------> Leading
//!       ^                                                     |
//!       |   another holds it, or no renewal within the term   |
//!       +-----------------------------------------------------+
//!       |                                                     |
//!       |  stop                         stop: it is released  |
//!       +----------------------> Ended <----------------------+
//! ```
//!
//! The method is that of Kubernetes' own clients.

use std::time::{Duration, Instant};

/// Shortest duration of a lease: it is given in whole seconds, and three renewals must fit.
const MIN_DURATION: Duration = Duration::from_secs(3);

/// How long a lease is valid, and how often it is renewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Other replicas wait this long after the last change; whole seconds.
    pub duration: Duration,
}

impl Timing {
    /// How long a holder may write without a renewal: two thirds of the duration. The rest is for writes it has begun.
    #[must_use]
    pub fn term(self) -> Duration {
        self.duration * 2 / 3
    }

    /// Time between two reads of the lease.
    #[must_use]
    pub fn pause(self) -> Duration {
        self.duration * 2 / 15
    }

    /// Longest time of a write that was begun as the leader.
    #[must_use]
    pub fn margin(self) -> Duration {
        self.duration.saturating_sub(self.term())
    }

    /// Whether the duration is long enough.
    #[must_use]
    pub fn is_valid(self) -> bool {
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

/// The lease at the time of a read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseRecord {
    /// The replica that holds it; `None`: the lease is free.
    pub holder: Option<String>,
    /// How long it is valid after its last change.
    pub duration: Duration,
    /// How often its holder has changed.
    pub transitions: i32,
    /// Changes with every change of the object.
    pub resource_version: String,
}

/// A write of the lease, on the condition that it has not changed since it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseWrite {
    /// The new holder; `None`: the write releases the lease.
    pub holder: Option<String>,
    /// See [`LeaseRecord::transitions`].
    pub transitions: i32,
    /// Whether its holder changes.
    pub is_new: bool,
    /// The version that the lease must still have; `None`: it must not exist.
    pub resource_version: Option<String>,
}

/// The state machine; see the diagram.
#[derive(Debug)]
pub struct Election {
    identity: String,
    timing: Timing,
    state: ElectionState,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum ElectionState {
    Following {
        seen: Option<Sighting>,
    },
    Leading {
        /// When the request was sent that took or renewed the lease.
        since: Instant,
        held: Option<LeaseRecord>,
    },
    Ended,
}

/// A version of the lease, and when it was first seen.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Sighting {
    resource_version: String,
    at: Instant,
}

impl Election {
    /// A replica that does not lead yet.
    #[must_use]
    pub const fn new(identity: String, timing: Timing) -> Self {
        Self {
            identity,
            timing,
            state: ElectionState::Following { seen: None },
        }
    }

    /// Until when this replica may write; `None`: it may not write.
    #[must_use]
    pub fn leads_until(&self) -> Option<Instant> {
        match &self.state {
            ElectionState::Leading { since, .. } => since.checked_add(self.timing.term()),
            ElectionState::Following { .. } | ElectionState::Ended => None,
        }
    }

    /// The lease was read (`None`: it does not exist). Returns the write to attempt, if any.
    pub fn read(&mut self, lease: Option<LeaseRecord>, now: Instant) -> Option<LeaseWrite> {
        self.expire(now);
        if self.state == ElectionState::Ended {
            return None;
        }
        let is_ours = lease.as_ref().is_some_and(|held| self.holds(held));
        if matches!(self.state, ElectionState::Leading { .. }) && !is_ours {
            self.state = ElectionState::Following { seen: None };
        }
        let Some(held) = lease else {
            return Some(self.claim(None));
        };
        if is_ours || held.holder.is_none() || self.is_expired(&held, now) {
            return Some(self.claim(Some(&held)));
        }
        None
    }

    /// The write that [`Election::read`] returned succeeded; its request was sent at `asked`.
    pub fn taken(&mut self, held: LeaseRecord, asked: Instant) {
        if self.state != ElectionState::Ended && self.holds(&held) {
            self.state = ElectionState::Leading {
                since: asked,
                held: Some(held),
            };
        }
    }

    /// The lease could not be read or written. A leader continues to the end of its term.
    pub fn failed(&mut self, now: Instant) {
        self.expire(now);
    }

    /// Ends the participation. Returns the write that releases the lease, so that others need not wait.
    pub fn stop(&mut self) -> Option<LeaseWrite> {
        let before = std::mem::replace(&mut self.state, ElectionState::Ended);
        let ElectionState::Leading {
            held: Some(held), ..
        } = before
        else {
            return None;
        };
        Some(LeaseWrite {
            holder: None,
            transitions: held.transitions,
            is_new: true,
            resource_version: Some(held.resource_version),
        })
    }

    fn expire(&mut self, now: Instant) {
        if self.leads_until().is_some_and(|until| until <= now) {
            self.state = ElectionState::Following { seen: None };
        }
    }

    fn holds(&self, held: &LeaseRecord) -> bool {
        held.holder.as_deref() == Some(self.identity.as_str())
    }

    /// Whether another replica's lease has not changed for its whole duration.
    fn is_expired(&mut self, held: &LeaseRecord, now: Instant) -> bool {
        let ElectionState::Following { seen } = &mut self.state else {
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

    fn claim(&self, held: Option<&LeaseRecord>) -> LeaseWrite {
        let is_new = held.is_none_or(|held| !self.holds(held));
        let before = held.map_or(0, |held| held.transitions);
        let passes = held.is_some() && is_new;
        LeaseWrite {
            holder: Some(self.identity.clone()),
            transitions: before.saturating_add(i32::from(passes)),
            is_new,
            resource_version: held.map(|held| held.resource_version.clone()),
        }
    }
}
