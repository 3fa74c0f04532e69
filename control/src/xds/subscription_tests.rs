use super::*;
use crate::xds::Name;

fn desired(resources: &[(&str, &str)]) -> Desired {
    resources
        .iter()
        .map(|(name, version)| Resource {
            name: Name::from(*name),
            version: ResourceVersion::new(version),
            body: format!("{name}={version}").into(),
        })
        .collect()
}

fn asks(names: &[&str]) -> SotwRequest {
    SotwRequest {
        names: names.iter().map(ToString::to_string).collect(),
        ..SotwRequest::default()
    }
}

fn accepts(push: &SotwPush, names: &[&str]) -> SotwRequest {
    SotwRequest {
        version: push.version.to_string(),
        nonce: push.nonce.clone(),
        ..asks(names)
    }
}

fn rejects(push: &SotwPush, names: &[&str]) -> SotwRequest {
    SotwRequest {
        version: String::new(),
        rejection: Some(Rejection::new(13, "no")),
        ..accepts(push, names)
    }
}

/// A subscription that runs `version` of `a`.
fn running(version: &str) -> (SotwSubscription, SotwPush) {
    let (mut subscription, world) = (SotwSubscription::default(), desired(&[("a", version)]));
    subscription.receive(&asks(&["a"]), &world).unwrap();
    let push = subscription.push(&world).unwrap();
    subscription
        .receive(&accepts(&push, &["a"]), &world)
        .unwrap();
    (subscription, push)
}

#[test]
fn nothing_is_pushed_before_a_request() {
    let mut subscription = SotwSubscription::default();
    assert_eq!(subscription.push(&desired(&[("a", "1")])), None);
    assert!(!subscription.is_wanted("a"));
}

#[test]
fn the_wanted_resource_is_pushed_and_its_acceptance_recorded() {
    let world = desired(&[("a", "1"), ("b", "2")]);
    let mut subscription = SotwSubscription::default();

    let reply = subscription.receive(&asks(&["b"]), &world).unwrap();
    assert_eq!(reply, PushReply::None);
    let push = subscription.push(&world).unwrap();
    assert_eq!(push.resources, [world.resource("b").unwrap().clone()]);
    assert_eq!(push.version, ResourceVersion::new("2"));
    assert_eq!(subscription.running("b"), None, "not before it says so");

    let reply = subscription
        .receive(&accepts(&push, &["b"]), &world)
        .unwrap();
    let version = Some(ResourceVersion::new("2"));
    assert_eq!(reply, PushReply::Accepted(vec![("b".into(), version)]));
    assert_eq!(subscription.running("b"), Some(&ResourceVersion::new("2")));
    assert_eq!(subscription.push(&world), None);
}

#[test]
fn a_rejected_version_is_not_pushed_again_and_the_previous_one_keeps_running() {
    let (mut subscription, _) = running("1");
    let bad = desired(&[("a", "2")]);
    let push = subscription.push(&bad).unwrap();

    let reply = subscription.receive(&rejects(&push, &["a"]), &bad).unwrap();

    let rejection = Rejection::new(13, "no");
    let versions = vec![("a".into(), Some(ResourceVersion::new("2")))];
    assert_eq!(reply, PushReply::Rejected(versions, rejection));
    assert_eq!(subscription.running("a"), Some(&ResourceVersion::new("1")));
    assert_eq!(subscription.push(&bad), None);
    assert_eq!(subscription.push(&desired(&[("a", "1")])), None, "runs it");
    assert!(subscription.push(&desired(&[("a", "3")])).is_some());
}

#[test]
fn repeated_rejections_count_once_and_cause_no_push() {
    let (mut subscription, _) = running("1");
    let bad = desired(&[("a", "2")]);
    let push = subscription.push(&bad).unwrap();
    let rejection = rejects(&push, &["a"]);
    subscription.receive(&rejection, &bad).unwrap();

    for _ in 0..1_000 {
        assert_eq!(subscription.receive(&rejection, &bad), Ok(PushReply::None));
        assert_eq!(subscription.push(&bad), None);
    }
}

#[test]
fn after_a_reconnect_the_wanted_version_is_not_pushed_again() {
    let world = desired(&[("a", "1")]);
    let mut subscription = SotwSubscription::default();
    let request = SotwRequest {
        version: "1".to_owned(),
        ..asks(&["a"])
    };

    subscription.receive(&request, &world).unwrap();

    assert_eq!(subscription.push(&world), None);
    assert_eq!(subscription.running("a"), Some(&ResourceVersion::new("1")));
    assert!(subscription.push(&desired(&[("a", "2")])).is_some());
}

