//! Real Envoys, programmable upstreams and an open-loop client, all started from Rust.
//!
//! The end-to-end tests, the demo and the benchmark stand on this crate. Its rooms:
//!
//! - told the time, free of sockets: [`profile`] (what an upstream does), [`scenario`]
//!   (one story as data), [`arrivals`], [`oracle`], [`record`], [`score`];
//! - real sockets: [`envoy`], [`upstream`], [`client`];
//! - both together: [`variant`] (who competes), [`run`] (one scenario on one
//!   contender), [`report`] (tables, charts, HTML).

pub mod about;
pub mod arrivals;
pub mod client;
pub mod cost;
pub mod demo;
pub mod envoy;
pub mod number;
pub mod oracle;
pub mod profile;
pub mod record;
pub mod report;
pub mod run;
pub mod scenario;
pub mod score;
pub mod series;
pub mod upstream;
pub mod variant;
