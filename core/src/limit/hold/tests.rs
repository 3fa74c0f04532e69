//! How the limit moves with each window while a queue is held.

use super::*;
use crate::limit::testing::{assert_close, at, window};

/// 100 a second, 100 ms without a queue, and a queue of 100 ms where 20 ms are wanted: the model says 12.
const QUEUED: HoldTarget = HoldTarget {
    objective: f64::INFINITY,
    capacity: 100.0,
    latency: 0.1,
    in_doubt: false,
    wait: 0.02,
    is_contended: false,
    delay: 0.1,
    harmless: 0.15,
    most: 50.0,
    hides_queues: true,
};
/// A queue of the wanted length.
const WANTED: HoldTarget = HoldTarget {
    capacity: 160.0,
    delay: 0.02,
    ..QUEUED
};
/// No queue.
const EMPTY: HoldTarget = HoldTarget {
    delay: 0.0,
    ..QUEUED
};
const DOUBTED: HoldTarget = HoldTarget {
    in_doubt: true,
    ..QUEUED
};

/// The limit under test, and the clock that all proxies share.
struct Rig {
    hold: Hold,
    clock: Instant,
    period: Option<u64>,
}

impl Rig {
    /// At `limit`, after the requests that were admitted before have drained.
    fn at(limit: f64) -> Self {
        let mut hold = Hold::at(limit);
        hold.settling = false;
        Self {
            hold,
            clock: at(0),
            period: None,
        }
    }

    /// In a cut from 20 to 15; before it came 100 answers a second of 200 ms.
    fn cut() -> Self {
        let mut rig = Self::at(20.0);
        assert!(matches!(rig.second(100, 200, QUEUED), HoldFinding::Nothing));
        assert!(matches!(rig.hold.phase, Phase::Cut { .. }));
        assert_close(rig.hold.limit, 15.0, "cut");
        rig.drain();
        rig
    }

    /// Just entered at 10, from a limit of 30 at which there were 100 answers a second of 300 ms.
    fn entered() -> Self {
        let full = window(1_000, 100, 300).holding(30);
        let step = Measurement::of(&full).map(|before| Step { from: 30.0, before });
        let mut rig = Self::at(10.0);
        rig.hold = Hold::enter(10.0, step);
        rig.drain();
        rig
    }

    /// In a trial, begun from 20 on the beat with what is known of the upstream.
    fn trial_of(target: HoldTarget) -> Self {
        let mut rig = Self::at(20.0);
        rig.hold.phase = Phase::Settled { is_blocked: true };
        rig.hold.settled = Some(window(1_000, 100, 200).holding(20));
        rig.beat(target);
        rig
    }

    /// In a trial on the beat from 20 to 15, after `votes` trials that found a slower service.
    fn trial(votes: u32) -> Self {
        let mut rig = Self::at(20.0);
        rig.hold.phase = Phase::Settled { is_blocked: true };
        rig.hold.votes = votes;
        rig.second(100, 200, QUEUED);
        assert_close(rig.hold.limit, 20.0, "blocked");
        rig.beat(WANTED);
        assert!(matches!(rig.hold.phase, Phase::Trial { .. }));
        assert_close(rig.hold.limit, 15.0, "tried");
        rig.drain();
        rig
    }

    fn show(&mut self, window: &Sample, target: HoldTarget) -> HoldFinding {
        self.hold
            .update(window, self.clock, self.period, |_| target)
    }

    /// One second in which requests are refused.
    fn second(&mut self, answers: u64, ms: u64, target: HoldTarget) -> HoldFinding {
        self.show(&window(1_000, answers, ms).refusing(10), target)
    }

    /// Passes the next beat, in a second without other information.
    fn beat(&mut self, target: HoldTarget) {
        self.clock = self.clock + BEAT;
        assert!(matches!(
            self.second(100, 200, target),
            HoldFinding::Nothing
        ));
    }

    /// Answers the requests that were admitted before a step.
    fn drain(&mut self) {
        assert!(self.hold.settling);
        assert!(matches!(self.second(1, 1, QUEUED), HoldFinding::Nothing));
        assert!(!self.hold.settling);
    }

    fn is_blocked(&self) -> bool {
        matches!(self.hold.phase, Phase::Settled { is_blocked: true })
    }

    fn is_settled(&self) -> bool {
        matches!(self.hold.phase, Phase::Settled { is_blocked: false })
    }
}

#[test]
fn measuring_starts_when_earlier_requests_have_drained() {
    let mut rig = Rig::at(20.0);
    rig.hold.settling = true;
    for (in_flight, settling) in [(40, true), (22, true), (21, false)] {
        let verdict = rig.show(&window(1_000, 100, 200).holding(in_flight), QUEUED);
        assert!(matches!(verdict, HoldFinding::Nothing));
        assert_eq!(rig.hold.settling, settling, "{in_flight}");
        assert!(rig.hold.measured.is_none());
    }
}

#[test]
fn a_measurement_takes_enough_answers_or_two_seconds() {
    for (answers, steps) in [(39, 2), (40, 1), (15, 2)] {
        let mut rig = Rig::at(20.0);
        let taken = (1..5).find(|_| {
            rig.second(answers, 200, QUEUED);
            rig.hold.measured.is_none()
        });
        assert_eq!(taken, Some(steps), "{answers}");
    }
    let mut rig = Rig::at(20.0);
    for _ in 0..5 {
        rig.second(0, 0, QUEUED);
        assert_close(rig.hold.limit, 20.0, "without an answer nothing is known");
    }
}

