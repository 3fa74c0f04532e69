//! What a policy is called.

use std::fmt;

/// Name of a policy and, in Kubernetes, the namespace it stands in.
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
