//! Proxies that do not keep to the protocol, and what is no proxy at all.

use std::time::Duration;

use envoy_types::pb::envoy::service::discovery::v3::DiscoveryRequest;
use tidegate_testbed::client::{Call, Caller};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::proxy::{Proxy, limit};
use crate::stage::{BOUND, Stage, policy, until};

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_that_never_answers_holds_up_only_itself() {
    let stage = Stage::start().await;
    let mut mute = Proxy::connect(stage.settings.xds, "mute", "").await;
    let first = mute.pushed().await;
    let mut sound = Proxy::connect(stage.settings.xds, "sound", "").await;
    let push = sound.pushed().await;
    sound.accept(&push).await;

    for max in [100, 200, 300] {
        stage.write("a.yaml", &policy("a", "*", max));
        let push = sound.pushed().await;
        assert_eq!(limit(&push), max);
        sound.accept(&push).await;
    }

    // Its answer to the first brings the newest, and none of those between.
    mute.accept(&first).await;
    assert_eq!(limit(&mute.pushed().await), 300);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_storm_of_refusals_brings_no_push_and_harms_nobody() {
    let stage = Stage::start().await;
    let mut stormy = Proxy::connect(stage.settings.xds, "stormy", "").await;
    let push = stormy.pushed().await;
    for _ in 0..10_000 {
        let refusal = Proxy::refusal(&push, "never");
        stormy.requests.send(refusal).await.unwrap();
    }

    let mut sound = Proxy::connect(stage.settings.xds, "sound", "").await;
    let first = sound.pushed().await;
    sound.accept(&first).await;
    stage.write("a.yaml", &policy("a", "*", 100));

    assert_eq!(limit(&sound.pushed().await), 100);
    // The next that the stormy one gets is another version.
    assert_eq!(limit(&stormy.pushed().await), 100);
    let metrics = stage.call(Call::get("/metrics")).await.body;
    let metrics = String::from_utf8(metrics.to_vec()).unwrap();
    let refused = "tidegate_control_answers_total{verdict=\"refused\"} 1\n";
    assert!(metrics.contains(refused), "{metrics}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_megabytes_end_the_stream_and_not_the_service() {
    let stage = Stage::start().await;
    let mut proxy = Proxy::silent(stage.settings.xds, "huge").await;
    let huge = DiscoveryRequest {
        version_info: "x".repeat(100 << 20),
        ..proxy.first("")
    };

    proxy.requests.send(huge).await.unwrap();

    assert_eq!(proxy.ended().await.code(), tonic::Code::OutOfRange);
    let mut sound = Proxy::connect(stage.settings.xds, "sound", "").await;
    sound.pushed().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_without_sense_end_the_stream_with_a_reason() {
    let stage = Stage::start().await;
    for (id, names, code) in [
        ("", 1, tonic::Code::InvalidArgument),
        ("edge", 1_000, tonic::Code::ResourceExhausted),
    ] {
        let mut proxy = Proxy::silent(stage.settings.xds, id).await;
        let request = DiscoveryRequest {
            resource_names: (0..names).map(|i| i.to_string()).collect(),
            ..proxy.first("")
        };
        proxy.requests.send(request).await.unwrap();
        assert_eq!(proxy.ended().await.code(), code);
    }
    until("none of them is left", async || stage.proxies().await == 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rubbish_on_the_wire_ends_the_connection_and_not_the_service() {
    let stage = Stage::start().await;
    let rubbish = [
        b"GET / HTTP/1.1\r\n\r\n".to_vec(),
        vec![0xff; 100_000],
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nnonsense that is no frame at all".to_vec(),
    ];
    for bytes in rubbish {
        let mut socket = TcpStream::connect(stage.settings.xds).await.unwrap();
        // The service may hang up while it is still being written to.
        let _ = socket.write_all(&bytes).await;
        let _ = socket.shutdown().await;
        let mut answer = Vec::new();
        let end = timeout(BOUND, socket.read_to_end(&mut answer)).await;
        assert!(end.is_ok(), "the connection stays open");
    }
    // A message that is no protobuf: frame header, then bytes that cannot be a field.
    let broken = Call::post(
        "/envoy.service.extension.v3.ExtensionConfigDiscoveryService/StreamExtensionConfigs",
        vec![0, 0, 0, 0, 3, 0xff, 0xff, 0xff],
    )
    .header("content-type", "application/grpc")
    .header("te", "trailers");
    let caller = Caller::http2(stage.settings.xds);
    let reply = timeout(BOUND, caller.call(&broken)).await.unwrap().unwrap();
    assert_ne!(reply.grpc_status(), Some(0));

    let mut sound = Proxy::connect(stage.settings.xds, "sound", "").await;
    sound.pushed().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn beyond_the_bound_connections_wait_until_others_end() {
    let stage = Stage::with(|settings| settings.max_proxies = 1).await;
    let mut first = Proxy::connect(stage.settings.xds, "first", "").await;
    first.pushed().await;

    let second = tokio::spawn(Proxy::connect(stage.settings.xds, "second", ""));
    assert_eq!(stage.proxies().await, 1);
    drop(first);

    let mut second = timeout(BOUND, second).await.unwrap().unwrap();
    second.pushed().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_stops_ends_streams_in_time() {
    let mut stage = Stage::with(|settings| settings.grace = Duration::from_secs(15)).await;
    let mut proxy = Proxy::connect(stage.settings.xds, "edge", "").await;
    proxy.pushed().await;

    let stopped = timeout(Duration::from_secs(10), stage.stop()).await;

    assert!(
        stopped.is_ok(),
        "it waits for streams that could go on for ever"
    );
    assert_eq!(proxy.ended().await.code(), tonic::Code::Unavailable);
}
