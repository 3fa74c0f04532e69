//! Divides a budget in small units; each goes to the service where it saves most.
//!
//! Source: Parslo (Mirhosseini, Elnikety, Wenisch, SoCC 2021) breaks an end-to-end objective into small units and gives each to the
//! microservice with the best marginal saving, until the objective is used up. There the saving is cost of deployment;
//! here it is the probability that a request is late. Each service begins with its least time.
//!
//! The cost of a unit is what it adds end to end: several units for a service that is called several times, and none
//! for a service whose parallel calls take longer.
//!
//! Edges: with two equal parallel branches, each seems to cost a whole unit, although the next unit of the other branch
//! is then free. So the split is near the best one, not always the best.

use super::tail::OwnTime;
use super::tree::CallTree;

/// Units that a budget is broken into, at most and at least: fewer for many services.
const UNITS: (f64, f64) = (1_000.0, 100.0);
/// Steps of work after which units become larger.
const MAX_WORK: f64 = 2e8;
/// Tolerance for sums of many units.
const ROUNDING: f64 = 1e-9;

/// The own time of each service, in seconds, by position.
pub(super) fn shared_out(
    tree: &CallTree,
    services: &[Option<OwnTime>],
    visits: &[f64],
    target_seconds: f64,
) -> Vec<f64> {
    let mut own: Vec<f64> = services
        .iter()
        .map(|service| service.as_ref().map_or(0.0, OwnTime::least))
        .collect();
    let unit = target_seconds / units(tree);
    let mut is_full = vec![false; own.len()];
    let mut used = end_to_end(tree, &own);
    loop {
        let weights = weights(tree, &own);
        let mut best: Option<(f64, f64, usize)> = None;
        for (position, service) in services.iter().enumerate() {
            let (Some(service), Some(false)) = (service, is_full.get(position)) else {
                continue;
            };
            let at = |values: &[f64]| values.get(position).copied().unwrap_or_default();
            let now = at(&own);
            let saved = at(visits) * (service.missed(now) - service.missed(now + unit));
            let weight = at(&weights);
            let cost = if weight > 0.0 {
                weight * unit
            } else {
                with(tree, &mut own, position, unit) - used
            };
            if saved <= 0.0 {
                continue;
            }
            if used + cost > target_seconds * (1.0 + ROUNDING) {
                // A service that does not fit does not become cheaper, unless its parallel calls take longer.
                if weight > 0.0 {
                    mark(&mut is_full, position);
                }
                continue;
            }
            // Free units come first.
            let value = if cost <= unit * ROUNDING {
                f64::INFINITY
            } else {
                saved / cost
            };
            if best.is_none_or(|(highest, most, _)| (value, saved) > (highest, most)) {
                best = Some((value, saved, position));
            }
        }
        let Some((_, _, position)) = best else {
            return own;
        };
        let after = with(tree, &mut own, position, unit);
        if after > target_seconds * (1.0 + ROUNDING) {
            mark(&mut is_full, position);
            continue;
        }
        if let Some(seconds) = own.get_mut(position) {
            *seconds += unit;
        }
        used = after;
    }
}

/// The time end to end, in seconds.
pub(super) fn end_to_end(tree: &CallTree, own: &[f64]) -> f64 {
    tree.whole(own).first().copied().unwrap_or_default()
}

/// The time end to end if one service had `more`.
fn with(tree: &CallTree, own: &mut [f64], position: usize, more: f64) -> f64 {
    let before = own.get(position).copied().unwrap_or_default();
    if let Some(seconds) = own.get_mut(position) {
        *seconds += more;
    }
    let found = end_to_end(tree, own);
    if let Some(seconds) = own.get_mut(position) {
        *seconds = before;
    }
    found
}

/// How many seconds end to end one second of each service costs; of parallel calls only the longest counts.
fn weights(tree: &CallTree, own: &[f64]) -> Vec<f64> {
    let whole = tree.whole(own);
    let mut weights = vec![0.0; own.len()];
    if let Some(first) = weights.first_mut() {
        *first = 1.0;
    }
    for (position, node) in tree.nodes.iter().enumerate() {
        let weight: f64 = weights.get(position).copied().unwrap_or_default();
        let part =
            |callee: usize, times: f64| times * whole.get(callee).copied().unwrap_or_default();
        for (number, call) in node.calls.iter().enumerate() {
            let here = part(call.callee, call.times());
            let is_outlasted = call.group.is_some()
                && node.calls.iter().enumerate().any(|(other_number, other)| {
                    let there = part(other.callee, other.times());
                    other.group == call.group
                        && (there > here || (there >= here && other_number < number))
                });
            if !is_outlasted && let Some(entry) = weights.get_mut(call.callee) {
                *entry += weight * call.times();
            }
        }
    }
    weights
}

fn units(tree: &CallTree) -> f64 {
    let calls: usize = tree.nodes.iter().map(|node| node.calls.len()).sum();
    let count = |number: usize| f64::from(u32::try_from(number).unwrap_or(u32::MAX));
    let work = count(tree.nodes.len()) * count(tree.nodes.len().saturating_add(calls));
    (MAX_WORK / work.max(1.0)).clamp(UNITS.1, UNITS.0)
}

fn mark(is_full: &mut [bool], position: usize) {
    if let Some(flag) = is_full.get_mut(position) {
        *flag = true;
    }
}
