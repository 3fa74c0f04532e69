//! What may happen to a proxy, one step at a time.

use std::time::Duration;

use proptest::prelude::*;
use proptest::sample::Index;
use tidegate_core::{Criticality, Failure, Outcome, Request};

use super::CONFIGS;

/// One thing that happens.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Admit {
        engine: Index,
        upstream: usize,
        kind: Kind,
    },
    /// The request's body is complete.
    Start(Index),
    Respond(Index, Outcome),
    FirstByte(Index),
    Upgrade(Index),
    Complete(Index, Outcome),
    Tick(Index),
    TickAll,
    /// Every worker sends some requests to one upstream, all end alike, time goes by and all tick.
    Round {
        upstream: usize,
        requests: u32,
        outcome: Outcome,
        pass: u64,
    },
    /// Another leader, or none.
    Lead(Option<Index>),
    Push(usize),
    Endpoints(Index, usize, u32),
    /// Nanoseconds go by.
    Pass(u64),
    /// The clock goes back.
    Back(u64),
    /// The clock is set.
    Jump(u64),
}

impl Step {
    pub(crate) const fn is_push(&self) -> bool {
        matches!(self, Self::Push(_))
    }

    pub(crate) const fn is_traffic(&self) -> bool {
        matches!(
            self,
            Self::Admit { .. }
                | Self::Start(_)
                | Self::Respond(..)
                | Self::FirstByte(_)
                | Self::Upgrade(_)
                | Self::Complete(..)
                | Self::Endpoints(..)
        )
    }
}

/// A kind of request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    criticality: usize,
    retry: bool,
    health_check: bool,
    has_body: bool,
    cohort: Option<u32>,
}

impl Kind {
    pub(crate) const fn request(self) -> Self {
        self
    }

    pub(crate) const fn is_health_check(self) -> bool {
        self.health_check
    }
}

impl Request for Kind {
    fn criticality(&mut self) -> Criticality {
        Criticality::ALL[self.criticality]
    }

    fn is_retry(&mut self) -> bool {
        self.retry
    }

    fn is_health_check(&mut self) -> bool {
        self.health_check
    }

    fn has_body(&self) -> bool {
        self.has_body
    }

    fn cohort(&mut self) -> Option<u32> {
        self.cohort
    }
}

fn any_kind() -> impl Strategy<Value = Kind> {
    let cohort = prop::option::of(any::<u32>());
    let health_check = prop::bool::weighted(0.1);
    (
        0_usize..4,
        any::<bool>(),
        health_check,
        any::<bool>(),
        cohort,
    )
        .prop_map(
            |(criticality, retry, health_check, has_body, cohort)| Kind {
                criticality,
                retry,
                health_check,
                has_body,
                cohort,
            },
        )
}

fn any_outcome() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        4 => Just(Outcome::Success),
        4 => prop::sample::select(vec![
            Failure::Status,
            Failure::Grpc,
            Failure::Timeout,
            Failure::Connection,
            Failure::Truncated,
        ]).prop_map(Outcome::Failure),
        1 => prop::option::of(any::<u64>().prop_map(Duration::from_millis))
            .prop_map(|retry_after| Outcome::Overload { retry_after }),
        1 => Just(Outcome::Ignored),
        1 => Just(Outcome::Cancelled),
    ]
}

fn any_step() -> impl Strategy<Value = Step> {
    let upstream = 0_usize..3;
    prop_oneof![
        20 => (any::<Index>(), upstream.clone(), any_kind())
            .prop_map(|(engine, upstream, kind)| Step::Admit { engine, upstream, kind }),
        5 => any::<Index>().prop_map(Step::Start),
        8 => (any::<Index>(), any_outcome()).prop_map(|(index, outcome)| Step::Respond(index, outcome)),
        3 => any::<Index>().prop_map(Step::FirstByte),
        1 => any::<Index>().prop_map(Step::Upgrade),
        15 => (any::<Index>(), any_outcome()).prop_map(|(index, outcome)| Step::Complete(index, outcome)),
        5 => any::<Index>().prop_map(Step::Tick),
        5 => Just(Step::TickAll),
        20 => (upstream.clone(), 1_u32..20, any_outcome(), prop_oneof![Just(100), 50_u64..1_500])
            .prop_map(|(upstream, requests, outcome, millis)| {
                Step::Round { upstream, requests, outcome, pass: millis * 1_000_000 }
            }),
        1 => prop::option::weighted(0.8, any::<Index>()).prop_map(Step::Lead),
        1 => (0..CONFIGS.len()).prop_map(Step::Push),
        1 => (any::<Index>(), upstream, prop_oneof![0_u32..5, any::<u32>()])
            .prop_map(|(engine, upstream, endpoints)| Step::Endpoints(engine, upstream, endpoints)),
        15 => (0_u64..200_000_000).prop_map(Step::Pass),
        2 => (0_u64..20_000_000_000).prop_map(Step::Pass),
        1 => (0_u64..5_000_000_000).prop_map(Step::Back),
        1 => prop_oneof![any::<u64>(), u64::MAX - 1_000_000_000..=u64::MAX, 0_u64..1_000].prop_map(Step::Jump),
    ]
}

/// Bursts of one kind of step happen more often than single ones would tell.
pub(crate) fn any_steps() -> impl Strategy<Value = Vec<Step>> {
    let run = (any_step(), 1_usize..12).prop_map(|(step, times)| vec![step; times]);
    prop::collection::vec(run, 1..80).prop_map(|runs| runs.concat())
}
