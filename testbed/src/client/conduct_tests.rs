//! How an open loop treats uploads, bodies and the moment that the objective names.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

use super::headers::{ATTEMPT_HEADER, CRITICALITY_HEADER, TIMEOUT_HEADER};
use super::open_loop;
use crate::poll::{BOUND, until};
use crate::upstream::{Quotas, RequestHead, Script, Upstream};
use tidegate_sim::arrivals;
use tidegate_sim::policy::COHORT_HEADER;
use tidegate_sim::record::{Answer, Record};
use tidegate_sim::scenario::Scenario;

/// A scenario with ten requests in the first tenth of a second of a long story, and its upstream `main`.
async fn stage(objective: &str, client: &str, behaviour: &str) -> (Scenario, Upstream) {
    let text = format!(
        "name='t'\ntitle='t'\nprose='p'\nseed=5\nduration='60s'\nslo={{{objective}}}\n\
         [[clients]]\narrivals='constant'\nload=[{{at='0s', rps=100.0}}, {{at='105ms', rps=0.0}}]\n{client}\n\
         [[upstreams]]\nname='main'\n[upstreams.behaviour]\nslots=64\n{behaviour}"
    );
    let scenario = Scenario::parse(&text, "test").unwrap();
    let builder = Upstream::builder("main").behaviour(scenario.upstreams[0].behaviour.clone());
    (scenario, builder.start().await.unwrap())
}

/// Plays it against the upstream without a proxy.
async fn play(scenario: &Scenario, upstream: &Upstream) -> Vec<Record> {
    play_at(scenario, upstream.addr()).await
}

async fn play_at(scenario: &Scenario, addr: SocketAddr) -> Vec<Record> {
    let (sender, mut receiver) = mpsc::unbounded_channel();
    let replay = open_loop::replay(
        Arc::new(scenario.clone()),
        Arc::new(arrivals::schedule(scenario)),
        addr,
        Instant::now(),
        sender,
    );
    timeout(BOUND, replay).await.unwrap();
    let mut records = Vec::new();
    while let Ok(record) = receiver.try_recv() {
        records.push(record);
    }
    assert_eq!(records.len(), 10);
    records
}

fn all_are(records: &[Record], answer: &Answer) -> bool {
    records.iter().all(|record| record.answer == *answer)
}

/// Work of 40 ms, and a body that lasts longer than any test.
const LONG_BODY: &str = "body={duration={kind='constant', mean='600s'}, holds_slot=true}";
/// Headers at once, and nothing for longer than any test.
const LONG_WORK: &str = "headers='at-once'\nservice={kind='constant', mean='600s'}";
const READS_LITTLE: &str = "deadline='20s'\nreads_for={kind='constant', mean='1ms'}";
const IMPATIENT: &str = "deadline='200ms'";

#[tokio::test]
async fn callers_give_up_who_wait_for_a_moment_that_does_not_come() {
    for (objective, behaviour) in [
        ("until='first-byte'", LONG_WORK),
        ("until='end'", LONG_BODY),
        ("until='end'", LONG_WORK),
    ] {
        let (scenario, upstream) = stage(objective, IMPATIENT, behaviour).await;
        let records = play(&scenario, &upstream).await;
        assert!(
            all_are(&records, &Answer::GaveUp),
            "{objective}: {records:?}"
        );
    }
}

#[tokio::test]
async fn callers_end_what_they_read_after_the_moment_as_good() {
    for (objective, behaviour) in [
        ("until='headers'", LONG_WORK),
        ("until='headers'", LONG_BODY),
        ("until='first-byte'", LONG_BODY),
    ] {
        let (scenario, upstream) = stage(objective, READS_LITTLE, behaviour).await;
        let records = play(&scenario, &upstream).await;
        assert!(all_are(&records, &Answer::Ok), "{objective}: {records:?}");
        if behaviour == LONG_BODY {
            until("the slots are free", || upstream.counts().in_service == 0).await;
        }
    }
}

