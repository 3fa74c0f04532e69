use super::*;
use crate::config::RuleIndex;
use crate::exchange::Directives;

fn config() -> Config {
    let text = r#"{"slo":{"latency":{"quantile":0.99,"target":"300ms"}},"maxUpstreams":2}"#;
    Config::from_json(text.as_bytes()).unwrap()
}

fn at(seconds: u64) -> Instant {
    Instant::from_nanos(seconds * 1_000_000_000)
}

fn upstream(registry: &mut Registry, name: &str, seconds: u64) -> UpstreamId {
    registry.upstream(&config(), name, None, at(seconds))
}

#[test]
fn upstreams_beyond_the_cap_share_one_state_until_another_was_idle_long_enough() {
    let mut registry = Registry::new(&config(), at(0));
    let first = upstream(&mut registry, "a", 0);
    let second = upstream(&mut registry, "b", 30);
    assert_eq!(upstream(&mut registry, "c", 31), UpstreamId::OVERFLOW);
    assert_eq!(registry.overflowed(), 1);
    assert_eq!(upstream(&mut registry, "c", 61), first);
    assert_eq!(registry.slot(first).key.cluster, "c");
    assert_eq!(upstream(&mut registry, "b", 61), second);
}

fn keyed(rules: &str) -> Config {
    let text = format!(
        r#"{{"slo":{{"latency":{{"quantile":0.99,"target":"300ms"}}}},
            "maxUpstreams":2,"maxDestinations":2,"upstreams":[{rules}]}}"#
    );
    Config::from_json(text.as_bytes()).unwrap()
}

const FORWARDED: &str = r#"{"match":{"cluster":"forward"},"keyBy":"authority"}"#;

#[test]
fn the_configuration_or_the_name_of_a_cluster_decides_on_its_state() {
    let config = keyed(&format!(
        r#"{FORWARDED},{{"match":{{"cluster":"out"}},"keyBy":"none"}},
           {{"match":{{"cluster":"outbound|80||*.one.example"}},"keyBy":"cluster"}}"#
    ));
    let mut registry = Registry::new(&config, at(0));
    let mut found = |cluster| registry.look_up(&config, cluster, None, at(0));
    for _ in 0..2 {
        assert_eq!(found("forward"), Lookup::ByAuthority);
        assert_eq!(found("out"), Lookup::Nothing);
        assert_eq!(found("PassthroughCluster"), Lookup::Nothing);
        assert_eq!(found("outbound|80||*.example"), Lookup::Nothing);
        assert_eq!(found("web"), Lookup::Upstream(UpstreamId(1)));
        assert_eq!(
            found("outbound|80||*.one.example"),
            Lookup::Upstream(UpstreamId(2))
        );
    }
    assert_eq!(registry.places.len(), 2);
    assert_eq!(registry.overflowed(), 0);
}

#[test]
fn the_state_of_a_cluster_follows_the_configuration() {
    let (plain, by_authority) = (keyed(""), keyed(FORWARDED));
    let mut registry = Registry::new(&plain, at(0));
    let whole = Lookup::Upstream(UpstreamId(1));
    let look =
        |registry: &mut Registry, config: &Config| registry.look_up(config, "forward", None, at(0));
    assert_eq!(look(&mut registry, &plain), whole);
    registry.follow_config(&by_authority, at(1));
    assert_eq!(look(&mut registry, &by_authority), Lookup::ByAuthority);
    registry.follow_config(&plain, at(2));
    assert_eq!(look(&mut registry, &plain), whole);
}

#[test]
fn an_introduction_under_another_configuration_does_not_make_an_upstream() {
    let config = keyed(FORWARDED);
    let mut registry = Registry::new(&config, at(0));
    registry.introduce(&config, "forward", None, at(0));
    assert_eq!(
        registry.look_up(&config, "forward", None, at(0)),
        Lookup::ByAuthority
    );
}

#[test]
fn clusters_without_a_state_are_remembered_up_to_the_cap() {
    let config = keyed("");
    let mut registry = Registry::new(&config, at(0));
    for number in 0..10 {
        let cluster = format!("outbound|{number}||*.example.com");
        assert_eq!(
            registry.look_up(&config, &cluster, None, at(0)),
            Lookup::Nothing
        );
    }
    assert_eq!(registry.others.len(), 2);
}

