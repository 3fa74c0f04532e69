//! Lies of a service.

use serde::{Deserialize, Serialize};

/// A year, in seconds.
const YEAR: u32 = 31_536_000;
/// More than a proxy takes by default (Envoy: 60 KiB).
const HUGE: u32 = 96 << 10;
/// The most that the testbed sends.
const MOST_BYTES: u32 = 16 << 20;

/// An answer that does harm, given at once and without a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Lie {
    /// 503, with the demand not to come back for a year.
    RetryAfter {
        /// Value of the header `retry-after`.
        #[serde(default = "a_year")]
        seconds: u32,
    },
    /// Headers 200, and then nothing until the caller goes away.
    Silence,
    /// More headers than a proxy takes, which breaks the connection off.
    HugeHeaders {
        /// Size of all of them together.
        #[serde(default = "huge")]
        bytes: u32,
    },
}

const fn a_year() -> u32 {
    YEAR
}

const fn huge() -> u32 {
    HUGE
}

impl Default for Lie {
    fn default() -> Self {
        Self::RetryAfter { seconds: YEAR }
    }
}

impl Lie {
    /// Status of the answer that carries a `retry-after`.
    pub const STATUS: u16 = 503;

    /// What is wrong with it, as `field: what is wrong`.
    pub(crate) fn fault(self) -> Option<String> {
        match self {
            Self::HugeHeaders { bytes } if !(1..=MOST_BYTES).contains(&bytes) => {
                Some(format!("bytes: found {bytes}, expected 1..={MOST_BYTES}"))
            }
            _ => None,
        }
    }
}
