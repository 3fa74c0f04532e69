//! Callers in a closed loop in the simulated world: each waits for the end of its request before it sends the next.

#![expect(clippy::unwrap_used, reason = "a test that panics fails")]

use std::time::Duration;

use tidegate_sim::arrivals;
use tidegate_sim::kind::ContenderKind;
use tidegate_sim::record::{Answer, Record};
use tidegate_sim::run::Run;
use tidegate_sim::scenario::Scenario;
use tidegate_sim::world::play;
use tidegate_sim::{roster, tidegate};

/// Sixteen slots of 50 ms, and no time on the wire.
const SERVICE: &str =
    "[[upstreams]]\nname='main'\nbehaviour={service={kind='constant', mean='50ms'}}";
const PAUSE: &str = "after_failure={kind='constant', mean='10ms'}";

fn story(pool: &str, rest: &str) -> Scenario {
    let text = format!(
        "name='t'\ntitle='t'\nprose='p'\nseed=7\nduration='20s'\nnetwork={{delay='0s'}}\n\
         [[clients]]\nclosed_loop={{{pool}}}\n{rest}"
    );
    Scenario::parse(&text, "test").unwrap()
}

fn unprotected() -> ContenderKind {
    let all = roster::all();
    *all.iter().find(|kind| kind.name == "none").unwrap()
}

fn end_of(record: &Record) -> Duration {
    record.arrival.at + record.latency
}

/// Requests sent in a second.
fn sent_in(run: &Run, second: u64) -> usize {
    let sent = run.records.iter().map(|record| record.arrival.at.as_secs());
    sent.filter(|at| *at == second).count()
}

#[test]
fn the_rate_follows_from_the_answers_and_the_pauses() {
    let failing = "[[upstreams]]\nname='main'\nbehaviour={failing={'/'=500}}";
    let five = "callers=[{at='0s', count=5}]";
    // Pauses, service, and what each caller sends a second.
    for (pauses, service, each) in [
        (PAUSE, SERVICE, 20),
        ("think={kind='constant', mean='50ms'}", SERVICE, 10),
        (
            "think={kind='constant', mean='200ms'}, after_failure={kind='constant', mean='10ms'}",
            SERVICE,
            4,
        ),
        (PAUSE, failing, 100),
        (
            "think={kind='constant', mean='200ms'}, after_failure={kind='constant', mean='10ms'}",
            failing,
            100,
        ),
        ("think={kind='constant', mean='200ms'}", failing, 5),
    ] {
        let run = play(
            &story(&format!("{five}, {pauses}"), service),
            &unprotected(),
        )
        .unwrap();
        for second in [0, 7, 19] {
            assert_eq!(sent_in(&run, second), 5 * each, "{pauses}, {service}");
        }
        assert!(run.records.is_sorted_by_key(|record| record.arrival.at));
    }
}

#[test]
fn a_pool_shrinks_and_grows() {
    let pool = "callers=[{at='2s', count=4}, {at='6s', count=12}, {at='10s', count=0}, {at='15s', count=2}]";
    let run = play(&story(&format!("{pool}, {PAUSE}"), SERVICE), &unprotected()).unwrap();
    // Twenty requests a second of each caller.
    for (second, callers) in [
        (1, 0),
        (2, 4),
        (5, 4),
        (6, 12),
        (9, 12),
        (10, 0),
        (14, 0),
        (15, 2),
        (19, 2),
    ] {
        assert_eq!(sent_in(&run, second), 20 * callers, "{second}");
    }
    assert_eq!(run.most_in_flight, 12);
}

#[test]
fn no_more_requests_are_in_flight_than_there_are_callers() {
    let tidegate = tidegate::KIND;
    for (count, contender) in [
        (3, unprotected()),
        (60, unprotected()),
        (60, tidegate),
        (300, tidegate),
    ] {
        let pool = format!("callers=[{{at='0s', count={count}}}], {PAUSE}");
        let story = story(&pool, "deadline='1h'");
        let run = play(&story, &contender).unwrap();
        assert!(
            run.most_in_flight <= count,
            "{} of {count}",
            run.most_in_flight
        );
        assert_eq!(run.leaked.unwrap_or(0), 0);
        // As many as there are callers are under way, or pause after a refusal, all the time.
        let mut moments: Vec<(Duration, i64)> = Vec::new();
        for record in &run.records {
            let pause = if record.answer == Answer::Ok { 0 } else { 10 };
            moments.push((record.arrival.at, 1));
            moments.push((end_of(record) + Duration::from_millis(pause), -1));
        }
        moments.sort_unstable();
        let mut under_way = 0;
        for (at, change) in moments {
            under_way += change;
            assert!(
                under_way <= i64::try_from(count).unwrap(),
                "{under_way} at {at:?}"
            );
        }
        assert_eq!(under_way, 0, "every request has ended");
    }
}

#[test]
fn the_same_seed_plays_the_same_run() {
    let pool = format!(
        "callers=[{{at='0s', count=200}}, {{at='8s', count=30}}], {PAUSE}, think={{kind='lognormal', mean='20ms', sigma=0.5}}"
    );
    let story = story(
        &pool,
        "retries={max=1, backoff='20ms'}\n[[clients]]\nload=[{at='0s', x=0.5}]",
    );
    let first = play(&story, &tidegate::KIND).unwrap();
    let again = play(&story, &tidegate::KIND).unwrap();
    assert_eq!(first.digest, again.digest);
    let other = Scenario {
        seed: 8,
        ..story.clone()
    };
    assert_ne!(play(&other, &tidegate::KIND).unwrap().digest, first.digest);

    let of_open_loop = first.records.iter().map(|record| &record.arrival);
    let of_open_loop: Vec<_> = of_open_loop
        .filter(|arrival| arrival.client == 1)
        .cloned()
        .collect();
    assert_eq!(
        of_open_loop,
        arrivals::schedule(&story),
        "the other client sends as if it were alone"
    );
}

#[test]
fn each_caller_keeps_its_proxy_while_that_is_there() {
    let pool = format!("callers=[{{at='0s', count=6}}], {PAUSE}");
    let fairness = |incidents: &str| {
        let mut scenario = story(&pool, &format!("{SERVICE}\n{incidents}"));
        scenario.proxies = 3;
        let run = play(&scenario, &unprotected()).unwrap();
        assert_eq!(run.records.len(), 6 * 20 * 20);
        run.figures.proxy_fairness.unwrap()
    };
    // Exactly, because each proxy has two callers that are answered alike.
    assert!((fairness("") - 1.0).abs() < 1e-12);
    let leaves = "[[incidents]]\nat='5s'\nproxy=0\nkind='proxy-leaves'";
    assert!(
        fairness(leaves) < 0.9,
        "its callers send through the others"
    );
}
