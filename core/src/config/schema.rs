//! Every field once: key, range and default.
//!
//! The reader checks against these constants. The rows of [`FIELDS`] are built
//! from them too, so the generated reference cannot differ from the code. The
//! prose is only in the rows. The filter never uses them, so its module does not
//! contain the prose.

use std::time::Duration;

use super::choices::{KeyBy, Mode, Reply, Stance, Until};
use crate::criticality::Criticality;
use crate::outcome::GRPC_RESOURCE_EXHAUSTED;
use crate::ratio::Ratio;

pub use super::fields::FIELDS;
pub use super::kinds::{
    Bound, Choice, Field, Flag, Fraction, Numbers, OneOf, Span, Values, WholeNumber, names,
};

const MAX_PER_ENDPOINT: u32 = 100_000;
const MINUTE: Duration = Duration::from_secs(60);
const TEN_MINUTES: Duration = Duration::from_secs(600);
const HOUR: Duration = Duration::from_secs(3_600);

/// A literal of this file. A test checks `min <= default <= max` in every row.
const fn ratio(value: f64) -> Ratio {
    match Ratio::new(value) {
        Some(ratio) => ratio,
        None => Ratio::ZERO,
    }
}

const fn count(key: &'static str, min: u32, max: u32, default: u32) -> WholeNumber {
    WholeNumber {
        key,
        min,
        max,
        default,
    }
}

const fn share(key: &'static str, min: f64, max: f64, default: Option<Ratio>) -> Fraction {
    Fraction {
        key,
        min: ratio(min),
        max: ratio(max),
        default,
    }
}

const fn statuses(key: &'static str, default: &'static [u32]) -> Numbers {
    Numbers {
        key,
        min: 400,
        max: 599,
        default,
    }
}

pub(super) const ENABLED: Flag = Flag {
    key: "enabled",
    default: true,
};
pub(super) const MODE: (&str, Mode) = ("mode", Mode::Enforce);
pub(super) const ENFORCEMENT: Fraction = share("enforcement", 0.0, 1.0, Some(Ratio::ONE));
pub(super) const STANCE: (&str, Stance) = ("stance", Stance::FailFast);
pub(super) const KEY_BY: (&str, KeyBy) = ("keyBy", KeyBy::Auto);
pub(super) const LATENCY_QUANTILE: Fraction = share("quantile", 0.5, 0.999, None);
/// The objective's latency.
pub const LATENCY_TARGET: Span = Span {
    key: "target",
    min: Duration::from_millis(1),
    max: TEN_MINUTES,
    default: None,
};
pub(super) const LATENCY_UNTIL: (&str, Until) = ("until", Until::Headers);
pub(super) const SUCCESS_RATE: Fraction = share("successRate", 0.5, 0.99999, Some(ratio(0.999)));
pub(super) const LIMIT_MIN: WholeNumber = count("min", 1, MAX_PER_ENDPOINT, 1);
pub(super) const LIMIT_MAX: WholeNumber = count("max", 1, MAX_PER_ENDPOINT, 10_000);
pub(super) const LIMIT_INITIAL: WholeNumber = count("initial", 1, MAX_PER_ENDPOINT, 20);
pub(super) const LIMIT_MAX_OPEN: Bound = Bound {
    key: "maxOpen",
    min: 1,
    max: MAX_PER_ENDPOINT,
};
pub(super) const BREAKER_ENABLED: Flag = Flag {
    key: "enabled",
    default: true,
};
pub(super) const TRIP_RATIO: Fraction = share("tripRatio", 0.05, 1.0, Some(ratio(0.5)));
pub(super) const MIN_OPEN: Span = Span {
    key: "minOpen",
    min: Duration::from_millis(50),
    max: TEN_MINUTES,
    default: Some(Duration::from_millis(250)),
};
pub(super) const MAX_OPEN: Span = Span {
    key: "maxOpen",
    min: Duration::from_millis(50),
    max: HOUR,
    default: Some(MINUTE),
};
pub(super) const OVERLOAD_STATUSES: Numbers = statuses("statuses", &[429]);
pub(super) const OVERLOAD_WITH_RETRY_AFTER: Numbers = statuses("statusesWithRetryAfter", &[503]);
pub(super) const OVERLOAD_GRPC: Numbers = Numbers {
    key: "grpcStatuses",
    min: 1,
    // The last status that gRPC defines.
    max: 16,
    default: &[GRPC_RESOURCE_EXHAUSTED],
};
pub(super) const SHED_REPLY: (&str, Reply) = ("reply", Reply::Stop);
pub(super) const SHED_STATUS: WholeNumber = count("status", 400, 599, 503);
pub(super) const MAX_BODY_BYTES: usize = 4_096;
/// What a body must be.
pub const BODY_EXPECTED: &str = "a text of at most 4096 bytes";
/// What the name of the header with the reason must be.
pub const REASON_HEADER_EXPECTED: &str =
    "a header name in lower case from x- on, not from x-envoy- on";
pub(super) const MAX_SHARE: Fraction = share("maxShare", 0.0, 1.0, Some(Ratio::ONE));
pub(super) const DEFAULT_CRITICALITY: (&str, Criticality) = ("default", Criticality::Critical);
/// What the name of a header must be.
pub const HEADER_EXPECTED: &str = "a header name in lower case";
/// What a method must be.
pub const METHOD_EXPECTED: &str = "an HTTP method in capitals such as \"GET\"";
/// What a pattern for a path must be.
pub const PATH_EXPECTED: &str =
    "a path without query, from / or *, with * for any text, at most 512 bytes";
/// What a pattern for a host must be.
pub const HOST_EXPECTED: &str = "a host in lower case with * for any text, at most 512 bytes";
/// What a pattern for a name must be.
pub const NAME_EXPECTED: &str = "a name with * for any text, at most 512 bytes";
/// What the key of cohorts must be.
pub const KEY_EXPECTED: &str = "a text of 1 to 128 bytes";
/// Longest key of cohorts, in bytes.
pub(super) const MAX_KEY_BYTES: usize = 128;
/// What the start of a user-agent must be.
pub const AGENT_EXPECTED: &str = "the start of a user-agent, 1 to 128 bytes";
pub(super) const MAX_UPSTREAMS: WholeNumber = count("maxUpstreams", 1, 10_000, 1_000);
pub(super) const MAX_DESTINATIONS: WholeNumber = count("maxDestinations", 1, 10_000, 100);
/// Most rules under `upstreams`.
pub const MAX_RULES: usize = 1_000;
/// Most entries in any other list, because each may be compared with every request.
pub const MAX_ENTRIES: usize = 100;
