//! Case 3: a waypoint in ambient mode, with eight services behind it.
//!
//! One proxy serves all services, and it has one policy. Each service has its own limit, so the trouble of one service
//! does not affect the others. The certificate of the tunnel identifies the caller.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tidegate_meshbed::until;
use tidegate_testbed::client::Hbone;

use crate::ambient::{Ambient, CAPACITY};
use crate::door::one_at_a_time;
use crate::load::{SHED, pour_from};
use crate::mesh::ConformanceMesh;

const SERVICES: usize = 8;

/// The status that the rule for one service sets.
const SHED_BY_RULE: u16 = SHED + 1;

pub(crate) async fn each_service_behind_a_waypoint_has_its_own_limit(_: Arc<ConformanceMesh>) {
    // The case has its own mesh, because ambient mode is a setting of istiod.
    let ambient = Ambient::start("ambient", SERVICES).await;
    let web = ambient.way("web").await;
    for service in &ambient.services {
        service.door(&web).answers(200).await;
    }

    overload_of_one_service_is_shed_only_there(&ambient, &web).await;
    a_full_service_leaves_the_others_open(&ambient, &web).await;
    callers_are_known_by_certificate(&ambient, &web).await;
    a_policy_of_one_service_applies_only_to_it(&ambient, &web).await;
}

async fn overload_of_one_service_is_shed_only_there(ambient: &Ambient, web: &Hbone) {
    let settings = json!({"shed": {"status": SHED}});
    ambient.apply_policy(&settings).await;
    let (busy, others) = ambient.services.split_first().unwrap();
    let before = busy.upstream.counts().received;

    let duration = Duration::from_secs(8);
    let calm: Vec<_> = others
        .iter()
        .map(|service| {
            let caller = service.caller(web);
            tokio::spawn(async move { pour_from(&caller, 10, duration).await })
        })
        .collect();
    let tally = pour_from(&busy.caller(web), 2 * CAPACITY, duration).await;

    println!("2 x the capacity of one of eight services behind a waypoint: {tally:?}");
    tally.is_that_of_twice_the_capacity();
    let reached = busy.upstream.counts().received - before;
    assert_eq!(reached, tally.sum() - tally.shed, "{tally:?}");
    for (service, calm) in others.iter().zip(calm) {
        let tally = calm.await.unwrap();
        assert_eq!(
            (tally.shed, tally.lost),
            (0, 0),
            "{}: {tally:?}",
            service.cluster
        );
    }
}

async fn a_full_service_leaves_the_others_open(ambient: &Ambient, web: &Hbone) {
    let mut settings = one_at_a_time(SHED);
    settings["upstreams"] = json!([
        {"match": {"service": "svc-7.ambient"}, "shed": {"status": SHED_BY_RULE}},
    ]);
    ambient.apply_policy(&settings).await;

    for (number, service) in ambient.services.iter().enumerate() {
        let door = service.door(web);
        let status = if number == 7 { SHED_BY_RULE } else { SHED };
        let held = door.is_taken(&service.upstream, status).await;
        for other in &ambient.services {
            if other.cluster != service.cluster {
                let found = other.door(web).status().await;
                assert_eq!(found, 200, "{} beside {}", other.cluster, service.cluster);
            }
        }
        until("the metrics have the name of its cluster", async || {
            let metrics = ambient.waypoint.admin().tidegate().await.unwrap();
            ambient.services.iter().all(|one| {
                let expected = u64::from(one.cluster == service.cluster);
                metrics.value("in_flight", &one.cluster, &[]) == Some(expected)
            })
        })
        .await;
        drop(held);
        door.answers(200).await;
    }
}

async fn callers_are_known_by_certificate(ambient: &Ambient, web: &Hbone) {
    let mut settings = one_at_a_time(SHED);
    settings["criticality"] = json!({"rules": [{
        "clientIdentity": "spiffe://cluster.local/ns/ambient/sa/batch", "criticality": "sheddable",
    }]});
    ambient.apply_policy(&settings).await;
    let batch = ambient.way("batch").await;
    let service = &ambient.services[0];
    let shed = async |class: &str| {
        let metrics = ambient.waypoint.admin().tidegate().await.unwrap();
        let labels = [("criticality", class)];
        metrics
            .value("class_shed_total", &service.cluster, &labels)
            .unwrap_or(0)
    };

    let _held = service.door(web).is_taken(&service.upstream, SHED).await;
    until("the others are critical", async || {
        shed("critical").await > 0
    })
    .await;
    until("the batch job is sheddable", async || {
        assert_eq!(service.door(&batch).status().await, SHED);
        shed("sheddable").await > 0
    })
    .await;
}

async fn a_policy_of_one_service_applies_only_to_it(ambient: &Ambient, web: &Hbone) {
    let (one, others) = ambient.services.split_last().unwrap();
    ambient.delete_policy().await;
    let _held_before = one.door(web).hold(&one.upstream).await;
    // Each request uses a new tunnel, because older tunnels continue as before.
    until("the waypoint's policy is gone", async || {
        one.door(web).status().await == 200
    })
    .await;

    ambient
        .apply_service_policy("svc-7", &one_at_a_time(SHED))
        .await;
    until("the service's policy counts its requests", async || {
        assert_eq!(one.door(web).status().await, 200);
        let metrics = ambient.waypoint.admin().tidegate().await.unwrap();
        let plugin = [("plugin", "ambient.tidegate-svc-7")];
        metrics.value("requests_total", &one.cluster, &plugin) > Some(0)
    })
    .await;

    let _held = one.door(web).is_taken(&one.upstream, SHED).await;
    for other in others {
        let _held = other.door(web).hold(&other.upstream).await;
        let found = other.door(web).status().await;
        assert_eq!(found, 200, "{}", other.cluster);
    }
}
