//! What the workers of a proxy tell each other.
//!
//! Every worker reports what it counted (a [`Slice`]); one of them, the leader, merges the slices, runs the
//! control laws and answers with [`Directives`] that all follow. Both are plain data; how they travel is the
//! skin's business. On the wire each is one version byte and postcard (<https://postcard.jamesmunns.com>); another
//! version is refused, so that two versions of the module side by side ignore each other instead of
//! misreading. A directive carries all that was learned, so it is also what a fresh VM starts from; for that alone those
//! of earlier versions are read as well ([`former`]).
//!
//! Others may write on the table where the bytes lie: a payload is read through once when it comes, and refused as a whole
//! if any of it cannot be read or is no plausible number ([`plausible`]).

mod counts;
mod directives;
mod former;
pub(crate) mod plausible;
mod report;
mod slice;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

pub use directives::{Directive, Directives};
pub use former::FORMER_VERSIONS;
pub use report::{Introduction, LocalTrip, Report};
pub use slice::Slice;

/// Version of both wire formats; a change to any type that is sent is a new one. Where directives change, what they were
/// goes into [`former`].
pub const WIRE_VERSION: u8 = 4;

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

/// Version, head and payload as the bytes to share.
fn seal(head: &impl Serialize, mut payload: Vec<u8>) -> Vec<u8> {
    // Writing plain data to a growing vector cannot fail; were it to, a payload without a head is refused.
    let head = postcard::to_extend(head, vec![WIRE_VERSION]).unwrap_or_default();
    payload.splice(..0, head);
    payload
}

/// Head and payload of what [`seal`] wrote. Bytes that are owned stay where they are.
fn open<'a, T: for<'de> Deserialize<'de>>(
    bytes: Cow<'a, [u8]>,
) -> Result<(T, Cow<'a, [u8]>), WireError> {
    let rest = match bytes.split_first() {
        Some((&WIRE_VERSION, rest)) => rest,
        Some((&found, _)) => return Err(WireError::Version { found }),
        None => return Err(WireError::Malformed),
    };
    let (head, payload) = postcard::take_from_bytes(rest).map_err(|_| WireError::Malformed)?;
    let length = bytes.len() - payload.len();
    let payload = match bytes {
        Cow::Borrowed(bytes) => Cow::Borrowed(bytes.get(length..).unwrap_or_default()),
        Cow::Owned(mut bytes) => {
            bytes.drain(..length);
            Cow::Owned(bytes)
        }
    };
    Ok((head, payload))
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
