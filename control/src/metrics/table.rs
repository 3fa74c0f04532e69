//! Every metric of the service: name, type, labels, meaning. Registration takes name and meaning from here,
//! and so does the reference, `docs/control-metrics.md`; a test holds the two together.

/// What all names begin with.
pub const PREFIX: &str = "tidegate_control";

/// What kind of number a metric is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Only grows; its name ends with `_total`.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Counts by upper bounds: `_bucket`, `_sum`, `_count`.
    Histogram,
}

impl Kind {
    /// The word of the exposition format.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }

    /// What the name of a sample has at its end.
    #[must_use]
    pub const fn ending(self) -> &'static str {
        match self {
            Self::Counter => "_total",
            Self::Gauge | Self::Histogram => "",
        }
    }
}

/// One metric.
#[derive(Debug, Clone, Copy)]
pub struct Meaning {
    /// Its name without [`PREFIX`] and [`Kind::ending`].
    pub name: &'static str,
    /// What kind of number it is.
    pub kind: Kind,
    /// Its labels, each with the values that it takes.
    pub labels: &'static [(&'static str, &'static str)],
    /// What it says, with the unit; without a full stop, which the exposition adds.
    pub help: &'static str,
}

/// Versions that have a series of their own; all others are in one.
pub const MAX_VERSIONS: usize = 20;

const SOURCES: (&str, &str) = ("source", "`files`, `rest`, `kubernetes`");

pub(crate) const KUBE_RECONCILES: Meaning = Meaning {
    name: "kube_reconciles",
    kind: Kind::Counter,
    labels: &[("result", "`unchanged`, `written`, `failed`")],
    help: "Comparisons of the cluster with its desired state",
};
pub(crate) const KUBE_WRITES: Meaning = Meaning {
    name: "kube_writes",
    kind: Kind::Counter,
    labels: &[
        ("object", "`extension`, `status`, `event`, `lease`"),
        ("result", "`done`, `conflict`, `failed`"),
    ],
    help: "Writes to the API server; in a cluster at rest only those of the lease grow",
};
pub(crate) const KUBE_WATCH_ERRORS: Meaning = Meaning {
    name: "kube_watch_errors",
    kind: Kind::Counter,
    labels: &[(
        "resource",
        "`breakerpolicies`, `trafficextensions`, `wasmplugins`, `discovery`",
    )],
    help: "Lists, watches and discoveries that failed",
};
pub(crate) const KUBE_LEADING: Meaning = Meaning {
    name: "kube_leading",
    kind: Kind::Gauge,
    labels: &[],
    help: "1 in the replica that writes",
};
pub(crate) const KUBE_LEASE_CHANGES: Meaning = Meaning {
    name: "kube_lease_changes",
    kind: Kind::Counter,
    labels: &[],
    help: "Times that this replica began or ceased to lead",
};

pub(super) const BUILD: Meaning = Meaning {
    name: "build",
    kind: Kind::Gauge,
    labels: &[("version", "of the service")],
    help: "Always 1",
};
pub(super) const STREAMS: Meaning = Meaning {
    name: "streams",
    kind: Kind::Gauge,
    labels: &[("api", "`ecds`, `ads`"), ("dialect", "`sotw`, `delta`")],
    help: "Connected discovery streams",
};
pub(super) const PROXIES: Meaning = Meaning {
    name: "proxies",
    kind: Kind::Gauge,
    labels: &[],
    help: "Connected proxies, by their node ids; one may have several streams",
};
pub(super) const RESOURCES: Meaning = Meaning {
    name: "resources",
    kind: Kind::Gauge,
    labels: &[("state", "`current`, `behind`, `refused`")],
    help: "Resources of connected proxies by state: run as wanted, not yet, or refused",
};
pub(super) const VERSIONS: Meaning = Meaning {
    name: "running",
    kind: Kind::Gauge,
    labels: &[(
        "version",
        "the first 12 digits of one of the 20 that most run; `other` for the rest; `none`",
    )],
    help: "Resources of connected proxies by the version that they run",
};
pub(super) const PUSHES: Meaning = Meaning {
    name: "pushes",
    kind: Kind::Counter,
    labels: &[],
    help: "Configurations pushed",
};
pub(super) const ANSWERS: Meaning = Meaning {
    name: "answers",
    kind: Kind::Counter,
    labels: &[("verdict", "`accepted` (ACK), `refused` (NACK), `stale`")],
    help: "Answers of proxies to pushes; `stale` answers an earlier push",
};
pub(super) const PUSH_SECONDS: Meaning = Meaning {
    name: "push_seconds",
    kind: Kind::Histogram,
    labels: &[],
    help: "Seconds from a change of policy, or a proxy's arrival, to the proxy's acceptance",
};
pub(super) const POLICIES: Meaning = Meaning {
    name: "policies",
    kind: Kind::Gauge,
    labels: &[SOURCES],
    help: "Policies in force",
};
pub(super) const PROBLEMS: Meaning = Meaning {
    name: "problems",
    kind: Kind::Gauge,
    labels: &[SOURCES],
    help: "Errors in policies at present; what was in force before stays",
};
pub(super) const RENDER_ERRORS: Meaning = Meaning {
    name: "render_errors",
    kind: Kind::Counter,
    labels: &[],
    help: "Errors that have kept a policy, or its new text, from being rendered, each counted when it appears",
};
pub(super) const CERTIFICATES: Meaning = Meaning {
    name: "certificate_not_after_timestamp_seconds",
    kind: Kind::Gauge,
    labels: &[(
        "certificate",
        "`served` (with its chain), `authority` (of clients)",
    )],
    help: "When the first of these certificates expires, in seconds since 1970; no series without TLS",
};
const FILE: (&str, &str) = ("file", "`certificates`, `clients`, `writers`, `token`");
pub(super) const RELOADS: Meaning = Meaning {
    name: "reloads",
    kind: Kind::Counter,
    labels: &[FILE, ("result", "`taken`, `refused`")],
    help: "New contents of watched files; invalid content is counted once",
};
pub(super) const OUTDATED: Meaning = Meaning {
    name: "file_outdated",
    kind: Kind::Gauge,
    labels: &[FILE],
    help: "1 while the file is invalid and its last valid content is in force",
};
pub(super) const TURNED: Meaning = Meaning {
    name: "connections_turned_away",
    kind: Kind::Counter,
    labels: &[
        ("port", "`xds`, `http`, `health`"),
        (
            "reason",
            "`crowded` (too many of one peer), `silent` (no request for too long), `unlisted`",
        ),
    ],
    help: "Connections that were closed without being served, or no longer",
};
/// All of them, in the order of the reference.
pub static TABLE: &[&Meaning] = &[
    &BUILD,
    &STREAMS,
    &PROXIES,
    &RESOURCES,
    &VERSIONS,
    &PUSHES,
    &ANSWERS,
    &PUSH_SECONDS,
    &POLICIES,
    &PROBLEMS,
    &RENDER_ERRORS,
    &CERTIFICATES,
    &RELOADS,
    &OUTDATED,
    &TURNED,
    &KUBE_RECONCILES,
    &KUBE_WRITES,
    &KUBE_WATCH_ERRORS,
    &KUBE_LEADING,
    &KUBE_LEASE_CHANGES,
];
