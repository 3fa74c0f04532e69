//! Merges pairs of vertices that share heavy edges.
//!
//! Edges: a merged vertex must stay small compared with a part, or the coarse graph could not be distributed.

use super::{Amounts, Draws, Partitioned};

/// Largest share of the largest part that a merged vertex may need.
const MAX_SHARE: f64 = 0.25;

/// The coarser graph, and the vertex of it that each vertex was merged into.
pub(super) fn coarsened(
    graph: &Partitioned,
    capacities: &[Amounts],
    draws: &mut Draws,
) -> (Partitioned, Vec<usize>) {
    let largest = capacities.iter().fold([0.0_f64; 2], |largest, found| {
        [largest[0].max(found[0]), largest[1].max(found[1])]
    });
    let is_small = |demand: Amounts| {
        demand
            .iter()
            .zip(largest)
            .all(|(wanted, whole)| *wanted <= whole * MAX_SHARE)
    };
    let mut order: Vec<(f64, usize)> = (0..graph.len())
        .map(|vertex| (draws.next(), vertex))
        .collect();
    order.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut merged = vec![usize::MAX; graph.len()];
    let mut demands: Vec<Amounts> = Vec::new();
    for (_, vertex) in order {
        if merged[vertex] != usize::MAX {
            continue;
        }
        let sum = |other: usize| plus(graph.demands[vertex], graph.demands[other]);
        let partner = graph.neighbors[vertex]
            .iter()
            .filter(|(other, _)| merged[*other] == usize::MAX && is_small(sum(*other)))
            .max_by(|a, b| a.1.total_cmp(&b.1));
        merged[vertex] = demands.len();
        match partner {
            Some((other, _)) => {
                merged[*other] = demands.len();
                demands.push(sum(*other));
            }
            None => demands.push(graph.demands[vertex]),
        }
    }
    let edges = graph
        .neighbors
        .iter()
        .enumerate()
        .flat_map(|(vertex, list)| {
            let later = list.iter().filter(move |(other, _)| *other > vertex);
            later.map(move |(other, weight)| (vertex, *other, *weight))
        });
    let edges = edges.map(|(a, b, weight)| (merged[a], merged[b], weight));
    (Partitioned::new(demands, edges), merged)
}

fn plus(a: Amounts, b: Amounts) -> Amounts {
    [a[0] + b[0], a[1] + b[1]]
}
