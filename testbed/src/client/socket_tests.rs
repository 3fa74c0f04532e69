//! Callers and upstreams without a proxy between them.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

use super::{Call, Caller, open_loop};
use crate::poll::{BOUND, until};
use crate::upstream::{Script, Upstream};
use tidegate_sim::arrivals;
use tidegate_sim::profile::{Behaviour, Change, Errors, QueueBound, ServiceTime, UpstreamMode};
use tidegate_sim::record::{Answer, Record};
use tidegate_sim::scenario::Scenario;

async fn quick() -> Upstream {
    Upstream::constant("main", 4, Duration::from_millis(1))
        .await
        .unwrap()
}

#[tokio::test]
async fn counts_are_exact_over_both_protocols() {
    let upstream = quick().await;
    for caller in [
        Caller::http1(upstream.addr()),
        Caller::http2(upstream.addr()),
    ] {
        for _ in 0..5 {
            let reply = caller.get("/a").await.unwrap();
            assert_eq!(
                (reply.status, reply.header("x-upstream")),
                (200, Some("main"))
            );
        }
    }
    let counts = upstream.counts();
    assert_eq!(
        (counts.received, counts.served, counts.max_concurrent),
        (10, 10, 1)
    );
    assert_eq!(upstream.received_for("/a"), 10);
}

#[tokio::test]
async fn full_line_is_refused_at_once_with_retry_after() {
    let queue = Some(QueueBound {
        max: 0,
        status: 429,
        retry_after: Some(7),
    });
    let service = ServiceTime::constant(Duration::from_secs(60));
    let behaviour = Behaviour {
        slots: 1,
        service,
        queue,
        ..Behaviour::default()
    };
    let upstream = Upstream::builder("main")
        .behaviour(behaviour)
        .start()
        .await
        .unwrap();
    let caller = Caller::http1(upstream.addr());
    let first = tokio::spawn({
        let caller = caller.clone();
        async move { caller.get("/").await }
    });
    until("the first request holds the slot", || {
        upstream.counts().in_service == 1
    })
    .await;
    let reply = caller.get("/").await.unwrap();
    assert_eq!(
        (reply.status, reply.header("retry-after")),
        (429, Some("7"))
    );
    first.abort();
}

#[tokio::test]
async fn caller_that_goes_away_is_no_longer_under_way() {
    let upstream = quick().await;
    upstream.change(&Change::mode(UpstreamMode::Hang));
    for caller in [
        Caller::http1(upstream.addr()),
        Caller::http2(upstream.addr()),
    ] {
        let call = tokio::spawn(async move { caller.get("/").await });
        until("the request is there", || upstream.counts().concurrent == 1).await;
        call.abort();
        until("the request is gone", || upstream.counts().concurrent == 0).await;
    }
    assert_eq!(upstream.counts().received_while_down, 2);
}

#[tokio::test]
async fn modes_are_told_apart_by_the_caller() {
    let upstream = quick().await;
    let caller = Caller::http1(upstream.addr());
    upstream.change(&Change::mode(UpstreamMode::Fail));
    assert_eq!(caller.get("/").await.unwrap().status, 500);
    upstream.change(&Change::mode(UpstreamMode::Reset));
    assert!(caller.get("/").await.is_err());
    upstream.change(&Change::mode(UpstreamMode::Refuse));
    let refused = async {
        while tokio::net::TcpStream::connect(upstream.addr())
            .await
            .is_ok()
        {}
    };
    timeout(BOUND, refused).await.unwrap();
    upstream.change(&Change::mode(UpstreamMode::Serve));
    let back = async { while caller.get("/").await.is_err() {} };
    timeout(BOUND, back).await.unwrap();
    upstream.change(&Change {
        errors: Some(Errors {
            share: 1.0,
            status: 502,
        }),
        ..Change::default()
    });
    assert_eq!(caller.get("/").await.unwrap().status, 502);
}

#[tokio::test]
async fn grpc_status_comes_in_trailers_or_headers() {
    let script = |head: &crate::upstream::RequestHead| match head.path.as_str() {
        "/s/Trailers" => Some(Script::grpc(13)),
        "/s/Headers" => Some(Script::GrpcTrailersOnly {
            status: 8,
            after: Duration::ZERO,
        }),
        "/s/Stream" => Some(Script::Stream {
            chunks: 3,
            every: Duration::from_millis(1),
        }),
        _ => None,
    };
    let upstream = Upstream::builder("main")
        .script(script)
        .start()
        .await
        .unwrap();
    let caller = Caller::http2(upstream.addr());
    for (path, status, messages) in [
        ("Trailers", 13, 1),
        ("Headers", 8, 0),
        ("Stream", 0, 3),
        ("Plain", 0, 1),
    ] {
        let reply = caller
            .call(&Call::grpc(&format!("/s/{path}")))
            .await
            .unwrap();
        assert_eq!(
            (reply.status, reply.grpc_status()),
            (200, Some(status)),
            "{path}"
        );
        assert_eq!(reply.body.len(), messages * 5, "{path}");
    }
}

