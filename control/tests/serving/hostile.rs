//! Clients that do not follow the protocol: silent sockets, clients that send byte by byte, resets, thousands of
//! connections, and messages that make no sense.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use envoy_types::pb::envoy::config::core::v3::Node;
use envoy_types::pb::envoy::service::discovery::v3::{DeltaDiscoveryRequest, DiscoveryRequest};
use envoy_types::pb::google::protobuf::{ListValue, Struct, Value as WireValue, value::Kind};
use tidegate_testbed::client::{Call, CallReply, Caller};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::{interval, timeout};

use crate::proxy::{DeltaProxy, TYPE, TestProxy, first_push, limit};
use crate::stage::{BOUND, ServingStage, TOKEN, policy, until};

/// How long the service waits for silent clients. Tests use it if they wait for the end of that time.
const PATIENCE: Duration = Duration::from_millis(500);

/// What an HTTP/2 client sends first: the preface, and settings that change nothing.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00";

/// A connection from one of the loopback addresses.
async fn from(source: [u8; 4], addr: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((source, 0).into()).unwrap();
    timeout(BOUND, socket.connect(addr)).await.unwrap().unwrap()
}

/// Checks that the service ends this connection. Returns what it sent before.
async fn ended(socket: &mut TcpStream) -> Vec<u8> {
    let mut said = Vec::new();
    let end = timeout(BOUND, socket.read_to_end(&mut said)).await;
    assert!(end.is_ok(), "the connection stays open");
    said
}

/// Checks that the service still serves well-behaved clients. A busy machine may delay one for longer than `PATIENCE`: the service
/// then ends its connection as that of a silent client, and the client connects again.
async fn is_well(stage: &ServingStage) {
    let xds = stage.settings.xds;
    until("a proxy is served", async || {
        matches!(first_push(xds, "sound").await, Ok(Some(_)))
    })
    .await;
    let http = Caller::http1(stage.settings.http);
    assert_eq!(answer(&http, "/v1/policies").await.status, 200);
    let health = Caller::http1(stage.settings.health);
    assert_eq!(answer(&health, "/readyz").await.status, 200);
}

/// The first answer that comes, over a new connection each time.
async fn answer(caller: &Caller, path: &str) -> CallReply {
    let mut reply = None;
    until("a client has an answer", async || {
        reply = caller.get(path).await.ok();
        reply.is_some()
    })
    .await;
    reply.unwrap()
}

/// How many connections the service has closed at a port for this reason.
async fn turned_away(stage: &ServingStage, port: &str, reason: &str) -> usize {
    let http = Caller::http1(stage.settings.http);
    let text = answer(&http, "/metrics").await.body;
    let series = format!(
        "tidegate_control_connections_turned_away_total{{port=\"{port}\",reason=\"{reason}\"}} "
    );
    let text = String::from_utf8(text.to_vec()).unwrap();
    let value = text.lines().find_map(|line| line.strip_prefix(&series));
    value.map_or(0, |value| value.parse().unwrap())
}

