//! The rights that the service needs in a cluster.
//!
//! Tests compare the manifests and the table in `docs/kubernetes.md` with this
//! list, and a test runs against a real API server as a user with exactly these
//! rights.

/// The namespaces in which a right is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RightScope {
    /// Every namespace whose policies are followed.
    Followed,
    /// Only the namespace of the Lease.
    Lease,
}

impl RightScope {
    /// Its name in documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Followed => "followed namespaces",
            Self::Lease => "namespace of the Lease",
        }
    }
}

/// A rule of RBAC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Right {
    /// API group; empty for the core group.
    pub group: &'static str,
    /// Resources; subresources follow a slash.
    pub resources: &'static [&'static str],
    /// The allowed verbs.
    pub verbs: &'static [&'static str],
    /// Where it is needed.
    pub place: RightScope,
    /// Its purpose.
    pub purpose: &'static str,
}

/// All rights.
pub const RIGHTS: [Right; 6] = [
    Right {
        group: "tidegate.dev",
        resources: &["breakerpolicies"],
        verbs: &["list", "watch"],
        place: RightScope::Followed,
        purpose: "watching the policies",
    },
    Right {
        group: "tidegate.dev",
        resources: &["breakerpolicies/status"],
        verbs: &["patch"],
        place: RightScope::Followed,
        purpose: "reporting their state",
    },
    Right {
        group: "extensions.istio.io",
        resources: &["trafficextensions", "wasmplugins"],
        verbs: &["list", "watch", "create", "patch", "delete"],
        place: RightScope::Followed,
        purpose: "putting them in force; a server-side apply that creates an object also needs create",
    },
    Right {
        group: "networking.istio.io",
        resources: &["destinationrules"],
        verbs: &["list", "watch"],
        place: RightScope::Followed,
        purpose: "the condition Constrained; without it the condition is not reported",
    },
    Right {
        group: "events.k8s.io",
        resources: &["events"],
        verbs: &["create", "patch"],
        place: RightScope::Followed,
        purpose: "Events; a repeated Event increases the count of the last one",
    },
    Right {
        group: "coordination.k8s.io",
        resources: &["leases"],
        verbs: &["get", "create", "update"],
        place: RightScope::Lease,
        purpose: "electing the replica that writes",
    },
];

/// The rights as rows of a table in Markdown.
#[must_use]
pub fn markdown() -> String {
    let row = |right: &Right| {
        format!(
            "| `{}` | `{}` | {} | {} | {} |\n",
            right.group,
            right.resources.join("`, `"),
            right.verbs.join(", "),
            right.place.name(),
            right.purpose
        )
    };
    RIGHTS.iter().map(row).collect()
}
