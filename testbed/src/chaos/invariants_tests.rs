//! Each invariant holds for sound facts, and fails for facts that are unsound in one respect.

use super::*;
use crate::chaos::fault::FaultKind;
use crate::chaos::proxy::Guard;

fn undisturbed() -> Undisturbed {
    let held = Holds {
        fds: 50,
        resident: 100 << 20,
    };
    Undisturbed {
        limits: UpstreamSide::ALL.map(|side| (side, (10, 20))).into(),
        held: HeldResources {
            envoy: held,
            control: held,
        },
    }
}

fn stretch() -> Stretch {
    Stretch {
        before: ShownCounters::default(),
        after: ShownCounters {
            arrived: 100,
            asked: 100,
            admitted: 100,
            shed: 0,
        },
        account: Account {
            sent: 100,
            answered: 100,
            ..Account::default()
        },
        calls: 0,
    }
}

fn facts() -> FaultFacts {
    let guard = Guard {
        limit: 15,
        ..Guard::default()
    };
    FaultFacts {
        fault: InjectedFault {
            kind: FaultKind::Pushes,
            side: UpstreamSide::Alpha,
            lasts_ms: 1,
            seed: 0,
        },
        took_ms: 1,
        recovered_ms: Some(1),
        guards: UpstreamSide::ALL.map(|side| (side, guard)).into(),
        rested_ms: Some(1),
        shown: Shown {
            counters: ShownCounters::default(),
            guards: UpstreamSide::ALL.map(|side| (side, guard)).into(),
        },
        held: undisturbed().held,
        stretch: stretch(),
        proof: stretch(),
        wrong: Vec::new(),
    }
}

/// The one invariant that a change of the sound facts breaks.
fn broken_by(change: impl FnOnce(&mut FaultFacts)) -> String {
    let mut facts = facts();
    change(&mut facts);
    let broken = check(&facts, &undisturbed());
    assert_eq!(broken.len(), 1, "{broken:#?}");
    broken[0].invariant.clone()
}

fn at_rest(facts: &mut FaultFacts) -> &mut Guard {
    facts.shown.guards.get_mut(&UpstreamSide::Beta).unwrap()
}

fn recovered(facts: &mut FaultFacts) -> &mut Guard {
    facts.guards.get_mut(&UpstreamSide::Beta).unwrap()
}

#[test]
fn all_hold_in_a_sound_world() {
    assert_eq!(check(&facts(), &undisturbed()), []);
}

#[test]
fn a_lost_answer_a_phantom_and_an_unexpected_failure_are_seen() {
    let some = || vec!["request 7".to_owned()];
    let found = broken_by(|facts| facts.stretch.account.lost = some());
    assert_eq!(found, "every answer of an upstream reached its caller");
    let found = broken_by(|facts| facts.proof.account.phantoms = some());
    assert_eq!(found, "no answer comes from nowhere");
    let found = broken_by(|facts| facts.stretch.account.unexpected = some());
    assert_eq!(found, "only what the fault hits fails");
}

#[test]
fn what_is_left_in_flight_is_seen() {
    let expected = "in-flight returns to exactly 0";
    assert_eq!(broken_by(|facts| at_rest(facts).in_flight = 1), expected);
    assert_eq!(broken_by(|facts| at_rest(facts).streams = 1), expected);
}

#[test]
fn an_open_breaker_a_strange_limit_and_a_slow_recovery_are_seen() {
    assert_eq!(
        broken_by(|facts| recovered(facts).breaker = 2),
        "breakers close"
    );
    let band = "the limit returns to its band";
    assert_eq!(broken_by(|facts| recovered(facts).limit = 4), band);
    assert_eq!(broken_by(|facts| recovered(facts).limit = 641), band);
    let found = broken_by(|facts| facts.recovered_ms = None);
    assert_eq!(found, "the world recovers within the bound");
}

#[test]
fn what_grows_without_bound_is_seen() {
    let expected = "file descriptors and memory stay bounded";
    assert_eq!(broken_by(|facts| facts.held.control.fds = 115), expected);
    let more = 297 << 20;
    assert_eq!(
        broken_by(|facts| facts.held.envoy.resident = more),
        expected
    );
}

#[test]
fn counts_that_do_not_add_up_are_seen() {
    let expected = "admitted + shed = arrived";
    assert_eq!(
        broken_by(|facts| facts.stretch.after.admitted = 99),
        expected
    );
    assert_eq!(
        broken_by(|facts| facts.stretch.after.arrived = 101),
        expected
    );
    let shed_unseen = |facts: &mut FaultFacts| {
        facts.stretch.after.admitted = 99;
        facts.stretch.after.shed = 1;
    };
    assert_eq!(broken_by(shed_unseen), expected);
    assert_eq!(broken_by(|facts| facts.stretch.calls = 1), expected);
    let counted_down = |facts: &mut FaultFacts| facts.stretch.before.shed = 1;
    assert_eq!(broken_by(counted_down), expected);
}

#[test]
fn a_crash_may_lose_counts_but_not_in_the_proof_after_it() {
    let mut facts = facts();
    facts.fault.kind = FaultKind::VmCrashOne;
    facts.stretch.after.asked = 90;
    assert_eq!(check(&facts, &undisturbed()), []);
    facts.proof.after.asked = 90;
    assert_eq!(check(&facts, &undisturbed()).len(), 1);
}

#[test]
fn a_proof_without_requests_proves_nothing() {
    let found = broken_by(|facts| facts.proof = Stretch::default());
    assert_eq!(found, "after the fault all requests are answered");
}

#[test]
fn what_the_fault_itself_found_is_seen() {
    let found = broken_by(|facts| facts.wrong = vec!["status 200".to_owned()]);
    assert_eq!(found, "the fault is answered as it must be");
}
