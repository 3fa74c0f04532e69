//! What other workers, or neighbors on the same table, leave in shared data.

use std::sync::LazyLock;

use bolero::TypeGenerator;
use tidegate_core::config::Config;
use tidegate_core::{
    Decision, Directives, Engine, Failure, GivenRequest, Instant, Outcome, Slice, Unshared,
    UpstreamId,
};

use crate::envelope::{PREFIX, seal};

pub(crate) const SECOND: u64 = 1_000_000_000;

#[derive(Debug, TypeGenerator)]
struct Payload {
    /// Which true payload it is made from; none of them is empty.
    from: u8,
    /// What is written over it, and where.
    changes: Vec<(u16, u8)>,
    /// How much of its end goes.
    #[generator(0..4_u8)]
    cut: u8,
    /// What comes behind it.
    tail: Vec<u8>,
    /// Whether it gets a right checksum, as from another plugin that knows the format.
    is_sealed: bool,
}

/// What true payloads hold behind their prefix: nothing, slices and directives of an engine.
static TRUE: LazyLock<[Vec<u8>; 4]> = LazyLock::new(|| {
    let (mut engine, web) = engine();
    for at in 0..40 {
        let outcome = if at < 30 {
            Outcome::Success
        } else {
            Outcome::Failure(Failure::Timeout)
        };
        send(
            &mut engine,
            web,
            outcome,
            Instant::from_nanos(SECOND + at * SECOND / 50),
        );
    }
    // The first look begins a round, the second ends it.
    let [(slice, _), (_, decided)] = [2, 3].map(|second| {
        let now = Instant::from_nanos(second * SECOND);
        let slice = engine.slice(now);
        let decided = engine.decide(std::slice::from_ref(&slice), &mut Unshared, now);
        (slice, decided)
    });
    let (directives, _) = decided.unwrap();
    let now = Instant::from_nanos(3 * SECOND);
    let content = |bytes: Vec<u8>| bytes[PREFIX..].to_vec();
    [
        Vec::new(),
        content(slice.encode()),
        content(directives.encode()),
        content(engine.learned(now).encode()),
    ]
});

pub(crate) fn engine() -> (Engine, UpstreamId) {
    let config = r#"{"slo":{"latency":{"quantile":0.9,"target":"1s"}},"maxUpstreams":4}"#;
    let now = Instant::from_nanos(SECOND);
    let mut engine = Engine::of_many(Config::from_json(config.as_bytes()).unwrap(), now, 1);
    let web = engine.upstream("web", None, now);
    (engine, web)
}

fn send(engine: &mut Engine, upstream: UpstreamId, outcome: Outcome, now: Instant) {
    if let Decision::Admit(permit) =
        engine.admit(upstream, &mut GivenRequest::default(), &mut Unshared, now)
    {
        engine.complete(permit, outcome, &mut Unshared, now);
    }
}

#[test]
fn what_is_read_is_written_the_same_and_what_is_followed_is_plausible() {
    bolero::check!(name = "shared_data")
        .with_type::<Payload>()
        .with_iterations(2_000)
        .for_each(|payload: &Payload| {
            let mut content = TRUE[usize::from(payload.from) % TRUE.len()].clone();
            for (at, value) in &payload.changes {
                if let Some(place) = usize::from(*at).checked_rem(content.len()) {
                    content[place] = *value;
                }
            }
            content.truncate(content.len().saturating_sub(payload.cut.into()));
            content.extend_from_slice(&payload.tail);
            let bytes = if payload.is_sealed {
                seal(&content)
            } else {
                content
            };
            check_slice(&bytes);
            check_directives(&bytes);
        });
}

fn check_slice(bytes: &[u8]) {
    let Ok(slice) = Slice::decode(bytes) else {
        return;
    };
    assert_eq!(Slice::decode(slice.clone().encode()).as_ref(), Ok(&slice));
    // No more of them than there are bytes.
    assert!(slice.introductions().count() + slice.reports().count() <= bytes.len());
    let (mut engine, web) = engine();
    for round in 1..4 {
        let now = Instant::from_nanos(SECOND * (1 + round));
        let own = engine.slice(now);
        if let Some((directives, _)) = engine.decide(&[slice.clone(), own], &mut Unshared, now) {
            assert_eq!(
                Directives::decode(directives.clone().encode()).as_ref(),
                Ok(&directives),
                "plausible"
            );
            engine.adopt(&directives, now);
        }
        check_engine(&mut engine, web, now);
    }
}

fn check_directives(bytes: &[u8]) {
    let Ok(directives) = Directives::decode(bytes) else {
        return;
    };
    assert_eq!(
        Directives::decode(directives.clone().encode()).as_ref(),
        Ok(&directives)
    );
    assert!(directives.entries().count() <= bytes.len());
    let now = Instant::from_nanos(2 * SECOND);
    let (mut engine, web) = engine();
    engine.adopt(&directives, now);
    check_engine(&mut engine, web, now);
    let (mut engine, web) = self::engine();
    assert!(
        engine.follow(bytes, now).is_ok(),
        "what is adopted is followed"
    );
    check_engine(&mut engine, web, now);
}

pub(crate) fn check_engine(engine: &mut Engine, web: UpstreamId, now: Instant) {
    send(engine, web, Outcome::Success, now);
    engine.tick(&mut Unshared, now);
    let learned = engine.learned(now);
    assert_eq!(
        Directives::decode(learned.clone().encode()),
        Ok(learned),
        "all that is learned is plausible"
    );
    for upstream in engine.snapshot(now).upstreams {
        assert_eq!(
            [upstream.in_flight, upstream.uploading, upstream.open],
            [0; 3]
        );
        assert!(upstream.limit >= 1);
    }
}

#[test]
fn a_true_payload_gets_the_checksum_that_it_has() {
    let (mut engine, _) = engine();
    let encoded = engine.slice(Instant::from_nanos(SECOND)).encode();
    assert_eq!(seal(&encoded[PREFIX..]), encoded, "the format changed");
}