#[tokio::test]
async fn a_response_is_read_to_its_end() {
    for objective in ["until='headers'", "until='first-byte'", "until='end'"] {
        let behaviour = "body={duration={kind='constant', mean='200ms'}, holds_slot=true}";
        let (scenario, upstream) = stage(objective, "deadline='20s'", behaviour).await;
        let begun = Instant::now();
        let records = play(&scenario, &upstream).await;
        assert!(all_are(&records, &Answer::Ok), "{objective}: {records:?}");
        assert!(begun.elapsed() >= Duration::from_millis(240), "{objective}");
        if objective == "until='end'" {
            let least = Duration::from_millis(200);
            assert!(records.iter().all(|record| record.latency >= least));
        }
    }
}

#[tokio::test]
async fn a_response_that_breaks_off_is_no_good_answer_and_not_asked_for_again() {
    let client = "deadline='20s'\nretries={max=3, backoff='1ms'}";
    let (scenario, _) = stage("until='headers'", client, "").await;
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let addr = listener.local_addr().unwrap();
    let breaking = tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            // A request of this test fits into one read.
            let _ = stream.read(&mut [0; 4_096]).await.unwrap();
            let half = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhal";
            stream.write_all(half).await.unwrap();
        }
    });
    let records = play_at(&scenario, addr).await;
    breaking.abort();
    assert!(all_are(&records, &Answer::Broken), "{records:?}");
    assert!(records.iter().all(|record| record.attempts == 1));
}

#[tokio::test]
async fn latency_is_counted_from_the_end_of_the_upload() {
    let upload = Duration::from_millis(300);
    let client = "deadline='20s'\nupload={duration={kind='constant', mean='300ms'}}";
    let (scenario, upstream) = stage("until='headers'", client, "").await;
    let begun = Instant::now();
    let records = play(&scenario, &upstream).await;
    let took = begun.elapsed();
    assert!(all_are(&records, &Answer::Ok), "{records:?}");
    for record in records {
        assert!(record.arrival.at + upload + record.latency <= took);
    }
}

#[tokio::test]
async fn callers_give_up_an_upload_that_stalls_and_may_try_again() {
    let client = "deadline='100ms'\nretries={max=1, backoff='1ms'}\n\
        upload={duration={kind='constant', mean='1ms'}, stalled=1.0}";
    let (scenario, upstream) = stage("until='headers'", client, "").await;
    let records = play(&scenario, &upstream).await;
    assert!(all_are(&records, &Answer::GaveUp), "{records:?}");
    assert!(records.iter().all(|record| record.attempts == 2));
    assert_eq!(upstream.counts().served, 0);
}

#[tokio::test]
async fn a_client_with_a_quota_says_which_one_it_is() {
    let (scenario, upstream) =
        stage("until='headers'", "deadline='20s'\nquota={rps=2.0}", "").await;
    drop(upstream);
    let quotas = Arc::new(Quotas::of(&scenario, "main"));
    let upstream = Upstream::builder("main").quotas(quotas);
    let records = play(&scenario, &upstream.start().await.unwrap()).await;
    let refused = records.iter().filter(|r| r.answer == Answer::Failed(429));
    // Two at once, and one more for each half second that ten requests take on a slow machine.
    assert!((4..=8).contains(&refused.count()), "{records:?}");
}

/// A scenario with only an adversary: ten requests in a tenth of a second, then this much more of the story.
fn adversary(duration: &str, adversary: &str) -> Scenario {
    let text = format!(
        "name='t'\ntitle='t'\nprose='p'\nseed=5\nduration='{duration}'\n\
         [[clients]]\nload=[{{at='0s', rps=0.0}}]\n[[adversaries]]\nrps=100.0\nstop='105ms'\n{adversary}"
    );
    let mut scenario = Scenario::parse(&text, "test").unwrap();
    scenario.clients[1].arrivals = tidegate_sim::scenario::Arrivals::Constant;
    scenario
}

/// The requests that reach a service that always answers with `status`.
async fn heads(scenario: &Scenario, status: u16) -> (Vec<RequestHead>, Vec<Record>) {
    let heads = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&heads);
    let upstream = Upstream::builder("main").script(move |head| {
        seen.lock().unwrap().push(head.clone());
        Some(Script::status(status))
    });
    let records = play(scenario, &upstream.start().await.unwrap()).await;
    let heads = heads.lock().unwrap().clone();
    (heads, records)
}

fn header<'a>(head: &'a RequestHead, name: &str) -> Option<&'a str> {
    head.headers.get(name).map(|value| value.to_str().unwrap())
}

