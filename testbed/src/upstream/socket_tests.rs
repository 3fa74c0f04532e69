//! Bodies, pauses, limits and refusals of an upstream, as a caller sees them.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::{Quotas, Upstream, UpstreamBuilder};
use crate::client::headers::CLIENT_HEADER;
use crate::client::{Call, CallError, CallReply, Caller};
use crate::poll::{BOUND, until};
use tidegate_sim::arrivals::Sending;
use tidegate_sim::profile::{
    Abandoned, Behaviour, Body, Change, Connections, Contention, HeaderTiming, Lie, Pauses,
    ServiceTime, UpstreamMode,
};
use tidegate_sim::scenario::Scenario;

/// Longer than any test.
const LONG: ServiceTime = ServiceTime::constant(Duration::from_secs(600));

const SHORT: ServiceTime = ServiceTime::constant(Duration::from_millis(1));

/// A quick service with one slot, and what a test changes about it.
async fn start(change: impl FnOnce(&mut Behaviour)) -> Upstream {
    builder(change).start().await.unwrap()
}

fn builder(change: impl FnOnce(&mut Behaviour)) -> UpstreamBuilder {
    let mut behaviour = Behaviour {
        slots: 1,
        service: SHORT,
        ..Behaviour::default()
    };
    change(&mut behaviour);
    Upstream::builder("main").behaviour(behaviour)
}

fn body(duration: ServiceTime, holds_slot: bool) -> Option<Body> {
    Some(Body {
        duration,
        holds_slot,
        bytes: 0,
    })
}

fn send(caller: &Caller, call: Call) -> JoinHandle<Result<CallReply, CallError>> {
    let caller = caller.clone();
    tokio::spawn(async move { caller.call(&call).await })
}

#[tokio::test]
async fn a_body_holds_its_slot_until_the_caller_ends_it() {
    let upstream = start(|b| b.body = body(LONG, true)).await;
    for caller in [
        Caller::http1(upstream.addr()),
        Caller::http2(upstream.addr()),
    ] {
        let mut stream = caller.start(&Call::get("/")).await.unwrap();
        assert_eq!(stream.status(), 200);
        assert!(stream.chunk().await.unwrap().is_some());
        assert_eq!(upstream.counts().in_service, 1);
        drop((stream, caller));
        until("the slot is free", || upstream.counts().in_service == 0).await;
    }
}

#[tokio::test]
async fn a_body_holds_its_slot_until_its_end_and_comes_in_pieces() {
    let time = ServiceTime::constant(Duration::from_millis(250));
    let upstream = start(|b| b.body = body(time, true)).await;
    let caller = Caller::http1(upstream.addr());
    for _ in 0..2 {
        let reply = timeout(BOUND, caller.get("/")).await.unwrap().unwrap();
        assert_eq!((reply.status, reply.body.len()), (200, 4 * 5));
    }
    until("the slot is free", || upstream.counts().in_service == 0).await;
    let reply = Caller::http2(upstream.addr())
        .call(&Call::grpc("/s/M"))
        .await
        .unwrap();
    assert_eq!((reply.body.len(), reply.grpc_status()), (4 * 5, Some(0)));
}

#[tokio::test]
async fn a_body_that_holds_no_slot_leaves_it_to_the_next() {
    let upstream = start(|b| b.body = body(LONG, false)).await;
    let caller = Caller::http1(upstream.addr());
    let mut streams = Vec::new();
    for _ in 0..3 {
        let stream = timeout(BOUND, caller.start(&Call::get("/"))).await;
        streams.push(stream.unwrap().unwrap());
    }
    assert_eq!(upstream.counts().in_service, 0);
}