#[test]
fn after_a_reconnect_another_version_is_replaced() {
    let world = desired(&[("a", "2")]);
    let mut subscription = SotwSubscription::default();
    let request = SotwRequest {
        version: "1".to_owned(),
        ..asks(&["a"])
    };

    subscription.receive(&request, &world).unwrap();

    assert_eq!(subscription.running("a"), Some(&ResourceVersion::new("1")));
    assert!(subscription.push(&world).is_some());
}

#[test]
fn after_a_reconnect_a_set_counts_as_held_only_as_a_whole() {
    let world = desired(&[("a", "1"), ("b", "2")]);
    let mut before = SotwSubscription::default();
    before.receive(&asks(&["a", "b"]), &world).unwrap();
    let both = before.push(&world).unwrap().version;

    for (version, is_pushed) in [(both.as_str(), false), ("1", true)] {
        let mut subscription = SotwSubscription::default();
        let request = SotwRequest {
            version: version.to_owned(),
            ..asks(&["a", "b"])
        };
        subscription.receive(&request, &world).unwrap();
        assert_eq!(subscription.push(&world).is_some(), is_pushed, "{version}");
    }
}

#[test]
fn an_answer_with_a_stale_nonce_is_ignored() {
    let (mut subscription, first) = running("1");
    let newer = desired(&[("a", "2")]);
    let second = subscription.push(&newer).unwrap();

    for stale in [asks(&["a"]), rejects(&first, &["a"])] {
        assert_eq!(subscription.receive(&stale, &newer), Ok(PushReply::Stale));
        assert_eq!(subscription.push(&newer), None, "one is under way");
    }

    assert_eq!(subscription.running("a"), Some(&ResourceVersion::new("1")));
    let reply = subscription.receive(&accepts(&second, &["a"]), &newer);
    assert!(matches!(reply, Ok(PushReply::Accepted(_))));
}

#[test]
fn a_resource_dropped_while_a_push_is_pending_is_pushed_again() {
    let (mut subscription, first) = running("1");
    let world = desired(&[("a", "1"), ("b", "1")]);
    let wants = accepts(&first, &["a", "b"]);
    subscription.receive(&wants, &world).unwrap();
    let second = subscription.push(&world).unwrap();

    for names in [&["b"][..], &["a", "b"]] {
        subscription
            .receive(&accepts(&first, names), &world)
            .unwrap();
    }
    let answer = accepts(&second, &["a", "b"]);
    subscription.receive(&answer, &world).unwrap();

    let third = subscription.push(&world).unwrap();
    assert_eq!(third.resources, [world.resource("a").unwrap().clone()]);
}

#[test]
fn another_name_gets_only_what_is_new() {
    let (mut subscription, push) = running("1");
    let world = desired(&[("a", "1"), ("b", "2")]);

    subscription
        .receive(&accepts(&push, &["a", "b"]), &world)
        .unwrap();

    let push = subscription.push(&world).unwrap();
    assert_eq!(push.resources, [world.resource("b").unwrap().clone()]);
    assert_ne!(
        push.version,
        ResourceVersion::new("2"),
        "it names the whole set"
    );
}

#[test]
fn a_resource_wanted_again_after_it_was_dropped_is_pushed_again() {
    let (mut subscription, push) = running("1");
    let world = desired(&[("a", "1")]);

    subscription.receive(&accepts(&push, &[]), &world).unwrap();
    assert_eq!(subscription.push(&world), None);
    subscription
        .receive(&accepts(&push, &["a"]), &world)
        .unwrap();

    assert!(subscription.push(&world).is_some());
}

#[test]
fn an_unknown_name_is_answered_once_it_exists() {
    let mut subscription = SotwSubscription::default();
    subscription
        .receive(&asks(&["later"]), &Desired::default())
        .unwrap();
    assert_eq!(subscription.push(&Desired::default()), None);

    let push = subscription.push(&desired(&[("later", "1")])).unwrap();
    assert_eq!(push.version, ResourceVersion::new("1"));
}

#[test]
fn an_empty_first_request_asks_for_all() {
    let world = desired(&[("a", "1"), ("b", "2")]);
    let mut subscription = SotwSubscription::default();
    subscription.receive(&asks(&[]), &world).unwrap();
    assert_eq!(subscription.push(&world).unwrap().resources.len(), 2);
}

#[test]
fn too_many_names_are_an_error() {
    let names: Vec<String> = (0..1_000).map(|i| i.to_string()).collect();
    let request = SotwRequest {
        names,
        ..SotwRequest::default()
    };
    let reply = SotwSubscription::default().receive(&request, &Desired::default());
    assert_eq!(reply, Err(Excess::Names));
}