#[tokio::test]
async fn websocket_bytes_come_back() {
    let upstream = quick().await;
    let caller = Caller::http1(upstream.addr());
    let exchange = caller.start(&Call::websocket("/ws")).await.unwrap();
    assert_eq!(exchange.status(), 101);
    let mut tunnel = exchange.tunnel().await.unwrap();
    assert_eq!(tunnel.echo(b"hello").await.unwrap(), b"hello");
}

#[tokio::test]
async fn every_arrival_of_an_open_loop_is_recorded_once() {
    let text = "name='t'\ntitle='t'\nprose='p'\nseed=5\nduration='1s'\n[[clients]]\nload=[{at='0s', rps=200.0}]\n\
                criticality={critical=0.5, sheddable=0.5}\nretries={max=1, backoff='1ms'}";
    let scenario = Scenario::parse(text, "test").unwrap();
    let upstream = Upstream::constant("main", 64, Duration::from_millis(1))
        .await
        .unwrap();
    upstream.change(&Change::mode(UpstreamMode::Fail));
    let arrivals = Arc::new(arrivals::schedule(&scenario));
    let (sender, mut receiver) = mpsc::unbounded_channel();
    let replay = open_loop::replay(
        Arc::new(scenario),
        Arc::clone(&arrivals),
        upstream.addr(),
        Instant::now(),
        sender,
    );
    timeout(BOUND, replay).await.unwrap();
    let mut recorded = 0;
    while let Ok(record) = receiver.try_recv() {
        recorded += 1;
        assert_eq!((record.answer, record.attempts), (Answer::Failed(500), 2));
    }
    assert_eq!(recorded, arrivals.len());
    assert_eq!(
        upstream.counts().received,
        2 * u64::try_from(recorded).unwrap()
    );
}

/// Plays five callers in a closed loop for a second against an upstream without a proxy.
async fn five_in_turn(upstream: &Upstream, pauses: &str) -> Vec<Record> {
    let text = format!(
        "name='t'\ntitle='t'\nprose='p'\nseed=5\nduration='1s'\n[[clients]]\n\
         closed_loop={{callers=[{{at='0s', count=5}}], {pauses}}}"
    );
    let scenario = Arc::new(Scenario::parse(&text, "test").unwrap());
    let arrivals = Arc::new(arrivals::schedule(&scenario));
    let (sender, mut receiver) = mpsc::unbounded_channel();
    let (start, target) = (Instant::now(), upstream.addr());
    let replay = open_loop::replay(scenario, arrivals, target, start, sender);
    let answered = timeout(BOUND, replay).await.unwrap();
    let mut records: Vec<Record> = Vec::new();
    while let Ok(record) = receiver.try_recv() {
        records.push(record);
    }
    let good = records.iter().filter(|record| record.answer == Answer::Ok);
    assert_eq!(
        good.count(),
        answered.len(),
        "each request has its own number"
    );
    records
}

#[tokio::test]
async fn callers_in_a_closed_loop_wait_for_their_answers() {
    let upstream = quick().await;
    let pause = "after_failure={kind='constant', mean='10ms'}";
    let records = five_in_turn(&upstream, pause).await;
    assert!(records.iter().all(|record| record.answer == Answer::Ok));
    let counts = upstream.counts();
    assert_eq!(counts.received, u64::try_from(records.len()).unwrap());
    // The upstream answers within milliseconds, so that more would come together if callers did not wait.
    assert!(records.len() > 5, "callers send again");
    assert!(counts.max_concurrent <= 5, "{}", counts.max_concurrent);
}

#[tokio::test]
async fn callers_in_a_closed_loop_pause_after_a_failure() {
    let upstream = quick().await;
    upstream.change(&Change::mode(UpstreamMode::Fail));
    let pause = "after_failure={kind='constant', mean='100ms'}";
    let records = five_in_turn(&upstream, pause).await;
    let failed = |record: &Record| record.answer == Answer::Failed(500);
    assert!(records.iter().all(failed));
    // At the beginning, and not more than once in each tenth of a second.
    assert!((5..=50).contains(&records.len()), "{}", records.len());
}
