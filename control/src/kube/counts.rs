//! What is counted of the work in a cluster.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::flavour::Flavour;
use super::world::Listing;
use crate::metrics::{register, table};

/// What is counted like a watch, beside the watches.
pub(super) const DISCOVERY: &str = "discovery";

/// All of it.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    reconciles: Family<ResultLabels, Counter>,
    writes: Family<WriteLabels, Counter>,
    watch_errors: Family<ResourceLabels, Counter>,
    leading: Gauge,
    lease_changes: Counter,
}

/// What is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Target {
    /// One of Istio's objects.
    Extension,
    /// The status of a policy.
    Status,
    /// An Event.
    Event,
    /// The Lease.
    Lease,
}

/// What became of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum WriteResult {
    /// It was taken.
    Done,
    /// Somebody else was first.
    Conflict,
    /// It was not.
    Failed,
}

/// What came of looking at everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Round {
    /// There was nothing to write.
    Unchanged,
    /// All was written.
    Written,
    /// Not all was.
    Failed,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResultLabels {
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WriteLabels {
    object: &'static str,
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResourceLabels {
    resource: &'static str,
}

impl Counts {
    /// Makes them known.
    pub(crate) fn register(&self, registry: &mut Registry) {
        // Each series from zero, so that the first of its kind shows as a rise.
        for result in Round::ALL {
            self.reconciles.get_or_create(&result.labels()).inc_by(0);
        }
        for (target, result) in Target::ALL.into_iter().flat_map(|target| {
            let results = WriteResult::ALL.into_iter();
            results.map(move |result| (target, result))
        }) {
            self.writes.get_or_create(&labels(target, result)).inc_by(0);
        }
        let listings = Flavour::ALL.map(Listing::Objects).map(Listing::name);
        for resource in listings
            .into_iter()
            .chain([Listing::Policies.name(), DISCOVERY])
        {
            let labels = ResourceLabels { resource };
            self.watch_errors.get_or_create(&labels).inc_by(0);
        }
        register(registry, &table::KUBE_RECONCILES, &self.reconciles);
        register(registry, &table::KUBE_WRITES, &self.writes);
        register(registry, &table::KUBE_WATCH_ERRORS, &self.watch_errors);
        register(registry, &table::KUBE_LEADING, &self.leading);
        register(registry, &table::KUBE_LEASE_CHANGES, &self.lease_changes);
    }

    pub(super) fn round(&self, round: Round) {
        self.reconciles.get_or_create(&round.labels()).inc();
    }

    pub(super) fn write(&self, target: Target, result: WriteResult) {
        self.writes.get_or_create(&labels(target, result)).inc();
    }

    pub(super) fn watch_error(&self, resource: &'static str) {
        let labels = ResourceLabels { resource };
        self.watch_errors.get_or_create(&labels).inc();
    }

    pub(super) fn leads(&self, leads: bool) {
        if self.leading.set(i64::from(leads)) != i64::from(leads) {
            self.lease_changes.inc();
        }
    }
}

impl Round {
    const ALL: [Self; 3] = [Self::Unchanged, Self::Written, Self::Failed];

    const fn labels(self) -> ResultLabels {
        let result = match self {
            Self::Unchanged => "unchanged",
            Self::Written => "written",
            Self::Failed => "failed",
        };
        ResultLabels { result }
    }
}

impl Target {
    const ALL: [Self; 4] = [Self::Extension, Self::Status, Self::Event, Self::Lease];
}

impl WriteResult {
    const ALL: [Self; 3] = [Self::Done, Self::Conflict, Self::Failed];
}

const fn labels(target: Target, result: WriteResult) -> WriteLabels {
    WriteLabels {
        object: match target {
            Target::Extension => "extension",
            Target::Status => "status",
            Target::Event => "event",
            Target::Lease => "lease",
        },
        result: match result {
            WriteResult::Done => "done",
            WriteResult::Conflict => "conflict",
            WriteResult::Failed => "failed",
        },
    }
}