/// A frame of HTTP/2.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut frame = length[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// The headers of a request without compression. Each one is a literal without indexing.
fn headers(method: &str, path: &str, more: &[(&str, &str)]) -> Vec<u8> {
    let pseudo = [
        (":method", method),
        (":scheme", "http"),
        (":authority", "localhost"),
        (":path", path),
    ];
    let mut block = Vec::new();
    for (name, value) in pseudo.iter().chain(more) {
        block.push(0);
        for text in [name, value] {
            // Below 127 the length is one byte.
            block.push(u8::try_from(text.len()).unwrap());
            block.extend(text.as_bytes());
        }
    }
    block
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_sockets_block_no_client_at_any_port() {
    let stage = ServingStage::with(|settings| {
        settings.max_proxies = 3;
        settings.patience = PATIENCE;
    })
    .await;
    let settings = &stage.settings;
    // These are more than the places for proxies and for health checks.
    for (name, port, count, saying) in [
        ("xds", settings.xds, 12, &b""[..]),
        ("xds", settings.xds, 12, PREFACE),
        ("xds", settings.xds, 12, &PREFACE[..10]),
        ("http", settings.http, 70, b""),
        ("http", settings.http, 70, PREFACE),
        ("health", settings.health, 70, b""),
    ] {
        let before = turned_away(&stage, name, "silent").await;
        let mut silent = Vec::new();
        for number in 0..count {
            let mut socket = from([127, 0, 1, number], port).await;
            socket.write_all(saying).await.unwrap();
            silent.push(socket);
        }

        is_well(&stage).await;

        for socket in &mut silent {
            ended(socket).await;
        }
        assert!(turned_away(&stage, name, "silent").await >= before + usize::from(count));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_sockets_time_out_in_the_handshake() {
    let folder = tempfile::tempdir().unwrap();
    let own = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (certificate, key) = (folder.path().join("crt"), folder.path().join("key"));
    std::fs::write(&certificate, own.cert.pem()).unwrap();
    std::fs::write(&key, own.signing_key.serialize_pem()).unwrap();
    let stage = ServingStage::with(|settings| {
        settings.patience = PATIENCE;
        settings.files.tls = Some(tidegate_control::net::ServerTlsFiles {
            certificate,
            key,
            client_authorities: None,
        });
    })
    .await;
    for port in [stage.settings.xds, stage.settings.http] {
        for saying in [&b""[..], b"\x16\x03\x01\x02\x00"] {
            let mut socket = from([127, 0, 0, 1], port).await;
            socket.write_all(saying).await.unwrap();
            ended(&mut socket).await;
        }
    }
    assert_eq!(stage.health("/healthz").await, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_sends_byte_by_byte_times_out() {
    let stage = ServingStage::with(|settings| settings.patience = PATIENCE).await;
    let put = format!(
        "PUT /v1/policies/a HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {TOKEN}\r\ncontent-length: 9999\r\n\r\n"
    );
    let fetch = [
        PREFACE.to_vec(),
        frame(
            1,
            4,
            1,
            &headers(
                "POST",
                "/envoy.service.extension.v3.ExtensionConfigDiscoveryService/FetchExtensionConfigs",
                &[("content-type", "application/grpc"), ("te", "trailers")],
            ),
        ),
    ];
    let (xds, http) = (stage.settings.xds, stage.settings.http);
    for (port, at_once) in [
        (http, Vec::new()),
        (http, b"GET /v1/proxies HTTP/1.1\r\nx: ".to_vec()),
        (http, put.into_bytes()),
        // These headers need a continuation frame.
        (
            http,
            [PREFACE.to_vec(), frame(1, 0, 1, &headers("GET", "/", &[]))].concat(),
        ),
        (xds, PREFACE[..5].to_vec()),
        (xds, fetch.concat()),
    ] {
        let mut socket = from([127, 0, 0, 1], port).await;
        socket.write_all(&at_once).await.unwrap();
        let (mut reading, mut writing) = socket.split();
        let dribble = async {
            let mut pace = interval(PATIENCE / 20);
            loop {
                pace.tick().await;
                if writing.write_all(b"x").await.is_err() {
                    std::future::pending::<()>().await;
                }
            }
        };
        let end = async {
            let mut said = Vec::new();
            // A reset also ends the connection.
            let _ = reading.read_to_end(&mut said).await;
        };
        let over = timeout(BOUND, async {
            tokio::select! { () = dribble => {}, () = end => {} }
        });
        assert!(
            over.await.is_ok(),
            "the service does not time out: {at_once:?}"
        );
    }
    is_well(&stage).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_without_a_request_is_ended() {
    let stage = ServingStage::with(|settings| settings.patience = PATIENCE).await;
    let mut mute = TestProxy::silent(stage.settings.xds, "mute").await;
    assert_eq!(mute.ended().await.code(), tonic::Code::DeadlineExceeded);

    // A stream with a request may be silent for any time.
    let mut quiet = TestProxy::connect(stage.settings.xds, "quiet", "").await;
    let first = quiet.pushed().await;
    quiet.accept(&first).await;
    let mut later = TestProxy::silent(stage.settings.xds, "later").await;
    assert_eq!(later.ended().await.code(), tonic::Code::DeadlineExceeded);
    stage.write("a.yaml", &policy("a", "quiet", 100));
    assert_eq!(limit(&quiet.pushed().await), 100);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_address_gets_only_its_share_of_connections_and_streams() {
    let stage = ServingStage::with(|settings| settings.max_per_peer = 4).await;
    let xds = stage.settings.xds;
    let mut held = Vec::new();
    for _ in 0..4 {
        held.push(from([127, 0, 2, 1], xds).await);
    }

    let mut fifth = from([127, 0, 2, 1], xds).await;
    assert_eq!(ended(&mut fifth).await, b"");
    assert_eq!(turned_away(&stage, "xds", "crowded").await, 1);
    is_well(&stage).await;

    // There is room again after these connections have ended.
    drop(held);
    until("there is room", async || {
        let mut socket = from([127, 0, 2, 1], xds).await;
        socket.write_all(PREFACE).await.unwrap();
        let mut answer = [0; 9];
        socket.read_exact(&mut answer).await.is_ok()
    })
    .await;

    // The service counts streams over all connections of an address.
    let channel = crate::proxy::channel(xds).await;
    let mut streams = Vec::new();
    for number in 0..4 {
        let mut proxy = TestProxy::on(channel.clone(), &number.to_string())
            .await
            .unwrap();
        proxy.ask("").await;
        proxy.pushed().await;
        streams.push(proxy);
    }
    let refused = TestProxy::on(channel.clone(), "4").await.err().unwrap();
    assert_eq!(refused.code(), tonic::Code::ResourceExhausted);
    drop(streams.pop());
    until("there is room for a stream", async || {
        TestProxy::on(channel.clone(), "5").await.is_ok()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_connections_block_no_proxy() {
    /// Connections at a time: the file descriptors must suffice for both sides.
    const BATCH: u32 = 500;
    let stage = ServingStage::with(|settings| {
        settings.max_proxies = 200;
        settings.max_per_peer = 50;
        settings.patience = PATIENCE;
    })
    .await;
    let mut sound = TestProxy::connect(stage.settings.xds, "sound", "").await;
    let first = sound.pushed().await;
    sound.accept(&first).await;
    for batch in 0..10_000 / BATCH {
        let mut flood = Vec::new();
        for number in 0..BATCH {
            // Half of the connections come from one address, and half from many addresses.
            let host = if number % 2 == 0 {
                1
            } else {
                u8::try_from(number / 2).unwrap()
            };
            let source = [127, 1, u8::try_from(batch).unwrap(), host];
            let port = [
                stage.settings.xds,
                stage.settings.http,
                stage.settings.health,
            ];
            flood.push(from(source, port[number as usize % 3]).await);
        }
        let max = 100 + batch;
        stage.write("a.yaml", &policy("a", "sound", max));

        let push = sound.pushed().await;
        assert_eq!(limit(&push), max);
        sound.accept(&push).await;
        assert_eq!(stage.health("/healthz").await, 200);
    }
    is_well(&stage).await;
    assert!(turned_away(&stage, "http", "crowded").await > 0);
    until("only the well-behaved proxy is left", async || {
        stage.proxies().await == 1
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_storm_of_resets_costs_only_its_connection() {
    let stage = ServingStage::start().await;
    let grpc = [("content-type", "application/grpc"), ("te", "trailers")];
    let stream =
        "/envoy.service.extension.v3.ExtensionConfigDiscoveryService/StreamExtensionConfigs";
    for (port, block) in [
        (stage.settings.xds, headers("POST", stream, &grpc)),
        (stage.settings.http, headers("GET", "/v1/proxies", &[])),
        (stage.settings.http, headers("GET", "/v1/events", &[])),
        (stage.settings.health, headers("GET", "/readyz", &[])),
    ] {
        let mut socket = from([127, 0, 0, 1], port).await;
        let mut storm = PREFACE.to_vec();
        for number in 0..10_000 {
            let id = 2 * number + 1;
            storm.extend(frame(1, 4, id, &block));
            // RST_STREAM with the code CANCEL.
            storm.extend(frame(3, 0, id, &[0, 0, 0, 8]));
        }
        let (mut reading, mut writing) = socket.split();
        let writes = async {
            // The service may close the connection while the client still writes.
            let _ = writing.write_all(&storm).await;
            let _ = writing.shutdown().await;
        };
        let reads = async {
            let mut said = Vec::new();
            let _ = reading.read_to_end(&mut said).await;
        };
        let over = timeout(BOUND, async { tokio::join!(writes, reads) }).await;
        assert!(over.is_ok(), "the storm is still being served");
        is_well(&stage).await;
    }
    until("the last well-behaved proxy is gone", async || {
        stage.proxies().await == 0
    })
    .await;
    // All places are free again. One address may open its full number of streams, one after the other.
    let mut streams = Vec::new();
    for number in 0..stage.settings.max_per_peer {
        let mut proxy = TestProxy::connect(stage.settings.xds, &number.to_string(), "").await;
        proxy.pushed().await;
        streams.push(proxy);
    }
}

/// A value with this depth of nesting.
fn nested(depth: usize) -> WireValue {
    let mut value = WireValue::default();
    for _ in 0..depth {
        let values = vec![value];
        value = WireValue {
            kind: Some(Kind::ListValue(ListValue { values })),
        };
    }
    value
}

#[tokio::test(flavor = "multi_thread")]
async fn an_oversized_node_is_rejected_with_the_reason() {
    let stage = ServingStage::start().await;
    let text = |length: usize| WireValue {
        kind: Some(Kind::StringValue("x".repeat(length))),
    };
    let metadata = |fields: Vec<(String, WireValue)>| {
        Some(Struct {
            fields: fields.into_iter().collect(),
        })
    };
    let node = |id: usize, cluster: usize, metadata: Option<Struct>| Node {
        id: "x".repeat(id),
        cluster: "x".repeat(cluster),
        metadata,
        ..Node::default()
    };
    let many = (0..300).map(|key| (key.to_string(), text(1))).collect();
    let large = vec![("a".to_owned(), text(65 << 10))];
    for (node, reason) in [
        (node(257, 0, None), "node.id: found 257 bytes"),
        (node(0, 0, None), "node.id: found 0 bytes"),
        (node(1, 257, None), "node.cluster: found 257 bytes"),
        (node(1, 1, metadata(large)), "node.metadata: found 66"),
        (node(1, 1, metadata(many)), "node.metadata: found 300 keys"),
    ] {
        let mut proxy = TestProxy::silent(stage.settings.xds, "").await;
        let request = DiscoveryRequest {
            node: Some(node.clone()),
            ..proxy.first("")
        };
        proxy.requests.send(request.clone()).await.unwrap();
        let end = proxy.ended().await;
        assert_eq!(end.code(), tonic::Code::InvalidArgument);
        assert!(end.message().starts_with(reason), "{}", end.message());

        let fetched = crate::proxy::fetch(stage.settings.xds, request).await;
        let end = fetched.unwrap_err();
        assert_eq!(
            end.code(),
            tonic::Code::InvalidArgument,
            "a fetch is rejected, too"
        );
    }
    let mut deep = TestProxy::silent(stage.settings.xds, "").await;
    let request = DiscoveryRequest {
        node: Some(node(1, 1, metadata(vec![("a".to_owned(), nested(200))]))),
        ..deep.first("")
    };
    deep.requests.send(request).await.unwrap();
    assert_ne!(deep.ended().await.code(), tonic::Code::Ok);
    until("none of them is left", async || stage.proxies().await == 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_parts_of_a_request_are_ignored_or_end_the_stream() {
    let stage = ServingStage::start().await;
    stage.write("a.yaml", &policy("a", "*", 100));
    let xds = stage.settings.xds;
    until("the policy is there", async || {
        let policies = stage.json("/v1/policies").await;
        policies["policies"][0]["name"] == "a"
    })
    .await;

    // An unknown type, versions that the service never had, and nonces of pushes that it never sent.
    let mut proxy = TestProxy::silent(xds, "edge").await;
    for type_url in [
        "",
        "type.googleapis.com/nonsense",
        "\u{0}",
        &"x".repeat(10_000),
    ] {
        let request = DiscoveryRequest {
            type_url: type_url.to_owned(),
            version_info: "x".repeat(10_000),
            response_nonce: "18446744073709551616".to_owned(),
            ..proxy.first("")
        };
        proxy.requests.send(request).await.unwrap();
    }
    assert_eq!(limit(&proxy.pushed().await), 100);

    let versions = |name: String, version: String| [(name, version)].into_iter().collect();
    for (names, initial) in [
        (
            vec!["tidegate".to_owned()],
            versions("x".repeat(100_000), "1".to_owned()),
        ),
        (
            vec!["tidegate".to_owned()],
            versions("tidegate".to_owned(), "x".repeat(100_000)),
        ),
        (
            vec!["*".to_owned()],
            versions("y".repeat(100_000), "x".repeat(100_000)),
        ),
    ] {
        let request = DeltaDiscoveryRequest {
            node: crate::proxy::node("delta"),
            type_url: TYPE.to_owned(),
            resource_names_subscribe: names,
            initial_resource_versions: initial,
            ..DeltaDiscoveryRequest::default()
        };
        let mut delta = DeltaProxy::connect(xds, request).await;
        let push = delta.pushed().await;
        assert_eq!(push.resources[0].name, "tidegate");
        assert_eq!(push.removed_resources, Vec::<String>::new());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_that_needs_dropped_metadata_gets_it() {
    let stage = ServingStage::start().await;
    let xds = stage.settings.xds;
    let text = |text: &str| WireValue {
        kind: Some(Kind::StringValue(text.to_owned())),
    };
    let connect = async || {
        let mut proxy = TestProxy::silent(xds, "edge").await;
        let fields = [("zone", text("a")), ("huge", text(&"x".repeat(10_000)))];
        let fields = fields.map(|(key, value)| (key.to_owned(), value)).into();
        let mut request = proxy.first("");
        request.node.as_mut().unwrap().metadata = Some(Struct { fields });
        proxy.requests.send(request).await.unwrap();
        let push = proxy.pushed().await;
        proxy.accept(&push).await;
        (proxy, push)
    };
    let (mut proxy, push) = connect().await;
    assert!(limit(&push).is_null());

    let by_zone = policy("a", "*", 100).replace("{id: '*'}", "{metadata: {zone: a}}");
    stage.write("a.yaml", &by_zone);

    assert_eq!(proxy.ended().await.code(), tonic::Code::Unavailable);
    let (mut proxy, push) = connect().await;
    assert_eq!(limit(&push), 100);
    // The proxy need not send the metadata again.
    stage.write(
        "a.yaml",
        &by_zone
            .replace("max: 100", "max: 200")
            .replace("zone: a", "zone: 'a*'"),
    );
    assert_eq!(limit(&proxy.pushed().await), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn open_pages_are_bounded_and_leave_room_for_others() {
    let stage = ServingStage::start().await;
    let look = async |source: IpAddr| {
        let IpAddr::V4(source) = source else { panic!() };
        let mut socket = from(source.octets(), stage.settings.http).await;
        let request = b"GET /v1/events HTTP/1.1\r\nhost: a\r\n\r\n";
        socket.write_all(request).await.unwrap();
        let mut status = [0; 12];
        socket.read_exact(&mut status).await.unwrap();
        (socket, String::from_utf8(status[9..].to_vec()).unwrap())
    };
    let mut pages = Vec::new();
    for number in 0..64 {
        let (page, status) = look([127, 0, 3, number].into()).await;
        assert_eq!(status, "200");
        pages.push(page);
    }

    assert_eq!(look([127, 0, 4, 1].into()).await.1, "503");
    is_well(&stage).await;

    pages.pop();
    until("a place is free", async || {
        look([127, 0, 4, 1].into()).await.1 == "200"
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_that_never_answers_delays_only_itself() {
    let stage = ServingStage::start().await;
    let mut mute = TestProxy::connect(stage.settings.xds, "mute", "").await;
    let first = mute.pushed().await;
    let mut sound = TestProxy::connect(stage.settings.xds, "sound", "").await;
    let push = sound.pushed().await;
    sound.accept(&push).await;

    for max in [100, 200, 300] {
        stage.write("a.yaml", &policy("a", "*", max));
        let push = sound.pushed().await;
        assert_eq!(limit(&push), max);
        sound.accept(&push).await;
    }

    // After its answer to the first push, the proxy gets the newest version, and none of those in between.
    mute.accept(&first).await;
    assert_eq!(limit(&mute.pushed().await), 300);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_storm_of_rejections_causes_no_push_and_affects_no_other_proxy() {
    let stage = ServingStage::start().await;
    let mut stormy = TestProxy::connect(stage.settings.xds, "stormy", "").await;
    let push = stormy.pushed().await;
    for _ in 0..10_000 {
        let rejection = TestProxy::rejection(&push, "never");
        stormy.requests.send(rejection).await.unwrap();
    }

    let mut sound = TestProxy::connect(stage.settings.xds, "sound", "").await;
    let first = sound.pushed().await;
    sound.accept(&first).await;
    stage.write("a.yaml", &policy("a", "*", 100));

    assert_eq!(limit(&sound.pushed().await), 100);
    // The next push to the proxy that rejects everything has another version.
    assert_eq!(limit(&stormy.pushed().await), 100);
    let metrics = stage.call(Call::get("/metrics")).await.body;
    let metrics = String::from_utf8(metrics.to_vec()).unwrap();
    let rejected = "tidegate_control_answers_total{verdict=\"rejected\"} 1\n";
    assert!(metrics.contains(rejected), "{metrics}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_megabytes_end_only_the_stream() {
    let stage = ServingStage::start().await;
    let mut proxy = TestProxy::silent(stage.settings.xds, "huge").await;
    let huge = DiscoveryRequest {
        version_info: "x".repeat(100 << 20),
        ..proxy.first("")
    };

    proxy.requests.send(huge).await.unwrap();

    assert_eq!(proxy.ended().await.code(), tonic::Code::OutOfRange);
    let mut sound = TestProxy::connect(stage.settings.xds, "sound", "").await;
    sound.pushed().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_requests_end_the_stream_with_a_reason() {
    let stage = ServingStage::start().await;
    for (id, names, code) in [
        ("", 1, tonic::Code::InvalidArgument),
        ("edge", 1_000, tonic::Code::ResourceExhausted),
    ] {
        let mut proxy = TestProxy::silent(stage.settings.xds, id).await;
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
async fn garbage_on_the_wire_ends_only_the_connection() {
    let stage = ServingStage::start().await;
    let rubbish = [
        b"GET / HTTP/1.1\r\n\r\n".to_vec(),
        vec![0xff; 100_000],
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nnonsense that is no frame at all".to_vec(),
    ];
    for bytes in rubbish {
        let mut socket = TcpStream::connect(stage.settings.xds).await.unwrap();
        // The service may close the connection while the client still writes.
        let _ = socket.write_all(&bytes).await;
        let _ = socket.shutdown().await;
        let mut answer = Vec::new();
        let end = timeout(BOUND, socket.read_to_end(&mut answer)).await;
        assert!(end.is_ok(), "the connection stays open");
    }
    // A message that is not protobuf: a frame header, followed by bytes that cannot be a field.
    let broken = Call::post(
        "/envoy.service.extension.v3.ExtensionConfigDiscoveryService/StreamExtensionConfigs",
        vec![0, 0, 0, 0, 3, 0xff, 0xff, 0xff],
    )
    .header("content-type", "application/grpc")
    .header("te", "trailers");
    let caller = Caller::http2(stage.settings.xds);
    let reply = timeout(BOUND, caller.call(&broken)).await.unwrap().unwrap();
    assert_ne!(reply.grpc_status(), Some(0));

    let mut sound = TestProxy::connect(stage.settings.xds, "sound", "").await;
    sound.pushed().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_above_the_bound_wait_until_others_end() {
    let stage = ServingStage::with(|settings| settings.max_proxies = 1).await;
    let mut first = TestProxy::connect(stage.settings.xds, "first", "").await;
    first.pushed().await;

    let second = tokio::spawn(TestProxy::connect(stage.settings.xds, "second", ""));
    assert_eq!(stage.proxies().await, 1);
    drop(first);

    let mut second = timeout(BOUND, second).await.unwrap().unwrap();
    second.pushed().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_stops_ends_streams_in_time() {
    let mut stage = ServingStage::with(|settings| settings.grace = Duration::from_secs(15)).await;
    let mut proxy = TestProxy::connect(stage.settings.xds, "edge", "").await;
    proxy.pushed().await;

    let stopped = timeout(Duration::from_secs(10), stage.stop()).await;

    assert!(stopped.is_ok(), "it waits for streams that do not end");
    assert_eq!(proxy.ended().await.code(), tonic::Code::Unavailable);
}
