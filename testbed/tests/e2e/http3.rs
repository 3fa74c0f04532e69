//! HTTP/3: callers that reach the filter over QUIC. A second Envoy translates their HTTP/1.1 or HTTP/2 calls.

use std::sync::LazyLock;
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use serde_json::{Value, json};
use tidegate_testbed::client::{Call, Caller};
use tidegate_testbed::envoy::{Cluster, Envoy, Plugin};
use tidegate_testbed::upstream::{Script, Upstream};

use crate::config::fixed_limit;
use crate::load::{Crowd, together};
use crate::stage::{Stage, chain, ensure};
use crate::turn;

/// The host name in the certificate.
const NAME: &str = "tidegate.test";
/// The body of a shed request's answer.
const BUSY: &str = "come back later";
const RESOURCE_EXHAUSTED: u32 = 8;
const UNAVAILABLE: u32 = 14;

/// An authority, and the certificate that it signed for [`NAME`]; in PEM.
struct Certificates {
    authority: String,
    certificate: String,
    key: String,
}

static CERTIFICATES: LazyLock<Certificates> = LazyLock::new(|| {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    // With rcgen's default name, which the other certificate also has, that one would look self-signed.
    params
        .distinguished_name
        .push(DnType::CommonName, "authority");
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let params = CertificateParams::new(vec![NAME.to_owned()]).unwrap();
    let key = KeyPair::generate().unwrap();
    Certificates {
        certificate: params.signed_by(&key, &authority).unwrap().pem(),
        key: key.serialize_pem(),
        authority: authority.pem(),
    }
});

/// Makes the listener speak only HTTP/3.
fn listen_with_quic(bootstrap: &mut Value) {
    let listener = &mut bootstrap["static_resources"]["listeners"][0];
    listener["address"]["socket_address"]["protocol"] = json!("UDP");
    listener["udp_listener_config"] = json!({"quic_options": {}});
    let chain = &mut listener["filter_chains"][0];
    chain["filters"][0]["typed_config"]["codec_type"] = json!("HTTP3");
    let tls = json!({"tls_certificates": [{
        "certificate_chain": {"inline_string": CERTIFICATES.certificate},
        "private_key": {"inline_string": CERTIFICATES.key},
    }]});
    chain["transport_socket"] = json!({
        "name": "envoy.transport_sockets.quic",
        "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.transport_sockets.quic.v3.QuicDownstreamTransport",
            "downstream_tls_context": {"common_tls_context": tls},
        },
    });
}

/// Makes Envoy reach its only cluster with HTTP/3.
fn connect_with_quic(bootstrap: &mut Value) {
    let cluster = &mut bootstrap["static_resources"]["clusters"][0];
    let options = &mut cluster["typed_extension_protocol_options"]["envoy.extensions.upstreams.http.v3.HttpProtocolOptions"];
    options["explicit_http_config"] = json!({"http3_protocol_options": {}});
    let trusted = json!({"trusted_ca": {"inline_string": CERTIFICATES.authority}});
    cluster["transport_socket"] = json!({
        "name": "envoy.transport_sockets.quic",
        "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.transport_sockets.quic.v3.QuicUpstreamTransport",
            "upstream_tls_context": {
                "sni": NAME,
                "common_tls_context": {"validation_context": trusted},
            },
        },
    });
}

/// The Envoy with the filter, and the Envoy that translates.
struct Quic {
    stage: Stage,
    translator: Envoy,
}

impl Quic {
    /// Starts both; the filter guards `cluster`.
    async fn start(cluster: Cluster, document: &Value) -> Self {
        let turn = turn::shared().await;
        let guard = Envoy::builder()
            .cluster(cluster)
            .plugin(Plugin::tidegate(document))
            .route_timeout(Duration::ZERO)
            .edit(listen_with_quic);
        let stage = Stage::start(turn, guard).await;
        let translator = Envoy::builder()
            .cluster(Cluster::new("guard", stage.envoy.addr()))
            .route_timeout(Duration::ZERO)
            .edit(connect_with_quic)
            .start()
            .await;
        let translator = translator.unwrap_or_else(|error| panic!("{}", chain(&error)));
        Self { stage, translator }
    }