/// Each tenth of a second has more than enough answers. Their latency, and after how many tenths the test ends.
#[test]
fn a_test_lasts_for_a_whole_latency() {
    for (ms, ends_after) in [(90, 1), (250, 3), (500, 5), (9_000, 40)] {
        let mut rig = Rig::cut();
        let ended = (1..99).find(|_| {
            rig.show(&window(100, 60, ms).refusing(10), QUEUED);
            rig.hold.measured.is_none()
        });
        assert_eq!(ended, Some(ends_after), "{ms} ms");
    }
}

/// Without a test under way: number in flight at a limit of 20, requests refused, and the limit after it.
#[test]
fn the_limit_follows_the_wanted_wait() {
    let near = HoldTarget {
        capacity: 180.0,
        ..EMPTY
    };
    let far = HoldTarget {
        capacity: 400.0,
        ..EMPTY
    };
    let below_the_model = HoldTarget {
        capacity: 400.0,
        ..QUEUED
    };
    let above_the_model = HoldTarget {
        capacity: 120.0,
        ..EMPTY
    };
    let low_most = HoldTarget {
        most: 25.0,
        ..EMPTY
    };
    let lowest_most = HoldTarget { most: 5.0, ..EMPTY };
    for (name, in_flight, refused, target, expected) in [
        ("too long a queue", 20, 10, QUEUED, 15.0),
        ("too long, none refused", 20, 0, QUEUED, 15.0),
        ("as wanted", 20, 10, WANTED, 20.0),
        (
            "too long, but less than the model",
            20,
            10,
            below_the_model,
            20.0,
        ),
        ("too short, up to the model", 20, 10, near, 22.0),
        ("too short, far from the model", 20, 10, far, 30.0),
        ("too short, above the model", 20, 10, above_the_model, 22.0),
        ("too short, but far above the model", 20, 10, EMPTY, 15.0),
        ("too short, none refused", 20, 0, far, 20.0),
        ("packs", 11, 10, QUEUED, 30.0),
        ("packs, up to the most", 11, 10, low_most, 25.0),
        ("packs never lower it", 11, 10, lowest_most, 20.0),
        ("room", 11, 0, QUEUED, 20.0),
    ] {
        let mut rig = Rig::at(20.0);
        let sample = window(1_000, 100, 200).holding(in_flight).refusing(refused);
        assert!(matches!(rig.show(&sample, target), HoldFinding::Nothing));
        assert_close(rig.hold.limit, expected, name);
    }
}

/// A latency that the fast answers do not show: whether latencies vary too much to judge a step, whether one endpoint has all
/// requests, the latency that is harmless, and the limit after it.
#[test]
fn a_step_that_no_answers_can_judge_is_made_only_where_it_may_help() {
    let mut varied = window(500, 38, 50);
    varied.extend(&window(500, 2, 3_000));
    let alike = window(1_000, 40, 200);
    for (name, sample, hides_queues, harmless, expected) in [
        ("latencies are alike", &alike, false, 0.3, 15.0),
        ("they vary", &varied, false, 0.3, 22.0),
        ("they vary, and it may harm", &varied, false, 0.15, 15.0),
        ("they vary, several endpoints", &varied, true, 0.3, 15.0),
    ] {
        let mut rig = Rig::at(20.0);
        let target = HoldTarget {
            hides_queues,
            harmless,
            ..EMPTY
        };
        rig.show(&sample.clone().holding(20).refusing(10), target);
        assert_close(rig.hold.limit, expected, name);
    }
}

#[test]
fn a_small_limit_rises_by_one_at_least() {
    let mut rig = Rig::at(2.0);
    let tiny = HoldTarget {
        capacity: 12.0,
        ..EMPTY
    };
    rig.show(&window(1_000, 50, 40).refusing(9), tiny);
    assert_close(rig.hold.limit, 3.0, "by one");
}

#[test]
fn a_step_down_ends_at_the_model() {
    let mut rig = Rig::at(13.0);
    rig.second(100, 130, QUEUED);
    assert_close(rig.hold.limit, 12.0, "100 (0.1 + 0.02)");
}

#[test]
fn contention_shortens_the_wait() {
    let mut rig = Rig::at(13.0);
    rig.second(100, 130, QUEUED.shortened());
    assert_close(rig.hold.limit, 11.0, "100 (0.1 + 0.02 / 2)");
}

#[test]
fn a_cut_of_a_queue_continues_downwards() {
    let mut rig = Rig::cut();
    assert!(matches!(
        rig.second(100, 150, QUEUED),
        HoldFinding::Queue(_)
    ));
    assert_close(rig.hold.limit, 12.0, "the next step");
    assert!(matches!(rig.hold.phase, Phase::Cut { .. }));

    let mut rig = Rig::cut();
    assert!(matches!(
        rig.second(100, 150, WANTED),
        HoldFinding::Queue(_)
    ));
    assert_close(rig.hold.limit, 15.0, "it is as long as wanted");
    assert!(rig.is_settled() && rig.hold.settled.is_some());
}

#[test]
fn a_cut_of_a_slower_service_is_taken_back() {
    let harmless = HoldTarget {
        harmless: 0.25,
        ..QUEUED
    };
    let mut rig = Rig::cut();
    let HoldFinding::Slower(measured) = rig.second(75, 200, harmless) else {
        panic!("it is slower");
    };
    assert_close(measured.mean_latency().unwrap(), 0.2, "as slow as this");
    assert_close(rig.hold.limit, 20.0, "back");
    assert!(rig.is_settled());

    let mut rig = Rig::cut();
    assert!(matches!(rig.second(75, 200, QUEUED), HoldFinding::Nothing));
    assert_close(rig.hold.limit, 20.0, "back");
    assert!(rig.is_blocked(), "to believe it could cost the objective");
}

