//! The first distribution: places the vertex with the greatest demand first, where most of its traffic is.

use super::{Amounts, Draws, Partitioned, Room};

/// How strongly chance changes the order of vertices and parts in the starts after the first.
const SPREADS: [f64; 3] = [0.5, 3.0, 20.0];

/// The part of each vertex; `None` if some vertex no longer fits anywhere.
///
/// The first start keeps the order, and fills the part with the least room that suffices: it succeeds if any simple
/// distribution does. Others draw the order, and every other one first places vertices next to those already placed.
pub(super) fn distribute(
    graph: &Partitioned,
    capacities: &[Amounts],
    start: u64,
    draws: &mut Draws,
) -> Option<Vec<usize>> {
    let whole = capacities.iter().fold([0.0; 2], |sum, found| {
        [sum[0] + found[0], sum[1] + found[1]]
    });
    let share = |amounts: Amounts| {
        let of = |dimension: usize| amounts[dimension] / whole[dimension].max(f64::MIN_POSITIVE);
        of(0).max(of(1))
    };
    let spread = match usize::try_from(start) {
        Ok(0) | Err(_) => 0.0,
        Ok(start) => SPREADS[start % SPREADS.len()],
    };
    let follows_edges = start % 2 == 1;
    let mut waiting: Vec<(f64, usize)> = graph
        .demands
        .iter()
        .enumerate()
        .map(|(vertex, demand)| (share(*demand) * (1.0 + spread * draws.next()), vertex))
        .collect();
    waiting.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let mut room = Room::of(capacities);
    let mut parts = vec![usize::MAX; graph.len()];
    // The weight between each vertex and vertices that are already placed.
    let mut bound = vec![0.0_f64; graph.len()];
    let mut next = 0;
    while next < waiting.len() {
        if follows_edges {
            let rest = waiting.get(next..)?;
            let most = rest
                .iter()
                .enumerate()
                .max_by(|a, b| bound[a.1.1].total_cmp(&bound[b.1.1]).then(b.0.cmp(&a.0)));
            let (offset, _) = most?;
            waiting.swap(next, next + offset);
        }
        let vertex = waiting[next].1;
        next += 1;
        let demand = graph.demands[vertex];
        let mut ties = vec![0.0_f64; capacities.len()];
        for (other, weight) in &graph.neighbors[vertex] {
            bound[*other] += weight;
            if let Some(tie) = ties.get_mut(parts[*other]) {
                *tie += weight;
            }
        }
        let mut chosen: Option<(f64, f64, usize)> = None;
        for part in (0..capacities.len()).filter(|part| room.fits(*part, demand)) {
            let left = share(room.0[part]) * (1.0 + spread * draws.next());
            let is_better = chosen.is_none_or(|(tie, least, _)| {
                ties[part]
                    .total_cmp(&tie)
                    .then(least.total_cmp(&left))
                    .is_gt()
            });
            if is_better {
                chosen = Some((ties[part], left, part));
            }
        }
        let (_, _, chosen) = chosen?;
        room.take(chosen, demand);
        parts[vertex] = chosen;
    }
    Some(parts)
}
