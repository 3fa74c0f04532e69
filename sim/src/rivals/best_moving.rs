//! The best limit that moves, for each story: a bound, found by playing the story with one course after another.
//!
//! [`super::best_static`] shows what a fixed number reaches. A limit that moves may do better where the load or the
//! service changes. Here the limit is constant within each of [`PIECES`] equal parts of the story, and each part has
//! the value that does best for the whole story. Each proxy has the same limit for each upstream.
//!
//! Search: coordinate ascent. It begins with the best static limit in every part. For one part after another it tries
//! the rungs around the present one and no limit, and keeps what raises the score. It stops after [`PASSES`] passes
//! over all parts, or when a pass changes nothing. That is 50 to 150 runs.
//!
//! Edges: the result was played, so it can be reached; a better course may exist. Chance favors it more than the static
//! limit, because the luckiest of more runs counts.

use std::time::Duration;

use tidegate_core::Instant;

use super::best_static;
use crate::contender::{Admission, Ask, Contender, ContenderError, ContenderView, Done};
use crate::kind::{ContenderKind, Make};
use crate::number;
use crate::run::Run;
use crate::scenario::Scenario;
use crate::world;

pub(super) const KIND: ContenderKind = ContenderKind {
    name: "best-moving",
    title: "The best limit of each twelfth of a story, by hindsight: a bound",
    make: Make::Hindsight(search),
};

/// Equal parts of a story.
const PIECES: usize = 12;

/// Passes over all parts, at most.
const PASSES: usize = 2;

/// Rungs for each doubling of the limit.
const RUNGS_PER_DOUBLING: f64 = 2.0;

/// The rungs that are tried around the present one: half an octave and two octaves.
const STEPS: [i32; 4] = [-1, 1, -4, 4];

/// A limit on the ladder: a rung, or none.
type Rung = Option<i32>;

/// The limit of each part.
type Course = [Rung; PIECES];

fn search(scenario: &Scenario) -> Result<Run, ContenderError> {
    let (best, limit) = best_static::search_with_limit(scenario)?;
    let most = best.most_in_flight.max(1);
    let top = rung_of(number::float(most));
    climb(
        (
            best,
            [limit.map(|limit| rung_of(number::float(limit))); PIECES],
        ),
        top,
        |run| run.figures.score,
        |course| {
            let limits = course.map(limit_of);
            world::play_with(scenario, &move |scenario, _seed| {
                Ok(Box::new(Moving {
                    limits,
                    piece: scenario.duration.div_f64(number::float_len(PIECES)),
                }))
            })
        },
    )
}

/// Improves a course part by part; rungs stay between 0 and `top`.
fn climb<R, E>(
    (mut best, mut course): (R, Course),
    top: i32,
    score: impl Fn(&R) -> f64,
    mut play: impl FnMut(&Course) -> Result<R, E>,
) -> Result<R, E> {
    for _ in 0..PASSES {
        let before = course;
        for piece in 0..PIECES {
            for rung in around(course.get(piece).copied().flatten(), top) {
                let mut next = course;
                if let Some(slot) = next.get_mut(piece) {
                    *slot = rung;
                }
                let run = play(&next)?;
                if score(&run) > score(&best) {
                    (best, course) = (run, next);
                }
            }
        }
        if course == before {
            break;
        }
    }
    Ok(best)
}

/// The limits that are tried instead of a rung: for no limit, the rungs below the top.
fn around(rung: Rung, top: i32) -> Vec<Rung> {
    let from = rung.unwrap_or(top);
    let near = STEPS.map(|step| Some((from + step).clamp(0, top)));
    let mut tried: Vec<Rung> = Vec::new();
    for other in near.into_iter().chain([None]) {
        if other != rung && !tried.contains(&other) {
            tried.push(other);
        }
    }
    tried
}

/// The rung nearest to a limit; limits below one request count as one.
fn rung_of(limit: f64) -> i32 {
    let rung = (RUNGS_PER_DOUBLING * libm::log2(limit.max(1.0))).round();
    i32::try_from(number::floor(rung)).unwrap_or(i32::MAX)
}

/// Most requests in flight on a rung.
fn limit_of(rung: Rung) -> f64 {
    rung.map_or(f64::INFINITY, |rung| {
        libm::exp2(f64::from(rung) / RUNGS_PER_DOUBLING).round()
    })
}

/// A limit that follows a course.
struct Moving {
    limits: [f64; PIECES],
    piece: Duration,
}

impl Moving {
    fn limit(&self, now: Instant) -> f64 {
        let since_start = now.saturating_since(world::START);
        let piece = number::floor(since_start.div_duration_f64(self.piece));
        let found = self.limits.get(piece).or_else(|| self.limits.last());
        found.copied().unwrap_or(f64::INFINITY)
    }
}

impl Contender for Moving {
    fn admit(&mut self, ask: &Ask<'_>, now: Instant) -> Admission {
        if number::float(u64::from(ask.in_flight)) < self.limit(now) {
            Admission::Admit
        } else {
            Admission::shed("limit")
        }
    }

    fn complete(&mut self, _done: &Done, _now: Instant) {}

    fn view(&self, _upstream: usize, now: Instant) -> ContenderView {
        let limit = self.limit(now);
        ContenderView {
            limit: limit.is_finite().then_some(limit),
            breaker: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    /// How far the course that is found is from the wanted one, in rungs, and how many were played.
    fn found(from: Rung, wanted: &Course) -> (i32, usize) {
        let mut plays = 0;
        let value = |course: &Course| {
            let pairs = course.iter().zip(wanted);
            let distance = pairs.map(|(is, want)| match (is, want) {
                (Some(is), Some(want)) => (is - want).abs(),
                (None, None) => 0,
                _ => 100,
            });
            distance.sum::<i32>()
        };
        let start = [from; PIECES];
        let Ok(best) = climb(
            (value(&start), start),
            20,
            |distance| -f64::from(*distance),
            |course| {
                plays += 1;
                Ok::<_, Infallible>(value(course))
            },
        );
        (best, plays)
    }

    #[test]
    fn each_part_finds_its_own_limit() {
        let mut wanted = [Some(8); PIECES];
        wanted[3] = Some(9);
        wanted[4] = Some(4);
        wanted[7] = None;
        assert_eq!(found(Some(8), &wanted).0, 0);
        assert_eq!(found(None, &[None; PIECES]).0, 0);
    }

    #[test]
    fn a_course_that_cannot_be_better_ends_the_search_after_one_pass() {
        let (best, plays) = found(Some(8), &[Some(8); PIECES]);
        assert_eq!((best, plays), (0, PIECES * 5));
    }

    #[test]
    fn rungs_stay_on_the_ladder() {
        assert_eq!(around(Some(0), 6), [Some(1), Some(4), None]);
        assert_eq!(around(None, 6), [Some(5), Some(6), Some(2)]);
        assert_eq!((rung_of(1.0), rung_of(8.0), limit_of(Some(6))), (0, 6, 8.0));
    }

    /// Before, parts began 1 s too early, because the world's clock begins at 1 s.
    #[test]
    fn the_last_part_lasts_as_long_as_the_story() {
        let mut limits = [1.0; PIECES];
        limits[1] = 2.0;
        limits[PIECES - 1] = 3.0;
        let moving = Moving {
            limits,
            piece: Duration::from_secs(2),
        };
        let at = |millis| moving.limit(world::START + Duration::from_millis(millis));
        let found = [0, 1_999, 2_000, 4_000, 21_999, 23_000, 30_000]
            .map(|millis| number::floor(at(millis)));
        assert_eq!(found, [1, 1, 2, 1, 1, 3, 3]);
    }
}
