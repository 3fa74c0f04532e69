//! Options of the native module alone, under the key `native`.
//!
//! They are not part of [`super::Config`]: no control law reads them, and a policy for many proxies does not carry them. The
//! WebAssembly filter and the control service reject each by name, so that nobody relies on an option that does nothing.

use core::time::Duration;

use super::kinds::{Choice, Field, Flag, Span, Values, WholeNumber, names};
use super::reader::Section;

/// The key of the section.
const KEY: &str = "native";
const LOAD_REPORTS: &str = "loadReports";
const HISTOGRAMS: Flag = Flag {
    key: "histograms",
    default: false,
};
/// Envoy never forgets the name of a metric, and each host has up to four.
const HOSTS: WholeNumber = WholeNumber {
    key: "hosts",
    min: 0,
    max: 1_000,
    default: 0,
};
const SNAPSHOT: &str = "snapshot";
const DIRECTORY: &str = "directory";
/// Longest directory, in bytes: the longest path of Linux, with room for the name of the file.
const MAX_DIRECTORY_BYTES: usize = 4_000;
const DIRECTORY_EXPECTED: &str = "an absolute path of a directory, at most 4000 bytes";
const INTERVAL: Span = Span {
    key: "interval",
    min: Duration::from_secs(1),
    max: Duration::from_secs(600),
    default: Some(Duration::from_secs(10)),
};
/// What a reader expects that is not the native module.
const EXPECTED: &str = "nothing here: only the native module can do this";

/// What happens to load reports (ORCA) in responses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LoadReports {
    /// Responses stay as they are.
    #[default]
    Pass,
    /// Reports of upstreams are removed.
    Remove,
    /// Reports of upstreams are replaced by the proxy's own.
    Set,
}

impl LoadReports {
    /// Every value.
    pub const ALL: [Self; 3] = [Self::Pass, Self::Remove, Self::Set];

    /// As written in the configuration.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Remove => "remove",
            Self::Set => "set",
        }
    }
}

impl Choice for LoadReports {
    const ALL: &'static [Self] = &Self::ALL;
    fn name(self) -> &'static str {
        self.name()
    }
}

/// Where learned state is kept for the next start of the process, and how often it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotOptions {
    directory: String,
    interval: Duration,
}

impl SnapshotOptions {
    /// The directory of the file, an absolute path.
    #[must_use]
    pub fn directory(&self) -> &str {
        &self.directory
    }

    /// The time from one write to the next, `1s..=10m`.
    #[must_use]
    pub const fn interval(&self) -> Duration {
        self.interval
    }

    fn read(s: &mut Section<'_>) -> Option<Self> {
        let is_asked = s.has(SNAPSHOT);
        s.object(SNAPSHOT, |s| {
            let directory = s.text(DIRECTORY, &DIRECTORY_EXPECTED, directory);
            if is_asked && !s.has(DIRECTORY) {
                s.require(DIRECTORY, &DIRECTORY_EXPECTED);
            }
            let interval = s.span(INTERVAL, None);
            directory.map(|directory| Self {
                directory,
                interval,
            })
        })
    }
}

/// A directory: nobody can tell what a relative path is relative to, and no path has a NUL.
fn directory(text: &str) -> Option<String> {
    let is_path = text.starts_with('/') && text.len() <= MAX_DIRECTORY_BYTES;
    (is_path && !text.contains('\0')).then(|| text.to_owned())
}

/// Options of the native module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NativeOptions {
    load_reports: LoadReports,
    has_histograms: bool,
    most_hosts: u32,
    snapshot: Option<SnapshotOptions>,
}

impl NativeOptions {
    /// What happens to load reports in responses.
    #[must_use]
    pub const fn load_reports(&self) -> LoadReports {
        self.load_reports
    }

    /// Whether latencies are told to Envoy as histograms.
    #[must_use]
    pub const fn has_histograms(&self) -> bool {
        self.has_histograms
    }

    /// Most upstream hosts that have counts of their own; 0: none.
    #[must_use]
    pub const fn most_hosts(&self) -> u32 {
        self.most_hosts
    }

    /// Where learned state is kept for the next start; `None`: it ends with the process.
    #[must_use]
    pub const fn snapshot(&self) -> Option<&SnapshotOptions> {
        self.snapshot.as_ref()
    }

    pub(super) fn read(s: &mut Section<'_>) -> Self {
        s.object(KEY, |s| Self {
            load_reports: s.choice_or((LOAD_REPORTS, LoadReports::default()), None),
            has_histograms: s.flag(HISTOGRAMS, None),
            most_hosts: s.count(HOSTS, None),
            snapshot: SnapshotOptions::read(s),
        })
    }

    /// Rejects all of them by name, for a reader that cannot do what they say.
    pub(super) fn reject(s: &mut Section<'_>) {
        if s.has(KEY) {
            s.object(KEY, |s| {
                for key in [LOAD_REPORTS, HISTOGRAMS.key, HOSTS.key, SNAPSHOT] {
                    s.value(key, &EXPECTED, |_| None::<()>);
                }
            });
        }
    }
}

/// The options, for the reference.
pub static NATIVE_FIELDS: &[Field] = &[
    Field {
        path: "native.loadReports",
        values: Values::Choice {
            names: names::<LoadReports>,
            default: Some(LoadReports::Pass.name()),
        },
        is_per_upstream: false,
        doc: "What happens to load reports (ORCA) in responses. `set`: the response header `endpoint-load-metrics` says how loaded the upstream is, for a proxy beside a server; the first responses of an upstream do not have it. `remove`: reports of upstreams do not reach callers, for a proxy at a trust boundary. `pass`: responses stay as they are.",
    },
    Field {
        path: "native.histograms",
        values: Values::Flag(HISTOGRAMS),
        is_per_upstream: false,
        doc: "Whether latencies of successes are published as histograms of Envoy, `tidegate_latency_ms` and `tidegate_queue_ms`, by upstream.",
    },
    Field {
        path: "native.hosts",
        values: Values::Count(HOSTS),
        is_per_upstream: false,
        doc: "Most upstream hosts (endpoints) whose requests, failures, overload signals and late answers are counted by address, of all upstreams together; 0: none. Further hosts of an upstream count as its host `_overflow`.",
    },
    Field {
        path: "native.snapshot.directory",
        values: Values::Text {
            expected: DIRECTORY_EXPECTED,
            default: None,
        },
        is_per_upstream: false,
        doc: "Where learned state is kept for the next start of Envoy, in one file for each `filter_name`. Not set: it ends with the process. The directory must exist, and must be that of one Envoy alone. Not for the configuration of a route.",
    },
    Field {
        path: "native.snapshot.interval",
        values: Values::Span(INTERVAL),
        is_per_upstream: false,
        doc: "How often the file is written.",
    },
];
