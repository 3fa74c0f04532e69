//! One type of resource on one stream, incremental: requests and responses say what changes.
//!
//! Sans-I/O like [`super::Subscription`], and with the same [`Ledger`]. What differs:
//!
//! - The first request of a stream may list the versions that the proxy already has.
//! - What a later request subscribes to is sent whatever the proxy has, because it may have dropped it and
//!   thought better of it before it could say so.
//! - A stale nonce makes the answer void, but not the rest of the request: it is not repeated.
//! - A resource that does not exist is told to the proxy once, as removed.

use std::collections::BTreeMap;
use std::mem;

use super::interest::{Excess, Interest, MAX_NAME_BYTES, MAX_NAMES};
use super::ledger::{Ledger, Verdict, Versions};
use super::{Desired, Heard, Name, Refusal, Resource, Version};

/// Longest version that may be one of ours, in bytes, generously.
const MAX_VERSION_BYTES: usize = 128;

/// See the module.
#[derive(Debug, Default)]
pub struct DeltaSubscription {
    interest: Interest,
    ledger: Ledger,
    has_begun: bool,
}

/// What an incremental request says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeltaRequest {
    /// Nonce of the push that it answers; empty when it answers none.
    pub nonce: String,
    /// Why it refuses that push, if it does.
    pub refusal: Option<Refusal>,
    /// What it wants besides.
    pub subscribe: Vec<String>,
    /// What it wants no longer.
    pub unsubscribe: Vec<String>,
    /// What it already has; counts in the first request of a stream.
    pub initial_versions: BTreeMap<String, String>,
}

/// An incremental response to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeltaPush {
    /// Names the push in the proxy's answer.
    pub nonce: String,
    /// What differs from what the proxy has.
    pub resources: Vec<Resource>,
    /// What does not exist (any longer).
    pub removed: Vec<Name>,
}

impl DeltaSubscription {
    /// Takes a request. Call [`DeltaSubscription::push`] afterwards.
    ///
    /// # Errors
    /// When more is asked for than one stream may; the stream should be closed.
    pub fn hear(&mut self, request: &DeltaRequest) -> Result<Heard, Excess> {
        let heard = self.settle(request);
        let is_first = !mem::replace(&mut self.has_begun, true);
        self.interest.remove(&request.unsubscribe);
        let interest = &self.interest;
        self.ledger.retain(|name| interest.covers(name));
        if is_first {
            self.interest = Interest::default().listed(&request.subscribe)?;
            self.resume(&request.initial_versions)?;
        } else {
            self.interest.add(&request.subscribe)?;
            for name in &request.subscribe {
                self.ledger.forget(name);
            }
        }
        Ok(heard)
    }

    /// What is to be sent now: after a request, and whenever `desired` has changed.
    pub fn push(&mut self, desired: &Desired) -> Option<DeltaPush> {
        if !self.has_begun {
            return None;
        }
        let wanted = self.wanted(desired);
        let batch = self.ledger.next(&wanted)?;
        let mut push = DeltaPush {
            nonce: batch.nonce,
            resources: Vec::new(),
            removed: Vec::new(),
        };
        for name in batch.versions.into_keys() {
            match desired.resource(&name) {
                Some(resource) => push.resources.push(resource.clone()),
                None => push.removed.push(name),
            }
        }
        Some(push)
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

    fn settle(&mut self, request: &DeltaRequest) -> Heard {
        if request.nonce.is_empty() {
            return Heard::Question;
        }
        let verdict = match request.refusal {
            Some(_) => Verdict::Refuse,
            None => Verdict::Accept,
        };
        let Some(versions) = self.ledger.settle(&request.nonce, verdict) else {
            return Heard::Stale;
        };
        let versions = versions.into_iter().collect();
        match &request.refusal {
            Some(refusal) => Heard::Refused(versions, refusal.clone()),
            None => Heard::Accepted(versions),
        }
    }

    /// What exists of the wanted, and `None` for what was asked for, or held, and does not.
    fn wanted(&self, desired: &Desired) -> Versions {
        let absent = self.ledger.held().iter().filter_map(|(name, version)| {
            // Under `*` a proxy need not be told of what it never had.
            (self.interest.is_everything() && version.is_some()).then_some(name)
        });
        let mut wanted: Versions = self
            .interest
            .names()
            .chain(absent)
            .map(|name| (name.clone(), None))
            .collect();
        for resource in desired.iter() {
            if self.interest.covers(&resource.name) {
                wanted.insert(resource.name.clone(), Some(resource.version.clone()));
            }
        }
        wanted
    }

    fn resume(&mut self, versions: &BTreeMap<String, String>) -> Result<(), Excess> {
        if versions.len() > MAX_NAMES {
            return Err(Excess::Names);
        }
        for (name, version) in versions {
            // Longer ones are none of ours, and would be kept.
            let may_be_ours = name.len() <= MAX_NAME_BYTES && version.len() <= MAX_VERSION_BYTES;
            if may_be_ours && self.interest.covers(name) {
                self.ledger
                    .assume(Name::from(&**name), Version::new(version));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "delta_tests.rs"]
mod tests;
