//! Services that call services, in the simulated world without protection: the figures follow from the scenario alone.

#![expect(clippy::unwrap_used, reason = "a test that panics fails")]

use std::time::Duration;

use tidegate_sim::kind::ContenderKind;
use tidegate_sim::record::{Answer, Record};
use tidegate_sim::roster;
use tidegate_sim::run::Run;
use tidegate_sim::scenario::Scenario;
use tidegate_sim::world::play;

fn unprotected() -> ContenderKind {
    let all = roster::all();
    *all.iter().find(|kind| kind.name == "none").unwrap()
}

/// Ten requests a second to `a` for ten seconds, at equal distances. `a` works 10 ms, `b` 20 ms and `c` 40 ms.
fn chain(calls_of_a: &str, calls_of_b: &str, c: &str) -> Run {
    let text = format!(
        "name='t'\ntitle='t'\nprose='p'\nseed=3\nduration='10s'\n\
         [network]\ndelay='0s'\njitter='0s'\n\
         [[clients]]\nupstream='a'\narrivals='constant'\nload=[{{at='0s', rps=10.0}}]\n\
         [[upstreams]]\nname='a'\n{calls_of_a}\n\
         behaviour={{slots=5, service={{kind='constant', mean='10ms'}}, abandoned='skip'}}\n\
         [[upstreams]]\nname='b'\n{calls_of_b}\n\
         behaviour={{slots=5, service={{kind='constant', mean='20ms'}}, abandoned='skip'}}\n\
         [[upstreams]]\nname='c'\nbehaviour={{slots=5, service={{kind='constant', mean='40ms'}}{c}}}\n"
    );
    let scenario = Scenario::parse(&text, "test").unwrap();
    play(&scenario, &unprotected()).unwrap()
}

fn latencies(run: &Run) -> Vec<u64> {
    let answered = run.records.iter().filter(|one| one.answer == Answer::Ok);
    let mut all: Vec<u64> = answered
        .map(|one| u64::try_from(one.latency.as_millis()).unwrap())
        .collect();
    all.sort_unstable();
    all.dedup();
    all
}

fn count(run: &Run, is: impl Fn(&Record) -> bool) -> usize {
    run.records.iter().filter(|record| is(record)).count()
}

const B: &str = "calls=[{upstream='b'}]";
const C: &str = "calls=[{upstream='c'}]";

#[test]
fn latencies_of_a_chain_add_up() {
    let run = chain(B, C, "");
    assert_eq!(latencies(&run), [70]);
    assert_eq!(run.records.len(), 100, "calls of services are no records");
    assert_eq!(run.figures.reached.received, 300);
    assert_eq!(run.figures.wasted_work, Some(0.0));
    assert_eq!(run.leaked, None, "nothing counts");
}

#[test]
fn calls_of_one_step_overlap_and_steps_follow_each_other() {
    let at_once = "calls=[{upstream='b'}, {upstream='c'}]";
    assert_eq!(latencies(&chain(at_once, "", "")), [50]);
    let in_turn = "calls=[{upstream='c', step=1}, {upstream='b', step=3}]";
    assert_eq!(latencies(&chain(in_turn, "", "")), [70]);
}

#[test]
fn a_share_of_the_requests_makes_a_call() {
    let run = chain("calls=[{upstream='c', share=0.3}]", "", "");
    assert_eq!(latencies(&run), [10, 50]);
    let calls = run.figures.reached.received - 100;
    assert!((18..=42).contains(&calls), "{calls}");
}

#[test]
fn a_request_fails_with_a_call_that_it_needs() {
    let run = chain(B, C, ", mode='fail'");
    assert_eq!(count(&run, |one| one.answer == Answer::Failed(503)), 100);
    assert_eq!(run.figures.wasted_work, Some(1.0));
    let wasted: Vec<_> = run.figures.wasted_by_upstream.keys().collect();
    assert_eq!(wasted, ["a", "b"], "c has not worked");
    let later = "calls=[{upstream='c'}, {upstream='b', step=1}]";
    let run = chain(later, "", ", mode='fail'");
    assert_eq!(run.figures.reached.received, 200, "b is not asked any more");
}

