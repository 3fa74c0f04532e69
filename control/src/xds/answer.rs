//! A proxy's answer to a push.

use super::resource::{Name, ResourceVersion};

/// Why a proxy rejected a push, in its own words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    /// The gRPC status code.
    pub code: i32,
    /// The message, at most [`Rejection::MAX_BYTES`] of it.
    pub message: String,
}

impl Rejection {
    /// Longest message that is kept, in bytes: a proxy names the field and the reason in the first lines.
    pub const MAX_BYTES: usize = 2_048;

    /// A rejection with a message of bounded length.
    #[must_use]
    pub fn new(code: i32, message: &str) -> Self {
        let end = message.floor_char_boundary(Self::MAX_BYTES);
        Self {
            code,
            message: message.get(..end).unwrap_or_default().to_owned(),
        }
    }
}

/// What a request says about an earlier push.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PushReply {
    /// Nothing: the request only asks for resources.
    None,
    /// The proxy now runs these; `None` as version: it knows that the resource does not exist.
    Accepted(Vec<(Name, Option<ResourceVersion>)>),
    /// The proxy rejected these and continues to run what it had.
    Rejected(Vec<(Name, Option<ResourceVersion>)>, Rejection),
    /// The push was already answered, or was never made.
    Stale,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_message_is_cut_between_characters() {
        let rejection = Rejection::new(3, &"ä".repeat(2_000));
        assert_eq!(rejection.message.len(), Rejection::MAX_BYTES);

        let odd = Rejection::new(3, &format!("x{}", "ä".repeat(2_000)));
        assert_eq!(odd.message.len(), Rejection::MAX_BYTES - 1);
    }
}
