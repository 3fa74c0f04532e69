//! Every metric of the service: name, type, labels, meaning. Registration and the reference,
//! `docs/control-metrics.md`, take names and meanings from here; a test compares them with what is served.

/// The prefix of all names.
pub const PREFIX: &str = "tidegate_control";

/// The type of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeriesKind {
    /// Only grows; its name ends in `_total`.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Counts by upper bounds: `_bucket`, `_sum`, `_count`.
    Histogram,
}

impl SeriesKind {
    /// The name in the exposition format.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }

    /// The suffix of the sample's name.
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
    /// Its name without [`PREFIX`] and [`SeriesKind::ending`].
    pub name: &'static str,
    /// Its type.
    pub kind: SeriesKind,
    /// Its labels, each with its values.
    pub labels: &'static [(&'static str, &'static str)],
    /// Its meaning, with the unit; without a full stop, which the exposition adds.
    pub help: &'static str,
}

/// Most versions with a series of their own; all others share one.
pub const MAX_VERSIONS: usize = 20;

const SOURCES: (&str, &str) = ("source", "`files`, `rest`, `kubernetes`");

pub(super) const KUBE_RECONCILES: MetricSpec = MetricSpec {
    name: "kube_reconciles",
    kind: SeriesKind::Counter,
    labels: &[("result", "`unchanged`, `written`, `failed`")],
    help: "Comparisons of the cluster with its desired state",
};
pub(super) const KUBE_WRITES: MetricSpec = MetricSpec {
    name: "kube_writes",
    kind: SeriesKind::Counter,
    labels: &[
        ("object", "`extension`, `status`, `event`, `lease`"),
        ("result", "`done`, `conflict`, `failed`"),
    ],
    help: "Writes to the API server; if nothing changes in the cluster, only those of the lease grow",
};
pub(super) const KUBE_WATCH_ERRORS: MetricSpec = MetricSpec {
    name: "kube_watch_errors",
    kind: SeriesKind::Counter,
    labels: &[(
        "resource",
        "`breakerpolicies`, `trafficextensions`, `wasmplugins`, `destinationrules`, `discovery`",
    )],
    help: "Failed lists, watches and discoveries",
};
pub(super) const KUBE_LEADING: MetricSpec = MetricSpec {
    name: "kube_leading",
    kind: SeriesKind::Gauge,
    labels: &[],
    help: "1 in the replica that writes, otherwise 0",
};
pub(super) const KUBE_LEASE_CHANGES: MetricSpec = MetricSpec {
    name: "kube_lease_changes",
    kind: SeriesKind::Counter,
    labels: &[],
    help: "Times that this replica became the leader or stopped leading",
};

