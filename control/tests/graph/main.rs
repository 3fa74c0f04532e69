//! `tidegate graph` and `tidegate score` against a real Prometheus, which scrapes real Envoys: `make graph-prometheus`.
//!
//! Seven services call each other through their own Envoys, under a load of six requests a second from outside. One of
//! them also calls a service without endpoints. One service is slow, and one fails some requests. The graph is read
//! twice: once in a steady state, and once after one Envoy was restarted and another one was removed. The test records
//! what callers saw, and each case compares the graph with this record. The support: [`chain`] (the services and their
//! Envoys), [`service`] (one of them), [`truth`] (what callers saw), [`prometheus`] (the server) and [`world`] (the two
//! observations).
//!
//! The score is read once, under a steady load on four upstreams behind an Envoy with the filter. The callers count
//! their answers. The support: [`score_load`] (the load, and what callers counted), [`containers`] (the CPU time in the
//! format of cAdvisor) and [`score_world`] (the output of the commands).
//!
//! A case is an async function that takes the world and is in the list below.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test stops at the first unexpected result"
)]

mod chain;
mod containers;
mod prometheus;
mod score_load;
mod score_world;
mod service;
mod truth;
mod world;

mod changed;
mod scored;
mod steady;

use std::process::ExitCode;

use tidegate_meshbed::{cases, suite};

use score_world::ScoredLoad;
use world::ObservedChain;

/// What all cases share. The two parts run one after the other, so that the load of one does not disturb the other.
struct World {
    chain: ObservedChain,
    scored: ScoredLoad,
}

impl World {
    async fn start() -> anyhow::Result<Self> {
        Ok(Self {
            chain: ObservedChain::start().await?,
            scored: ScoredLoad::start().await?,
        })
    }
}

fn main() -> ExitCode {
    suite::play(
        World::start,
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
            scored::score_counts_the_requests_that_callers_sent,
            scored::score_of_latency_is_that_of_late_answers,
            scored::score_of_success_is_that_of_failed_answers,
            scored::what_bursts_shed_of_an_idle_upstream_is_needless,
            scored::what_observe_would_shed_counts_as_if_it_were_shed,
            scored::what_an_overloaded_upstream_sheds_is_not_needless,
            scored::an_upstream_that_sheds_nothing_has_no_needless_sheds,
            scored::cpu_and_memory_are_those_of_the_proxy,
            scored::the_score_is_the_mean_of_its_parts_and_the_worst_comes_first,
            scored::the_graph_of_our_own_metrics_is_what_callers_saw,
        ],
    )
}
