//! When failures put a ceiling, and when it is removed.

use super::*;
use crate::limit::testing::{assert_close, at};
use crate::tally::Count;

/// Share of failures that the objective allows, unless a test says otherwise.
const TOLERATED: f64 = 0.01;
const WANTED: f64 = 1_000.0;
/// Milliseconds of one window of evidence.
const MS: u64 = 300;

/// Requests of one kind: how many, and the load at which they were admitted.
type Kind = (u64, u32);

fn outcomes((successes, survived): Kind, (failures, met): Kind) -> Sample {
    let mut sample = Sample::empty(Duration::from_millis(MS));
    let tally = &mut sample.tally;
    tally.add(Count::Arrivals, successes + failures);
    tally.add(Count::Successes, successes);
    for _ in 0..successes {
        tally.add_load(Count::SuccessLoad, Count::SuccessLoadSquares, survived);
    }
    tally.add(Count::Failures, failures);
    for _ in 0..failures {
        tally.add_load(Count::FailureLoad, Count::FailureLoadSquares, met);
    }
    sample
}

fn known(limit: f64, is_proven: bool) -> CeilingCheckpoint {
    CeilingCheckpoint {
        limit: Requests::new(limit),
        is_proven,
    }
}

/// A ceiling and the time.
struct Rig {
    ceiling: Ceiling,
    ms: u64,
}

impl Rig {
    fn new() -> Self {
        Self::of(Ceiling::default())
    }

    const fn of(ceiling: Ceiling) -> Self {
        Self { ceiling, ms: 0 }
    }

    /// With a ceiling from three windows of failures at load 40.
    fn cut() -> Self {
        let mut rig = Self::new();
        for _ in 0..3 {
            rig.window((50, 20), (50, 40));
        }
        rig
    }

    /// One window of evidence.
    fn window(&mut self, successes: Kind, failures: Kind) {
        self.tolerating(TOLERATED, successes, failures);
    }

    fn tolerating(&mut self, tolerated: f64, successes: Kind, failures: Kind) {
        self.play(tolerated, &outcomes(successes, failures));
    }

    fn play(&mut self, tolerated: f64, sample: &Sample) {
        let nothing = Sample::empty(Duration::from_millis(1));
        self.ceiling
            .update(&nothing, WANTED, tolerated, at(self.ms));
        self.ms += MS;
        self.ceiling.update(sample, WANTED, tolerated, at(self.ms));
    }

    fn suspicion(&self) -> &Suspicion {
        self.ceiling.suspicion.as_deref().unwrap()
    }

    fn is_on_trial(&self) -> bool {
        let suspicion = self.ceiling.suspicion.as_deref();
        suspicion.is_some_and(|suspicion| suspicion.trial.is_some())
    }

    fn value(&self) -> Option<f64> {
        self.ceiling.value
    }
}

#[test]
fn failures_put_a_ceiling_only_if_they_come_with_load() {
    // Successes, failures, and the ceiling after three windows like this.
    let table: [(&str, Kind, Kind, Option<f64>); 7] = [
        ("at higher load", (50, 20), (50, 40), Some(36.0)),
        ("a quota fails at any load", (50, 20), (50, 20), None),
        ("at lower load", (50, 40), (50, 20), None),
        ("hardly higher", (500, 100), (500, 102), None),
        ("too few failures", (50, 20), (4, 40), None),
        ("too few successes", (4, 20), (50, 40), None),
        ("nothing", (0, 0), (0, 0), None),
    ];
    for (name, successes, failures, expected) in table {
        let mut rig = Rig::new();
        for _ in 0..3 {
            assert_eq!(rig.value(), None, "{name}");
            rig.window(successes, failures);
        }
        assert_eq!(rig.value().is_some(), expected.is_some(), "{name}");
        assert_eq!(rig.ceiling.is_in_force(), expected.is_some(), "{name}");
        if let (Some(value), Some(expected)) = (rig.value(), expected) {
            assert_close(value, expected, name);
        }
    }
}

/// Fast answers belong to requests that were admitted at the present load, slow ones to requests of an earlier load.
#[test]
fn a_quota_puts_no_ceiling_while_the_load_rises() {
    for (in_flight, expected) in [(41, false), (39, true)] {
        let mut rig = Rig::new();
        for _ in 0..3 {
            let mut sample = outcomes((50, 20), (50, 40));
            let micros = in_flight * MS * 1_000;
            sample.tally.add(Count::InFlightMicros, micros);
            rig.play(TOLERATED, &sample);
        }
        assert_eq!(rig.value().is_some(), expected, "{in_flight}");
    }
}

