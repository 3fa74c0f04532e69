//! Every metric of the service: name, type, labels, meaning. Registration takes name and meaning from here,
//! and so does the reference, `docs/control-metrics.md`; a test holds the two together.

/// What all names begin with.
pub const PREFIX: &str = "tidegate_control";

/// What kind of number a metric is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricKind {
    /// Only grows; its name ends with `_total`.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Counts by upper bounds: `_bucket`, `_sum`, `_count`.
    Histogram,
}

impl MetricKind {
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
pub struct MetricSpec {
    /// Its name without [`PREFIX`] and [`MetricKind::ending`].
    pub name: &'static str,
    /// What kind of number it is.
    pub kind: MetricKind,
    /// Its labels, each with the values that it takes.
    pub labels: &'static [(&'static str, &'static str)],
    /// What it says, with the unit; without a full stop, which the exposition adds.
    pub help: &'static str,
}

/// Versions that have a series of their own; all others are in one.
pub const MAX_VERSIONS: usize = 20;

const SOURCES: (&str, &str) = ("source", "`files`, `rest`, `kubernetes`");

pub(super) const KUBE_RECONCILES: MetricSpec = MetricSpec {
    name: "kube_reconciles",
    kind: MetricKind::Counter,
    labels: &[("result", "`unchanged`, `written`, `failed`")],
    help: "Comparisons of the cluster with its desired state",
};
pub(super) const KUBE_WRITES: MetricSpec = MetricSpec {
    name: "kube_writes",
    kind: MetricKind::Counter,
    labels: &[
        ("object", "`extension`, `status`, `event`, `lease`"),
        ("result", "`done`, `conflict`, `failed`"),
    ],
    help: "Writes to the API server; in a cluster at rest only those of the lease grow",
};
pub(super) const KUBE_WATCH_ERRORS: MetricSpec = MetricSpec {
    name: "kube_watch_errors",
    kind: MetricKind::Counter,
    labels: &[(
        "resource",
        "`breakerpolicies`, `trafficextensions`, `wasmplugins`, `discovery`",
    )],
    help: "Lists, watches and discoveries that failed",
};
pub(super) const KUBE_LEADING: MetricSpec = MetricSpec {
    name: "kube_leading",
    kind: MetricKind::Gauge,
    labels: &[],
    help: "1 in the replica that writes",
};
pub(super) const KUBE_LEASE_CHANGES: MetricSpec = MetricSpec {
    name: "kube_lease_changes",
    kind: MetricKind::Counter,
    labels: &[],
    help: "Times that this replica began or ceased to lead",
};

pub(super) const BUILD: MetricSpec = MetricSpec {
    name: "build",
    kind: MetricKind::Gauge,
    labels: &[("version", "of the service")],
    help: "Always 1",
};
pub(super) const STREAMS: MetricSpec = MetricSpec {
    name: "streams",
    kind: MetricKind::Gauge,
    labels: &[("api", "`ecds`, `ads`"), ("dialect", "`sotw`, `delta`")],
    help: "Connected discovery streams",
};
pub(super) const PROXIES: MetricSpec = MetricSpec {
    name: "proxies",
    kind: MetricKind::Gauge,
    labels: &[],
    help: "Connected proxies, by their node ids; one may have several streams",
};
pub(super) const RESOURCES: MetricSpec = MetricSpec {
    name: "resources",
    kind: MetricKind::Gauge,
    labels: &[("state", "`current`, `behind`, `refused`")],
    help: "Resources of connected proxies by state: run as wanted, not yet, or refused",
};
pub(super) const VERSIONS: MetricSpec = MetricSpec {
    name: "running",
    kind: MetricKind::Gauge,
    labels: &[(
        "version",
        "the first 12 digits of one of the 20 that most run; `other` for the rest; `none`",
    )],
    help: "Resources of connected proxies by the version that they run",
};
pub(super) const PUSHES: MetricSpec = MetricSpec {
    name: "pushes",
    kind: MetricKind::Counter,
    labels: &[],
    help: "Configurations pushed",
};
pub(super) const ANSWERS: MetricSpec = MetricSpec {
    name: "answers",
    kind: MetricKind::Counter,
    labels: &[("verdict", "`accepted` (ACK), `refused` (NACK), `stale`")],
    help: "Answers of proxies to pushes; `stale` answers an earlier push",
};
pub(super) const PUSH_SECONDS: MetricSpec = MetricSpec {
    name: "push_seconds",
    kind: MetricKind::Histogram,
    labels: &[],
    help: "Seconds from a change of policy, or a proxy's arrival, to the proxy's acceptance",
};
pub(super) const POLICIES: MetricSpec = MetricSpec {
    name: "policies",
    kind: MetricKind::Gauge,
    labels: &[SOURCES],
    help: "Policies in force",
};
pub(super) const PROBLEMS: MetricSpec = MetricSpec {
    name: "problems",
    kind: MetricKind::Gauge,
    labels: &[SOURCES],
    help: "Errors in policies at present; what was in force before stays",
};
pub(super) const RENDER_ERRORS: MetricSpec = MetricSpec {
    name: "render_errors",
    kind: MetricKind::Counter,
    labels: &[],
    help: "Errors that have kept a policy, or its new text, from being rendered, each counted when it appears",
};
pub(super) const CERTIFICATES: MetricSpec = MetricSpec {
    name: "certificate_not_after_timestamp_seconds",
    kind: MetricKind::Gauge,
    labels: &[(
        "certificate",
        "`served` (with its chain), `authority` (of clients)",
    )],
    help: "When the first of these certificates expires, in seconds since 1970; no series without TLS",
};
const FILE: (&str, &str) = ("file", "`certificates`, `clients`, `writers`, `token`");
pub(super) const RELOADS: MetricSpec = MetricSpec {
    name: "reloads",
    kind: MetricKind::Counter,
    labels: &[FILE, ("result", "`taken`, `refused`")],
    help: "New contents of watched files; invalid content is counted once",
};
pub(super) const OUTDATED: MetricSpec = MetricSpec {
    name: "file_outdated",
    kind: MetricKind::Gauge,
    labels: &[FILE],
    help: "1 while the file is invalid and its last valid content is in force",
};
pub(super) const TURNED: MetricSpec = MetricSpec {
    name: "connections_turned_away",
    kind: MetricKind::Counter,
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
pub static TABLE: &[&MetricSpec] = &[
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
