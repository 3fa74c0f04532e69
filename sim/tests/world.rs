//! The simulated world by itself, without protection: it must be the world that the scenarios describe.

#![expect(clippy::unwrap_used, reason = "a test that panics fails")]

use std::time::Duration;

use tidegate_sim::contender::{self, Kind};
use tidegate_sim::record::{Answer, Record};
use tidegate_sim::scenario::Scenario;
use tidegate_sim::world::{Run, play};

fn unprotected() -> Kind {
    let all = contender::all();
    *all.iter().find(|kind| kind.name == "none").unwrap()
}

fn world(rest: &str) -> Run {
    let head = "name='t'\ntitle='t'\nprose='p'\nseed=7\nduration='20s'\n";
    let scenario = Scenario::parse(&format!("{head}{rest}"), "test").unwrap();
    play(&scenario, &unprotected()).unwrap()
}

fn count(run: &Run, is_counted: impl Fn(&Record) -> bool) -> usize {
    run.records
        .iter()
        .filter(|record| is_counted(record))
        .count()
}

fn millis(value: u64) -> Duration {
    Duration::from_millis(value)
}

/// Answers a second from the fifth second to the last.
fn throughput(run: &Run) -> usize {
    let ended = |record: &Record| (record.arrival.at + record.latency).as_secs_f64();
    let in_window = |record: &Record| (5.0..20.0).contains(&ended(record));
    count(run, |r| r.answer == Answer::Ok && in_window(r)) / 15
}

#[test]
fn a_saturated_upstream_serves_its_capacity() {
    // Callers that wait for ever, so that no work is for nobody.
    let run = world("[[clients]]\nload=[{at='0s', x=1.5}]\ndeadline='1h'");
    assert!(
        (390..=410).contains(&throughput(&run)),
        "{}",
        throughput(&run)
    );
}

#[test]
fn slots_on_several_endpoints_serve_as_many() {
    let run = world(
        "[[clients]]\nload=[{at='0s', x=1.5}]\ndeadline='1h'\n\
         [[upstreams]]\nname='main'\nbehaviour={endpoints=8, slots=2}",
    );
    assert!(
        (390..=410).contains(&throughput(&run)),
        "{}",
        throughput(&run)
    );
}

#[test]
fn without_protection_an_overload_leaves_nothing_good() {
    let run = world("warmup='3s'\n[[clients]]\nload=[{at='0s', x=2.0}]");
    assert!(run.figures.score < 0.01, "{}", run.figures.score);
    assert!(count(&run, |r| r.answer == Answer::GaveUp) > 10_000);
}

#[test]
fn latency_is_service_and_four_hops_where_nobody_waits() {
    let run = world(
        "network={delay='5ms'}\n[[clients]]\nload=[{at='0s', rps=20.0}]\n\
         [[upstreams]]\nname='main'\nbehaviour={service={kind='constant', mean='30ms'}}",
    );
    assert!(count(&run, |_| true) > 300);
    assert_eq!(count(&run, |r| r.latency != millis(50)), 0);
}

#[test]
fn a_delay_holds_no_slot() {
    let run = world(
        "network={delay='0s'}\n[[clients]]\nload=[{at='0s', rps=100.0}]\narrivals='constant'\n\
         [[upstreams]]\nname='main'\n\
         behaviour={slots=1, service={kind='constant', mean='5ms'}, delay={share=1.0, by='200ms'}}",
    );
    assert_eq!(count(&run, |r| r.latency != millis(205)), 0);
}

#[test]
fn a_full_line_is_refused_at_once() {
    let run = world(
        "[[clients]]\nload=[{at='0s', x=3.0}]\n\
         [[upstreams]]\nname='main'\nbehaviour={queue={max=4, status=503}}",
    );
    let refused = |r: &Record| r.answer == Answer::Failed(503);
    assert!(count(&run, refused) > 10_000);
    assert_eq!(count(&run, |r| refused(r) && r.latency > millis(1)), 0);
    assert!(run.most_in_flight <= 16 + 4 + 8, "{}", run.most_in_flight);
}

#[test]
fn who_hangs_is_given_up_at_the_deadline_and_forgotten() {
    let run = world(
        "[[clients]]\nload=[{at='0s', x=0.5}]\ndeadline='300ms'\n\
         [[upstreams]]\nname='main'\nbehaviour={mode='hang'}",
    );
    let gave_up = |r: &Record| r.answer == Answer::GaveUp && r.latency == millis(300);
    assert_eq!(count(&run, gave_up), run.records.len());
    // 200 a second for 300 ms are 60 on average; the standard deviation is 8.
    assert!(run.most_in_flight < 110, "{}", run.most_in_flight);
}

#[test]
fn connections_that_break_take_what_is_under_way_with_them() {
    let run = world(
        "[[clients]]\nload=[{at='0s', x=0.9}]\n\
         [[upstreams]]\nname='main'\ntimeline=[{at='10s', mode='refuse'}]",
    );
    let broken = |r: &Record| r.answer == Answer::Failed(503);
    let under_way = |r: &Record| r.arrival.at < millis(9_999) && broken(r);
    assert!((1..60).contains(&count(&run, under_way)));
    assert_eq!(
        count(&run, |r| r.arrival.at > millis(10_000) && !broken(r)),
        0
    );
}

#[test]
fn retries_follow_failures_and_end() {
    let run = world(
        "[[clients]]\nload=[{at='0s', rps=50.0}]\nretries={max=2, backoff='10ms'}\n\
         [[upstreams]]\nname='main'\nbehaviour={mode='fail'}",
    );
    assert_eq!(count(&run, |r| r.attempts != 3), 0);
    let reached = run.figures.reached;
    assert_eq!(
        reached.received,
        3 * u64::try_from(run.records.len()).unwrap()
    );
    assert_eq!(reached.received, reached.received_while_down);
}

#[test]
fn work_of_callers_that_went_away_is_done_or_skipped() {
    let spike = |abandoned: &str| {
        let run = world(&format!(
            "[[clients]]\nload=[{{at='0s', x=3.0}}, {{at='5s', x=0.5}}]\n\
             [[upstreams]]\nname='main'\nbehaviour={{abandoned='{abandoned}'}}"
        ));
        count(&run, |r| {
            r.arrival.at > millis(8_000) && r.answer == Answer::Ok
        })
    };
    // Ten seconds of work for nobody stand in line, or none.
    assert!(spike("skip") > spike("finish") + 1_000);
}

#[test]
fn many_proxies_share_one_upstream() {
    let run = world("proxies=8\n[[clients]]\nload=[{at='0s', x=1.5}]\ndeadline='1h'");
    assert!(
        (390..=410).contains(&throughput(&run)),
        "{}",
        throughput(&run)
    );
    assert!(run.figures.proxy_fairness.unwrap() > 0.9);
}

/// The same on every machine: who changes the world on purpose writes down the new value.
#[test]
fn the_digest_is_the_same_everywhere() {
    let run = world(
        "[[clients]]\nload=[{at='0s', x=1.2}]\nretries={max=1, backoff='10ms'}\n\
         [[upstreams]]\nname='main'\nbehaviour={errors={share=0.1}}",
    );
    assert_eq!(run.digest.to_string(), "1243a8062063b50b");
}