#[tokio::test]
async fn adversaries_forge_what_they_say_about_themselves() {
    for (kind, name, value) in [
        ("kind='forged_agent'", "user-agent", "kube-probe/1.33"),
        ("kind='forged_cohort'", COHORT_HEADER, "forged-2213234"),
        ("kind='flood'", COHORT_HEADER, "flood"),
        (
            "kind='forged_criticality'",
            CRITICALITY_HEADER,
            "critical_plus",
        ),
        (
            "kind='short_deadline'\nafter='7ms'\ncut='header'",
            TIMEOUT_HEADER,
            "7",
        ),
    ] {
        let (heads, records) = heads(&adversary("60s", kind), 200).await;
        assert!(all_are(&records, &Answer::Ok), "{kind}: {records:?}");
        let found: Vec<_> = heads.iter().map(|head| header(head, name)).collect();
        assert_eq!(found, [Some(value); 10], "{kind}");
    }
}

#[tokio::test]
async fn beside_a_cohort_each_other_request_is_one_of_its_own() {
    let mut scenario = adversary("60s", "kind='flood'");
    scenario.clients.swap(0, 1);
    let load = scenario.clients[0].load.clone();
    scenario.clients[1].load = load;
    scenario.clients[0].load = vec![];
    scenario.clients[1].arrivals = tidegate_sim::scenario::Arrivals::Constant;
    let (heads, _) = heads(&scenario, 200).await;
    let cohorts = heads
        .iter()
        .map(|head| header(head, COHORT_HEADER).unwrap());
    let different: std::collections::BTreeSet<&str> = cohorts.collect();
    assert_eq!(different.len(), 10, "{different:?}");
}

#[tokio::test]
async fn endless_retries_end_with_the_story_and_do_not_say_what_they_are() {
    let begun = Instant::now();
    let (heads, records) = heads(&adversary("1s", "kind='endless_retries'"), 500).await;
    assert!(begun.elapsed() >= Duration::from_secs(1));
    assert!(all_are(&records, &Answer::Failed(500)), "{records:?}");
    // One every 10 ms for 900 ms, fewer on a busy machine.
    assert!(records.iter().all(|one| one.attempts > 5), "{records:?}");
    assert!(
        heads
            .iter()
            .all(|head| header(head, ATTEMPT_HEADER).is_none())
    );
}

#[tokio::test]
async fn bulk_resets_are_streams_of_http2() {
    let scenario = adversary("60s", "kind='bulk_reset'\nafter='5ms'");
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let addr = listener.local_addr().unwrap();
    let first = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut preface = [0; 14];
        stream.read_exact(&mut preface).await.unwrap();
        (preface, listener, stream)
    });
    let records = play_at(&scenario, addr).await;
    assert!(all_are(&records, &Answer::GaveUp), "{records:?}");
    let (preface, ..) = timeout(BOUND, first).await.unwrap().unwrap();
    assert_eq!(&preface, b"PRI * HTTP/2.0");
}

#[tokio::test]
async fn requests_that_are_reset_leave_the_service() {
    let scenario = adversary("60s", "kind='bulk_reset'\nafter='50ms'");
    let upstream = Upstream::builder("main").script(|_| Some(Script::Hang));
    let upstream = upstream.start().await.unwrap();
    let records = play(&scenario, &upstream).await;
    assert!(all_are(&records, &Answer::GaveUp), "{records:?}");
    assert!(upstream.counts().received > 0);
    until("the streams are gone", || upstream.counts().concurrent == 0).await;
}

#[tokio::test]
async fn who_dawdles_holds_a_slot_for_as_long() {
    let scenario = adversary("60s", "kind='slow_reader'\nafter='2s'");
    let builder = Upstream::builder("main").behaviour(scenario.upstreams[0].behaviour.clone());
    let upstream = builder.start().await.unwrap();
    let begun = Instant::now();
    let played = async {
        let records = play(&scenario, &upstream).await;
        (records, Instant::now())
    };
    // Long after a reading caller would have received the whole body.
    let held = until("ten slots are held", || {
        begun.elapsed() > Duration::from_secs(1) && upstream.counts().in_service == 10
    });
    let ((records, ended), ()) = tokio::join!(played, held);
    assert!(all_are(&records, &Answer::Ok), "{records:?}");
    assert!(ended - begun >= Duration::from_secs(2));
    until("the slots are free", || upstream.counts().in_service == 0).await;
}