#[test]
fn a_quota_puts_no_ceiling_however_long_it_lasts() {
    let mut rig = Rig::new();
    for load in (10..40).cycle().take(600) {
        rig.window((50, load), (50, load));
        assert_eq!(rig.value(), None);
    }
}

#[test]
fn failures_within_the_objective_put_no_ceiling() {
    let mut rig = Rig::new();
    for _ in 0..9 {
        rig.tolerating(0.1, (95, 20), (10, 40));
    }
    assert_eq!(rig.value(), None);
    for _ in 0..3 {
        rig.tolerating(0.1, (85, 20), (10, 40));
    }
    assert!(rig.value().is_some(), "one in nine and a half is more");
}

#[test]
fn the_correlation_must_show_in_windows_in_a_row() {
    let mut rig = Rig::new();
    for _ in 0..5 {
        rig.window((50, 20), (50, 40));
        rig.window((50, 20), (50, 40));
        rig.window((50, 20), (50, 20));
    }
    assert_eq!(rig.value(), None);
}

#[test]
fn a_ceiling_bounds_the_limit() {
    let rig = Rig::cut();
    assert_close(rig.ceiling.hold(100.0), 36.0, "above");
    assert_close(rig.ceiling.hold(10.0), 10.0, "below");
    assert_close(Ceiling::default().hold(100.0), 100.0, "none");
}

#[test]
fn one_more_window_lowers_a_ceiling_and_never_raises_it() {
    let mut rig = Rig::cut();
    rig.window((500, 10), (20, 20));
    assert_close(rig.value().unwrap(), 18.0, "lower");
    rig.window((500, 20), (20, 60));
    assert_close(rig.value().unwrap(), 18.0, "higher");
    rig.window((5_000, 0), (60, 1));
    assert_close(rig.value().unwrap(), 1.0, "at least one");
}

#[test]
fn a_trial_that_does_not_help_is_taken_back_and_delays_the_next() {
    let mut rig = Rig::cut();
    rig.window((50, 20), (50, 20));
    assert_eq!(rig.value(), None, "as many failed as before");
    // The first delay is 5 s, the second 10 s.
    for doubt in [5_000, 10_000] {
        let refuted = rig.ms;
        while rig.value().is_none() {
            rig.window((50, 20), (50, 40));
            assert!(rig.ms < refuted + 60_000);
        }
        let kept_away = rig.ms - refuted;
        assert!((doubt..doubt + 4 * MS).contains(&kept_away), "{kept_away}");
        rig.window((50, 20), (50, 20));
        assert_eq!(rig.value(), None);
    }
}

#[test]
fn a_refuted_suspicion_delays_the_next_by_a_minute_at_most() {
    let mut rig = Rig::new();
    for _ in 0..8 {
        while rig.value().is_none() {
            rig.window((50, 20), (50, 40));
        }
        rig.window((50, 20), (50, 20));
    }
    assert_eq!(rig.suspicion().doubt, LONGEST_DOUBT);
}

#[test]
fn a_trial_that_helps_is_proven_and_not_tried_again() {
    let mut rig = Rig::cut();
    for _ in 0..7 {
        assert!(!rig.ceiling.proven && rig.is_on_trial());
        rig.window((100, 20), (0, 0));
    }
    assert!(rig.ceiling.proven && !rig.is_on_trial());
    assert!(rig.value().is_some());
    rig.window((50, 20), (50, 30));
    assert!(!rig.is_on_trial(), "it follows the bound");
    assert_close(rig.value().unwrap(), 27.0, "the bound");
}

#[test]
fn a_trial_waits_for_enough_failures() {
    let mut rig = Rig::cut();
    for _ in 0..8 {
        assert!(rig.is_on_trial() && !rig.ceiling.proven);
        rig.window((5, 20), (0, 0));
    }
    assert!(!rig.is_on_trial() && rig.ceiling.proven);
}

