//! The simulated world by itself, without protection: it must be the world that the scenarios describe.

#![expect(clippy::unwrap_used, reason = "a test that panics fails")]

use std::time::Duration;

use tidegate_sim::kind::ContenderKind;
use tidegate_sim::record::{Answer, Record};
use tidegate_sim::roster;
use tidegate_sim::run::Run;
use tidegate_sim::scenario::{Measure, Scenario};
use tidegate_sim::world::play;

fn unprotected() -> ContenderKind {
    let all = roster::all();
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
    // Callers wait forever, so that no work is wasted.
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
    let while_down = run.figures.measure(Measure::ReachedWhileDownRatio);
    assert_eq!(while_down, Some(3.0), "each attempt counts");
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
    // Ten seconds of abandoned work are in the queue, or none.
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

/// The same on every machine: an intended change of the world needs a new value here.
#[test]
fn the_digest_is_the_same_everywhere() {
    let run = world(
        "[[clients]]\nload=[{at='0s', x=1.2}]\nretries={max=1, backoff='10ms'}\n\
         [[upstreams]]\nname='main'\nbehaviour={errors={share=0.1}}",
    );
    assert_eq!(run.digest.to_string(), "1243a8062063b50b");
}

/// A service of constant time, with more of its behavior.
fn constant(rps: u32, service_ms: u64, client: &str, behaviour: &str) -> Run {
    world(&format!(
        "network={{delay='0s'}}\n[[clients]]\nload=[{{at='0s', rps={rps}.0}}]\ndeadline='1h'\n{client}\n\
         [[upstreams]]\nname='main'\n[upstreams.behaviour]\n\
         service={{kind='constant', mean='{service_ms}ms'}}\n{behaviour}"
    ))
}

const BODY_OF_1S: &str = "body={duration={kind='constant', mean='1s'}, holds_slot=";

#[test]
fn a_body_that_holds_nothing_leaves_the_slot_to_others() {
    let run = constant(100, 20, "", &format!("slots=4\n{BODY_OF_1S}false}}"));
    assert_eq!(count(&run, |r| r.answer != Answer::Ok), 0);
    // Half of 4 slots are busy, and 100 bodies a second are under way for a second; a third of that is 10 deviations.
    assert!(
        (100..150).contains(&run.most_in_flight),
        "{}",
        run.most_in_flight
    );
    // Latency is that to the headers.
    let late = count(&run, |r| r.latency > millis(100));
    assert!(late < run.records.len() / 50, "{late}");
}

#[test]
fn a_body_that_holds_its_slot_is_a_part_of_the_service() {
    let run = constant(10, 20, "", &format!("slots=4\n{BODY_OF_1S}true}}"));
    // 4 slots, each held for 1.02 s, though 10 requests a second come.
    let answers = throughput(&run);
    assert!((3..=4).contains(&answers), "{answers}");
}

#[test]
fn latency_is_measured_to_the_moment_that_the_objective_names() {
    let latency = |until: &str, headers: &str| {
        let run = world(&format!(
            "network={{delay='0s'}}\nslo={{until='{until}'}}\n\
             [[clients]]\nload=[{{at='0s', rps=10.0}}]\ndeadline='5s'\narrivals='constant'\n\
             [[upstreams]]\nname='main'\n[upstreams.behaviour]\nheaders='{headers}'\n\
             service={{kind='constant', mean='40ms'}}\n{BODY_OF_1S}false}}"
        ));
        let first = run.records[0].latency;
        assert_eq!(
            count(&run, |r| r.answer != Answer::Ok || r.latency != first),
            0
        );
        first.as_millis()
    };
    assert_eq!(latency("headers", "after-work"), 40);
    assert_eq!(latency("first-byte", "after-work"), 40);
    assert_eq!(latency("end", "after-work"), 1_040);
    assert_eq!(latency("headers", "at-once"), 0);
    assert_eq!(latency("first-byte", "at-once"), 40);
    assert_eq!(latency("end", "at-once"), 1_040);
}

#[test]
fn the_deadline_ends_with_the_moment_that_the_objective_names() {
    let gave_up = |until: &str| {
        let run = world(&format!(
            "slo={{until='{until}'}}\n[[clients]]\nload=[{{at='0s', rps=20.0}}]\ndeadline='500ms'\n\
             [[upstreams]]\nname='main'\nbehaviour={{{BODY_OF_1S}false}}}}"
        ));
        (
            count(&run, |r| r.answer == Answer::GaveUp),
            run.records.len(),
        )
    };
    assert_eq!(gave_up("headers").0, 0);
    let (all, requests) = gave_up("end");
    assert_eq!(all, requests);
}

#[test]
fn a_caller_ends_a_stream_itself_and_frees_what_it_holds() {
    let client = "arrivals='constant'\nreads_for={kind='constant', mean='200ms'}";
    let body = "body={duration={kind='constant', mean='1h'}, holds_slot=true}";
    let run = constant(10, 20, client, &format!("slots=4\n{body}"));
    // 2.2 of 4 slots are busy.
    assert_eq!(count(&run, |r| r.answer != Answer::Ok), 0);
    assert!(throughput(&run) >= 9, "{}", throughput(&run));
    assert!(run.most_in_flight < 20, "{}", run.most_in_flight);
}

#[test]
fn a_stream_that_breaks_off_is_no_answer() {
    let run = world(
        "[[clients]]\nload=[{at='0s', rps=20.0}]\n[[upstreams]]\nname='main'\n\
         behaviour={body={duration={kind='constant', mean='2s'}}}\n\
         timeline=[{at='10s', mode='refuse'}, {at='11s', mode='serve'}]",
    );
    let broken = count(&run, |r| r.answer == Answer::Broken);
    // Those of two seconds before; the standard deviation is 6.
    assert!((15..65).contains(&broken), "{broken}");
    let is_early = |r: &Record| r.arrival.at < millis(7_900) || r.arrival.at > millis(10_000);
    assert_eq!(
        count(&run, |r| r.answer == Answer::Broken && is_early(r)),
        0
    );
}

#[test]
fn the_work_begins_with_the_last_byte_of_an_upload() {
    let client = "upload={duration={kind='constant', mean='2s'}}";
    let run = constant(10, 40, client, "slots=1");
    assert_eq!(count(&run, |r| r.answer != Answer::Ok), 0);
    // The upload is not part of the latency: 40 ms, and what one of 40 % load waits.
    let late = count(&run, |r| r.latency > millis(400));
    assert!(late < run.records.len() / 50, "{late}");
    assert!(count(&run, |r| r.latency < millis(40)) == 0);
    assert!(run.most_in_flight > 15, "{}", run.most_in_flight);
}

#[test]
fn a_stalled_upload_starts_no_work_and_is_given_up() {
    let client = "upload={duration={kind='constant', mean='10ms'}, stalled=0.5}";
    let run = world(&format!(
        "[[clients]]\nload=[{{at='0s', rps=40.0}}]\ndeadline='2s'\n{client}\n[[upstreams]]\nname='main'\n\
         behaviour={{slots=1, service={{kind='constant', mean='20ms'}}}}"
    ));
    let stalled = |r: &Record| r.arrival.uploads_for().is_none();
    assert!(count(&run, stalled) > 300);
    assert_eq!(
        count(&run, |r| stalled(r) != (r.answer == Answer::GaveUp)),
        0
    );
    let most = run.samples.iter().map(|s| s.in_service + s.waiting).max();
    // 0.4 of the one slot is busy with the others: a line of ten has a chance of 0.6 ^ 10.
    assert!(most.unwrap() < 20, "{most:?}");
}

#[test]
fn nothing_is_done_while_an_endpoint_stands_still() {
    let run = world(
        "network={delay='0s'}\n[[clients]]\nload=[{at='0s', rps=200.0}]\narrivals='constant'\n\
         [[upstreams]]\nname='main'\n\
         behaviour={service={kind='constant', mean='10ms'}, pauses={every='1s', length='200ms'}}",
    );
    let in_pause = |at: Duration| at.as_millis() % 1_000 > 801;
    assert_eq!(count(&run, |r| in_pause(r.arrival.at + r.latency)), 0);
    let longest = run.records.iter().map(|r| r.latency).max().unwrap();
    assert!((millis(200)..millis(240)).contains(&longest), "{longest:?}");
}

#[test]
fn throughput_falls_above_the_bound_of_a_contention() {
    let answers = |slots: u32| {
        let run = constant(
            2_000,
            40,
            "",
            &format!("slots={slots}\ncontention={{above=16, slope=0.25}}"),
        );
        throughput(&run)
    };
    let (best, crowded) = (answers(16), answers(64));
    assert!((390..=405).contains(&best), "{best}");
    // 64 / (40 ms x 13).
    assert!((115..=130).contains(&crowded), "{crowded}");
}

#[test]
fn connections_beyond_the_backlog_are_refused() {
    let run = constant(
        1_000,
        40,
        "",
        "slots=16\nconnections={max=20, backlog=10}\n",
    );
    let refused = |r: &Record| r.answer == Answer::Failed(503);
    // 400 a second are served.
    assert!((580..=620).contains(&(count(&run, refused) / 20)));
    assert_eq!(count(&run, |r| refused(r) && r.latency > millis(1)), 0);
    assert!(
        (30..=31).contains(&run.most_in_flight),
        "{}",
        run.most_in_flight
    );
    // The longest wait is for 14 others before the 16 in slots.
    let most = run.records.iter().map(|r| r.latency).max().unwrap();
    assert!(most < millis(121), "{most:?}");
}

#[test]
fn a_body_takes_a_connection_and_no_slot() {
    let run = constant(
        100,
        20,
        "",
        &format!("slots=16\nconnections={{max=51, backlog=0}}\n{BODY_OF_1S}false}}"),
    );
    let answers = throughput(&run);
    // 51 connections, each taken for 1.02 s.
    assert!((46..=50).contains(&answers), "{answers}");
}

#[test]
fn a_failing_path_fails_at_once_and_holds_no_slot() {
    let run = constant(
        200,
        40,
        "paths={'/'=0.1, '/crash'=0.9}",
        "slots=1\nfailing={'/crash'=500}",
    );
    let crashed = |r: &Record| r.arrival.path == "/crash";
    assert_eq!(
        count(&run, |r| crashed(r) != (r.answer == Answer::Failed(500))),
        0
    );
    assert_eq!(count(&run, |r| crashed(r) && !r.latency.is_zero()), 0);
}

#[test]
fn a_client_beyond_its_quota_is_refused_by_the_service_and_others_are_not() {
    let run = world(
        "[[clients]]\nload=[{at='0s', rps=100.0}]\nquota={rps=10.0, retry_after=1}\n\
         [[clients]]\nload=[{at='0s', rps=100.0}]",
    );
    let refused = |r: &Record| r.answer == Answer::Failed(429);
    assert_eq!(count(&run, |r| refused(r) && r.arrival.client == 1), 0);
    let granted = count(&run, |r| r.arrival.client == 0 && !refused(r));
    // 10 at the start and 10 a second.
    assert!((200..=210).contains(&granted), "{granted}");
}

#[test]
fn every_contender_lets_go_of_streams_uploads_and_broken_connections() {
    let rest = "name='t'\ntitle='t'\nprose='p'\nseed=7\nduration='20s'\nproxies=2\n\
         [[clients]]\nload=[{at='0s', rps=60.0}]\ndeadline='700ms'\nretries={max=1, backoff='10ms'}\n\
         upload={duration={kind='constant', mean='300ms'}, stalled=0.2}\n\
         reads_for={kind='lognormal', mean='2s', sigma=0.5}\nquota={rps=50.0}\n\
         [[clients]]\nload=[{at='0s', rps=60.0}]\n\
         [[upstreams]]\nname='main'\ntimeline=[{at='9s', mode='refuse'}, {at='11s', mode='serve'}]\n\
         [upstreams.behaviour]\nendpoints=2\nslots=40\nheaders='at-once'\n\
         body={duration={kind='lognormal', mean='2s', sigma=0.8}, holds_slot=true}\n\
         connections={max=60, backlog=5}\npauses={every='3s', length='200ms'}\n\
         contention={above=20, slope=0.1}";
    let scenario = Scenario::parse(rest, "test").unwrap();
    for kind in roster::all() {
        let run = play(&scenario, &kind).unwrap();
        assert_eq!(run.leaked.unwrap_or(0), 0, "{}", kind.name);
        assert_eq!(
            run.digest,
            play(&scenario, &kind).unwrap().digest,
            "{}",
            kind.name
        );
        assert!(count(&run, |r| r.answer == Answer::Ok) > 0, "{}", kind.name);
    }
}

/// Before, answers counted for their proxy as long as they met the first objective.
#[test]
fn an_answer_is_good_for_its_proxy_by_the_objective_in_force_when_the_request_arrived() {
    let fairness = |push: &str| {
        let run = world(&format!(
            "proxies=2\n[[clients]]\nload=[{{at='0s', x=0.5}}]\n{push}"
        ));
        run.figures.proxy_fairness
    };
    assert!(fairness("").is_some());
    let push = "[[incidents]]\nat='0s'\nkind='push-objective'\nlatency='1ms'";
    assert_eq!(fairness(push), None, "no answer comes within 1 ms");
}