pub(super) const BUILD: MetricSpec = MetricSpec {
    name: "build",
    kind: SeriesKind::Gauge,
    labels: &[
        ("version", "of the control service"),
        ("commit", "that it was built from, or `unknown`"),
    ],
    help: "Always 1",
};
pub(super) const STREAMS: MetricSpec = MetricSpec {
    name: "streams",
    kind: SeriesKind::Gauge,
    labels: &[("api", "`ecds`, `ads`"), ("dialect", "`sotw`, `delta`")],
    help: "Connected discovery streams",
};
pub(super) const PROXIES: MetricSpec = MetricSpec {
    name: "proxies",
    kind: SeriesKind::Gauge,
    labels: &[],
    help: "Connected proxies, by their node ids; one may have several streams",
};
pub(super) const RESOURCES: MetricSpec = MetricSpec {
    name: "resources",
    kind: SeriesKind::Gauge,
    labels: &[("state", "`current`, `behind`, `rejected`")],
    help: "Resources of connected proxies by state: the wanted version runs, does not run yet, or was rejected",
};
pub(super) const VERSIONS: MetricSpec = MetricSpec {
    name: "running",
    kind: SeriesKind::Gauge,
    labels: &[(
        "version",
        "the first 12 digits of one of the 20 most frequent versions; `other` for the rest; `none`",
    )],
    help: "Resources of connected proxies by the version that runs",
};
pub(super) const PUSHES: MetricSpec = MetricSpec {
    name: "pushes",
    kind: SeriesKind::Counter,
    labels: &[],
    help: "Configurations pushed",
};
pub(super) const ANSWERS: MetricSpec = MetricSpec {
    name: "answers",
    kind: SeriesKind::Counter,
    labels: &[("verdict", "`accepted` (ACK), `rejected` (NACK), `stale`")],
    help: "Answers of proxies to pushes; a `stale` answer refers to an earlier push",
};
pub(super) const PUSH_SECONDS: MetricSpec = MetricSpec {
    name: "push_seconds",
    kind: SeriesKind::Histogram,
    labels: &[],
    help: "Seconds from a change of policy, or the connection of a proxy, to the proxy's acceptance",
};
pub(super) const POLICIES: MetricSpec = MetricSpec {
    name: "policies",
    kind: SeriesKind::Gauge,
    labels: &[SOURCES],
    help: "Policies in force",
};
pub(super) const PROBLEMS: MetricSpec = MetricSpec {
    name: "problems",
    kind: SeriesKind::Gauge,
    labels: &[SOURCES],
    help: "Current errors in policies; the last valid versions remain in force",
};
pub(super) const DISABLED: MetricSpec = MetricSpec {
    name: "disabled",
    kind: SeriesKind::Gauge,
    labels: &[],
    help: "1 while all policies are off (`tidegate disable --all`), otherwise 0",
};
pub(super) const POLICIES_DISABLED: MetricSpec = MetricSpec {
    name: "policies_disabled",
    kind: SeriesKind::Gauge,
    labels: &[],
    help: "Policies in force with `enabled: false`",
};
pub(super) const RENDER_ERRORS: MetricSpec = MetricSpec {
    name: "render_errors",
    kind: SeriesKind::Counter,
    labels: &[],
    help: "Errors that keep a policy, or its new text, out of force; each is counted when it appears",
};
pub(super) const CERTIFICATES: MetricSpec = MetricSpec {
    name: "certificate_not_after_timestamp_seconds",
    kind: SeriesKind::Gauge,
    labels: &[(
        "certificate",
        "`served` (with its chain), `authority` (of clients)",
    )],
    help: "When the first of these certificates expires, in seconds since 1970; no series without TLS",
};
const FILE: (&str, &str) = ("file", "`certificates`, `clients`, `writers`, `token`");
pub(super) const RELOADS: MetricSpec = MetricSpec {
    name: "reloads",
    kind: SeriesKind::Counter,
    labels: &[FILE, ("result", "`accepted`, `rejected`")],
    help: "New contents of watched files; invalid content is counted once",
};
pub(super) const OUTDATED: MetricSpec = MetricSpec {
    name: "file_outdated",
    kind: SeriesKind::Gauge,
    labels: &[FILE],
    help: "1 while the file is invalid and its last valid content is in force",
};
pub(super) const TURNED: MetricSpec = MetricSpec {
    name: "connections_turned_away",
    kind: SeriesKind::Counter,
    labels: &[
        ("port", "`xds`, `http`, `health`"),
        (
            "reason",
            "`crowded` (too many of one peer), `silent` (no request for too long), `unlisted`",
        ),
    ],
    help: "Connections that were turned away, or closed while they were served",
};
pub(super) const GRAPH_READS: MetricSpec = MetricSpec {
    name: "graph_reads",
    kind: SeriesKind::Counter,
    labels: &[("result", "`done`, `failed`")],
    help: "Reads of the service graph from Prometheus; after a failed one the last graph remains",
};
pub(super) const GRAPH_READ_AT: MetricSpec = MetricSpec {
    name: "graph_read_timestamp_seconds",
    kind: SeriesKind::Gauge,
    labels: &[],
    help: "When the service graph was last read, in seconds since 1970; 0 before the first time, and without --prometheus",
};
pub(super) const GRAPH_EDGES: MetricSpec = MetricSpec {
    name: "graph_edges",
    kind: SeriesKind::Gauge,
    labels: &[],
    help: "Edges of the service graph that was last read",
};
/// All metrics, in the order of the reference.
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
    &DISABLED,
    &POLICIES_DISABLED,
    &RENDER_ERRORS,
    &CERTIFICATES,
    &RELOADS,
    &OUTDATED,
    &TURNED,
    &GRAPH_READS,
    &GRAPH_READ_AT,
    &GRAPH_EDGES,
    &KUBE_RECONCILES,
    &KUBE_WRITES,
    &KUBE_WATCH_ERRORS,
    &KUBE_LEADING,
    &KUBE_LEASE_CHANGES,
];
