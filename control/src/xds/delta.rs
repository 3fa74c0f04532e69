//! One resource type on one stream, incremental: requests and responses name only what changes.
//!
//! Sans-I/O like [`super::SotwSubscription`], and with the same [`PushLedger`]. The differences:
//!
//! - The first request of a stream may list the versions that the proxy already has.
//! - Resources that a later request subscribes to are always sent, even if the proxy seems to have them: it may have
//!   dropped them and requested them again in between.
//! - A stale nonce invalidates the answer, but not the rest of the request, because the rest is not repeated.
//! - That a resource does not exist is sent once, as a removal.

use std::collections::BTreeMap;
use std::mem;

use super::answer::{PushReply, Rejection};
use super::interest::{Excess, Interest, MAX_NAME_BYTES, MAX_NAMES};
use super::ledger::{PushLedger, PushVerdict, ResourceVersions};
use super::resource::{Desired, Name, Resource, ResourceVersion};

/// Longest version that this service could have sent, in bytes, with a margin.
const MAX_VERSION_BYTES: usize = 128;

/// See the module.
#[derive(Debug, Default)]
pub struct DeltaSubscription {
    interest: Interest,
    ledger: PushLedger,
    has_begun: bool,
}

/// An incremental request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeltaRequest {
    /// Nonce of the push that it answers; empty if it answers none.
    pub nonce: String,
    /// Why it rejects that push, if it does.
    pub rejection: Option<Rejection>,
    /// Resources that it wants from now on.
    pub subscribe: Vec<String>,
    /// Resources that it no longer wants.
    pub unsubscribe: Vec<String>,
    /// Resources that it already has; used only in the first request of a stream.
    pub initial_versions: BTreeMap<String, String>,
}

/// An incremental response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeltaPush {
    /// Identifies the push in the proxy's answer.
    pub nonce: String,
    /// Resources that differ from what the proxy has.
    pub resources: Vec<Resource>,
    /// Resources that do not exist, or no longer exist.
    pub removed: Vec<Name>,
}

impl DeltaSubscription {
    /// Processes a request. Call [`DeltaSubscription::push`] afterwards.
    ///
    /// # Errors
    /// When the request exceeds the bounds of one stream; the stream should be closed.
    pub fn receive(&mut self, request: &DeltaRequest) -> Result<PushReply, Excess> {
        let reply = self.settle(request);
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
        Ok(reply)
    }

    /// The response to send now; call it after each request, and whenever `desired` has changed.
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

    /// The version of a resource that the proxy runs, if it has reported one.
    #[must_use]
    pub fn running(&self, name: &str) -> Option<&ResourceVersion> {
        self.ledger.held().get(name)?.as_ref()
    }

    /// Whether the proxy has asked for this resource.
    #[must_use]
    pub fn is_wanted(&self, name: &str) -> bool {
        self.has_begun && self.interest.covers(name)
    }

    fn settle(&mut self, request: &DeltaRequest) -> PushReply {
        if request.nonce.is_empty() {
            return PushReply::None;
        }
        let verdict = match request.rejection {
            Some(_) => PushVerdict::Reject,
            None => PushVerdict::Accept,
        };
        let Some(versions) = self.ledger.settle(&request.nonce, verdict) else {
            return PushReply::Stale;
        };
        let versions = versions.into_iter().collect();
        match &request.rejection {
            Some(rejection) => PushReply::Rejected(versions, rejection.clone()),
            None => PushReply::Accepted(versions),
        }
    }

    /// The versions of the wanted resources; `None` for those that the proxy requested or held and that do not exist.
    fn wanted(&self, desired: &Desired) -> ResourceVersions {
        let absent = self.ledger.held().iter().filter_map(|(name, version)| {
            // Under `*` a proxy need not know about resources that it never had.
            (self.interest.is_everything() && version.is_some()).then_some(name)
        });
        let mut wanted: ResourceVersions = self
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
            // Longer values cannot come from this service, and would occupy memory.
            let may_be_ours = name.len() <= MAX_NAME_BYTES && version.len() <= MAX_VERSION_BYTES;
            if may_be_ours && self.interest.covers(name) {
                self.ledger
                    .assume(Name::from(&**name), ResourceVersion::new(version));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "delta_tests.rs"]
mod tests;
