//! A partition of a graph into parts of unequal capacity with a small cut.
//!
//! Multilevel: pairs of vertices that share heavy edges are merged until few are left, these are distributed greedily, and on the
//! way back each level is refined by moves and swaps. Several starts are made, and the best result is kept.
//!
//! No suitable crate was found: pure Rust ones balance parts of equal size in one dimension, and the others bind C or C++.
//! See decision 0030.
//!
//! Source: Hendrickson and Leland, "A Multilevel Algorithm for Partitioning Graphs" (SC 1995).

#![expect(
    clippy::indexing_slicing,
    reason = "vertices and parts are counted by this module, and all lists have one entry for each"
)]

mod coarsen;
mod initial;
mod refine;
#[cfg(test)]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "small numbers, and a test that panics fails"
)]
mod tests;

use coarsen::coarsened;
use tidegate_core::mix;

/// CPU in cores and memory in bytes.
pub(super) type Amounts = [f64; 2];

/// A graph with fewer vertices for each part is coarse enough.
const COARSE_PER_PART: usize = 8;
/// No graph is coarsened below this many vertices.
const MIN_COARSE: usize = 64;
/// Share of vertices that a level must save to be worth it.
const MIN_SAVING: f64 = 0.05;
/// Starts for a graph that is small, and for one that is not.
const STARTS: (u64, u64) = (96, 6);
/// Rounding must not make a part overflow.
const ROUNDING: f64 = 1.0 + 1e-9;

/// The graph to partition.
#[derive(Clone, Debug, Default)]
pub(super) struct Partitioned {
    /// The demand of each vertex.
    pub(super) demands: Vec<Amounts>,
    /// The neighbors of each vertex with the weight of the edge between them; each edge is at both ends.
    pub(super) neighbors: Vec<Vec<(usize, f64)>>,
}

impl Partitioned {
    /// A graph of edges, whose weights are added if they join the same vertices.
    pub(super) fn new(
        demands: Vec<Amounts>,
        edges: impl Iterator<Item = (usize, usize, f64)>,
    ) -> Self {
        let mut neighbors: Vec<Vec<(usize, f64)>> = vec![Vec::new(); demands.len()];
        for (a, b, weight) in edges.filter(|(a, b, weight)| a != b && *weight > 0.0) {
            neighbors[a].push((b, weight));
            neighbors[b].push((a, weight));
        }
        for list in &mut neighbors {
            list.sort_by_key(|(other, _)| *other);
            list.dedup_by(|later, earlier| {
                let is_same = later.0 == earlier.0;
                if is_same {
                    earlier.1 += later.1;
                }
                is_same
            });
        }
        Self { demands, neighbors }
    }

    /// How many vertices there are.
    pub(super) fn len(&self) -> usize {
        self.demands.len()
    }

    /// The weight of all edges between different parts.
    pub(super) fn cut(&self, parts: &[usize]) -> f64 {
        let mut cut = 0.0;
        for (vertex, list) in self.neighbors.iter().enumerate() {
            for (other, weight) in list.iter().filter(|(other, _)| *other > vertex) {
                if parts[vertex] != parts[*other] {
                    cut += weight;
                }
            }
        }
        cut
    }
}

/// The remaining room of each part.
#[derive(Clone, Debug)]
pub(super) struct Room(Vec<Amounts>);

impl Room {
    /// The room that `parts` leave; `None` if a part overflows.
    pub(super) fn beside(
        capacities: &[Amounts],
        demands: &[Amounts],
        parts: &[usize],
    ) -> Option<Self> {
        let mut room = Self::of(capacities);
        for (demand, part) in demands.iter().zip(parts) {
            if !room.fits(*part, *demand) {
                return None;
            }
            room.take(*part, *demand);
        }
        Some(room)
    }

    fn of(capacities: &[Amounts]) -> Self {
        let slack = |found: &Amounts| found.map(|amount| amount * ROUNDING);
        Self(capacities.iter().map(slack).collect())
    }

    fn fits(&self, part: usize, demand: Amounts) -> bool {
        self.0[part]
            .iter()
            .zip(demand)
            .all(|(left, wanted)| wanted <= *left)
    }

    fn take(&mut self, part: usize, demand: Amounts) {
        for (left, wanted) in self.0[part].iter_mut().zip(demand) {
            *left -= wanted;
        }
    }

    fn give(&mut self, part: usize, demand: Amounts) {
        self.take(part, demand.map(|amount| -amount));
    }
}

/// Random numbers derived from a seed.
#[derive(Clone, Debug)]
struct Draws(u64);

impl Draws {
    /// A number from 0 to 1.
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(1);
        #[expect(clippy::cast_precision_loss, reason = "53 bits, which a float has")]
        let number = (mix(self.0) >> 11) as f64;
        number / 9_007_199_254_740_992.0
    }
}

/// The part of each vertex, with a small cut; `None` if no distribution that fits was found. `present` is a distribution that
/// may serve as a start.
pub(super) fn partition(
    graph: &Partitioned,
    capacities: &[Amounts],
    present: Option<&[usize]>,
    seed: u64,
) -> Option<Vec<usize>> {
    let mut levels = vec![(graph.clone(), Vec::new())];
    let enough = MIN_COARSE.max(COARSE_PER_PART * capacities.len());
    let mut draws = Draws(mix(seed));
    while let Some((finest, _)) = levels.last().filter(|(level, _)| level.len() > enough) {
        let (coarse, merged) = coarsened(finest, capacities, &mut draws);
        #[expect(clippy::cast_precision_loss, reason = "counts of vertices")]
        let is_worth_it = (coarse.len() as f64) < finest.len() as f64 * (1.0 - MIN_SAVING);
        if !is_worth_it {
            break;
        }
        levels.push((coarse, merged));
    }
    let starts = if graph.len() <= MIN_COARSE {
        STARTS.0
    } else {
        STARTS.1
    };
    let mut best: Option<(f64, Vec<usize>)> = None;
    let mut keep = |parts: Vec<usize>| {
        let cut = graph.cut(&parts);
        // A later result must be clearly better, so that rounding decides nothing.
        if best
            .as_ref()
            .is_none_or(|(least, _)| cut < least * (1.0 - 1e-9))
        {
            best = Some((cut, parts));
        }
    };
    if let Some(present) = present {
        let mut parts = present.to_vec();
        if Room::beside(capacities, &graph.demands, &parts).is_some() {
            refine::refine(graph, capacities, &mut parts);
            keep(parts);
        }
    }
    for start in 0..starts {
        if let Some(parts) = descend(&levels, capacities, start, &mut draws) {
            keep(parts);
        }
    }
    best.map(|(_, parts)| parts)
}

/// One start at the coarsest level on which a distribution fits, refined on all levels below.
fn descend(
    levels: &[(Partitioned, Vec<usize>)],
    capacities: &[Amounts],
    start: u64,
    draws: &mut Draws,
) -> Option<Vec<usize>> {
    let mut parts: Option<Vec<usize>> = None;
    for (depth, (level, _)) in levels.iter().enumerate().rev() {
        let mut own = match parts.take() {
            // Each vertex is in the part of the vertex that it was merged into.
            Some(coarse) => {
                let (_, merged) = levels.get(depth + 1)?;
                merged.iter().map(|vertex| coarse[*vertex]).collect()
            }
            None => match initial::distribute(level, capacities, start, draws) {
                Some(found) => found,
                None => continue,
            },
        };
        refine::refine(level, capacities, &mut own);
        parts = Some(own);
    }
    parts
}