#[test]
fn no_step_down_is_made_until_the_beat() {
    let mut rig = Rig::cut();
    rig.second(75, 200, QUEUED);
    rig.drain();
    for _ in 0..3 {
        rig.second(100, 200, QUEUED);
        assert_close(rig.hold.limit, 20.0, "blocked");
    }
    let near = HoldTarget {
        capacity: 120.0,
        ..EMPTY
    };
    rig.second(100, 200, near);
    assert_close(rig.hold.limit, 22.0, "steps up are free");
}

#[test]
fn an_undecided_cut_waits_and_is_then_taken_back() {
    let mut rig = Rig::cut();
    for _ in 0..3 {
        assert!(matches!(rig.second(86, 174, QUEUED), HoldFinding::Nothing));
        assert_close(rig.hold.limit, 15.0, "more answers may tell");
    }
    assert!(matches!(rig.second(86, 174, QUEUED), HoldFinding::Nothing));
    assert_close(rig.hold.limit, 20.0, "back after four seconds");
    assert!(rig.is_blocked());
}

#[test]
fn a_cut_that_achieves_more_shows_contention() {
    // Answers of one second after the cut, and whether that is contention. Before it there were 100.
    for (answers, expected) in [(150, true), (100, false)] {
        let finding = Rig::cut().second(answers, 100, WANTED);
        let found = matches!(finding, HoldFinding::Contended);
        assert_eq!(found, expected, "{answers}");
    }
}

/// In a dip from 20, and what four seconds before it were like: 100 answers a second, which waited as long as wanted.
fn dipping(before: &Sample) -> Rig {
    let mut rig = Rig::at(20.0);
    rig.hold.settled = Some(before.clone().holding(20));
    rig.beat(LONG_WAIT);
    assert!(matches!(rig.hold.phase, Phase::Dip(_)));
    assert_close(rig.hold.limit, 15.0, "three quarters");
    rig.drain();
    rig
}

/// A queue of 80 ms, which is as long as wanted.
const LONG_WAIT: HoldTarget = HoldTarget {
    wait: 0.08,
    delay: 0.08,
    ..QUEUED
};

#[test]
fn a_dip_that_achieves_more_shows_contention_and_any_other_is_taken_back() {
    let alike = window(4_000, 400, 200);
    let mut varied = window(2_000, 200, 50);
    varied.extend(&window(2_000, 200, 350));
    // Latencies before the dip; answers a second in it, and for how many seconds; whether it shows contention, and the limit after it.
    for (name, before, answers, seconds, contended, limit) in [
        // The next step goes down to the formula with half of the wait.
        ("more", &alike, 150, 1, true, 14.0),
        ("as many", &alike, 100, 1, false, 20.0),
        ("as many, perhaps by chance", &varied, 100, 4, false, 20.0),
        ("fewer", &alike, 70, 1, false, 20.0),
    ] {
        let mut rig = dipping(before);
        for second in 1..=seconds {
            let finding = rig.second(answers, 140, LONG_WAIT);
            let is_over = second == seconds;
            let found = matches!(finding, HoldFinding::Contended);
            assert_eq!(found, is_over && contended, "{name}");
            let is_dip = matches!(rig.hold.phase, Phase::Dip(_));
            assert_eq!(is_dip, !is_over, "{name}");
        }
        assert_close(rig.hold.limit, limit, name);
    }
}

/// Answers before the dip, and whether a dip begins.
#[test]
fn a_dip_is_not_made_where_the_answers_are_too_few_to_judge_it() {
    for (answers, expected) in [(400, true), (4, false)] {
        let mut rig = Rig::at(20.0);
        rig.hold.settled = Some(window(4_000, answers, 200).holding(20));
        rig.beat(LONG_WAIT);
        let is_dip = matches!(rig.hold.phase, Phase::Dip(_));
        assert_eq!(is_dip, expected, "{answers}");
    }
}

/// On the beat: the queue delay, requests refused, the limit, whether a trial is needed, and whether a dip begins.
#[test]
fn a_dip_begins_only_where_a_queue_stands_and_the_upstream_stays_busy() {
    for (name, target, refused, limit, is_blocked, expected) in [
        ("a queue", LONG_WAIT, 9, 20.0, false, true),
        ("none refused", LONG_WAIT, 0, 20.0, false, false),
        (
            "no queue",
            HoldTarget {
                delay: 0.03,
                ..LONG_WAIT
            },
            9,
            20.0,
            false,
            false,
        ),
        (
            "in doubt",
            HoldTarget {
                in_doubt: true,
                ..LONG_WAIT
            },
            9,
            20.0,
            false,
            false,
        ),
        ("a short wait", QUEUED, 9, 12.0, false, false),
        (
            "below one",
            HoldTarget {
                capacity: 4.0,
                ..LONG_WAIT
            },
            9,
            0.8,
            false,
            false,
        ),
        ("a trial is needed", LONG_WAIT, 9, 20.0, true, false),
    ] {
        let mut rig = Rig::at(limit);
        rig.hold.phase = Phase::Settled { is_blocked };
        rig.hold.settled = Some(window(4_000, 400, 200).holding(20));
        rig.clock = at(4_000);
        rig.show(&window(1_000, 100, 200).refusing(refused), target);
        assert_eq!(matches!(rig.hold.phase, Phase::Dip(_)), expected, "{name}");
    }
}

