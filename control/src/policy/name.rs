//! The names of policies, and what Kubernetes accepts as a name.

use std::fmt;

/// What errors say about a rejected name.
pub(super) const NAME_EXPECTED: &str =
    "a name in lower-case letters, digits, - and ., at most 253 long";

/// Longest name that Kubernetes accepts, in characters.
const MAX_NAME: usize = 253;

/// Longest label or namespace that Kubernetes accepts, in characters.
pub(super) const MAX_LABEL: usize = 63;

/// Name of a policy and, in Kubernetes, its namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PolicyName {
    namespace: Option<String>,
    name: String,
}

impl PolicyName {
    /// `name` in `namespace`; a policy from a file needs none.
    #[must_use]
    pub const fn new(namespace: Option<String>, name: String) -> Self {
        Self { namespace, name }
    }

    /// The namespace, if it has one.
    #[must_use]
    pub fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// The name within the namespace.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// `namespace/name`, or only the name.
impl fmt::Display for PolicyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{namespace}/{}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

/// Whether Kubernetes accepts `text` as a name.
pub(crate) fn is_name(text: &str) -> bool {
    let is_allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    text.len() <= MAX_NAME
        && text.split('.').all(|part| {
            !part.is_empty()
                && !part.starts_with('-')
                && !part.ends_with('-')
                && part.bytes().all(is_allowed)
        })
}

/// Whether Kubernetes accepts `text` as a namespace.
pub(crate) fn is_label(text: &str) -> bool {
    text.len() <= MAX_LABEL && !text.contains('.') && is_name(text)
}
