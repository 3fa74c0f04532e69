//! Improves a distribution by moves and swaps.
//!
//! A pass always moves the vertex that saves most, each vertex at most once. It continues even if a move costs, because a
//! later one may save more, and then undoes the moves that did not pay. If a part is full, two vertices may change places.
//!
//! Sources: Kernighan and Lin, "An Efficient Heuristic Procedure for Partitioning Graphs" (1970); Fiduccia and Mattheyses, "A
//! Linear-Time Heuristic for Improving Network Partitions" (DAC 1982).

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::{Amounts, Partitioned, ROUNDING, Room};

/// Most passes on a level.
const MAX_PASSES: usize = 8;
/// A pass ends after this many moves in a row without a saving, plus a share of the vertices.
const PATIENCE: usize = 60;
/// Swaps are tried with at most this many vertices of a full part.
const MAX_TRIED: usize = 40;

/// Improves `parts`, which must fit and still fit afterwards.
pub(super) fn refine(graph: &Partitioned, capacities: &[Amounts], parts: &mut [usize]) {
    // The sums of a lower level may round differently.
    let slack: Vec<Amounts> = capacities
        .iter()
        .map(|found| found.map(|amount| amount * ROUNDING))
        .collect();
    let Some(mut room) = Room::beside(&slack, &graph.demands, parts) else {
        return;
    };
    let total: f64 = graph
        .neighbors
        .iter()
        .flatten()
        .map(|(_, weight)| weight)
        .sum();
    // Less than this is rounding.
    let least = total * 1e-12;
    for _ in 0..MAX_PASSES {
        let mut state = Refinement {
            graph,
            parts,
            room: &mut room,
            ties: vec![0.0; capacities.len()],
            least,
        };
        let gained = state.moves() + state.swaps();
        if gained <= least {
            break;
        }
    }
}

struct Refinement<'a> {
    graph: &'a Partitioned,
    parts: &'a mut [usize],
    room: &'a mut Room,
    /// The weight between a vertex and each part; all 0 between uses.
    ties: Vec<f64>,
    least: f64,
}

/// A queued move.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Waiting {
    gain: f64,
    vertex: usize,
    target: usize,
    /// Moves of the vertex that were queued before a neighbor moved are invalid.
    version: u32,
}

impl Eq for Waiting {}

impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_gain = self.gain.total_cmp(&other.gain);
        by_gain.then_with(|| (other.vertex, other.target).cmp(&(self.vertex, self.target)))
    }
}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Refinement<'_> {
    /// Makes one pass of moves; returns the saving.
    fn moves(&mut self) -> f64 {
        let count = self.graph.len();
        let patience = PATIENCE + count / 50;
        let mut versions = vec![0_u32; count];
        let mut is_locked = vec![false; count];
        let mut heap: BinaryHeap<Waiting> = (0..count)
            .filter_map(|vertex| self.best_move(vertex, 0))
            .collect();
        let mut log: Vec<(usize, usize)> = Vec::new();
        let (mut gained, mut most, mut kept) = (0.0, 0.0, 0);
        while let Some(next) = heap.pop() {
            let vertex = next.vertex;
            if is_locked[vertex] || next.version != versions[vertex] {
                continue;
            }
            if !self.room.fits(next.target, self.graph.demands[vertex]) {
                // The part has become full meanwhile.
                versions[vertex] += 1;
                heap.extend(self.best_move(vertex, versions[vertex]));
                continue;
            }
            is_locked[vertex] = true;
            log.push((vertex, self.parts[vertex]));
            self.put(vertex, next.target);
            gained += next.gain;
            if gained > most + self.least {
                (most, kept) = (gained, log.len());
            } else if log.len() - kept > patience {
                break;
            }
            for (other, _) in &self.graph.neighbors[vertex] {
                if !is_locked[*other] {
                    versions[*other] += 1;
                    heap.extend(self.best_move(*other, versions[*other]));
                }
            }
        }
        for (vertex, before) in log.drain(kept..).rev() {
            self.put(vertex, before);
        }
        most
    }

    /// The move of a vertex to the part with room where its weight is greatest.
    fn best_move(&mut self, vertex: usize, version: u32) -> Option<Waiting> {
        let own = self.parts[vertex];
        let touched = self.bind(vertex);
        let demand = self.graph.demands[vertex];
        let candidates = touched
            .iter()
            .filter(|part| **part != own && self.room.fits(**part, demand));
        let best = candidates
            .map(|part| (self.ties[*part] - self.ties[own], *part))
            .max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)));
        self.unbind(&touched);
        best.map(|(gain, target)| Waiting {
            gain,
            vertex,
            target,
            version,
        })
    }

    /// Swaps vertices with others in full parts; returns the saving.
    fn swaps(&mut self) -> f64 {
        let mut members: Vec<Vec<usize>> = vec![Vec::new(); self.ties.len()];
        for (vertex, part) in self.parts.iter().enumerate() {
            members[*part].push(vertex);
        }
        let mut gained = 0.0;
        for vertex in 0..self.graph.len() {
            let own = self.parts[vertex];
            let touched = self.bind(vertex);
            let better: Vec<(f64, usize)> = touched
                .iter()
                .map(|part| (self.ties[*part] - self.ties[own], *part))
                .filter(|(gain, part)| *part != own && *gain > self.least)
                .collect();
            self.unbind(&touched);
            for (gain, part) in better {
                if let Some((whole, other)) = self.best_swap(vertex, gain, &members[part]) {
                    let (here, there) = (own, part);
                    self.put(vertex, there);
                    self.put(other, here);
                    members[here].retain(|found| *found != vertex);
                    members[there].retain(|found| *found != other);
                    members[here].push(other);
                    members[there].push(vertex);
                    gained += whole;
                    break;
                }
            }
        }
        gained
    }

    /// The best vertex to swap with, and the saving.
    fn best_swap(&mut self, vertex: usize, gain: f64, members: &[usize]) -> Option<(f64, usize)> {
        let own = self.parts[vertex];
        let mut best: Option<(f64, usize)> = None;
        for other in members.iter().take(MAX_TRIED) {
            let there = self.parts[*other];
            if !self.fit_swapped(vertex, *other) {
                continue;
            }
            let touched = self.bind(*other);
            let back = self.ties[own] - self.ties[there];
            self.unbind(&touched);
            let between = self.graph.neighbors[vertex]
                .iter()
                .find(|(neighbor, _)| neighbor == other)
                .map_or(0.0, |(_, weight)| *weight);
            let whole = gain + back - 2.0 * between;
            if whole > self.least && best.is_none_or(|(most, _)| whole > most) {
                best = Some((whole, *other));
            }
        }
        best
    }

    fn fit_swapped(&self, a: usize, b: usize) -> bool {
        let fits = |part: usize, leaving: Amounts, coming: Amounts| {
            let room = self.room.0[part];
            (0..2).all(|dimension| coming[dimension] <= room[dimension] + leaving[dimension])
        };
        let (demand_a, demand_b) = (self.graph.demands[a], self.graph.demands[b]);
        fits(self.parts[a], demand_a, demand_b) && fits(self.parts[b], demand_b, demand_a)
    }

    fn put(&mut self, vertex: usize, part: usize) {
        let demand = self.graph.demands[vertex];
        self.room.give(self.parts[vertex], demand);
        self.room.take(part, demand);
        self.parts[vertex] = part;
    }

    /// Sums the weight between a vertex and each part, and returns these parts.
    fn bind(&mut self, vertex: usize) -> Vec<usize> {
        let mut touched = Vec::new();
        for (other, weight) in &self.graph.neighbors[vertex] {
            let part = self.parts[*other];
            self.ties[part] += weight;
            touched.push(part);
        }
        touched.sort_unstable();
        touched.dedup();
        touched
    }

    fn unbind(&mut self, touched: &[usize]) {
        for part in touched {
            self.ties[*part] = 0.0;
        }
    }
}
