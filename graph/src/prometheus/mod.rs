//! Prometheus' HTTP API: what its answers mean, and a client.

mod answer;
mod client;
mod error;
mod tls;

pub use answer::{AnswerError, AnswerSeries, Vector, parse};
pub use client::{AskPrometheus, ClientSettings, Credentials, PrometheusClient};
pub use error::{AskError, SettingsError};
