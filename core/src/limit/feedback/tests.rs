//! How late and shed requests change the part of the wait that is in use.

use super::*;
use crate::limit::testing::{assert_close, window};
use crate::sample::Sample;

const TARGET: Duration = Duration::from_millis(300);
/// The whole wait, seconds.
const WAIT: f64 = 0.5;

/// This many answers of this many milliseconds each.
type Groups = &'static [(u64, u64)];

fn answers(groups: Groups) -> Sample {
    let mut all = window(1_000, 0, 0);
    for (n, ms) in groups {
        all.tally.merge(&window(1_000, *n, *ms).tally);
    }
    all
}

/// So many places that a cut takes more of them than were refused.
const MANY: f64 = 1e4;

fn weigh(feedback: &mut SloFeedback, groups: Groups, delay: f64, refused: f64) {
    let sample = answers(groups);
    let lateness = Lateness::of(&sample.tally.latency, TARGET, delay);
    let shed = ShedRequests {
        refused,
        places: MANY,
    };
    feedback.weigh(&lateness, WAIT, shed);
}

/// Windows of 100 answers with a wait of 100 places, of which a cut takes 20: the late answers of each window, the requests refused in each
/// of five windows, and the gain after them.
#[test]
fn shed_requests_count_once_for_each_time_that_the_limit_fills() {
    for (name, late, refused, expected) in [
        ("packs", 15, [1_000, 0, 1_000, 0, 1_000], 1.15),
        ("packs, few refused", 15, [5, 0, 5, 0, 5], 0.8),
        ("packs, more late", 25, [1_000, 0, 1_000, 0, 1_000], 0.8),
        ("full all the time", 15, [1_000; 5], 0.8),
        ("full all the time, few late", 8, [1_000; 5], 1.15),
    ] {
        let mut feedback = SloFeedback::resume(Gain::default());
        for refused in refused {
            let mut sample = window(1_000, 100 - late, 100);
            sample.tally.merge(&window(1_000, late, 400).tally);
            let lateness = Lateness::of(&sample.tally.latency, TARGET, 0.2);
            let shed = ShedRequests {
                refused: f64::from(refused),
                places: 100.0,
            };
            feedback.weigh(&lateness, WAIT, shed);
        }
        assert_close(feedback.gain(), expected, name);
    }
}

#[test]
fn the_wait_shrinks_while_more_are_late_than_shed_and_grows_while_few_are_late() {
    // Answers by latency, queue delay, number refused, and the gain of bursts.
    let table: [(&str, Groups, f64, f64, f64); 9] = [
        ("in time", &[(500, 100)], 0.2, 0.0, 1.15),
        ("late because of the queue", &[(500, 400)], 0.2, 0.0, 0.8),
        ("late by themselves", &[(500, 900)], 0.2, 0.0, 1.15),
        ("late without a queue", &[(500, 400)], 0.0, 0.0, 1.15),
        ("a few late", &[(480, 100), (20, 400)], 0.2, 0.0, 1.15),
        ("too many late", &[(460, 100), (40, 400)], 0.2, 0.0, 0.8),
        ("as many shed", &[(460, 100), (40, 400)], 0.2, 40.0, 1.15),
        (
            "a longer wait makes more late",
            &[(460, 100), (20, 250), (20, 400)],
            0.2,
            0.0,
            1.0,
        ),
        ("too few to say", &[(499, 400)], 0.2, 0.0, 1.0),
    ];
    for (name, groups, delay, refused, expected) in table {
        let mut feedback = SloFeedback::resume(Gain::default());
        weigh(&mut feedback, groups, delay, refused);
        assert_close(feedback.gain(), expected, name);
    }
}

#[test]
fn windows_add_up_to_a_judgment_and_then_start_over() {
    let mut feedback = SloFeedback::resume(Gain::default());
    for _ in 0..4 {
        weigh(&mut feedback, &[(100, 400)], 0.2, 0.0);
        assert_close(feedback.gain(), 1.0, "too few");
    }
    weigh(&mut feedback, &[(100, 400)], 0.2, 0.0);
    assert_close(feedback.gain(), 0.8, "judged");
    weigh(&mut feedback, &[(500, 100)], 0.2, 0.0);
    assert_close(feedback.gain(), 0.95, "what was late is forgotten");
}

#[test]
fn the_gain_stays_within_its_bounds() {
    let in_time: Groups = &[(500, 100)];
    let late: Groups = &[(500, 400)];
    let after = |mut feedback: SloFeedback, groups| {
        for _ in 0..30 {
            weigh(&mut feedback, groups, 0.2, 0.0);
        }
        feedback.gain()
    };
    assert_close(
        after(SloFeedback::resume(Gain::default()), in_time),
        1.5,
        "bursts",
    );
    assert_close(after(SloFeedback::OF_HOLD, in_time), 1.0, "hold");
    assert_close(
        after(SloFeedback::resume(Gain::default()), late),
        0.1,
        "bursts",
    );
    assert_close(after(SloFeedback::OF_HOLD, late), 0.1, "hold");
}

#[test]
fn a_standing_queue_is_judged_sooner_and_its_wait_returns_more_slowly() {
    let mut hold = SloFeedback::OF_HOLD;
    weigh(&mut hold, &[(50, 400)], 0.2, 0.0);
    assert_close(hold.gain(), 0.8, "late");
    weigh(&mut hold, &[(50, 100)], 0.2, 0.0);
    assert_close(hold.gain(), 0.85, "in time");
}

#[test]
fn a_learned_gain_is_clamped_to_the_bounds() {
    for (learned, expected) in [(0.0, 1.0), (0.01, 0.1), (0.7, 0.7), (9.0, 1.5)] {
        assert_close(
            SloFeedback::resume(Gain::new(learned)).gain(),
            expected,
            "learned",
        );
    }
}
