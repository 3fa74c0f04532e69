//! The body of a response: how long it lasts, and whether it holds a slot.

use serde::{Deserialize, Serialize};

use super::ServiceTime;

/// The body of a response. Without one a response ends with its headers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Body {
    /// From the first byte to the last: milliseconds for a page, seconds to minutes for a stream (server-sent events,
    /// gRPC streaming, WebSocket, tokens of a model).
    pub duration: ServiceTime,
    /// Whether the request holds its slot until the last byte; otherwise the slot is free when the work is done.
    #[serde(default)]
    pub holds_slot: bool,
    /// Its size on real sockets; 0: as little as shows when it begins and ends. In the simulator bytes cost nothing.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub bytes: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "required by serde")]
const fn is_zero(bytes: &u32) -> bool {
    *bytes == 0
}

impl Body {
    /// Mean time for which a slot is held after the work, in seconds.
    #[must_use]
    pub fn held(&self) -> f64 {
        if self.holds_slot {
            self.duration.mean().as_secs_f64()
        } else {
            0.0
        }
    }
}

/// When the headers of a response are sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HeaderTiming {
    /// When the work is done.
    #[default]
    AfterWork,
    /// When the request is complete, before it gets a slot; the first byte of the body follows when the work is done.
    /// A response that has no [`Body`] ends then. Failures keep their own status.
    AtOnce,
}

impl HeaderTiming {
    /// Whether it is the default, which files leave out.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}
