//! Carries out what the [`Election`] decides, with a Lease object.
//!
//! After a failed attempt, the leader tries again at the normal pace, because
//! its term is short. A follower waits longer ([backoff](crate::kube::client::backoff)).

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::Error;
use kube::api::{Api, PostParams};
use kube::runtime::utils::Backoff as _;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::election::{Election, LeaseRecord, LeaseWrite};
use super::shutoff::SHUTOFF;
use crate::event::EventSink;
use crate::kube::client::backoff::backoff;
use crate::kube::client::error::{describe, is_unanswered};
use crate::kube::clock::ClockReading;
use crate::kube::event::{KubeEvent, WriteOutcome, WriteTarget};
use crate::kube::settings::LeaseSettings;
use crate::kube::shared::SharedState;
use crate::source::{Catalog, ShutoffSource};

/// Duration of a released lease in seconds; other replicas may wait that long.
const RELEASED_SECONDS: i32 = 1;

/// HTTP status of a write that lost to an earlier one.
const CONFLICT: u16 = 409;

/// Whether the API server will answer the next attempt with the same HTTP status, as it does where a permission is missing. A
/// server that is overloaded or restarts answers differently a moment later.
const fn is_refusal(status: u16) -> bool {
    matches!(status, 400..=499) && !matches!(status, 408 | 429)
}

/// A replica that takes part in the election.
pub(in crate::kube) struct Candidate {
    pub(in crate::kube) leases: Api<Lease>,
    pub(in crate::kube) settings: LeaseSettings,
    pub(in crate::kube) manager: String,
    pub(in crate::kube) shared: SharedState,
    /// Receives the state of the switch for all policies from the Lease.
    pub(in crate::kube) catalog: Catalog,
    pub(in crate::kube) events: EventSink<KubeEvent>,
}

impl Candidate {
    /// Takes part until `closing` and `written` are canceled (no more writes follow); then releases the lease.
    pub(in crate::kube) async fn run(self, closing: CancellationToken, written: CancellationToken) {
        let timing = self.settings.timing;
        let mut election = Election::new(self.settings.identity.clone(), timing);
        let mut acquired = None;
        let mut annotations = None;
        let mut is_logged = false;
        let mut waits = backoff();
        while !closing.is_cancelled() {
            let asked = ClockReading::now().instant;
            let step = self.step(&mut election, &mut acquired, &mut annotations);
            let (is_done, trouble) = match tokio::time::timeout(timing.margin(), step).await {
                Ok(Ok(())) => (true, None),
                Ok(Err(error)) if is_unanswered(&error) => (false, None),
                Ok(Err(error)) => (false, Some(describe(&error))),
                Err(late) => (false, Some(late.to_string())),
            };
            if let Some(error) = trouble.filter(|_| !is_logged) {
                warn!(error, "the lease could not be read or written");
                is_logged = true;
            }
            let mut wait = timing.pause();
            if is_done {
                is_logged = false;
                waits.reset();
            } else {
                election.failed(ClockReading::now().instant);
                if election.leads_until().is_none() {
                    wait = wait.max(waits.next().unwrap_or_default());
                }
            }
            self.announce(&election);
            let next = tokio::time::Instant::from_std(asked) + wait;
            tokio::select! {
                () = closing.cancelled() => {}
                () = tokio::time::sleep_until(next) => {}
            }
        }
        // Wait for the writes that this leader began: they must end before another replica leads.
        let _ = tokio::time::timeout(timing.margin(), written.cancelled()).await;
        let release = election.stop();
        self.announce(&election);
        if let Some(claim) = release {
            let released = self.write(&claim, &mut acquired, annotations);
            match tokio::time::timeout(timing.pause(), released).await {
                Ok(Ok(_)) => info!("the lease was released"),
                Ok(Err(error)) => warn!(%error, "the lease could not be released; it will expire"),
                Err(late) => warn!(%late, "the lease could not be released; it will expire"),
            }
        }
    }

