//! What a service grants its clients.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use hyper::header::HeaderMap;
use tokio::time::Instant;

use crate::client::headers::CLIENT_HEADER;
use tidegate_sim::scenario::{Quota, Scenario, TokenBucket};

/// The quotas of a service's clients, for all its endpoints together.
#[derive(Debug)]
pub struct Quotas {
    begun: Instant,
    /// By the client's name in [`CLIENT_HEADER`].
    by_client: BTreeMap<String, QuotaGrant>,
}

#[derive(Debug)]
struct QuotaGrant {
    quota: Quota,
    bucket: Mutex<TokenBucket>,
}

impl Quotas {
    /// What the service `name` grants the clients of a scenario.
    #[must_use]
    pub fn of(scenario: &Scenario, name: &str) -> Self {
        let clients = scenario.clients.iter().enumerate();
        let own = clients.filter(|(_, client)| client.upstream == name);
        let granted = own.filter_map(|(index, client)| {
            let quota = client.quota?;
            let bucket = Mutex::new(quota.bucket());
            Some((index.to_string(), QuotaGrant { quota, bucket }))
        });
        Self {
            begun: Instant::now(),
            by_client: granted.collect(),
        }
    }

    /// The quota that a request with these headers exceeds; `None` if it is within the quota, and then it takes a token.
    pub(super) fn exceeded(&self, headers: &HeaderMap) -> Option<Quota> {
        let client = headers.get(CLIENT_HEADER)?.to_str().ok()?;
        let grant = self.by_client.get(client)?;
        let mut bucket = grant.bucket.lock().unwrap_or_else(PoisonError::into_inner);
        (!bucket.take(self.begun.elapsed())).then_some(grant.quota)
    }
}
