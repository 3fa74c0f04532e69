//! Tidegate's control laws: an adaptive concurrency limit, a circuit breaker and load shedding by importance,
//! for every upstream of a proxy.
//!
//! Pure: no clock, no randomness of its own, no I/O, no logging, no async. The skins around it (an Envoy
//! filter, a simulator) say what time it is and what happened; core answers with decisions, directives and
//! events. [`Engine`] is the way in.

#![forbid(unsafe_code)]

pub mod ablation;
mod admission;
mod ages;
mod breaker;
mod by_bucket;
mod by_hash;
pub mod classify;
mod cohort;
pub mod config;
mod counters;
mod criticality;
mod deadline;
mod engine;
mod event;
mod exchange;
mod heavy;
mod histogram;
mod ladder;
mod leader;
mod learned;
mod level;
mod limit;
mod loads;
mod mix;
mod on_demand;
mod outcome;
mod permit;
mod ratio;
mod registry;
pub mod reply;
mod request;
mod resting_ages;
mod sample;
mod shed;
mod slot;
mod snapshot;
mod tally;
mod time;
pub mod units;
mod upstream;

pub use breaker::{
    BreakerCheckpoint, BreakerPhase, BreakerState, LocalTrip, Outage, RatesCheckpoint, TripReason,
};
pub use cohort::{cohort_key, cohort_of, cohort_secret};
pub use counters::{Counter, Counters, Unshared};
pub use criticality::Criticality;
pub use engine::{Decision, Engine};
pub use event::{Event, Events};
pub use exchange::{
    Clocks, Directive, Directives, Introduction, Report, SavedState, SavedStateError, Slice,
    WIRE_VERSION, WireError,
};
pub use histogram::{BUCKETS, GrowingHistogram, Histogram};
pub use ladder::Margin;
pub use leader::RequestsUnderWay;
pub use learned::Learned;
pub use level::Level;
pub use limit::{CeilingCheckpoint, FloorCheckpoint, LimitCheckpoint, LimitReason, Quantiles};
pub use mix::mix;
pub use outcome::{Failure, Outcome};
pub use permit::Permit;
pub use ratio::{NotARatio, Ratio};
pub use registry::{Lookup, OVERFLOW};
pub use request::{GivenRequest, Request};
pub use shed::{Shed, ShedReason};
pub use slot::ANSWERING_FOR;
pub use snapshot::{Snapshot, UpstreamSnapshot, UpstreamView};
pub use tally::{Count, Counted, Tally};
pub use time::Instant;
pub use upstream::{Direction, KeySource, ServiceName, UpstreamId, UpstreamKey};