#[test]
fn a_request_succeeds_without_a_call_that_is_optional() {
    let optional = "calls=[{upstream='c', optional=true, deadline='100ms'}]";
    assert_eq!(latencies(&chain(optional, "", ", mode='fail'")), [10]);
    assert_eq!(latencies(&chain(optional, "", ", mode='hang'")), [110]);
}

#[test]
fn a_service_retries_its_calls() {
    let retries = "calls=[{upstream='c', retries={max=2, backoff='10ms', steady=true}}]";
    let run = chain(retries, "", ", mode='fail'");
    assert_eq!(run.figures.reached.received, 400);
    assert_eq!(count(&run, |one| one.attempts == 1), 100);
}

#[test]
fn a_slot_is_held_while_a_request_waits_for_others() {
    // Each request holds one of five slots for 0.9 s, so that ten a second have to wait for slots.
    let run = chain(B, "", "");
    assert_eq!(latencies(&run), [30]);
    let held = chain(
        "calls=[{upstream='c', deadline='900ms'}]",
        "",
        ", mode='hang'",
    );
    let slowest = held.records.iter().map(|one| one.latency).max();
    assert!(slowest > Some(Duration::from_millis(950)), "{slowest:?}");
}

#[test]
fn deadlines_are_passed_on_where_the_service_says_so() {
    // `c` hangs, and services finish what they have begun. Ten requests come each second, and callers wait for one second.
    let most_in_flight = |passes: &str| {
        let text = format!(
            "name='t'\ntitle='t'\nprose='p'\nseed=3\nduration='20s'\n\
             [[clients]]\nupstream='a'\narrivals='constant'\nload=[{{at='0s', rps=10.0}}]\n\
             [[upstreams]]\nname='a'\nbehaviour={{slots=500}}\n{passes}\n\
             calls=[{{upstream='b', deadline='5s'}}]\n\
             [[upstreams]]\nname='b'\nbehaviour={{slots=500}}\n{passes}\n\
             calls=[{{upstream='c', deadline='5s'}}]\n\
             [[upstreams]]\nname='c'\nbehaviour={{slots=500, mode='hang'}}\n"
        );
        let scenario = Scenario::parse(&text, "test").unwrap();
        let run = play(&scenario, &unprotected()).unwrap();
        assert_eq!(count(&run, |one| one.answer == Answer::GaveUp), 200);
        run.most_in_flight
    };
    let passed = most_in_flight("passes={deadline=true}");
    assert!((27..=33).contains(&passed), "a second in each: {passed}");
    let kept = most_in_flight("");
    assert!((105..=113).contains(&kept), "five seconds in two: {kept}");
}

/// Before, such an answer had the body of a good one, which kept the slot until the service heard that the caller was gone.
#[test]
fn an_answer_after_the_callers_deadline_has_no_body() {
    // Messages take 50 ms each way between caller and proxy, and between proxy and service. A caller that gives up after 200 ms
    // is heard of at 300 ms; the work of its request ends at 250 ms.
    let text = "name='t'\ntitle='t'\nprose='p'\nseed=3\nduration='10s'\n\
         [network]\ndelay='50ms'\njitter='0s'\n\
         [[clients]]\nupstream='a'\narrivals='constant'\nload=[{at='0s', rps=1.0}]\ndeadline='200ms'\n\
         [[clients]]\nupstream='a'\narrivals='constant'\nload=[{at='0s', rps=1.0}]\ndeadline='5s'\n\
         [[upstreams]]\nname='a'\npasses={deadline=true}\ncalls=[{upstream='b'}]\n\
         behaviour={slots=1, service={kind='constant', mean='150ms'}, \
         body={duration={kind='constant', mean='400ms'}, holds_slot=true}}\n\
         [[upstreams]]\nname='b'\nbehaviour={slots=5, service={kind='constant', mean='20ms'}}\n";
    let scenario = Scenario::parse(text, "test").unwrap();
    let run = play(&scenario, &unprotected()).unwrap();
    let patient = run.records.iter().filter(|one| one.arrival.client == 1);
    let mut latencies: Vec<_> = patient.map(|one| one.latency.as_millis()).collect();
    latencies.dedup();
    // It waits for the slot until 250 ms; its work and its call take 150 + 220 ms, and the headers 100 ms.
    assert_eq!(latencies, [720]);
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let share = "calls=[{upstream='c', share=0.3}]";
    assert_eq!(chain(share, "", "").digest, chain(share, "", "").digest);
}