/// On the beat: whether a step had failed, seconds between tests of the floor, trials that found a slower service, requests
/// refused, and whether a trial begins.
#[test]
fn a_trial_begins_on_the_beat_where_it_is_needed_and_can_be_judged() {
    const SHORT: HoldTarget = HoldTarget {
        delay: 0.0,
        ..WANTED
    };
    for (name, is_blocked, period, votes, refused, expected) in [
        ("blocked", true, None, 0, 9, true),
        ("in doubt", false, Some(1), 0, 9, true),
        ("trusted until now", false, Some(4), 0, 9, true),
        ("trusted for longer", false, Some(8), 0, 9, false),
        ("voted", false, None, 1, 9, true),
        ("no need", false, None, 0, 9, false),
        ("nothing refused", true, None, 0, 0, false),
    ] {
        let mut rig = Rig::at(20.0);
        let sample = window(1_000, 100, 200).refusing(refused);
        rig.hold.phase = Phase::Settled { is_blocked };
        rig.hold.votes = votes;
        rig.hold.settled = Some(sample.clone());
        rig.clock = at(4_000);
        rig.period = period;
        let finding = rig.show(&sample, SHORT);
        assert!(matches!(finding, HoldFinding::Nothing));
        let is_trial = matches!(rig.hold.phase, Phase::Trial { .. });
        assert_eq!(is_trial, expected, "{name}");
        assert_close(rig.hold.limit, if expected { 15.0 } else { 20.0 }, name);
        assert!(!rig.is_blocked(), "{name}: the beat ends it");
    }
}

/// Where answers are so rare that each window is longer than a second, only the window itself can be compared.
#[test]
fn a_trial_begins_with_the_window_where_nothing_was_measured_before() {
    for (settling, expected) in [(false, true), (true, false)] {
        let mut rig = Rig::at(20.0);
        rig.hold.settling = settling;
        rig.clock = at(1_000);
        rig.period = Some(1);
        rig.second(10, 2_000, DOUBTED);
        let is_trial = matches!(rig.hold.phase, Phase::Trial { .. });
        assert_eq!(is_trial, expected, "{settling}");
    }
}

#[test]
fn each_mark_of_the_common_clock_counts_once() {
    for (period, tested) in [
        (None, [false, false, false, false]),
        (Some(1), [true, true, true, false]),
        (Some(2), [false, true, false, false]),
    ] {
        for ((from, to), tested) in [(999, 1_001), (1_999, 2_000), (2_000, 3_500), (2_001, 2_999)]
            .into_iter()
            .zip(tested)
        {
            let mut rig = Rig::at(20.0);
            rig.period = period;
            rig.hold.second = at(from).saturating_since(Instant::ZERO).as_secs();
            rig.hold.settled = Some(window(1_000, 100, 200));
            rig.clock = at(to);
            rig.second(100, 200, WANTED);
            let is_trial = matches!(rig.hold.phase, Phase::Trial { .. });
            assert_eq!(is_trial, tested, "{period:?}: {from} to {to}");
        }
    }
}

#[test]
fn the_beat_does_not_end_a_cut() {
    let mut rig = Rig::cut();
    rig.clock = at(4_000);
    assert!(matches!(
        rig.second(100, 150, WANTED),
        HoldFinding::Queue(_)
    ));
}

/// Answers before a trial, and the capacity of the model with 100 ms and a wait of 20 ms.
#[test]
fn a_trial_goes_down_to_the_model_by_half_at_most() {
    for (name, answers, capacity, expected) in [
        ("many answers", 400, 160.0, 15.0),
        ("few answers", 4, 160.0, 15.0),
        ("the model is lower", 400, 100.0, 12.0),
        ("the model is far lower", 400, 50.0, 10.0),
    ] {
        let mut rig = Rig::at(20.0);
        rig.hold.settled = Some(window(1_000, answers, 200).holding(20));
        rig.clock = at(1_000);
        rig.period = Some(1);
        rig.second(
            100,
            200,
            HoldTarget {
                capacity,
                ..DOUBTED
            },
        );
        assert_close(rig.hold.limit, expected, name);
    }
}

#[test]
fn a_step_down_is_at_least_one_request_while_it_leaves_one() {
    for (limit, to, expected) in [
        (20.0, 15.0, 15.0),
        (4.4, 3.9, 3.4),
        (1.5, 1.2, 1.2),
        (1.0, 0.75, 0.75),
        (0.4, 0.3, 0.3),
        (0.012, 0.009, LEAST_LIMIT),
    ] {
        let mut hold = Hold::at(limit);
        hold.change(hold.lower(to));
        assert_close(hold.limit, expected, "step");
    }
}

#[test]
fn only_tests_move_the_limit_while_the_floor_is_in_doubt() {
    for (target, expected) in [(QUEUED, 15.0), (DOUBTED, 20.0)] {
        let mut rig = Rig::at(20.0);
        rig.second(100, 200, target);
        assert_close(rig.hold.limit, expected, "limit");
        assert!(rig.hold.settled.is_some() || !target.in_doubt);
    }
}

#[test]
fn a_trial_that_finds_a_queue_stays_down_and_takes_a_vote_back() {
    for (votes, left) in [(0, 0), (2, 1)] {
        let mut rig = Rig::trial(votes);
        assert!(matches!(
            rig.second(100, 150, QUEUED),
            HoldFinding::Queue(_)
        ));
        assert_close(rig.hold.limit, 15.0, "down");
        assert_eq!(rig.hold.votes, left);
        assert!(rig.is_settled());
        assert!(rig.hold.settled.is_none(), "the next trial measures anew");
    }
}

