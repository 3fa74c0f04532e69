//! The switch for all policies in a cluster: an annotation on the Lease, which every replica reads anyway. The service
//! needs no additional right for it, and an operator can set it without the service.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::Error;
use kube::api::{Api, PostParams};

use crate::source::{Catalog, ShutoffSource};

/// Its presence turns all policies off; its value is a note.
pub const SHUTOFF: &str = "tidegate.dev/disabled";

/// Most attempts; each one follows a conflict with another writer.
const MAX_ATTEMPTS: usize = 10;
/// Wait before the next attempt.
const PAUSE: Duration = Duration::from_millis(50);
/// Longest time of one request.
const BOUND: Duration = Duration::from_secs(5);
/// HTTP status of a write that lost to an earlier one.
const CONFLICT: u16 = 409;

/// Writes the annotation; cheap to clone.
#[derive(Clone)]
pub struct ShutoffLease {
    pub(in crate::kube) leases: Api<Lease>,
    pub(in crate::kube) name: String,
    pub(in crate::kube) manager: String,
    pub(in crate::kube) catalog: Catalog,
}

impl std::fmt::Debug for ShutoffLease {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ShutoffLease({})", self.name)
    }
}

impl ShutoffLease {
    /// Turns all policies off with a note, or on again (`None`). This replica follows at once, the others when they next read
    /// the Lease.
    ///
    /// # Errors
    /// When the Lease could not be written, with the reason.
    pub async fn write(&self, note: Option<&str>) -> Result<(), String> {
        for _ in 0..MAX_ATTEMPTS {
            let written = tokio::time::timeout(BOUND, self.attempt(note)).await;
            match written.map_err(|late| late.to_string())? {
                Ok(()) => {
                    self.catalog.say_shutoff(ShutoffSource::Lease, note);
                    return Ok(());
                }
                Err(Error::Api(status)) if status.code == CONFLICT => {
                    tokio::time::sleep(PAUSE).await;
                }
                Err(error) => return Err(error.to_string()),
            }
        }
        Err("the Lease changes too often".to_owned())
    }

    async fn attempt(&self, note: Option<&str>) -> Result<(), Error> {
        let mut lease = self.leases.get(&self.name).await?;
        let annotations = lease.metadata.annotations.get_or_insert_default();
        match note {
            Some(note) => annotations.insert(SHUTOFF.to_owned(), note.to_owned()),
            None => annotations.remove(SHUTOFF),
        };
        // The server maintains the managed fields; they need not be sent.
        lease.metadata.managed_fields = None;
        let params = PostParams {
            field_manager: Some(self.manager.clone()),
            ..PostParams::default()
        };
        let replaced = self.leases.replace(&self.name, &params, &lease).await;
        replaced.map(|_| ())
    }
}