#[tokio::test]
async fn headers_at_once_come_before_slot_and_work() {
    let upstream = start(|b| {
        b.headers = HeaderTiming::AtOnce;
        b.service = LONG;
        b.failing = [("/fails".to_owned(), 503)].into();
    })
    .await;
    let caller = Caller::http1(upstream.addr());
    let first = caller.start(&Call::get("/")).await.unwrap();
    let second = caller.start(&Call::get("/")).await.unwrap();
    assert_eq!((first.status(), second.status()), (200, 200));
    let counts = upstream.counts();
    assert_eq!((counts.in_service, counts.waiting), (1, 1));
    assert_eq!(caller.get("/fails").await.unwrap().status, 503);
}

#[tokio::test]
async fn headers_at_once_are_followed_by_the_body_when_the_work_is_done() {
    let upstream = start(|b| b.headers = HeaderTiming::AtOnce).await;
    let caller = Caller::http1(upstream.addr());
    let reply = timeout(BOUND, caller.get("/")).await.unwrap().unwrap();
    assert_eq!((reply.status, reply.body.len()), (200, 5));
    upstream.change(&Change {
        body: body(ServiceTime::constant(Duration::from_millis(150)), true),
        ..Change::default()
    });
    let reply = timeout(BOUND, caller.get("/")).await.unwrap().unwrap();
    assert_eq!(reply.body.len(), 3 * 5);
    until("the slot is free", || upstream.counts().in_service == 0).await;
}

#[tokio::test]
async fn work_of_a_caller_that_went_away_after_early_headers_ends_where_it_is_skipped() {
    let upstream = start(|b| {
        b.headers = HeaderTiming::AtOnce;
        b.service = LONG;
        b.abandoned = Abandoned::Skip;
    })
    .await;
    let caller = Caller::http1(upstream.addr());
    let stream = caller.start(&Call::get("/")).await.unwrap();
    until("it works", || upstream.counts().in_service == 1).await;
    drop(stream);
    until("the slot is free", || upstream.counts().in_service == 0).await;
}

#[tokio::test]
async fn an_endpoint_that_stands_still_answers_nothing() {
    let hour = Duration::from_secs(3_600);
    let pauses = |length| Pauses {
        every: 2 * hour,
        length,
        together: false,
    };
    // The second of two endpoints begins with its pause.
    let upstream = builder(|b| {
        b.pauses = Some(pauses(hour));
        b.slots = 2;
        b.failing = [("/fails".to_owned(), 500)].into();
    });
    let upstream = upstream.endpoint(1, 2).start().await.unwrap();
    let caller = Caller::http1(upstream.addr());
    let held = [
        send(&caller, Call::get("/")),
        send(&caller, Call::get("/fails")),
    ];
    until("both are there", || upstream.counts().concurrent == 2).await;
    upstream.change(&Change {
        pauses: Some(pauses(Duration::ZERO)),
        ..Change::default()
    });
    let reply = timeout(BOUND, caller.get("/")).await.unwrap().unwrap();
    assert_eq!(reply.status, 200);
    assert_eq!(
        upstream.counts().concurrent,
        2,
        "those before wait for the end"
    );
    held.iter().for_each(JoinHandle::abort);
}

#[tokio::test]
async fn contention_slows_those_that_get_a_slot_from_then_on() {
    let upstream = start(|b| b.slots = 4).await;
    let caller = Caller::http1(upstream.addr());
    upstream.change(&Change {
        // Alone a request takes 1 ms, beside another one 500 s.
        contention: Some(Contention {
            above: 1,
            slope: 500_000.0,
        }),
        ..Change::default()
    });
    assert_eq!(caller.get("/").await.unwrap().status, 200);
    upstream.change(&Change {
        service: Some(LONG),
        ..Change::default()
    });
    let first = send(&caller, Call::get("/"));
    until("it works", || upstream.counts().in_service == 1).await;
    upstream.change(&Change {
        service: Some(SHORT),
        ..Change::default()
    });
    let second = send(&caller, Call::get("/"));
    until("both work", || upstream.counts().in_service == 2).await;
    upstream.change(&Change {
        contention: Some(Contention {
            above: 1,
            slope: 0.0,
        }),
        ..Change::default()
    });
    assert_eq!(caller.get("/").await.unwrap().status, 200);
    assert_eq!(upstream.counts().in_service, 2);
    first.abort();
    second.abort();
}

