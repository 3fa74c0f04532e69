use super::*;

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

fn strings(names: &[&str]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

fn subscribes(names: &[&str]) -> DeltaRequest {
    DeltaRequest {
        subscribe: strings(names),
        ..DeltaRequest::default()
    }
}

fn accepts(push: &DeltaPush) -> DeltaRequest {
    DeltaRequest {
        nonce: push.nonce.clone(),
        ..DeltaRequest::default()
    }
}

fn rejects(push: &DeltaPush) -> DeltaRequest {
    DeltaRequest {
        rejection: Some(Rejection::new(13, "no")),
        ..accepts(push)
    }
}

/// A subscription that runs `version` of `a`.
fn running(version: &str) -> DeltaSubscription {
    let (mut subscription, world) = (DeltaSubscription::default(), desired(&[("a", version)]));
    subscription.receive(&subscribes(&["a"])).unwrap();
    let push = subscription.push(&world).unwrap();
    subscription.receive(&accepts(&push)).unwrap();
    subscription
}

#[test]
fn only_what_changed_is_pushed() {
    let mut subscription = DeltaSubscription::default();
    subscription.receive(&subscribes(&["a", "b"])).unwrap();
    let push = subscription
        .push(&desired(&[("a", "1"), ("b", "1")]))
        .unwrap();
    assert_eq!(push.resources.len(), 2);
    subscription.receive(&accepts(&push)).unwrap();

    let world = desired(&[("a", "1"), ("b", "2")]);
    let push = subscription.push(&world).unwrap();

    assert_eq!(push.resources, [world.resource("b").unwrap().clone()]);
    assert!(push.removed.is_empty());
}

#[test]
fn after_a_reconnect_only_what_differs_is_pushed() {
    let world = desired(&[("a", "1"), ("b", "2")]);
    let mut subscription = DeltaSubscription::default();
    let versions = [("a", "1"), ("b", "1")].map(|(n, v)| (n.to_owned(), v.to_owned()));
    let request = DeltaRequest {
        initial_versions: versions.into(),
        ..subscribes(&["a", "b"])
    };

    subscription.receive(&request).unwrap();

    let push = subscription.push(&world).unwrap();
    assert_eq!(push.resources, [world.resource("b").unwrap().clone()]);
    assert_eq!(subscription.running("b"), Some(&ResourceVersion::new("1")));
}

#[test]
fn a_later_subscription_to_a_held_resource_is_answered() {
    let mut subscription = running("1");
    let world = desired(&[("a", "1")]);
    assert_eq!(subscription.push(&world), None);

    subscription.receive(&subscribes(&["a"])).unwrap();

    assert!(subscription.push(&world).is_some());
}

#[test]
fn a_missing_resource_is_reported_as_removed_once() {
    let mut subscription = DeltaSubscription::default();
    subscription.receive(&subscribes(&["ghost"])).unwrap();

    let push = subscription.push(&Desired::default()).unwrap();
    assert_eq!(push.removed, [Name::from("ghost")]);
    subscription.receive(&accepts(&push)).unwrap();

    assert_eq!(subscription.push(&Desired::default()), None);
    assert!(subscription.push(&desired(&[("ghost", "1")])).is_some());
}

#[test]
fn a_deleted_resource_is_removed() {
    for all in [false, true] {
        let mut subscription = DeltaSubscription::default();
        let names: &[&str] = if all { &["*"] } else { &["a"] };
        subscription.receive(&subscribes(names)).unwrap();
        let push = subscription.push(&desired(&[("a", "1")])).unwrap();
        subscription.receive(&accepts(&push)).unwrap();

        let push = subscription.push(&Desired::default()).unwrap();
        assert_eq!(push.removed, [Name::from("a")]);
        subscription.receive(&accepts(&push)).unwrap();

        assert_eq!(subscription.push(&Desired::default()), None);
    }
}

#[test]
fn a_stale_nonce_voids_the_answer_but_not_the_subscription() {
    let mut subscription = running("1");
    let world = desired(&[("a", "2"), ("b", "1")]);
    subscription.push(&world).unwrap();

    let request = DeltaRequest {
        nonce: "1".to_owned(),
        rejection: Some(Rejection::new(13, "late")),
        ..subscribes(&["b"])
    };
    assert_eq!(subscription.receive(&request), Ok(PushReply::Stale));

    assert!(subscription.is_wanted("b"));
    let answer = DeltaRequest {
        nonce: "2".to_owned(),
        ..DeltaRequest::default()
    };
    assert!(matches!(
        subscription.receive(&answer),
        Ok(PushReply::Accepted(_))
    ));
    assert_eq!(subscription.push(&world).unwrap().resources.len(), 1);
}

#[test]
fn a_rejected_version_is_followed_only_by_another() {
    let mut subscription = running("1");
    let push = subscription.push(&desired(&[("a", "2")])).unwrap();

    let reply = subscription.receive(&rejects(&push)).unwrap();

    assert!(matches!(reply, PushReply::Rejected(_, rejection) if rejection.message == "no"));
    assert_eq!(subscription.push(&desired(&[("a", "2")])), None);
    assert_eq!(subscription.running("a"), Some(&ResourceVersion::new("1")));
    assert!(subscription.push(&desired(&[("a", "3")])).is_some());
}

#[test]
fn an_unsubscribed_resource_is_no_longer_pushed() {
    let mut subscription = running("1");
    let request = DeltaRequest {
        unsubscribe: strings(&["a"]),
        ..DeltaRequest::default()
    };

    subscription.receive(&request).unwrap();

    assert_eq!(subscription.push(&desired(&[("a", "2")])), None);
}

#[test]
fn too_many_initial_versions_are_an_error() {
    let versions = (0..1_000).map(|i| (i.to_string(), String::new()));
    let request = DeltaRequest {
        initial_versions: versions.collect(),
        ..DeltaRequest::default()
    };
    let reply = DeltaSubscription::default().receive(&request);
    assert_eq!(reply, Err(Excess::Names));
}
