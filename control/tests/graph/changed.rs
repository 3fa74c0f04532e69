//! The graph of a window in which one Envoy was restarted and another one removed.

use std::sync::Arc;

use crate::World;
use crate::chain::ABSENT;
use crate::steady::{NOISE, between, means, near};
use crate::world::{REMOVED, RESTARTED};

/// The share of requests that the graph may miss. An Envoy's requests after its last scrape before its end, and before
/// its first scrape, are lost. These are about two of thirty seconds, which weigh more in a step of five seconds.
const LOST: f64 = 0.3;

pub(crate) async fn a_restarted_envoy_gives_no_negative_and_no_absurd_rate(world: Arc<World>) {
    let mut edges = 0;
    for (ends, edge, truth) in world.chain.changed.pairs() {
        if ends.0 != RESTARTED {
            continue;
        }
        edges += 1;
        near(
            &format!("rate of {ends:?}"),
            edge.rate,
            truth.rate,
            LOST,
            0.0,
        );
        near(
            &format!("samples of {ends:?}"),
            edge.samples,
            truth.requests,
            LOST,
            0.0,
        );
        near(
            &format!("success of {ends:?}"),
            edge.success,
            truth.success,
            0.0,
            0.1,
        );
        if ends.1 != ABSENT {
            let (least, most) = means(truth);
            let mean = edge.mean_seconds.unwrap();
            between(
                &format!("mean of {ends:?}"),
                mean,
                (least / NOISE, most * NOISE),
            );
        }
        assert!(!edge.has_ended, "{ends:?}");
    }
    assert_eq!(edges, 3);
}

pub(crate) async fn an_edge_whose_envoy_is_gone_has_ended(world: Arc<World>) {
    let edges = world.chain.changed.edges();
    let ended: Vec<_> = edges
        .iter()
        .filter(|(_, edge)| edge.has_ended)
        .map(|(ends, _)| *ends)
        .collect();
    assert_eq!(ended, [(REMOVED, "stock")]);
}

pub(crate) async fn the_other_edges_stay_as_they_are(world: Arc<World>) {
    let pairs = world.chain.changed.pairs();
    assert_eq!(pairs.len(), 10);
    for (ends, edge, truth) in pairs {
        if ends.0 != RESTARTED && ends.0 != REMOVED {
            near(
                &format!("rate of {ends:?}"),
                edge.rate,
                truth.rate,
                0.2,
                0.0,
            );
            near(
                &format!("success of {ends:?}"),
                edge.success,
                truth.success,
                0.0,
                0.05,
            );
        }
    }
}