#[test]
fn a_trial_that_finds_a_queue_shows_what_is_left_of_it() {
    let mut rig = Rig::trial(0);
    let HoldFinding::Queue(measured) = rig.second(100, 150, DOUBTED) else {
        panic!("it was a queue");
    };
    assert_close(measured.mean_latency().unwrap(), 0.15, "as fast as this");
}

/// With a floor in doubt and a limit of one: answers a second and their latency at a limit of two, and whether that shows a
/// slower service or a queue.
#[test]
fn a_trial_at_a_limit_of_one_is_a_step_up() {
    for (answers, ms, limit, slower, queue) in
        [(100, 20, 2.0, true, false), (50, 40, 1.0, false, true)]
    {
        let mut rig = Rig::at(1.0);
        rig.period = Some(1);
        rig.second(50, 20, DOUBTED);
        rig.beat(DOUBTED);
        assert_close(rig.hold.limit, 2.0, "up");
        rig.drain();
        let verdict = rig.second(answers, ms, DOUBTED);
        assert_eq!(
            matches!(verdict, HoldFinding::Slower(_)),
            slower,
            "{answers}"
        );
        assert_eq!(matches!(verdict, HoldFinding::Queue(_)), queue, "{answers}");
        assert_close(rig.hold.limit, limit, "after it");
    }
}

/// A trial finds a slower service: whether that is harmless, whether the floor is in doubt, the votes before it, and whether
/// it is believed.
#[test]
fn a_trial_that_finds_a_slower_service_is_believed_where_it_is_harmless_or_often_enough() {
    for (name, harmless, in_doubt, votes, expected) in [
        ("it could cost the objective", 0.15, false, 0, false),
        ("for the second time", 0.15, false, 1, false),
        ("for the third time", 0.15, false, 2, true),
        ("harmless", 0.25, false, 0, true),
        ("nothing else is believed", 0.15, true, 0, true),
    ] {
        let mut rig = Rig::trial(votes);
        let target = HoldTarget {
            harmless,
            in_doubt,
            ..QUEUED
        };
        let verdict = rig.second(75, 200, target);
        assert_eq!(
            matches!(verdict, HoldFinding::Slower(_)),
            expected,
            "{name}"
        );
        assert_eq!(
            rig.hold.votes,
            if expected { 0 } else { votes + 1 },
            "{name}"
        );
        assert_eq!(rig.is_blocked(), !expected, "{name}");
        assert_close(rig.hold.limit, 20.0, name);
    }
}

/// All answers are late, so the trial goes down by half.
#[test]
fn a_trial_of_the_deepest_step_counts_for_two() {
    let late = HoldTarget {
        objective: 0.15,
        capacity: 50.0,
        ..QUEUED
    };
    let mut rig = Rig::trial_of(late);
    assert_close(rig.hold.limit, 10.0, "by half");
    rig.drain();
    assert!(matches!(rig.second(50, 200, late), HoldFinding::Nothing));
    assert_eq!(rig.hold.votes, 2);
}

/// With 20 in flight, and ten after a cut by half: the latency in milliseconds, and the votes for a slower service.
#[test]
fn a_cut_that_takes_a_beat_or_longer_counts_like_a_trial() {
    let late = HoldTarget {
        objective: 0.15,
        capacity: 1.0,
        ..QUEUED
    };
    for (millis, votes) in [(1_000, 0), (2_000, 2)] {
        let mut rig = Rig::at(20.0);
        let second =
            |in_flight: u64| window(1_000, in_flight * 1_000 / millis, millis).refusing(10);
        while !matches!(rig.hold.phase, Phase::Cut { .. }) {
            rig.show(&second(20), late);
        }
        assert_close(rig.hold.limit, 10.0, "by half");
        rig.hold.settling = false;
        while matches!(rig.hold.phase, Phase::Cut { .. }) {
            rig.show(&second(10), late);
        }
        assert!(rig.is_blocked(), "{millis}");
        assert_eq!(rig.hold.votes, votes, "{millis}");
    }
}

#[test]
fn an_undecided_trial_waits_and_is_then_taken_back() {
    let mut rig = Rig::trial(1);
    for _ in 0..3 {
        assert!(matches!(rig.second(86, 174, QUEUED), HoldFinding::Nothing));
        assert!(matches!(rig.hold.phase, Phase::Trial { .. }));
    }
    assert!(matches!(rig.second(86, 174, QUEUED), HoldFinding::Nothing));
    assert_close(rig.hold.limit, 20.0, "back");
    assert_eq!(rig.hold.votes, 1, "no vote");
    assert!(rig.is_settled());
}

/// Seconds, answers a second and their latency at the limit of 10, and the votes then; whether the next step must be a trial.
#[test]
fn holding_begins_with_a_test() {
    for (name, seconds, answers, ms, votes, blocked) in [
        ("a queue", 1, 100, 100, 0, false),
        ("a slower service", 2, 33, 300, 2, true),
    ] {
        let mut rig = Rig::entered();
        // One second has too few answers of a slower service.
        for _ in 0..seconds {
            let finding = rig.second(answers, ms, WANTED);
            assert!(matches!(finding, HoldFinding::Nothing), "{name}");
        }
        assert!(matches!(rig.hold.phase, Phase::Settled { .. }), "{name}");
        assert_close(rig.hold.limit, 10.0, name);
        assert_eq!(rig.hold.votes, votes, "{name}");
        assert_eq!(rig.is_blocked(), blocked, "{name}");
    }
}

