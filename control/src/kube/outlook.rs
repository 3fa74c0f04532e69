//! How a policy stands: its objects, and what others take from it.

use super::extension::ObjectKey;
use super::flavour::Flavour;
use super::refusal::Cause;
use crate::policy::{Contest, Problem};

/// How one of a policy's objects stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// It is as it ought to be.
    Current,
    /// It is to be written.
    Due,
    /// It is on its way out.
    Leaving,
    /// It is somebody else's.
    Foreign,
    /// Somebody else added to it, at this path.
    Added(String),
    /// It was written and came out otherwise.
    Altered,
    /// Writing it was refused.
    Refused(Cause),
}

/// How a policy stands.
#[derive(Clone, Debug, Default)]
pub(super) struct Outlook {
    /// The API in use.
    pub(super) flavour: Option<Flavour>,
    /// The objects that it wants.
    pub(super) objects: Vec<(ObjectKey, Standing)>,
    /// That it names standalone proxies from a namespace that may not, if it does.
    pub(super) barred: Option<Problem>,
    /// What others take from it.
    pub(super) contests: Vec<Contest>,
    /// Whether the API server has an object of it.
    pub(super) has_objects: bool,
    /// Whether something is to be written before its status can be told.
    pub(super) is_due: bool,
}
