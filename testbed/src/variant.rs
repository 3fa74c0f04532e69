//! The contenders: Tidegate, Envoy's own means, and no protection.
//!
//! Envoy's filters run with the settings of their documentation. One contender knows the capacity, which is unknown outside a
//! benchmark: `static-tuned` (32 requests in flight: twice the slots) marks what tuning can achieve.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::client::headers::CRITICALITY_HEADER;
use crate::envoy::{
    CircuitBreakerThresholds, Cluster, EnvoyBuilder, OutlierSettings, Plugin, native_module,
    release_module,
};
use tidegate_sim::policy::policy;
use tidegate_sim::scenario::Scenario;
use tidegate_sim::targets::RivalKind;

/// A contender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Variant {
    /// No protection at all: Envoy's thresholds out of reach.
    None,
    /// This project's filter.
    Tidegate,
    /// This project's filter as a native module.
    Native,
    /// Envoy's circuit breaker with its defaults (1,024 of everything).
    StaticDefault,
    /// Envoy's circuit breaker, set for a known capacity.
    StaticTuned,
    /// Outlier detection with Envoy's defaults.
    Outlier,
    /// The filter `adaptive_concurrency`.
    AdaptiveConcurrency,
    /// The filter `admission_control`.
    AdmissionControl,
    /// `admission_control` and `adaptive_concurrency`.
    Both,
}

/// Requests in flight that `static-tuned` allows: the slots of the standard upstream and as many waiting.
const TUNED_REQUESTS: u32 = 32;

impl Variant {
    /// Every contender, ours first.
    pub const ALL: [Self; 9] = [
        Self::Tidegate,
        Self::Native,
        Self::None,
        Self::StaticDefault,
        Self::StaticTuned,
        Self::Outlier,
        Self::AdaptiveConcurrency,
        Self::AdmissionControl,
        Self::Both,
    ];

    /// Its name on the command line and in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Tidegate => "tidegate",
            Self::Native => "native",
            Self::StaticDefault => "static-default",
            Self::StaticTuned => "static-tuned",
            Self::Outlier => "outlier",
            Self::AdaptiveConcurrency => "adaptive-concurrency",
            Self::AdmissionControl => "admission-control",
            Self::Both => "both",
        }
    }

    /// Its role in a comparison.
    #[must_use]
    pub const fn kind(self) -> RivalKind {
        match self {
            Self::Tidegate | Self::Native => RivalKind::Ours,
            Self::StaticTuned => RivalKind::Tuned,
            _ => RivalKind::Untuned,
        }
    }

    /// The module that it needs, and the command that builds it; `None` if Envoy needs no module.
    #[must_use]
    pub fn module(self) -> Option<(PathBuf, &'static str)> {
        match self {
            Self::Tidegate => Some((release_module(), "make filter")),
            Self::Native => Some((native_module(), "make native")),
            _ => None,
        }
    }

    /// Whether everything it needs is there.
    #[must_use]
    pub fn is_available(self) -> bool {
        self.module().is_none_or(|(module, _)| module.exists())
    }

    /// Whether it is this project's filter, in whichever form.
    #[must_use]
    pub const fn is_ours(self) -> bool {
        matches!(self, Self::Tidegate | Self::Native)
    }

    /// Adds the contender's settings to a cluster.
    #[must_use]
    pub const fn cluster(self, cluster: Cluster) -> Cluster {
        match self {
            Self::StaticDefault => cluster.thresholds(CircuitBreakerThresholds::envoy_default()),
            Self::StaticTuned => {
                cluster.thresholds(CircuitBreakerThresholds::tuned(TUNED_REQUESTS))
            }
            Self::Outlier => cluster.outlier(OutlierSettings::envoy_default()),
            _ => cluster,
        }
    }

    /// Adds the contender's filters to an Envoy.
    #[must_use]
    pub fn envoy(self, envoy: EnvoyBuilder, scenario: &Scenario) -> EnvoyBuilder {
        match self {
            Self::None | Self::StaticDefault | Self::StaticTuned | Self::Outlier => envoy,
            Self::Tidegate => envoy.plugin(Plugin::tidegate(&tidegate_config(scenario))),
            Self::Native => {
                let plugin = Plugin::tidegate(&tidegate_config(scenario));
                envoy.plugin(plugin.module(native_module()))
            }
            Self::AdaptiveConcurrency => envoy.filter(adaptive_concurrency()),
            Self::AdmissionControl => envoy.filter(admission_control()),
            Self::Both => envoy
                .filter(admission_control())
                .filter(adaptive_concurrency()),
        }
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// No contender has this name.
#[derive(Debug, thiserror::Error)]
#[error("variant: found {0}, expected one of: {known}", known = Variant::ALL.map(Variant::name).join(", "))]
pub struct UnknownVariant(String);

impl FromStr for Variant {
    type Err = UnknownVariant;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|variant| variant.name() == name);
        found.ok_or_else(|| UnknownVariant(name.to_owned()))
    }
}