#[test]
fn destinations_beyond_the_cap_get_no_state_until_another_was_idle_long_enough() {
    let config = keyed(FORWARDED);
    let mut registry = Registry::new(&config, at(0));
    let mut ask =
        |hash, seconds| registry.destination(&config, ("forward", None), hash, at(seconds));
    let (first, second) = (ask(10, 0), ask(20, 30));
    assert_eq!(ask(10, 0), first);
    assert_ne!(first, second);
    for hash in 30..1_000 {
        assert_eq!(ask(hash, 31), None);
    }
    assert_eq!(ask(30, 61), first);
    assert_eq!(ask(20, 61), second);
    assert_eq!(ask(10, 61), None);
    assert_eq!(registry.overflowed(), 971);
    assert_eq!(registry.rule(UpstreamId(1)), RuleIndex::Rule(0));
}

#[test]
fn an_upstream_in_use_or_led_for_others_keeps_its_place() {
    let mut registry = Registry::new(&config(), at(0));
    let (held, led) = (
        upstream(&mut registry, "held", 0),
        upstream(&mut registry, "led", 0),
    );
    registry.slot_mut(held).count_in_flight(1, at(1));
    registry.slot_mut(led).last_led = at(100);
    assert_eq!(upstream(&mut registry, "new", 120), UpstreamId::OVERFLOW);
    assert_eq!(upstream(&mut registry, "new", 160), led);
}

#[test]
fn learned_state_of_unseen_names_is_bounded_and_the_newest_stays() {
    let mut registry = Registry::new(&config(), at(0));
    for name in ["a", "b", "c", "d"] {
        let hash = UpstreamKey::hash(name, None);
        let directive = Directive {
            limit: 7,
            reserve: 7,
            ..Directive::unknown(hash)
        };
        let directives = Directives::new(1, at(1), [directive]);
        registry.adopt(&config(), &directives, FollowerRole::Worker, at(1));
        assert!(registry.unseen.len() <= 2);
    }
    let id = upstream(&mut registry, "d", 2);
    assert_eq!(registry.slot(id).ladder.limit(), 7);
}

/// A directive with this limit.
fn limited(name: &str, limit: u32) -> Directive {
    Directive {
        limit,
        reserve: limit,
        ..Directive::unknown(UpstreamKey::hash(name, None))
    }
}

#[test]
fn an_upstream_that_is_led_for_others_has_a_slot_from_its_first_request_on() {
    let mut registry = Registry::new(&config(), at(0));
    let id = registry.introduce(&config(), "web", None, at(0));
    assert_eq!(upstream(&mut registry, "web", 0), id);
    assert!(registry.led(id).is_some() && registry.served_key(id).is_none());
    assert_eq!(registry.key(id).cluster, "web");
    assert_eq!(registry.slots().count(), 1, "the shared one");
    registry.serve(&config(), id, Some(limited("web", 7)), at(1));
    assert!(registry.led(id).is_none());
    assert_eq!(registry.slot(id).ladder.limit(), 7);
    assert_eq!(registry.served_key(id).unwrap().cluster, "web");
}

#[test]
fn an_upstream_that_is_led_for_others_gives_up_its_place_as_others_do() {
    let mut registry = Registry::new(&config(), at(0));
    let first = registry.introduce(&config(), "first", None, at(0));
    let second = registry.introduce(&config(), "second", None, at(0));
    registry.note_led(first, at(100));
    assert_eq!(upstream(&mut registry, "new", 59), UpstreamId::OVERFLOW);
    assert_eq!(upstream(&mut registry, "new", 60), second);
    assert_eq!(registry.slot(second).key.cluster, "new");
}

#[test]
fn what_a_leader_knew_of_led_upstreams_outlives_its_term() {
    let mut registry = Registry::new(&config(), at(0));
    let id = registry.introduce(&config(), "web", None, at(0));
    let decided = [limited("web", 7), limited("unknown", 8)];
    registry.take_back(&config(), decided.iter());
    assert_eq!(registry.unseen.len(), 1);
    // Another leader follows, and then a request.
    let directives = Directives::new(2, at(1), [limited("web", 9)]);
    registry.adopt(&config(), &directives, FollowerRole::Worker, at(1));
    registry.serve(&config(), id, None, at(2));
    assert_eq!(registry.slot(id).ladder.limit(), 9);
    assert_eq!(registry.unseen.len(), 0);
}