/// The quota of one caller: the others lose as many requests as it fails less.
#[test]
fn a_ceiling_that_costs_successes_is_lifted() {
    let mut rig = Rig::cut();
    for _ in 0..7 {
        assert!(rig.value().is_some());
        let mut sample = outcomes((30, 20), (0, 0));
        sample.tally.add(Count::Arrivals, 70);
        rig.play(TOLERATED, &sample);
    }
    assert_eq!(rig.value(), None);
    assert!(rig.suspicion().doubted_until > at(rig.ms));
}

/// Outcomes before a cut and after it: all, and failures.
#[test]
fn a_cut_helps_when_failures_become_rarer_by_more_than_chance() {
    for (name, before, after, expected) in [
        ("none left", (300.0, 150.0), (100.0, 0.0), Some(true)),
        ("half as many", (300.0, 150.0), (100.0, 25.0), Some(true)),
        ("few fewer", (300.0, 150.0), (1e4, 4_000.0), Some(false)),
        ("it may be chance", (30.0, 15.0), (40.0, 13.0), Some(false)),
        ("as many", (300.0, 150.0), (100.0, 50.0), Some(false)),
        ("too few to say", (300.0, 150.0), (39.0, 0.0), None),
        ("nothing before", (0.0, 0.0), (100.0, 0.0), None),
    ] {
        let of = |(all, failed), span| Outcomes {
            all,
            failed,
            arrived: all,
            span,
        };
        let trial = Trial {
            before: of(before, 1.0),
            after: of(after, 2.0),
        };
        assert_eq!(trial.verdict(), expected, "{name}");
    }
}

/// 240 of 300 requests had succeeded in a second. Of the next, all that the ceiling lets through and ten fewer succeed.
#[test]
fn a_cut_costs_successes_when_they_are_fewer_in_a_second_and_of_the_arrivals() {
    for (name, ended, arrived, span, expected) in [
        ("sheds what failed", 490.0, 600.0, 2.0, Some(true)),
        ("sheds others, too", 380.0, 600.0, 2.0, Some(false)),
        ("it may be chance", 420.0, 600.0, 2.0, Some(true)),
        ("too early to say", 190.0, 300.0, 1.0, None),
        ("half of the callers", 250.0, 300.0, 2.0, Some(true)),
        ("four times as many", 490.0, 2_400.0, 2.0, Some(true)),
        ("fewer, and others", 180.0, 300.0, 2.0, Some(false)),
    ] {
        let trial = Trial {
            before: Outcomes {
                all: 300.0,
                failed: 60.0,
                arrived: 300.0,
                span: 1.0,
            },
            after: Outcomes {
                all: ended,
                failed: 10.0,
                arrived,
                span,
            },
        };
        assert_eq!(trial.verdict(), expected, "{name}");
    }
}

#[test]
fn a_ceiling_rises_without_failures_and_ends_above_the_wanted_limit() {
    let mut rig = Rig::cut();
    let cut_at = rig.ms;
    let second = Sample::empty(Duration::from_secs(1));
    let mut update = |wanted, ms| {
        rig.ceiling
            .update(&second, wanted, TOLERATED, at(cut_at + ms));
        rig.ceiling.value
    };
    assert_close(update(WANTED, 999).unwrap(), 36.0, "not yet");
    assert_close(update(WANTED, 1_000).unwrap(), 39.6, "by a tenth");
    assert_close(update(WANTED, 1_100).unwrap(), 43.56, "and again");
    assert_eq!(update(45.0, 1_200), None, "no more is wanted");
    assert!(!rig.is_on_trial() && !rig.ceiling.proven);
}

#[test]
fn a_low_ceiling_rises_by_one_a_second() {
    let mut ceiling = Ceiling::resume(Some(known(2.0, false)));
    let second = Sample::empty(Duration::from_secs(1));
    ceiling.update(&second, WANTED, TOLERATED, at(5_000));
    assert_close(ceiling.value.unwrap(), 3.0, "by one");
}

#[test]
fn a_successor_keeps_the_ceiling() {
    for checkpoint in [None, Some(known(36.0, false)), Some(known(36.0, true))] {
        assert_eq!(Ceiling::resume(checkpoint).checkpoint(), checkpoint);
    }
}

#[test]
fn a_ceiling_scales_with_the_endpoints() {
    let mut rig = Rig::cut();
    rig.ceiling.scale(0.5);
    assert_close(rig.value().unwrap(), 18.0, "half");
    rig.ceiling = Ceiling::default();
    rig.ceiling.scale(0.5);
    assert_eq!(rig.value(), None);
}
