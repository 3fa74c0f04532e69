//! What the workers of a proxy tell each other.
//!
//! Every worker reports what it counted (a [`Slice`]); one of them, the leader, merges the slices, runs the
//! control laws and answers with [`Directives`] that all follow. Both are plain data; how they travel is the
//! skin's business. On the wire each is postcard (<https://postcard.jamesmunns.com>) in an [`envelope`] of version, length
//! and checksum. Another version is refused, so that two versions of the module side by side ignore each other instead of
//! misreading; so is what was cut off or damaged on the way. A directive carries all that was learned, so it is also what a fresh VM starts from.
//!
//! Others may write on the table where the bytes lie: a payload is read through once when it comes, and refused as a whole
//! if any of it cannot be read or is no plausible number ([`plausible`]).

mod counts;
mod directives;
mod envelope;
pub(crate) mod plausible;
mod report;
mod slice;

use serde::Deserialize;

pub use directives::{Directive, Directives};
pub(crate) use envelope::ENVELOPE_BYTES;
pub use report::{Introduction, LocalTrip, Report};
pub use slice::Slice;

/// Version of both wire formats; a change to any type that is sent is a new one.
pub const WIRE_VERSION: u8 = 5;

/// A payload that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// Another version of the module wrote it.
    #[error("payload version {found}, expected {WIRE_VERSION}")]
    Version {
        /// The version byte.
        found: u8,
    },
    /// It is not what it says it is.
    #[error("malformed payload")]
    Malformed,
    /// It is written well, but no leader of ours can have meant it.
    #[error("payload with {field} out of range")]
    OutOfRange {
        /// The field of a [`Directive`].
        field: &'static str,
    },
}

/// Reads every value that stands in these bytes, up to the very end.
fn check_all<'a, T: Deserialize<'a>>(
    mut bytes: &'a [u8],
    check: impl Fn(&T) -> Result<(), WireError>,
) -> Result<(), WireError> {
    while !bytes.is_empty() {
        let (value, behind) = postcard::take_from_bytes(bytes).map_err(|_| WireError::Malformed)?;
        check(&value)?;
        bytes = behind;
    }
    Ok(())
}

/// Values that stand one behind the other, which [`check_all`] has read before.
fn all<'a, T: Deserialize<'a> + 'a>(bytes: &'a [u8]) -> impl Iterator<Item = T> + 'a {
    let mut rest = bytes;
    core::iter::from_fn(move || {
        let (value, behind) = postcard::take_from_bytes(rest).ok()?;
        rest = behind;
        Some(value)
    })
    .fuse()
}
