//! What the workers of a proxy tell each other.
//!
//! Every worker reports what it counted (a [`Slice`]); one of them, the leader, merges the slices, runs the
//! control laws and answers with [`Directives`] that all follow. Both are plain data; how they travel is the
//! skin's business. On the wire each is postcard (<https://postcard.jamesmunns.com>) in an [`envelope`] of version, length
//! and checksum. Another version is refused, so that two versions of the module side by side ignore each other instead of
//! misreading; so is what was cut off or damaged on the way. A directive carries all that was learned, so it is also what a fresh VM starts from.
//!
//! Others may write on the table where the bytes lie. So directives are checked when they come, before any is followed.
//! All are refused if one cannot be read, has a number outside the range of its unit ([`units`](crate::units)), or is not
//! plausible as a whole ([`plausible`]).

mod counts;
mod directives;
mod envelope;
mod plausible;
mod report;
mod slice;
mod varint;

pub use directives::{Directive, Directives};
pub(crate) use directives::{Entry, UNSTAMPED};
pub(crate) use envelope::ENVELOPE_BYTES;
pub use report::{Introduction, Report};
pub use slice::Slice;
pub(crate) use slice::{Entries, Told};

/// Version of both wire formats; a change to any type that is sent is a new one.
pub const WIRE_VERSION: u8 = 7;

/// A payload that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// Another version of the module wrote it.
    #[error("payload version {found}, expected {WIRE_VERSION}")]
    Version {
        /// The version byte.
        found: u8,
    },
    /// It is not what it says it is, or has a number outside the range of its unit.
    #[error("malformed payload")]
    Malformed,
    /// It is written well, but no leader of ours can have meant it.
    #[error("payload with {field} out of range")]
    OutOfRange {
        /// The field of a [`Directive`].
        field: &'static str,
    },
}
