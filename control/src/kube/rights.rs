//! What the service may do in a cluster, and nothing else.
//!
//! Manifests are written from this list, the table in `docs/kubernetes.md` is
//! held to it, and a test against a real API server has a user with just these
//! rights.

/// Where a right is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// In every namespace whose policies are followed.
    Followed,
    /// In the namespace of the Lease only.
    Lease,
}

impl Place {
    /// For people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Followed => "followed namespaces",
            Self::Lease => "namespace of the Lease",
        }
    }
}

/// A rule as RBAC has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Right {
    /// API group; empty for the core group.
    pub group: &'static str,
    /// Resources, and subresources behind a slash.
    pub resources: &'static [&'static str],
    /// What may be done.
    pub verbs: &'static [&'static str],
    /// Where.
    pub place: Place,
    /// What it is needed for.
    pub purpose: &'static str,
}

/// All of them.
pub const RIGHTS: [Right; 5] = [
    Right {
        group: "tidegate.dev",
        resources: &["breakerpolicies"],
        verbs: &["list", "watch"],
        place: Place::Followed,
        purpose: "following the policies",
    },
    Right {
        group: "tidegate.dev",
        resources: &["breakerpolicies/status"],
        verbs: &["patch"],
        place: Place::Followed,
        purpose: "telling how they stand",
    },
    Right {
        group: "extensions.istio.io",
        resources: &["trafficextensions", "wasmplugins"],
        verbs: &["list", "watch", "create", "patch", "delete"],
        place: Place::Followed,
        purpose: "putting them in force; a server-side apply of what is not there yet is also a create",
    },
    Right {
        group: "events.k8s.io",
        resources: &["events"],
        verbs: &["create", "patch"],
        place: Place::Followed,
        purpose: "Events; one that comes again counts up the last",
    },
    Right {
        group: "coordination.k8s.io",
        resources: &["leases"],
        verbs: &["get", "create", "update"],
        place: Place::Lease,
        purpose: "agreeing who writes",
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