#[tokio::test]
async fn connections_beyond_limit_and_backlog_are_refused() {
    let upstream = start(|b| {
        b.slots = 9;
        b.connections = Some(Connections { max: 1, backlog: 1 });
        b.service = LONG;
        b.abandoned = Abandoned::Skip;
    })
    .await;
    let caller = Caller::http1(upstream.addr());
    let first = send(&caller, Call::get("/"));
    until("it works", || upstream.counts().in_service == 1).await;
    let second = send(&caller, Call::get("/"));
    until("it waits", || upstream.counts().waiting == 1).await;
    assert_eq!(upstream.counts().received, 1, "it is not accepted");
    let refused = async { while TcpStream::connect(upstream.addr()).await.is_ok() {} };
    timeout(BOUND, refused).await.unwrap();
    first.abort();
    until("the second is accepted", || upstream.counts().received == 2).await;
    second.abort();
    let accepted = async { while TcpStream::connect(upstream.addr()).await.is_err() {} };
    timeout(BOUND, accepted).await.unwrap();
}

#[tokio::test]
async fn a_limited_connection_carries_one_request_and_its_body() {
    let upstream = start(|b| {
        b.connections = Some(Connections { max: 1, backlog: 4 });
        b.body = body(ServiceTime::constant(Duration::from_millis(20)), false);
    })
    .await;
    let caller = Caller::http1(upstream.addr());
    let calls: Vec<_> = (0..5).map(|_| send(&caller, Call::get("/"))).collect();
    for call in calls {
        let reply = timeout(BOUND, call).await.unwrap().unwrap().unwrap();
        assert_eq!(
            (reply.status, reply.header("connection")),
            (200, Some("close"))
        );
    }
    assert_eq!(upstream.counts().max_concurrent, 1);
}

#[tokio::test]
async fn a_failing_path_fails_alone_and_a_slow_one_is_slow_alone() {
    let upstream = start(|b| {
        b.slots = 2;
        b.failing = [("/fails".to_owned(), 501)].into();
        b.paths = [("/slow".to_owned(), LONG)].into();
    })
    .await;
    let caller = Caller::http1(upstream.addr());
    let slow = send(&caller, Call::get("/slow"));
    until("the slow one works", || upstream.counts().in_service == 1).await;
    for (path, status) in [("/fails", 501), ("/", 200)] {
        assert_eq!(caller.get(path).await.unwrap().status, status, "{path}");
    }
    assert_eq!(upstream.counts().failed, 1);
    upstream.change(&Change {
        failing: Some([].into()),
        ..Change::default()
    });
    assert_eq!(caller.get("/fails").await.unwrap().status, 200);
    slow.abort();
}

#[tokio::test]
async fn a_quota_is_that_of_its_client_over_all_endpoints() {
    let text = "name='t'\ntitle='t'\nprose='p'\nseed=3\nduration='9s'\n\
        [[clients]]\nload=[{at='0s', x=0.1}]\nquota={rps=0.001, retry_after=7}\n[[clients]]\nload=[{at='0s', x=0.1}]";
    let scenario = Scenario::parse(text, "test").unwrap();
    let quotas = Arc::new(Quotas::of(&scenario, "main"));
    let endpoint = || builder(|_| {}).quotas(Arc::clone(&quotas)).start();
    let (one, other) = (endpoint().await.unwrap(), endpoint().await.unwrap());
    let ask = async |upstream: &Upstream, client: &str| {
        let call = Call::get("/").header(CLIENT_HEADER, client);
        let reply = Caller::http1(upstream.addr()).call(&call).await.unwrap();
        let after = reply.header("retry-after").map(str::to_owned);
        (reply.status, after)
    };
    assert_eq!(ask(&one, "0").await, (200, None));
    assert_eq!(ask(&other, "0").await, (429, Some("7".to_owned())));
    assert_eq!(ask(&one, "1").await, (200, None));
}

