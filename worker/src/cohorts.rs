//! Which callers are served together while a part of a class must be shed.
//!
//! A caller's cohort is a hash of the header that names it. Callers at the low end of the hash are served. So a hash that
//! callers can compute could be gamed, and one that never changes would always shed the same callers. Therefore the hash has
//! a key, and the key changes every ten minutes.
//!
//! The key is the configuration's `criticality.cohortKey`, with which all proxies serve the same callers; it changes by the
//! wall clock. Without it each proxy draws its own key, which its workers share.

use tidegate_core::config::Config;
use tidegate_core::{Instant, cohort_key, cohort_of, cohort_secret};

use crate::api::{Expect, Host, HostError};
use crate::exchange::keys::Keys;
use crate::faults::Fault;
use crate::proxy::Proxy;

/// The source of the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CohortSource {
    /// Callers are not told apart.
    None,
    /// The configuration: all proxies have the same.
    Configuration(u64),
    /// The proxy: its workers have the same.
    Proxy(u64),
}

/// The key that holds now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cohorts {
    /// The shared-data key under which the workers of the proxy share the first one's draw.
    place: String,
    own: u64,
    source: CohortSource,
    key: u64,
}

impl Cohorts {
    /// No key yet. `own` is this worker's draw for its proxy.
    #[must_use]
    pub fn new(keys: &Keys, own: u64) -> Self {
        Self {
            place: keys.cohorts(),
            own,
            source: CohortSource::None,
            key: 0,
        }
    }

    /// A configuration is in force from now on.
    pub fn follow<H: Host>(&mut self, config: &Config, proxy: &Proxy<H>) {
        let criticality = config.criticality();
        self.source = match (criticality.cohort_header(), criticality.cohort_key()) {
            (None, _) => CohortSource::None,
            (Some(_), Some(key)) => CohortSource::Configuration(cohort_secret(key)),
            (Some(_), None) => {
                let shared = agree(&proxy.host, &self.place, self.own);
                let shared = proxy.check(Fault::SharedData, shared);
                CohortSource::Proxy(shared.unwrap_or(self.own))
            }
        };
        self.rotate(proxy);
    }

    /// Updates the key to this moment. Reads a clock only if callers are told apart.
    pub fn rotate<H: Host>(&mut self, proxy: &Proxy<H>) {
        let (secret, now) = match self.source {
            CohortSource::None => return,
            CohortSource::Configuration(secret) => {
                (secret, proxy.check(Fault::Clock, proxy.host.wall_clock()))
            }
            CohortSource::Proxy(secret) => (secret, proxy.now()),
        };
        if let Some(now) = now {
            self.key = cohort_key(secret, now.saturating_since(Instant::ZERO));
        }
    }

    /// The cohort of a caller.
    #[must_use]
    pub fn of(&self, caller: &str) -> u32 {
        cohort_of(caller, self.key)
    }
}

/// The number that the proxy's workers share at `key`: that of the first worker.
fn agree(host: &impl Host, key: &str, own: u64) -> Result<u64, HostError> {
    // Whether it was stored does not matter: the stored number counts.
    let _ = host.set_shared(key, &own.to_le_bytes(), Expect::Absent)?;
    let found = host.shared(key)?;
    let bytes = found.and_then(|value| value.bytes.first_chunk::<8>().copied());
    Ok(bytes.map_or(own, u64::from_le_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::FakeHost;
    use core::time::Duration;

    fn config(more: &str) -> Config {
        let text = format!(
            r#"{{"slo":{{"latency":{{"quantile":0.99,"target":"300ms"}}}},"criticality":{{{more}}}}}"#
        );
        Config::from_json(text.as_bytes()).unwrap()
    }

    const OWN: &str = r#""cohortHeader":"x-user""#;
    const GIVEN: &str = r#""cohortHeader":"x-user","cohortKey":"tide""#;

    fn cohorts(host: &FakeHost, more: &str, own: u64) -> Cohorts {
        let proxy = Proxy::new(host.clone(), "tidegate");
        let mut cohorts = Cohorts::new(&Keys::new("tidegate"), own);
        cohorts.follow(&config(more), &proxy);
        cohorts
    }

    #[test]
    fn workers_of_a_proxy_agree_and_proxies_do_not() {
        let host = FakeHost::default();
        let first = cohorts(&host, OWN, 1);
        assert_eq!(cohorts(&host, OWN, 2).key, first.key, "another worker");
        let other = cohorts(&FakeHost::default(), OWN, 2);
        assert_ne!(other.of("ann"), first.of("ann"));
    }

    #[test]
    fn with_a_key_all_proxies_agree() {
        let of = |own| cohorts(&FakeHost::default(), GIVEN, own).of("ann");
        assert_eq!(of(1), of(2));
        let other = r#""cohortHeader":"x-user","cohortKey":"ebb""#;
        assert_ne!(cohorts(&FakeHost::default(), other, 1).of("ann"), of(1));
    }

    #[test]
    fn the_key_changes_with_every_period_and_not_before() {
        for more in [OWN, GIVEN] {
            let host = FakeHost::default();
            let proxy = Proxy::new(host.clone(), "tidegate");
            let mut cohorts = cohorts(&host, more, 1);
            let first = cohorts.of("ann");
            let mut seen = vec![first];
            for _ in 0..30 {
                host.advance(Duration::from_secs(60));
                cohorts.rotate(&proxy);
                seen.push(cohorts.of("ann"));
            }
            seen.dedup();
            assert!((3..=4).contains(&seen.len()), "{more}: {seen:?}");
        }
    }

    #[test]
    fn cohorts_are_even_whatever_the_names_of_callers() {
        let cohorts = cohorts(&FakeHost::default(), OWN, 7);
        let low = (0..10_000)
            .filter(|user| cohorts.of(&format!("user-{user}")) < u32::MAX / 10)
            .count();
        assert!((850..1_150).contains(&low), "{low} of 10000 in a tenth");
    }

    #[test]
    fn without_cohorts_nothing_is_read() {
        let host = FakeHost::default();
        let proxy = Proxy::new(host.clone(), "tidegate");
        let mut cohorts = cohorts(&host, "", 1);
        host.break_shared_data();
        cohorts.rotate(&proxy);
        assert_eq!(cohorts.key, 0);
    }
}
