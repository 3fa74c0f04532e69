//! Calls to other services, as both services see them on sockets.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use hyper::header::HeaderMap;

use super::{Outbound, Script, Upstream};
use crate::client::headers::CRITICALITY_HEADER;
use crate::client::{Call, CallReply, Caller};
use tidegate_sim::policy::{COHORT_HEADER, DEADLINE_HEADER};
use tidegate_sim::scenario::Scenario;

/// A request to `a`, which calls `b`: the reply, and the headers that came to `b`.
async fn chain(passes: &str, b: Script) -> (CallReply, Vec<HeaderMap>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (all, answer) = (Arc::clone(&seen), b);
    let b = Upstream::builder("b").script(move |head| {
        all.lock().unwrap().push(head.headers.clone());
        Some(answer.clone())
    });
    let b = b.start().await.unwrap();
    let text = format!(
        "name='t'\ntitle='t'\nprose='p'\nseed=3\nduration='10s'\n\
         [[clients]]\nupstream='a'\nload=[{{at='0s', rps=1.0}}]\n\
         [[upstreams]]\nname='a'\ncalls=[{{upstream='b', deadline='5s'}}]\n{passes}\n\
         [[upstreams]]\nname='b'"
    );
    let scenario = Scenario::parse(&text, "test").unwrap();
    let outbound = Arc::new(Outbound::of(&scenario, "a"));
    outbound.connect(b.addr());
    let a = Upstream::builder("a").constant(1, Duration::from_millis(1));
    let a = a.outbound(outbound).start().await.unwrap();
    let call = Call::get("/")
        .header(DEADLINE_HEADER, "700")
        .header(CRITICALITY_HEADER, "sheddable")
        .header(COHORT_HEADER, "tenant-7");
    let reply = Caller::http1(a.addr()).call(&call).await.unwrap();
    assert_eq!(a.counts().in_service, 0, "the slot is free again");
    let seen = std::mem::take(&mut *seen.lock().unwrap());
    (reply, seen)
}

#[tokio::test]
async fn a_call_carries_what_the_service_passes_on() {
    let value = |headers: &HeaderMap, name: &str| {
        let value = headers.get(name).map(|value| value.to_str().unwrap());
        value.map(str::to_owned)
    };
    let (reply, seen) = chain(
        "passes={deadline=true, criticality=true}",
        Script::status(200),
    )
    .await;
    assert_eq!((reply.status, seen.len()), (200, 1));
    assert_eq!(
        value(&seen[0], CRITICALITY_HEADER).as_deref(),
        Some("sheddable")
    );
    assert_eq!(value(&seen[0], COHORT_HEADER).as_deref(), Some("tenant-7"));
    let left: u64 = value(&seen[0], DEADLINE_HEADER).unwrap().parse().unwrap();
    assert!(left <= 700, "{left}");
    let (_, seen) = chain("", Script::status(200)).await;
    assert_eq!(value(&seen[0], CRITICALITY_HEADER), None);
    assert_eq!(value(&seen[0], DEADLINE_HEADER), None);
}

#[tokio::test]
async fn a_request_fails_with_a_call_and_says_why() {
    let (reply, _) = chain("passes={sheds=true}", Script::status(500)).await;
    assert_eq!((reply.status, reply.header("retry-after")), (503, None));
    let shed = Script::status(503).header("retry-after", "1");
    let (reply, _) = chain("passes={sheds=true}", shed.clone()).await;
    assert_eq!(
        (reply.status, reply.header("retry-after")),
        (503, Some("1"))
    );
    let (reply, _) = chain("", shed).await;
    assert_eq!((reply.status, reply.header("retry-after")), (503, None));
}

#[tokio::test]
async fn a_call_ends_with_the_deadline_of_the_request() {
    // The caller waits longer than the deadline, so that it gets the service's answer.
    let (reply, _) = chain("passes={deadline=true}", Script::Hang).await;
    assert_eq!(reply.status, 503);
}