#[tokio::test]
async fn the_work_begins_when_the_request_is_complete() {
    let upstream = start(|_| {}).await;
    let caller = Caller::http1(upstream.addr());
    let stalled = send(&caller, Call::upload("/", Sending::Stalls));
    until("its headers are there", || {
        upstream.counts().concurrent == 1
    })
    .await;
    let takes = Call::upload("/", Sending::Takes(Duration::from_millis(120)));
    for caller in [caller, Caller::http2(upstream.addr())] {
        let reply = timeout(BOUND, caller.call(&takes)).await.unwrap().unwrap();
        assert_eq!(reply.status, 200);
    }
    assert_eq!(upstream.counts().in_service, 0);
    stalled.abort();
    until("it is gone", || upstream.counts().concurrent == 0).await;
    let counts = upstream.counts();
    assert_eq!((counts.served, counts.in_service), (2, 0), "no work for it");
}

/// A service that answers requests for `/lie` dishonestly.
async fn liar(lie: Lie) -> Upstream {
    start(|b| b.lies = [("/lie".to_owned(), lie)].into()).await
}

#[tokio::test]
async fn a_liar_asks_for_a_year() {
    let upstream = liar(Lie::default()).await;
    let caller = Caller::http1(upstream.addr());
    let reply = caller.get("/lie").await.unwrap();
    assert_eq!(reply.status, 503);
    assert_eq!(reply.header("retry-after"), Some("31536000"));
    assert_eq!(caller.get("/").await.unwrap().status, 200);
}

#[tokio::test]
async fn a_liar_falls_silent_after_its_headers_and_holds_no_slot() {
    let upstream = liar(Lie::Silence).await;
    let caller = Caller::http1(upstream.addr());
    let mut silent = caller.start(&Call::get("/lie")).await.unwrap();
    assert_eq!(silent.status(), 200);
    let others = async {
        // Each takes its time before the silent endpoint says anything.
        for _ in 0..20 {
            assert_eq!(caller.get("/").await.unwrap().status, 200);
        }
    };
    tokio::select! {
        biased;
        piece = silent.chunk() => panic!("{piece:?}"),
        () = others => {}
    }
}

#[tokio::test]
async fn a_liar_sends_headers_without_measure() {
    let upstream = liar(Lie::HugeHeaders { bytes: 96 << 10 }).await;
    let caller = Caller::http1(upstream.addr());
    let reply = caller.get("/lie").await.unwrap();
    let bytes: usize = reply.headers.values().map(|value| value.len()).sum();
    assert!(bytes >= 96 << 10, "{bytes}");
}

#[tokio::test]
async fn a_witness_hears_of_answers_and_of_no_failure() {
    let numbers = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&numbers);
    let first = start(|_| {}).await;
    let port = first.addr().port();
    drop(first);
    let upstream = builder(|_| {}).port(port).witness(move |headers| {
        let number = headers["x-number"].to_str().unwrap().to_owned();
        heard.lock().unwrap().push(number);
    });
    // The port of an upstream that has just ended may be held for a moment.
    let mut started = None;
    until("the port is free", || {
        started = std::net::TcpListener::bind(("127.0.0.1", port)).ok();
        started.is_some()
    })
    .await;
    drop(started);
    let upstream = upstream.start().await.unwrap();
    assert_eq!(upstream.addr().port(), port);
    let caller = Caller::http1(upstream.addr());
    for (number, mode, status) in [
        ("1", UpstreamMode::Serve, 200),
        ("2", UpstreamMode::Fail, 500),
    ] {
        upstream.change(&Change::mode(mode));
        let call = Call::get("/").header("x-number", number);
        assert_eq!(caller.call(&call).await.unwrap().status, status);
    }
    assert_eq!(*numbers.lock().unwrap(), ["1"]);
}
