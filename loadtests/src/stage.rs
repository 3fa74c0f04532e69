//! A stage for k6: an upstream of known capacity behind an Envoy, and switches for its faults.
//!
//! The switches are paths on a second port: a request to `/outage` begins an outage, one to `/none` ends the current fault.
//! Your own staging can offer the same switches to the scenarios in `loadtests/k6`.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tidegate_sim::profile::{Change, Delay, Errors, UpstreamMode};
use tidegate_sim::scenario::{Scenario, ScenarioError};
use tidegate_testbed::envoy::Cluster;
use tidegate_testbed::envoy::{Envoy, EnvoyError};
use tidegate_testbed::upstream::{Counts, RequestHead, Script, Upstream};
use tidegate_testbed::variant::Variant;

/// An upstream, an Envoy in front of it, and the switches; dropping this ends all of them.
#[derive(Debug)]
pub struct LoadStage {
    upstream: Arc<Upstream>,
    envoy: Envoy,
    switches: Upstream,
    scenario: Scenario,
}

/// Why a stage could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StageError {
    /// Its description is wrong, which a test rules out.
    #[error("stage.toml")]
    Scenario(#[from] ScenarioError),
    /// A service could not be started.
    #[error("start service {name}")]
    Service {
        /// Its name.
        name: &'static str,
        /// The cause.
        source: io::Error,
    },
    /// Envoy did not start.
    #[error("start envoy with {variant}")]
    Envoy {
        /// The contender.
        variant: Variant,
        /// The cause.
        source: EnvoyError,
    },
}

/// Upstream and objective.
const STAGE: &str = include_str!("../k6/stage.toml");

/// The faults, by the path that switches them on.
const FAULTS: [&str; 4] = ["none", "outage", "hang", "brownout"];

impl LoadStage {
    /// Starts upstream, Envoy and switches.
    ///
    /// # Errors
    /// If one of them does not start; the others are then ended.
    pub async fn start(variant: Variant) -> Result<Self, StageError> {
        let scenario = Scenario::parse(STAGE, "stage.toml")?;
        let behaviour = scenario
            .upstreams
            .first()
            .map(|profile| profile.behaviour.clone())
            .unwrap_or_default();
        let service = |name| move |source| StageError::Service { name, source };
        let upstream = Upstream::builder("main")
            .behaviour(behaviour)
            .seed(scenario.seed);
        let upstream = Arc::new(upstream.start().await.map_err(service("main"))?);
        let switched = Arc::clone(&upstream);
        let switches =
            Upstream::builder("switches").script(move |head| Some(switch(&switched, head)));
        let switches = switches.start().await.map_err(service("switches"))?;
        let cluster = variant.cluster(Cluster::new("main", upstream.addr()));
        let builder = Envoy::builder()
            .concurrency(scenario.workers)
            .cluster(cluster);
        let envoy = variant.envoy(builder, &scenario).start().await;
        let envoy = envoy.map_err(|source| StageError::Envoy { variant, source })?;
        Ok(Self {
            upstream,
            envoy,
            switches,
            scenario,
        })
    }

    /// The address for requests.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("http://{}", self.envoy.addr())
    }

    /// The address of the switches.
    #[must_use]
    pub fn fault_url(&self) -> String {
        format!("http://{}", self.switches.addr())
    }

    /// Requests a second that the upstream can serve.
    #[must_use]
    pub fn capacity(&self) -> f64 {
        self.scenario
            .upstreams
            .first()
            .map_or(0.0, |profile| profile.behaviour.capacity())
    }

    /// The objective: a share of the answers (0 to 1), and the latency within which they must come.
    #[must_use]
    pub const fn objective(&self) -> (f64, Duration) {
        (self.scenario.slo.quantile, self.scenario.slo.latency)
    }

    /// The counts of the upstream.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.upstream.counts()
    }

    /// The Envoy.
    #[must_use]
    pub const fn envoy(&self) -> &Envoy {
        &self.envoy
    }
}

/// Switches to the fault that the request's path names.
fn switch(upstream: &Upstream, head: &RequestHead) -> Script {
    let change = change(head.path.trim_start_matches('/'));
    if let Some(change) = &change {
        upstream.change(change);
    }
    Script::Status {
        status: if change.is_some() { 200 } else { 404 },
        headers: Vec::new(),
        after: Duration::ZERO,
    }
}

/// The change that a fault makes to the upstream; `None` for an unknown name.
fn change(fault: &str) -> Option<Change> {
    let errors = |share| Some(Errors { share, status: 500 });
    let delay = |share| {
        Some(Delay {
            share,
            by: Duration::from_millis(500),
        })
    };
    let well = Change {
        mode: Some(UpstreamMode::Serve),
        errors: errors(0.0),
        delay: delay(0.0),
        ..Change::default()
    };
    match fault {
        "none" => Some(well),
        "outage" => Some(Change {
            mode: Some(UpstreamMode::Fail),
            ..well
        }),
        "hang" => Some(Change {
            mode: Some(UpstreamMode::Hang),
            ..well
        }),
        "brownout" => Some(Change {
            errors: errors(0.3),
            delay: delay(0.2),
            ..well
        }),
        _ => None,
    }
}

/// The faults that can be switched on, `none` first.
#[must_use]
pub const fn faults() -> &'static [&'static str] {
    &FAULTS
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_sim::profile::Behaviour;

    #[test]
    fn the_description_of_the_stage_can_be_read() {
        let scenario = Scenario::parse(STAGE, "stage.toml").unwrap();
        assert!((scenario.upstreams[0].behaviour.capacity() - 250.0).abs() < 1e-9);
    }

    #[test]
    fn every_fault_ends_with_none() {
        let well = Behaviour::default();
        for fault in FAULTS {
            let mut behaviour = well.clone();
            behaviour.apply(&change(fault).unwrap());
            assert_eq!(
                behaviour.mode.is_up() && behaviour.errors.is_none_or(|errors| errors.share <= 0.0),
                fault == "none"
            );
            behaviour.apply(&change("none").unwrap());
            assert!(behaviour.mode.is_up(), "{fault}");
            assert!(
                behaviour.errors.is_none_or(|errors| errors.share <= 0.0),
                "{fault}"
            );
            assert!(
                behaviour.delay.is_none_or(|delay| delay.share <= 0.0),
                "{fault}"
            );
        }
        assert_eq!(change("earthquake"), None);
    }
}
