//! One resource type on one stream, state of the world: each request lists everything that the proxy wants.
//!
//! Sans-I/O: requests and pushes are values, so that tests can try any order of them. The [`PushLedger`] decides
//! what to push and when; this module interprets the requests:
//!
//! - The first request of a stream may name the version that the proxy already has: after a reconnect nothing is
//!   pushed if that version is still current.
//! - A request with the nonce of the pending push is its answer: with `error_detail` it rejects the push, otherwise
//!   it accepts it. It also lists what the proxy wants from now on.
//! - Any other request only lists what the proxy wants. This includes requests with an old nonce: a proxy that
//!   dropped a resource and requested it again while a push was pending has lost it, and its answer alone would not
//!   show that.
//!
//! Edge case: a proxy may do this between two streams and still name the version that it had; then the resource is not
//! sent again.
//!
//! A version must depend on the resource's name as well as on its content. Otherwise a proxy that swaps one resource
//! for another between two streams would appear to have the other.

use std::mem;

use super::answer::{PushReply, Rejection};
use super::interest::{Excess, Interest};
use super::ledger::{PushLedger, PushVerdict, ResourceVersions};
use super::resource::{Desired, Resource, ResourceVersion};

/// See the module.
#[derive(Debug, Default)]
pub struct SotwSubscription {
    interest: Interest,
    ledger: PushLedger,
    has_begun: bool,
}

/// A request that lists all wanted resources.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SotwRequest {
    /// Version that the proxy runs; empty if it has none.
    pub version: String,
    /// Nonce of the push that it answers; empty before the first push.
    pub nonce: String,
    /// Every resource that it wants.
    pub names: Vec<String>,
    /// Why it rejects the push, if it does.
    pub rejection: Option<Rejection>,
}

/// A response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SotwPush {
    /// Identifies the push in the proxy's answer.
    pub nonce: String,
    /// Version of everything that the proxy has once it accepts this.
    pub version: ResourceVersion,
    /// Resources that differ from what it has.
    pub resources: Vec<Resource>,
}

impl SotwSubscription {
    /// Processes a request. Call [`SotwSubscription::push`] afterwards.
    ///
    /// # Errors
    /// When the request exceeds the bounds of one stream; the stream should be closed.
    pub fn receive(
        &mut self,
        request: &SotwRequest,
        desired: &Desired,
    ) -> Result<PushReply, Excess> {
        let reply = self.settle(request);
        self.interest = self.interest.listed(&request.names)?;
        let interest = &self.interest;
        self.ledger.retain(|name| interest.covers(name));
        if !mem::replace(&mut self.has_begun, true) {
            self.resume(&request.version, desired);
        }
        Ok(reply)
    }

    /// The response to send now; call it after each request, and whenever `desired` has changed.
    pub fn push(&mut self, desired: &Desired) -> Option<SotwPush> {
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
        let mut after: ResourceVersions = self.ledger.held().clone();
        after.extend(batch.versions);
        let members = after
            .iter()
            .filter_map(|(name, version)| Some((&**name, version.as_ref()?)));
        Some(SotwPush {
            nonce: batch.nonce,
            version: ResourceVersion::of_set(members)?,
            resources,
        })
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

    fn settle(&mut self, request: &SotwRequest) -> PushReply {
        let verdict = match request.rejection {
            Some(_) => PushVerdict::Reject,
            None => PushVerdict::Accept,
        };
        let Some(versions) = self.ledger.settle(&request.nonce, verdict) else {
            return if self.ledger.is_latest(&request.nonce) {
                PushReply::None
            } else {
                PushReply::Stale
            };
        };
        let versions = versions.into_iter().collect();
        match &request.rejection {
            Some(rejection) => PushReply::Rejected(versions, rejection.clone()),
            None => PushReply::Accepted(versions),
        }
    }

    /// The wanted resources that exist; this dialect cannot express that one does not.
    fn wanted(&self, desired: &Desired) -> ResourceVersions {
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
        let version = ResourceVersion::new(version);
        let wanted = self.wanted(desired);
        let members = wanted
            .iter()
            .filter_map(|(name, version)| Some((&**name, version.as_ref()?)));
        let is_current = ResourceVersion::of_set(members).as_ref() == Some(&version);
        let is_one = wanted.len() == 1;
        for (name, wanted) in wanted {
            // The version of a set says nothing about its members, unless it is the wanted one.
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