    async fn step(
        &self,
        election: &mut Election,
        acquired: &mut Option<MicroTime>,
        annotations: &mut Option<BTreeMap<String, String>>,
    ) -> Result<(), Error> {
        let read = self.leases.get_opt(&self.settings.name).await;
        if let Err(Error::Api(status)) = &read
            && is_refusal(status.code)
        {
            // The annotation will never be read: do not wait for it, and assume that the policies are on.
            self.shared.know_shutoff();
        }
        let lease = read?;
        *annotations = lease
            .as_ref()
            .and_then(|lease| lease.metadata.annotations.clone());
        let note = annotations.as_ref().and_then(|all| all.get(SHUTOFF));
        self.catalog
            .say_shutoff(ShutoffSource::Lease, note.map(String::as_str));
        self.shared.know_shutoff();
        let now = ClockReading::now().instant;
        let record = lease.as_ref().map(record);
        if let Some(spec) = lease.and_then(|lease| lease.spec) {
            *acquired = spec.acquire_time;
        }
        let Some(claim) = election.read(record, now) else {
            return Ok(());
        };
        match self.write(&claim, acquired, annotations.clone()).await {
            Ok(lease) => election.taken(lease, now),
            Err(Error::Api(status)) if status.code == CONFLICT => {
                self.report(WriteOutcome::Conflict);
            }
            Err(error) => {
                self.report(WriteOutcome::Failed);
                return Err(error);
            }
        }
        Ok(())
    }

    async fn write(
        &self,
        claim: &LeaseWrite,
        acquired: &mut Option<MicroTime>,
        // A replacement without them would remove them.
        annotations: Option<BTreeMap<String, String>>,
    ) -> Result<LeaseRecord, Error> {
        let now = MicroTime(ClockReading::now().wall);
        if claim.is_new {
            *acquired = Some(now.clone());
        }
        let seconds = match claim.holder {
            Some(_) => i32::try_from(self.settings.timing.duration.as_secs()).unwrap_or(i32::MAX),
            None => RELEASED_SECONDS,
        };
        let lease = Lease {
            metadata: ObjectMeta {
                name: Some(self.settings.name.clone()),
                resource_version: claim.resource_version.clone(),
                annotations,
                ..ObjectMeta::default()
            },
            spec: Some(LeaseSpec {
                // Empty rather than absent: other clients release leases in the same way.
                holder_identity: Some(claim.holder.clone().unwrap_or_default()),
                lease_duration_seconds: Some(seconds),
                lease_transitions: Some(claim.transitions),
                acquire_time: acquired.clone(),
                renew_time: Some(now),
                ..LeaseSpec::default()
            }),
        };
        let params = PostParams {
            field_manager: Some(self.manager.clone()),
            ..PostParams::default()
        };
        let lease = match claim.resource_version {
            Some(_) => {
                let name = &self.settings.name;
                self.leases.replace(name, &params, &lease).await?
            }
            None => self.leases.create(&params, &lease).await?,
        };
        self.report(WriteOutcome::Done);
        Ok(record(&lease))
    }

    fn report(&self, result: WriteOutcome) {
        self.events
            .send(KubeEvent::Written(WriteTarget::Lease, result));
    }

    fn announce(&self, election: &Election) {
        let until = election.leads_until();
        let led = self.shared.leadership().borrow().is_some();
        if led != until.is_some() {
            let identity = &self.settings.identity;
            info!(leads = until.is_some(), identity, "leadership");
        }
        self.events.send(KubeEvent::Leading(until.is_some()));
        self.shared.set_leadership(until);
    }
}

fn record(lease: &Lease) -> LeaseRecord {
    let spec = lease.spec.as_ref();
    let seconds = spec.and_then(|spec| spec.lease_duration_seconds);
    let seconds = u64::try_from(seconds.unwrap_or_default()).unwrap_or_default();
    let holder = spec.and_then(|spec| spec.holder_identity.clone());
    LeaseRecord {
        holder: holder.filter(|holder| !holder.is_empty()),
        duration: Duration::from_secs(seconds),
        transitions: spec
            .and_then(|spec| spec.lease_transitions)
            .unwrap_or_default(),
        resource_version: lease.metadata.resource_version.clone().unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::is_refusal;

    #[test]
    fn a_server_that_is_only_busy_refuses_nothing() {
        for (status, expected) in [
            (401, true),
            (403, true),
            (408, false),
            (429, false),
            (500, false),
            (503, false),
        ] {
            assert_eq!(is_refusal(status), expected, "{status}");
        }
    }
}
