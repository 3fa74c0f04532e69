//! A real Envoy process, started and stopped from Rust.
//!
//! [`Envoy::builder`] describes clusters, routes and filters; [`EnvoyBuilder::start`]
//! writes the bootstrap into a temporary folder, starts the binary with every port
//! chosen by the kernel, and waits until it is ready. The process is killed when the
//! handle is dropped, and by the kernel when this process dies first.
//!
//! The binary is `.tools/bin/envoy` of the repository (`make tools` puts it there),
//! or what the environment variable `TIDEGATE_ENVOY` names.

mod access_log;
mod admin;
mod bootstrap;
mod builder;
mod cluster;
mod duration;
mod error;
mod generation;
mod metrics;
mod native;
mod place;
mod plugin;
mod route;
mod running;
mod start;
mod usage;

pub use access_log::AccessLine;
pub use admin::{Admin, AdminError};
pub use builder::EnvoyBuilder;
pub use cluster::{CircuitBreakerThresholds, Cluster, LoadBalancing, OutlierSettings};
pub use error::EnvoyError;
pub use generation::Generation;
pub use metrics::{Metrics, TidegateMetric};
pub use native::{native_config, native_module, runtime, search_path};
pub use place::{ENVOY_VARIABLE, binary, repository};
pub use plugin::{
    DiscoveryProtocol, FailurePolicy, MODULE_VARIABLE, Plugin, PushOutcome, release_module,
    test_module,
};
pub use route::Route;
pub use running::Envoy;
