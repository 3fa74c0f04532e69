//! What a proxy says about what it was pushed.

use super::{Name, Version};

/// Why a proxy refused, in its own words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The gRPC status code it gave.
    pub code: i32,
    /// Its message, at most [`Refusal::MAX_BYTES`] of it.
    pub message: String,
}

impl Refusal {
    /// Bytes of a message that are kept: a proxy names field and reason in its first lines.
    pub const MAX_BYTES: usize = 2_048;

    /// A refusal with a message of bounded length.
    #[must_use]
    pub fn new(code: i32, message: &str) -> Self {
        let end = message.floor_char_boundary(Self::MAX_BYTES);
        Self {
            code,
            message: message.get(..end).unwrap_or_default().to_owned(),
        }
    }
}

/// What a request said about an earlier push.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// Nothing: it asks only.
    Question,
    /// These are now in force there; `None` as version: known not to exist.
    Accepted(Vec<(Name, Option<Version>)>),
    /// These were refused; what ran before goes on.
    Refused(Vec<(Name, Option<Version>)>, Refusal),
    /// It speaks of a push that has been answered or was never made.
    Stale,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_refusal_is_cut_between_characters() {
        let refusal = Refusal::new(3, &"ä".repeat(2_000));
        assert_eq!(refusal.message.len(), Refusal::MAX_BYTES);

        let odd = Refusal::new(3, &format!("x{}", "ä".repeat(2_000)));
        assert_eq!(odd.message.len(), Refusal::MAX_BYTES - 1);
    }
}
