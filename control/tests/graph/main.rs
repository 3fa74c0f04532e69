//! `tidegate graph` against a real Prometheus, which scrapes a chain of services behind real Envoys: `make graph-prometheus`.
//!
//! Seven services call each other, and one that is not there, through Envoys of their own, under a load of six requests a second from outside. One service
//! is slow and one fails in part. The graph is asked for twice: once while all is steady, and once after one Envoy was restarted
//! and another one removed. What callers saw is recorded, and each case compares the graph with it.
//! The support: [`chain`] (the services and their Envoys), [`service`] (one of them), [`truth`] (what callers saw), [`prometheus`] (the
//! server) and [`world`] (the two observations). A case is an async function that takes the world and is in the list below.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "these are tests: to stop at the first surprise is what is wanted"
)]

mod chain;
mod prometheus;
mod service;
mod truth;
mod world;

mod changed;
mod steady;

use std::process::ExitCode;

use tidegate_meshbed::{cases, suite};

use world::ObservedChain;

fn main() -> ExitCode {
    suite::play(
        ObservedChain::start,
        cases![
            steady::every_call_is_an_edge_and_there_is_no_other,
            steady::edges_join_to_the_chain,
            steady::rates_are_those_that_callers_sent,
            steady::success_is_the_share_that_callers_saw,
            steady::latencies_are_between_those_of_upstream_and_caller,
            steady::the_slow_service_is_seen,
            steady::concurrency_is_rate_times_mean_latency,
            steady::an_upstream_that_is_down_is_an_edge_that_fails,
            steady::nothing_else_is_missing_or_in_doubt,
            steady::a_recording_gives_the_same_graph,
            changed::a_restarted_envoy_gives_no_negative_and_no_absurd_rate,
            changed::an_edge_whose_envoy_is_gone_has_ended,
            changed::the_other_edges_stay_as_they_are,
        ],
    )
}
