//! Core allocates nothing on a request's way: not when it is admitted, answered and completed, not when it is shed.
//!
//! Memory of a Wasm VM never goes back to the host, and an allocation costs as much as a good part of the decision.

#![expect(
    unsafe_code,
    reason = "a global allocator is the only way to count allocations"
)]
#![expect(clippy::unwrap_used, reason = "a test that panics fails")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::hint::black_box;

use tidegate_core::config::Config;
use tidegate_core::{
    Counter, Counters, Decision, Engine, Failure, GivenRequest, Instant, Outcome, Permit,
    ShedReason, Unshared, UpstreamId,
};

const UPSTREAMS: u64 = 1_000;
const SLO: &str =
    r#"{"slo":{"latency":{"quantile":0.99,"target":"300ms"}},"limit":{"max":4,"initial":2}}"#;

thread_local! {
    // By thread, because the test harness allocates beside us.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

fn count() {
    // Fails while a thread ends; no measurement runs then.
    let _ = ALLOCATIONS.try_with(|allocations| allocations.set(allocations.get() + 1));
}

// SAFETY: every call is passed to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller keeps to the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: `pointer` came from `alloc` or `realloc` above, with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: `pointer` came from `alloc` or `realloc` above, with this layout.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations(work: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.get();
    work();
    ALLOCATIONS.get() - before
}

/// Counts without memory of its own: enough for one request at a time.
struct Gauge(u64);

impl Counters for Gauge {
    fn raise(&mut self, _upstream: UpstreamId, _counter: Counter) -> Option<u64> {
        self.0 += 1;
        Some(self.0)
    }

    fn lower(&mut self, _upstream: UpstreamId, _counter: Counter, by: u64) {
        self.0 -= by;
    }

    fn value(&mut self, _upstream: UpstreamId, _counter: Counter) -> Option<u64> {
        Some(self.0)
    }
}

fn at(millis: u64) -> Instant {
    Instant::from_nanos(millis * 1_000_000)
}

fn engine() -> (Engine, Vec<UpstreamId>) {
    let config = Config::from_json(SLO.as_bytes()).unwrap();
    let mut engine = Engine::new(config, at(0), 1);
    let upstreams = (0..UPSTREAMS)
        .map(|index| engine.upstream(&name(index), None, at(0)))
        .collect();
    (engine, upstreams)
}

fn name(index: u64) -> String {
    format!("outbound|80||service-{index}.shop.svc.cluster.local")
}

fn admit(
    engine: &mut Engine,
    upstream: UpstreamId,
    counters: &mut impl Counters,
    now: Instant,
) -> Option<Permit> {
    match engine.admit(upstream, &mut GivenRequest::default(), counters, now) {
        Decision::Admit(permit) => Some(permit),
        Decision::Shed(_) => None,
    }
}

#[test]
fn the_count_sees_allocations() {
    assert_eq!(allocations(|| drop(black_box(Box::new(7)))), 1);
}

#[test]
fn an_admitted_request_allocates_nothing() {
    let (mut engine, upstreams) = engine();
    let names: Vec<String> = (0..UPSTREAMS).map(name).collect();
    let outcomes = [
        Outcome::Success,
        Outcome::Ignored,
        Outcome::Cancelled,
        Outcome::Overload { retry_after: None },
        Outcome::Failure(Failure::Status),
    ];
    let mut gauge = Gauge(0);
    let mut round = |engine: &mut Engine, now: u64| {
        for (upstream, name) in upstreams.iter().zip(&names) {
            assert_eq!(engine.upstream(name, None, at(now)), *upstream);
            for outcome in outcomes {
                let mut permit = admit(engine, *upstream, &mut gauge, at(now)).unwrap();
                engine.respond(&mut permit, outcome, &mut gauge, at(now + 3));
                engine.complete(permit, outcome, &mut gauge, at(now + 5));
            }
        }
    };
    round(&mut engine, 10);
    engine.tick(&mut Unshared, at(100));
    assert_eq!(allocations(|| round(&mut engine, 110)), 0);
}

#[test]
fn a_shed_request_allocates_nothing() {
    let (mut engine, upstreams) = engine();
    let now = at(10);
    let mut held = Vec::new();
    for upstream in &upstreams {
        held.extend((0..4).filter_map(|_| admit(&mut engine, *upstream, &mut Unshared, now)));
    }
    assert_eq!(held.len(), 4_000);
    let mut shed = || {
        allocations(|| {
            for upstream in &upstreams {
                assert_eq!(admit(&mut engine, *upstream, &mut Unshared, now), None);
            }
        })
    };
    assert_eq!(
        shed(),
        2 * UPSTREAMS,
        "room for rationing and for counts of sheds, once"
    );
    assert_eq!(shed(), 0);
}

#[test]
fn an_open_breaker_allocates_nothing() {
    let (mut engine, upstreams) = engine();
    let opening = |engine: &mut Engine, upstream: UpstreamId| {
        // No success has ever come: that takes a second.
        for time in (0..100).map(|turn| at(10 + turn * 20)) {
            match engine.admit(upstream, &mut GivenRequest::default(), &mut Unshared, time) {
                Decision::Admit(permit) => {
                    let outcome = Outcome::Failure(Failure::Connection);
                    engine.complete(permit, outcome, &mut Unshared, time);
                }
                Decision::Shed(shed) => {
                    assert_eq!(shed.reason, ShedReason::BreakerOpen);
                    return;
                }
            }
        }
        unreachable!("a hundred failures in a row are an outage");
    };
    let mut refused = || {
        allocations(|| {
            for upstream in &upstreams {
                opening(&mut engine, *upstream);
            }
        })
    };
    assert_eq!(
        refused(),
        4 * UPSTREAMS,
        "room for failures, ages, the own trip and counts of sheds, once"
    );
    assert_eq!(refused(), 0);
}
