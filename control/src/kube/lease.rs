//! Carries out what the [`Election`] decides, with a Lease object.
//!
//! Who leads looks again at the same pace after a look that failed: the term is short. Who does not has
//! [time](super::pauses).

use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::Error;
use kube::api::{Api, PostParams};
use kube::runtime::utils::Backoff as _;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::cause::{is_unanswered, words};
use super::counts::{Counts, Target, WriteResult};
use super::election::{Claim, Election, Held};
use super::pauses::pauses;
use super::settings::LeaseSettings;
use super::shared::{Shared, moment};

/// What others wait for a lease that was given back.
const RETURNED_SECONDS: i32 = 1;

/// Answer of a server to a write that came second.
const CONFLICT: u16 = 409;

/// Follows the lease.
pub(super) struct Candidate {
    pub(super) leases: Api<Lease>,
    pub(super) settings: LeaseSettings,
    pub(super) manager: String,
    pub(super) shared: Shared,
    pub(super) counts: Counts,
}

impl Candidate {
    /// Until told to stop, and until `written` says that nothing more is written; then the lease is given back.
    pub(super) async fn run(self, closing: CancellationToken, written: CancellationToken) {
        let timing = self.settings.timing;
        let mut election = Election::new(self.settings.identity.clone(), timing);
        let mut acquired = None;
        let mut is_told = false;
        let mut pauses = pauses();
        while !closing.is_cancelled() {
            let asked = moment().instant;
            let step = self.step(&mut election, &mut acquired);
            let (is_done, trouble) = match tokio::time::timeout(timing.margin(), step).await {
                Ok(Ok(())) => (true, None),
                Ok(Err(error)) if is_unanswered(&error) => (false, None),
                Ok(Err(error)) => (false, Some(words(&error))),
                Err(late) => (false, Some(late.to_string())),
            };
            if let Some(error) = trouble.filter(|_| !is_told) {
                warn!(error, "the lease could not be read or written");
                is_told = true;
            }
            let mut pause = timing.pause();
            if is_done {
                is_told = false;
                pauses.reset();
            } else {
                election.failed(moment().instant);
                if election.leads_until().is_none() {
                    pause = pause.max(pauses.next().unwrap_or_default());
                }
            }
            self.announce(&election);
            let next = tokio::time::Instant::from_std(asked) + pause;
            tokio::select! {
                () = closing.cancelled() => {}
                () = tokio::time::sleep_until(next) => {}
            }
        }
        // What was begun as a leader ends before another leads.
        let _ = tokio::time::timeout(timing.margin(), written.cancelled()).await;
        let returned = election.stop();
        self.announce(&election);
        if let Some(claim) = returned {
            let back = self.write(&claim, &mut acquired);
            match tokio::time::timeout(timing.pause(), back).await {
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
    ) -> Result<(), Error> {
        let lease = self.leases.get_opt(&self.settings.name).await?;
        let now = moment().instant;
        let held = lease.as_ref().map(held);
        if let Some(spec) = lease.and_then(|lease| lease.spec) {
            *acquired = spec.acquire_time;
        }
        let Some(claim) = election.read(held, now) else {
            return Ok(());
        };
        match self.write(&claim, acquired).await {
            Ok(lease) => election.taken(lease, now),
            Err(Error::Api(status)) if status.code == CONFLICT => {
                self.counts.write(Target::Lease, WriteResult::Conflict);
            }
            Err(error) => {
                self.counts.write(Target::Lease, WriteResult::Failed);
                return Err(error);
            }
        }
        Ok(())
    }

    async fn write(&self, claim: &Claim, acquired: &mut Option<MicroTime>) -> Result<Held, Error> {
        let now = MicroTime(moment().wall);
        if claim.is_new {
            *acquired = Some(now.clone());
        }
        let seconds = match claim.holder {
            Some(_) => i32::try_from(self.settings.timing.duration.as_secs()).unwrap_or(i32::MAX),
            None => RETURNED_SECONDS,
        };
        let lease = Lease {
            metadata: ObjectMeta {
                name: Some(self.settings.name.clone()),
                resource_version: claim.resource_version.clone(),
                ..ObjectMeta::default()
            },
            spec: Some(LeaseSpec {
                // Emptied rather than left out: that is how others of this kind give one back.
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
        self.counts.write(Target::Lease, WriteResult::Done);
        Ok(held(&lease))
    }

    fn announce(&self, election: &Election) {
        let until = election.leads_until();
        let led = self.shared.leadership().borrow().is_some();
        if led != until.is_some() {
            let identity = &self.settings.identity;
            info!(leads = until.is_some(), identity, "leadership");
        }
        self.counts.leads(until.is_some());
        self.shared.set_leadership(until);
    }
}

fn held(lease: &Lease) -> Held {
    let spec = lease.spec.as_ref();
    let seconds = spec.and_then(|spec| spec.lease_duration_seconds);
    let seconds = u64::try_from(seconds.unwrap_or_default()).unwrap_or_default();
    let holder = spec.and_then(|spec| spec.holder_identity.clone());
    Held {
        holder: holder.filter(|holder| !holder.is_empty()),
        duration: Duration::from_secs(seconds),
        transitions: spec
            .and_then(|spec| spec.lease_transitions)
            .unwrap_or_default(),
        resource_version: lease.metadata.resource_version.clone().unwrap_or_default(),
    }
}
