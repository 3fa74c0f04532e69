//! The exchange between the workers of a proxy.
//!
//! Every worker reports its counts (a [`Slice`]). One of them, the leader, merges the slices, runs the control laws and
//! answers with [`Directives`] that all workers follow. Both are plain data; the skin transports them. On the wire each is
//! postcard (<https://postcard.jamesmunns.com>) in an [`envelope`] of version, length and checksum. A payload of another
//! version is rejected, so that two versions of the module side by side ignore each other instead of misreading. So is a
//! payload that was cut off or damaged on the way. A directive carries all learned state, so a fresh VM also starts from it.
//!
//! Other plugins may write to the same shared data. So a worker checks all directives before it follows any. It rejects all
//! of them if one cannot be read, has a number outside the range of its unit ([`units`](crate::units)), or is not plausible
//! as a whole ([`directive`]).

mod counts;
mod directive;
mod directives;
mod envelope;
mod report;
mod saved;
mod slice;
mod varint;

pub use directive::Directive;
pub use directives::Directives;
pub(crate) use directives::{PackedDirective, UNSTAMPED};
pub(crate) use envelope::ENVELOPE_BYTES;
pub use envelope::{WIRE_VERSION, WireError};
pub use report::{Introduction, Report};
pub use saved::{Clocks, SavedState, SavedStateError};
pub use slice::Slice;
pub(crate) use slice::{SliceEntries, SliceEntry};
