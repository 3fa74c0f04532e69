//! What must hold of the VMs and the proxy's gauges, whatever happens.

use tidegate_core::{Count, Directives, Instant, ShedReason, UpstreamSnapshot};
use tidegate_worker::metrics::name::{Naming, upstream_labels};
use tidegate_worker::metrics::table::IN_FLIGHT;

use super::{PLUGIN, World};

impl World {
    /// What each VM knows of each upstream.
    fn snapshots(&self) -> Vec<UpstreamSnapshot> {
        let now = Instant::from_nanos(0);
        let plugins = self.vms.iter().filter_map(|vm| vm.plugin_of(1));
        plugins
            .flat_map(|plugin| plugin.borrow().engine().snapshot(now).upstreams)
            .collect()
    }

    /// What holds at any moment.
    pub(in crate::fuzz) fn check(&self) {
        for vm in self.vms.iter().filter_map(|vm| vm.plugin_of(1)) {
            let vm = vm.borrow();
            let learned = vm.engine().learned(Instant::ZERO);
            assert_eq!(
                Directives::decode(learned.clone().encode()),
                Ok(learned),
                "all that is learned is plausible"
            );
        }
        let snapshots = self.snapshots();
        let (mut arrived, mut let_in, mut shed) = (0, 0, 0);
        for upstream in &snapshots {
            assert!(upstream.limit >= 1);
            let count = |count| upstream.tally.get(count);
            let sheds: u64 = ShedReason::ALL
                .iter()
                .map(|reason| upstream.tally.shed(*reason))
                .sum();
            arrived += count(Count::Arrivals);
            // Exempt health checks are among them.
            let_in += count(Count::Admitted);
            shed += sheds;
        }
        assert_eq!(
            arrived,
            let_in + shed,
            "all that arrived were let in or shed"
        );
    }

    /// What holds in addition while nothing goes wrong: the gauges say what the workers do.
    pub(in crate::fuzz) fn check_gauges(&self) {
        let snapshots = self.snapshots();
        for upstream in &snapshots {
            let same = snapshots.iter().filter(|other| other.key == upstream.key);
            let in_flight: u64 = same
                .map(|other| u64::from(other.in_flight + other.uploading))
                .sum();
            let gauge =
                Naming::of_plugin(PLUGIN).name(&IN_FLIGHT, &upstream_labels(&upstream.key), None);
            let gauge = self.host().metric_value(&gauge).unwrap_or_default();
            assert_eq!(gauge, in_flight, "{:?}", upstream.key);
        }
    }

    /// What holds once all streams have ended.
    pub(in crate::fuzz) fn check_ended(&self) {
        for upstream in self.snapshots() {
            assert_eq!(
                [upstream.in_flight, upstream.open, upstream.uploading],
                [0; 3],
                "{:?}",
                upstream.key
            );
        }
    }

    /// Replies and sheds: of these there are as many while no VM is lost.
    pub(in crate::fuzz) fn check_replies(&self) {
        let sheds = |upstream: &UpstreamSnapshot| -> u64 {
            ShedReason::ALL
                .iter()
                .map(|reason| upstream.tally.shed(*reason))
                .sum()
        };
        let shed: u64 = self.snapshots().iter().map(sheds).sum();
        assert_eq!(shed, self.host().replies().len() as u64);
    }
}