    /// Fails unless this many requests came over HTTP/3.
    async fn ensure_http3(&self, requests: u64) {
        let admin = self.stage.envoy.admin();
        let name = "http.ingress.downstream_rq_http3_total";
        let stats = admin.stats(name).await.unwrap();
        let found = stats.get(name).copied();
        ensure!(
            self.stage,
            found == Some(requests),
            "{found:?} requests over HTTP/3, expected {requests}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_over_http3_are_served_shed_and_reset() {
    let script = |head: &tidegate_testbed::upstream::RequestHead| {
        Some(match head.path.as_str() {
            "/held" => Script::Hang,
            "/broken" => Script::Reset,
            "/stream" => Script::Stream {
                chunks: 10_000,
                every: Duration::from_millis(50),
            },
            _ => Script::status(200),
        })
    };
    let upstream = Upstream::builder("main").script(script).start();
    let upstream = upstream.await.unwrap();
    // Latency ends with the response, so that a stream counts as in flight.
    let slo = json!({"latency": {"quantile": 0.99, "target": "300ms", "until": "end"}});
    let document = fixed_limit(4, json!({"slo": slo, "shed": {"body": BUSY}}));
    let quic = Quic::start(Cluster::new("main", upstream.addr()), &document).await;
    let (stage, caller) = (&quic.stage, Caller::http1(quic.translator.addr()));

    let tally = together(&caller, &Call::get("/"), 4).await;
    ensure!(stage, tally.ok == 4, "{tally:?}");
    stage.until_sum("in_flight", "main", 0).await;
    let broken = caller.get("/broken").await.unwrap();
    ensure!(stage, broken.status == 503, "{broken:?}");
    stage.until_sum("in_flight", "main", 0).await;

    // Two requests that are not answered and two endless streams fill the limit.
    let held = Crowd::send(&caller, &Call::get("/held"), 2);
    let mut streams = Vec::new();
    for _ in 0..2 {
        let mut stream = caller.start(&Call::get("/stream")).await.unwrap();
        stream.chunk().await.unwrap();
        streams.push(stream);
    }
    stage.until_sum("in_flight", "main", 4).await;
    let shed = caller.get("/").await.unwrap();
    ensure!(
        stage,
        shed.status == 503 && shed.details() == Some("tidegate_shed_limit"),
        "{shed:?}"
    );
    ensure!(stage, shed.body == BUSY.as_bytes(), "{shed:?}");
    ensure!(stage, shed.header("retry-after").is_some(), "{shed:?}");

    // The callers leave: the translator resets the streams, before and after the response headers.
    drop(held);
    drop(streams);
    stage.until_sum("in_flight", "main", 0).await;
    let tally = together(&caller, &Call::get("/"), 4).await;
    ensure!(stage, tally.ok == 4, "{tally:?}");
    stage.until_sum("in_flight", "main", 0).await;
    stage.until_sum("requests_admitted_total", "main", 13).await;
    stage
        .until("one has failed and four were cancelled", async || {
            let metrics = stage.metrics().await;
            let outcome =
                |name: &str| metrics.value("outcomes_total", "main", &[("outcome", name)]);
            outcome("failure") == Some(1) && outcome("cancelled") == Some(4)
        })
        .await;
    let metrics = stage.metrics().await;
    ensure!(stage, metrics.sum("faults_total", "") == 0, "{metrics:?}");
    quic.ensure_http3(14).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn grpc_over_http3_is_judged_by_its_status_and_shed_as_grpc() {
    let script = |head: &tidegate_testbed::upstream::RequestHead| {
        Some(match head.path.as_str() {
            "/shop.Cart/Held" => Script::Hang,
            "/shop.Cart/Dead" => Script::grpc(UNAVAILABLE),
            _ => Script::grpc(0),
        })
    };
    let upstream = Upstream::builder("main").script(script).start();
    let upstream = upstream.await.unwrap();
    let document = fixed_limit(1, json!({}));
    let cluster = Cluster::new("main", upstream.addr()).http2();
    let quic = Quic::start(cluster, &document).await;
    let (stage, caller) = (&quic.stage, Caller::http2(quic.translator.addr()));

    for (path, status) in [("/shop.Cart/Get", 0), ("/shop.Cart/Dead", UNAVAILABLE)] {
        let reply = caller.call(&Call::grpc(path)).await.unwrap();
        ensure!(stage, reply.grpc_status() == Some(status), "{reply:?}");
        stage.until_sum("in_flight", "main", 0).await;
    }
    let held = Crowd::send(&caller, &Call::grpc("/shop.Cart/Held"), 1);
    stage.until_sum("in_flight", "main", 1).await;
    let shed = caller.call(&Call::grpc("/shop.Cart/Get")).await.unwrap();
    ensure!(
        stage,
        shed.status == 200 && shed.grpc_status() == Some(RESOURCE_EXHAUSTED),
        "{shed:?}"
    );
    let pushback = shed.header("grpc-retry-pushback-ms");
    ensure!(stage, pushback.is_some(), "{shed:?}");
    drop(held);
    stage.until_sum("in_flight", "main", 0).await;
    stage
        .until("one has failed", async || {
            let failure = [("outcome", "failure")];
            let metrics = stage.metrics().await;
            metrics.value("outcomes_total", "main", &failure) == Some(1)
        })
        .await;
    quic.ensure_http3(4).await;
}