/// One that is not harmless.
#[test]
fn after_a_test_at_the_beginning_one_trial_makes_a_slower_service_sure() {
    let mut rig = Rig::entered();
    for _ in 0..2 {
        rig.second(33, 300, WANTED);
    }
    assert_eq!(rig.hold.votes, 2, "a slower service");
    rig.beat(WANTED);
    assert!(matches!(rig.hold.phase, Phase::Trial(_)));
    rig.drain();
    let finding = (0..9).find_map(|_| match rig.second(25, 300, WANTED) {
        HoldFinding::Slower(measured) => measured.mean_latency(),
        HoldFinding::Nothing
        | HoldFinding::Queue(_)
        | HoldFinding::Unproven(_)
        | HoldFinding::Contended
        | HoldFinding::Over => None,
    });
    assert_close(finding.unwrap(), 0.3, "the floor from now on");
}

#[test]
fn the_test_at_the_beginning_ends_undecided_after_a_time() {
    let mut rig = Rig::entered();
    let seconds = (1..10)
        .find(|_| {
            // Half of each sign.
            rig.second(58, 173, WANTED);
            rig.is_settled()
        })
        .unwrap();
    assert_eq!(seconds, 4);
    assert_eq!(rig.hold.votes, 0);
    assert_close(rig.hold.limit, 10.0, "it stays");
}

#[test]
fn holding_begins_without_a_test_where_the_limit_does_not_fall() {
    let full = window(1_000, 100, 300).holding(30);
    let step = Measurement::of(&full).map(|before| Step { from: 30.0, before });
    for (limit, step) in [(30.0, step), (10.0, None)] {
        let hold = Hold::enter(limit, step);
        assert!(matches!(hold.phase, Phase::Settled { is_blocked: false }));
    }
}

/// At the model's limit of 12, with the wanted queue.
const FULL: HoldTarget = HoldTarget {
    delay: 0.02,
    ..QUEUED
};

/// On a fourth beat after a second with 100 refusals at a limit of 12: raised to 15, and filled.
fn raised() -> Rig {
    let mut rig = Rig::at(12.0);
    rig.clock = at(15_000);
    rig.hold.second = 15;
    let full = window(1_000, 100, 120).holding(12).refusing(100);
    rig.show(&full, FULL);
    rig.clock = at(16_000);
    rig.show(&full, FULL);
    assert!(matches!(rig.hold.phase, Phase::Raise(_)));
    assert_close(rig.hold.limit, 15.0, "raised");
    rig.drain();
    rig.show(&window(1_000, 100, 150).holding(15), FULL);
    assert!(matches!(rig.hold.phase, Phase::Raise(_)), "not judged yet");
    rig
}

/// Refusals a second at the raised limit, the limit after that, and whether the raise goes on.
#[test]
fn callers_that_fit_get_room() {
    for (refused, limit, goes_on) in [
        // Of 15 callers none comes again.
        (0, 18.0, true),
        // Of 18 callers, half as many.
        (50, 21.6, true),
        // 42 callers, perhaps by chance.
        (90, 12.0, false),
        (100, 12.0, false),
        (150, 12.0, false),
    ] {
        let mut rig = raised();
        let after = window(1_000, 100, 150).holding(15).refusing(refused);
        for _ in 0..4 {
            if rig.hold.limit < 15.5 && matches!(rig.hold.phase, Phase::Raise(_)) {
                let finding = rig.show(&after, FULL);
                assert!(matches!(finding, HoldFinding::Nothing));
            }
        }
        assert_close(rig.hold.limit, limit, "after");
        assert_eq!(matches!(rig.hold.phase, Phase::Raise(_)), goes_on);
        assert_eq!(rig.is_settled(), !goes_on);
    }
}

#[test]
fn hold_is_over_if_none_is_refused_with_room_for_all() {
    for (refused, is_over) in [(0, true), (1, false)] {
        let mut rig = raised();
        rig.show(&window(1_000, 100, 150).holding(15), FULL);
        assert_close(rig.hold.limit, 18.0, "room");
        rig.drain();
        let room = window(1_000, 100, 150).holding(15).refusing(refused);
        let finding = rig.show(&room, FULL);
        assert!(matches!(finding, HoldFinding::Nothing), "they come in");
        let finding = rig.show(&room, FULL);
        assert_eq!(matches!(finding, HoldFinding::Over), is_over, "{refused}");
        assert_close(rig.hold.limit, if is_over { 18.0 } else { 12.0 }, "after");
    }
}

