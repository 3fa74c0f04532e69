//! The service graph from observed traffic: who calls whom, how often, how well and how fast.
//!
//! [`planned`] makes the queries from the data in `queries.toml`, [`collect`] sends them to a Prometheus, a [`Recording`] has
//! its unchanged answers, [`build()`] turns them into the [`ServiceGraph`], and [`output`] shows it. Everything except the
//! [client](prometheus) is pure: the time is an argument, and a recording replaces a cluster.
//!
//! Source: Algorithm 1 of "Microservice communication graph" (PLOS ONE): vertices are services, edges carry moving averages
//! of request rate and latency over a window, and the graph is rebuilt periodically. Added here: success, quantiles,
//! concurrency, and unknown values.

#![forbid(unsafe_code)]

pub mod build;
mod cluster;
mod collect;
mod model;
pub mod output;
pub mod placement;
pub mod prometheus;
mod queries;
mod recording;
mod warning;

pub use build::{BuildError, BuildTerms, BuiltGraph, build};
pub use cluster::{ClusterFacts, ServiceFacts, WorkloadFacts};
pub use collect::{CollectError, Collected, MetricsChoice, collect};
pub use model::{
    ClusterNode, ComputeResources, EdgeTraffic, EndpointCounts, KubernetesFacts, MetricsSource,
    ServiceGraph, ServiceVertex, TrafficReporter, VertexKey, VertexKind,
};
pub use queries::{
    HistogramForm, ObservationWindow, PlannedQuery, QueryError, QueryMeasure, planned,
};
pub use recording::{RecordedAnswer, Recording, RecordingError};
pub use warning::{GraphWarning, WarningKind};
