//! The best static limit of each story: a bound, found by playing the story with one limit after another.
//!
//! It shows the most that a fixed number in the configuration could reach, if the story were known beforehand. Each proxy
//! has the same limit for each upstream, from the first request to the last. Envoy's circuit breakers of
//! [`super::static_limit`] enforce it.
//!
//! Search: without a limit; then 1, 2, 4 and so on below the most that were then in flight, beyond which a limit
//! does nothing; then three steps of a fourth root of 2 on each side of the best so far. The run with the greatest score is
//! the answer, the first of equals. That is 10 to 20 runs.
//!
//! Edges: it is not an oracle. A limit that moves with the load or the service may do better. Chance favors it: the
//! luckiest of many runs counts.

use std::collections::BTreeSet;

use super::static_limit;
use crate::contender::ContenderError;
use crate::kind::{ContenderKind, Make};
use crate::number;
use crate::run::Run;
use crate::scenario::Scenario;
use crate::world;

pub(super) const KIND: ContenderKind = ContenderKind {
    name: "best-static",
    title: "The best static limit of each story, by hindsight: a bound",
    make: Make::Hindsight(search),
};

/// The least difference between two limits, in powers of 2 ...
const FINE: f64 = 0.25;
/// ... and so many such steps are tried on each side of the best power of 2.
const FINE_STEPS: i32 = 3;

fn search(scenario: &Scenario) -> Result<Run, ContenderError> {
    search_with_limit(scenario).map(|(run, _)| run)
}

/// The best run, and its limit; none if the best is without one.
pub(super) fn search_with_limit(scenario: &Scenario) -> Result<(Run, Option<u64>), ContenderError> {
    let play = |limit: Option<u64>| {
        let limit = limit.map_or(f64::INFINITY, number::float);
        world::play_with(scenario, &move |scenario, _seed| {
            Ok(static_limit::fixed(scenario, limit))
        })
    };
    let free = play(None)?;
    let most = free.most_in_flight;
    best(
        free,
        |run| run.figures.score,
        most,
        |limit| play(Some(limit)),
    )
}

/// The best run, and its limit: `free` has none, and `play` runs limits below `most`.
fn best<R, E>(
    free: R,
    score: impl Fn(&R) -> f64,
    most: u64,
    mut play: impl FnMut(u64) -> Result<R, E>,
) -> Result<(R, Option<u64>), E> {
    let (mut best, mut at) = (free, None);
    let coarse = doublings(most);
    for limit in &coarse {
        let run = play(*limit)?;
        if score(&run) > score(&best) {
            (best, at) = (run, Some(*limit));
        }
    }
    for limit in around(at.unwrap_or(most), most).difference(&coarse) {
        let run = play(*limit)?;
        if score(&run) > score(&best) {
            (best, at) = (run, Some(*limit));
        }
    }
    Ok((best, at))
}

/// 1, 2, 4 and so on, below `most`.
fn doublings(most: u64) -> BTreeSet<u64> {
    let powers = (0..u64::BITS).map(|power| 1_u64 << power);
    powers.take_while(|limit| *limit < most).collect()
}

/// Limits between half of `limit` and twice `limit`, below `most`.
fn around(limit: u64, most: u64) -> BTreeSet<u64> {
    let steps = (-FINE_STEPS..=FINE_STEPS).filter(|step| *step != 0);
    let near = steps.map(|step| {
        let value = number::float(limit) * libm::exp2(FINE * f64::from(step));
        u64::try_from(number::floor(value.round())).unwrap_or(u64::MAX)
    });
    near.filter(|near| (1..most).contains(near) && *near != limit)
        .collect()
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    /// What is found where the score of a limit is this, and what was tried for it.
    fn found(most: u64, score: impl Fn(u64) -> f64) -> (u64, Vec<u64>) {
        let mut tried = Vec::new();
        let play = |limit| {
            tried.push(limit);
            Ok::<_, Infallible>(limit)
        };
        let Ok((best, limit)) = best(most, |limit| score(*limit), most, play);
        assert_eq!(limit, Some(best).filter(|best| *best != most));
        (best, tried)
    }

    #[test]
    fn the_best_is_found_within_a_fourth_root_of_two() {
        let distance = |limit: u64, from: f64| (libm::log2(number::float(limit)) - from).abs();
        for peak in [1_u64, 3, 7, 20, 47, 150, 900] {
            let log = libm::log2(number::float(peak));
            let (best, tried) = found(1_000, |limit| -distance(limit, log));
            assert!(distance(best, log) < 0.2, "{peak}: {best}");
            assert!(tried.len() <= 16, "{peak}: {tried:?}");
        }
    }

    #[test]
    fn no_limit_at_all_wins_where_every_limit_costs() {
        let (best, tried) = found(100, number::float);
        assert_eq!(best, 100);
        assert_eq!(tried, [1, 2, 4, 8, 16, 32, 64, 59, 71, 84]);
    }

    #[test]
    fn nothing_is_tried_where_nothing_was_in_flight() {
        assert_eq!(found(0, |_| 1.0), (0, Vec::new()));
        assert_eq!(found(1, |_| 1.0), (1, Vec::new()));
    }
}