/// The configuration that a user would write for a scenario: the objective, where criticality is read, and what callers may
/// say about themselves.
#[must_use]
pub fn tidegate_config(scenario: &Scenario) -> Value {
    let mut config = policy(scenario);
    let is_classed = scenario
        .clients
        .iter()
        .any(|client| !client.criticality.is_empty());
    if let Some(fields) = config.as_object_mut().filter(|_| is_classed) {
        let criticality = fields
            .entry("criticality")
            .or_insert_with(|| Value::Object(Map::new()));
        if let Some(criticality) = criticality.as_object_mut() {
            criticality.insert("header".to_owned(), json!(CRITICALITY_HEADER));
        }
    }
    config
}

/// The settings of Envoy's documentation.
fn adaptive_concurrency() -> Value {
    json!({
        "name": "envoy.filters.http.adaptive_concurrency",
        "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.filters.http.adaptive_concurrency.v3.AdaptiveConcurrency",
            "gradient_controller_config": {
                "sample_aggregate_percentile": {"value": 90.0},
                "concurrency_limit_params": {"concurrency_update_interval": "0.1s"},
                "min_rtt_calc_params": {"jitter": {"value": 10.0}, "interval": "60s", "request_count": 50},
            },
            "enabled": {"default_value": true, "runtime_key": "adaptive_concurrency.enabled"},
        },
    })
}

/// The filter's defaults: 95 % success over 30 s, aggression 1, at most 80 % rejected.
fn admission_control() -> Value {
    json!({
        "name": "envoy.filters.http.admission_control",
        "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.filters.http.admission_control.v3.AdmissionControl",
            "enabled": {"default_value": true, "runtime_key": "admission_control.enabled"},
            "success_criteria": {
                "http_criteria": {"http_success_status": [{"start": 100, "end": 500}]},
                "grpc_criteria": {"grpc_success_status": [0]},
            },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filter_is_told_where_latency_ends_unless_it_knows() {
        let until = |slo: &str| {
            let text = format!(
                "name='t'\ntitle='t'\nprose='p'\nseed=3\nduration='10s'\nslo={slo}\n\
                 [[clients]]\nload=[{{at='0s', x=0.5}}]"
            );
            let config = tidegate_config(&Scenario::parse(&text, "test").unwrap());
            config["slo"]["latency"].get("until").cloned()
        };
        assert_eq!(until("{until='headers'}"), None);
        assert_eq!(until("{until='first-byte'}"), Some(json!("firstByte")));
        assert_eq!(until("{until='end'}"), Some(json!("end")));
    }

    #[test]
    fn callers_may_say_what_a_scenario_lets_them() {
        let config = |client: &str, adversary: &str| {
            let text = format!(
                "name='t'\ntitle='t'\nprose='p'\nseed=3\nduration='10s'\n\
                 [[clients]]\nload=[{{at='0s', x=0.5}}]\n{client}\n[[adversaries]]\nx=0.5\n{adversary}"
            );
            tidegate_config(&Scenario::parse(&text, "test").unwrap())
        };
        let forged = config("criticality={sheddable=1.0}", "kind='forged_cohort'");
        let both = json!({"header": "x-criticality", "cohortHeader": "x-cohort"});
        assert_eq!(forged["criticality"], both);
        assert_eq!(forged.get("ignore"), None);
        let forged = config("", "kind='forged_agent'");
        assert_eq!(forged["ignore"]["userAgents"], json!(["kube-probe/"]));
        assert_eq!(forged.get("criticality"), None);
    }

    #[test]
    fn names_are_parsed_back() {
        for variant in Variant::ALL {
            assert_eq!(variant.name().parse::<Variant>().unwrap(), variant);
        }
        assert!(
            "tidgate"
                .parse::<Variant>()
                .unwrap_err()
                .to_string()
                .contains("static-tuned")
        );
    }
}