#[test]
fn the_limit_is_raised_only_where_that_tells_something() {
    let full = window(1_000, 100, 120).holding(12);
    let at_most = |most| HoldTarget { most, ..FULL };
    for (name, second, refused, target, expected) in [
        ("refusing", 16, 100, FULL, true),
        ("another beat", 20, 100, FULL, false),
        ("refusing nothing", 16, 0, FULL, false),
        ("in doubt", 16, 100, DOUBTED, false),
        ("a shorter wait", 16, 100, FULL.shortened(), false),
        ("one more is affordable", 16, 100, at_most(13.0), true),
        ("less than one more", 16, 100, at_most(12.5), false),
    ] {
        let mut rig = Rig::at(12.0);
        rig.hold.second = second - 1;
        rig.hold.settled = Some(full.clone().refusing(refused));
        rig.clock = at(second * 1_000);
        rig.show(&full.clone().refusing(refused), target);
        let found = matches!(rig.hold.phase, Phase::Raise { .. });
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn measurements_are_kept_for_a_beat() {
    let mut rig = Rig::at(20.0);
    for (second, kept) in [1, 2, 3, 4, 1, 2].into_iter().zip([1, 2, 3, 4, 1, 2]) {
        rig.second(100, 200, WANTED);
        let settled = rig.hold.settled.as_ref().unwrap();
        assert_eq!(settled.span, Duration::from_secs(kept), "{second}");
    }
}

/// A round: number in flight at a limit of 20, on average and at the end, and number refused.
#[test]
fn a_queue_is_over_after_a_time_with_room_and_without_refusals() {
    let round = |mean, end, refused| {
        let mut round = window(100, 0, 0).holding(mean).refusing(refused);
        round.in_flight = end;
        round
    };
    for (name, round, expected) in [
        ("room", round(17, 19, 0), true),
        ("refused", round(17, 19, 1), false),
        ("full on average", round(18, 19, 0), false),
        ("full at the end", round(17, 20, 0), false),
    ] {
        let mut hold = Hold::at(20.0);
        assert!(!hold.is_over(&round, at(1_000)), "{name}");
        assert!(!hold.is_over(&round, at(1_199)), "{name}");
        assert_eq!(hold.is_over(&round, at(1_200)), expected, "{name}");
    }
}

/// Rounds with room, and answers of the hundred requests from before hold began.
#[test]
fn hold_is_not_over_while_requests_from_before_it_are_in_flight() {
    let round = window(100, 0, 0).holding(5);
    let mut rig = Rig::at(10.0);
    rig.hold = Rig::entered().hold;
    rig.hold.earlier = Earlier::Left(100.0);
    for (seconds, expected) in [(1, false), (2, false), (3, true), (4, true)] {
        rig.show(&window(1_000, 40, 300).holding(5), WANTED);
        let is_over = rig.hold.is_over(&round, at(seconds * 1_000));
        assert_eq!(is_over, expected, "{seconds}");
    }
}

/// Answers after hold began at a third of what was in flight: how many, after how many milliseconds, 300 before; and what the floor would be.
#[test]
fn the_first_test_may_show_a_slower_service_before_it_has_ended() {
    for (name, answers, ms, expected) in [
        ("as slow as before", 33, 300, Some(0.3)),
        ("a queue", 100, 100, None),
        ("too few to tell", 3, 300, None),
        ("slower than a beat", 33, 4_200, None),
    ] {
        let mut rig = Rig::entered();
        assert!(
            rig.hold.slower_since_entry().is_none(),
            "{name}: nothing yet"
        );
        rig.hold.measured = Some(window(1_000, answers, ms));
        let found = rig.hold.slower_since_entry().and_then(Sample::mean_latency);
        assert_eq!(found, expected, "{name}");
    }
    let mut rig = Rig::cut();
    rig.hold.measured = Some(window(1_000, 33, 300));
    assert!(rig.hold.slower_since_entry().is_none(), "no first test");
}

#[test]
fn a_moment_without_room_restarts_the_wait_for_the_end() {
    let calm = window(100, 0, 0).holding(5);
    let full = window(100, 0, 0).holding(20);
    let mut hold = Hold::at(20.0);
    assert!(!hold.is_over(&calm, at(1_000)));
    assert!(!hold.is_over(&full, at(1_100)));
    assert!(!hold.is_over(&calm, at(1_200)));
    assert!(!hold.is_over(&calm, at(1_300)));
    assert!(hold.is_over(&calm, at(1_400)));
}

#[test]
fn the_limit_scales_with_the_endpoints_and_measurements_are_discarded() {
    let mut rig = Rig::cut();
    rig.second(20, 150, QUEUED);
    assert!(rig.hold.measured.is_some());
    rig.hold.scale(2.0);
    assert_close(rig.hold.limit(), 30.0, "twice as many");
    assert!(rig.is_settled());
    assert!(rig.hold.measured.is_none() && rig.hold.settled.is_none());
}

/// The latency of the measurement before a step, the objective, and the limit after a cut or a trial of 20.
#[test]
fn a_step_is_deep_where_all_answers_are_late_and_nothing_can_be_lost() {
    for (name, objective, expected) in [("in time", 0.25, 15.0), ("late", 0.15, 12.0)] {
        let target = HoldTarget {
            objective,
            ..QUEUED
        };
        let mut rig = Rig::at(20.0);
        rig.second(100, 200, target);
        assert!(matches!(rig.hold.phase, Phase::Cut { .. }));
        assert_close(rig.hold.limit, expected, name);
        let mut rig = Rig::trial_of(target);
        assert_close(rig.hold.limit, expected, name);
        assert!(matches!(rig.hold.phase, Phase::Trial { .. }));
        rig.drain();
    }
}

/// A blocked limit that is measured only after the beat waits for the next one.
#[test]
fn a_step_that_failed_is_repeated_by_a_trial_and_not_by_a_cut() {
    let mut rig = Rig::at(20.0);
    rig.hold.phase = Phase::Settled { is_blocked: true };
    rig.beat(QUEUED);
    assert!(rig.is_blocked(), "nothing to compare a trial with");
    rig.hold.settled = Some(window(1_000, 100, 200).holding(20));
    rig.beat(QUEUED);
    assert!(matches!(rig.hold.phase, Phase::Trial { .. }));
}

#[test]
fn slow_answers_are_measured_for_longer() {
    let seconds = |ms| {
        let mut rig = Rig::at(20.0);
        (1..30)
            .find(|_| {
                rig.second(2, ms, EMPTY);
                rig.hold.measured.is_none()
            })
            .unwrap()
    };
    assert_eq!(seconds(200), 2);
    assert_eq!(seconds(5_000), 10, "two mean latencies");
}

/// The limit, the mean latency in seconds, and for how many milliseconds there must be room: the time of two answers, or of ten grants.
#[test]
fn where_answers_are_rare_a_queue_is_over_later() {
    for (limit, latency, millis) in [
        (20.0, 0.0, 200),
        (20.0, 0.1, 200),
        (20.0, 2.0, 200),
        (20.0, 4.0, 400),
        (2.0, 0.1, 200),
        (2.0, 2.0, 2_000),
        (1.0, 0.1, 200),
        (1.0, 2.0, 4_000),
        (0.5, 0.1, 2_000),
        (0.1, 0.1, 10_000),
    ] {
        let mut hold = Hold::at(limit);
        hold.latency = latency;
        let calm = window(100, 0, 0);
        let over = (0..200).map(|tenth| tenth * 100);
        let over = over.into_iter().find(|ms| hold.is_over(&calm, at(*ms)));
        assert_eq!(over, Some(millis), "{limit} of {latency} s");
    }
}

/// The limit below one, the capacity that is believed, the queue delay in seconds, and the limit after a measurement of two
/// answers a second.
#[test]
fn a_limit_below_one_moves_by_factors_without_a_test() {
    for (limit, capacity, delay, expected) in [
        (0.4, 2.0, 0.1, 0.3),
        (0.4, 20.0, 0.1, 0.3),
        (0.4, 2.0, 0.02, 0.4),
        (0.4, 2.0, 0.0, 0.6),
    ] {
        let target = HoldTarget {
            capacity,
            delay,
            ..QUEUED
        };
        let mut rig = Rig::at(limit);
        // 0.3 in flight on average.
        let mut sample = window(1_000, 4, 200).refusing(5);
        sample.tally.add(Count::InFlightMicros, 600_000);
        sample.span = PATIENCE;
        let clock = rig.clock + Duration::from_secs(1);
        rig.hold.update(&sample, clock, None, |_| target);
        assert_close(rig.hold.limit, expected, "limit");
        assert!(
            matches!(rig.hold.phase, Phase::Settled { is_blocked: false }),
            "{:?}",
            rig.hold.phase
        );
    }
}

/// Mean requests in flight with two answers a second of 100 ms, and a limit of 0.4 after that. What has no latency is in flight as well.
#[test]
fn below_one_requests_without_a_latency_do_not_lower_the_limit() {
    for (in_flight_micros, millis, expected) in [
        (240_000, 100, 0.6),
        (800_000, 100, 0.6),
        (800_000, 400, 0.3),
    ] {
        let mut rig = Rig::at(0.4);
        let mut sample = window(1_000, 4, millis).holding(0).refusing(5);
        sample.tally.add(Count::InFlightMicros, in_flight_micros);
        sample.span = PATIENCE;
        let clock = rig.clock + Duration::from_secs(1);
        rig.hold.update(&sample, clock, None, |_| EMPTY);
        assert_close(rig.hold.limit, expected, "limit");
    }
}

/// The limit, the queue delay in seconds, and the limit after the beat on which a raise is due: a trial below one, where the wait is
/// long, and a raise from one on.
#[test]
fn below_one_a_long_wait_is_tested_when_a_raise_is_due() {
    for (limit, delay, expected) in [(0.4, 0.1, 0.2), (0.4, 0.02, 0.4), (2.0, 0.02, 3.0)] {
        let target = HoldTarget { delay, ..QUEUED };
        let mut rig = Rig::at(limit);
        rig.hold.settled = Some(window(1_000, 4, 200).refusing(5).holding(1));
        rig.clock = rig.clock + raise::PERIOD;
        rig.second(4, 200, target);
        assert_close(rig.hold.limit, expected, "limit");
    }
}

/// Latency in milliseconds after a step down from 400 ms, and whether hold goes on and is proven, if it began without a sign of a
/// queue.
#[test]
fn a_hold_without_a_sign_of_a_queue_has_to_show_one() {
    let before = window(1_000, 4, 400).holding(2);
    for (millis, answers, goes_on, is_proven) in [
        (100, 4, true, true),
        (220, 1, true, false),
        (300, 1, false, false),
        (400, 4, false, false),
    ] {
        let step = Measurement::of(&before).map(|before| Step { from: 4.0, before });
        let mut hold = Hold::enter(0.5, step);
        hold.expect_proof();
        assert!(hold.is_unproven());
        hold.settling = false;
        let mut sample = window(1_000, answers, millis);
        sample.span = Duration::from_secs(5);
        let sample = sample.holding(1);
        let found = hold.update(&sample, at(1_000), None, |_| QUEUED);
        let ends = matches!(found, HoldFinding::Unproven(_));
        assert_eq!(ends, !goes_on, "{millis}: {found:?}");
        assert_eq!(!ends && !hold.is_unproven(), is_proven, "{millis}");
    }
}

/// Callers left at limits of 16, 8 and 4. The queue delay of answers at a limit of 2, and the limit after each fifth of a second: in the
/// first tenth after a step, answers are to requests from before it. The model says 12.
#[test]
fn a_halved_limit_is_doubled_up_to_what_it_was_or_with_a_queue_up_to_the_model() {
    for (name, delay, expected) in [
        ("no queue", 0.0, [4.0, 8.0, 16.0, 16.0]),
        ("a queue", 0.1, [4.0, 8.0, 12.0, 12.0]),
    ] {
        let mut rig = Rig::at(16.0);
        (0..3).for_each(|_| rig.hold.halve());
        let target = HoldTarget { delay, ..QUEUED };
        for limit in expected {
            for _ in 0..2 {
                rig.show(&window(100, 20, 100).holding(2), target);
            }
            assert_close(rig.hold.limit, limit, name);
        }
        assert_eq!(rig.hold.halved_from, None, "{name}");
    }
}
