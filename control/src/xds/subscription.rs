//! One type of resource on one stream, state of the world: each request lists all that the proxy wants.
//!
//! Sans-I/O: requests come in and pushes go out as values, so that any order of them can be tested. What to
//! push and when is the [`Ledger`]'s; here is what the protocol means by a request:
//!
//! - The first request of a stream may name the version that the proxy already has: after a reconnect
//!   nothing is pushed when that is still the wanted one.
//! - A request that carries the nonce of the push under way is its answer: with `error_detail` a refusal,
//!   without an acceptance. It also says what is wanted from now on.
//! - Any other request only says what is wanted. One with an old nonce, too: a proxy that gave a resource up
//!   and took it back while a push was under way has dropped it, and its answer alone would not tell.
//!
//! Edge: a proxy that does so between two streams but goes on to name the version it had is taken by its word.
//!
//! A version must depend on the resource's name as well as on its content, or a proxy that swaps one resource
//! for another between two streams would be taken to have the other.

use std::mem;

use super::interest::Interest;
use super::ledger::{Ledger, Verdict, Versions};
use super::{Desired, Excess, Heard, Refusal, Resource, Version};

/// See the module.
#[derive(Debug, Default)]
pub struct Subscription {
    interest: Interest,
    ledger: Ledger,
    has_begun: bool,
}

/// What a request says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Request {
    /// Version that the proxy runs; empty when it has none.
    pub version: String,
    /// Nonce of the push that it answers; empty before the first.
    pub nonce: String,
    /// Everything it wants.
    pub names: Vec<String>,
    /// Why it refuses the push, if it does.
    pub refusal: Option<Refusal>,
}

/// A response to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Push {
    /// Names the push in the proxy's answer.
    pub nonce: String,
    /// Version of all that the proxy has once it accepts this.
    pub version: Version,
    /// What differs from what it has.
    pub resources: Vec<Resource>,
}

impl Subscription {
    /// Takes a request. Call [`Subscription::push`] afterwards.
    ///
    /// # Errors
    /// When more is asked for than one stream may; the stream should be closed.
    pub fn hear(&mut self, request: &Request, desired: &Desired) -> Result<Heard, Excess> {
        let heard = self.settle(request);
        self.interest = self.interest.listed(&request.names)?;
        let interest = &self.interest;
        self.ledger.retain(|name| interest.covers(name));
        if !mem::replace(&mut self.has_begun, true) {
            self.resume(&request.version, desired);
        }
        Ok(heard)
    }

    /// What is to be sent now: after a request, and whenever `desired` has changed.
    pub fn push(&mut self, desired: &Desired) -> Option<Push> {
        if !self.has_begun {
            return None;
        }
        let wanted = self.wanted(desired);
        let batch = self.ledger.next(&wanted)?;
        let resources: Vec<Resource> = batch
            .versions
            .keys()
            .filter_map(|name| desired.resource(name).cloned())
            .collect();
        let mut after: Versions = self.ledger.held().clone();
        after.extend(batch.versions);
        let members = after
            .iter()
            .filter_map(|(name, version)| Some((&**name, version.as_ref()?)));
        Some(Push {
            nonce: batch.nonce,
            version: Version::of_set(members)?,
            resources,
        })
    }

    /// The version of a resource that the proxy runs, as far as it has said so.
    #[must_use]
    pub fn running(&self, name: &str) -> Option<&Version> {
        self.ledger.held().get(name)?.as_ref()
    }

    /// Whether the proxy has asked for this resource.
    #[must_use]
    pub fn is_wanted(&self, name: &str) -> bool {
        self.has_begun && self.interest.covers(name)
    }

    fn settle(&mut self, request: &Request) -> Heard {
        let verdict = match request.refusal {
            Some(_) => Verdict::Refuse,
            None => Verdict::Accept,
        };
        let Some(versions) = self.ledger.settle(&request.nonce, verdict) else {
            return if self.ledger.is_latest(&request.nonce) {
                Heard::Question
            } else {
                Heard::Stale
            };
        };
        let versions = versions.into_iter().collect();
        match &request.refusal {
            Some(refusal) => Heard::Refused(versions, refusal.clone()),
            None => Heard::Accepted(versions),
        }
    }

    /// The wanted resources that exist: here there is no way to say that one does not.
    fn wanted(&self, desired: &Desired) -> Versions {
        desired
            .iter()
            .filter(|resource| self.interest.covers(&resource.name))
            .map(|resource| (resource.name.clone(), Some(resource.version.clone())))
            .collect()
    }

    fn resume(&mut self, version: &str, desired: &Desired) {
        if version.is_empty() {
            return;
        }
        let version = Version::new(version);
        let wanted = self.wanted(desired);
        let members = wanted
            .iter()
            .filter_map(|(name, version)| Some((&**name, version.as_ref()?)));
        let is_current = Version::of_set(members).as_ref() == Some(&version);
        let is_one = wanted.len() == 1;
        for (name, wanted) in wanted {
            // The version of a set says nothing of its members, unless it is the wanted one.
            match wanted {
                Some(wanted) if is_current => self.ledger.assume(name, wanted),
                _ if is_one => self.ledger.assume(name, version.clone()),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
#[path = "subscription_tests.rs"]
mod tests;
