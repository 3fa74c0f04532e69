//! TLS: which clients are allowed, and certificates that change.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use envoy_types::pb::envoy::service::discovery::v3::DiscoveryRequest;
use envoy_types::pb::envoy::service::extension::v3::extension_config_discovery_service_client::ExtensionConfigDiscoveryServiceClient;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, SanType, date_time_ymd,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tidegate_control::net::{PortProtocol, ReloadOutcome, ServerTlsFiles, Tls};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint};

use crate::proxy::node;
use crate::stage::{BOUND, ServingStage, TOKEN, policy, until};

/// A certificate authority.
type Authority = CertifiedIssuer<'static, KeyPair>;

/// A certificate and its key, as PEM.
struct Identity {
    certificate: String,
    key: String,
}

fn authority() -> Authority {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

fn signed(authority: &Authority, names: &[SanType], until_year: i32) -> Identity {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.subject_alt_names = names.to_vec();
    params.not_before = date_time_ymd(2000, 1, 1);
    params.not_after = date_time_ymd(until_year, 1, 1);
    let key = KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, authority).unwrap();
    Identity {
        certificate: certificate.pem(),
        key: key.serialize_pem(),
    }
}

fn server(authority: &Authority) -> Identity {
    signed(
        authority,
        &[SanType::DnsName("localhost".try_into().unwrap())],
        4000,
    )
}

fn client(authority: &Authority, name: &str, until_year: i32) -> Identity {
    signed(
        authority,
        &[SanType::URI(name.try_into().unwrap())],
        until_year,
    )
}

fn install(folder: &Path, identity: &Identity) {
    fs::write(folder.join("tls.key"), &identity.key).unwrap();
    fs::write(folder.join("tls.crt"), &identity.certificate).unwrap();
}

/// A service that accepts clients of `authority` whose name matches `allowed`. The client `spiffe://tests/good/admin`
/// may write.
async fn stage(authority: &Authority, allowed: &str) -> (ServingStage, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    install(folder.path(), &server(authority));
    fs::write(folder.path().join("ca.crt"), authority.pem()).unwrap();
    let files = ServerTlsFiles {
        certificate: folder.path().join("tls.crt"),
        key: folder.path().join("tls.key"),
        client_authorities: Some(folder.path().join("ca.crt")),
    };
    list(folder.path(), "clients", allowed);
    list(folder.path(), "writers", "spiffe://tests/good/admin");
    let stage = ServingStage::with(|settings| {
        settings.files.tls = Some(files);
        settings.files.clients = Some(folder.path().join("clients"));
        settings.files.writers = Some(folder.path().join("writers"));
    })
    .await;
    (stage, folder)
}

/// Writes a list that contains one name.
fn list(folder: &Path, file: &str, name: &str) {
    fs::write(folder.join(file), format!("# a comment\n{name}\n")).unwrap();
}

fn config(trusted: &Authority, identity: Option<&Identity>) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    match identity {
        None => builder.with_no_client_auth(),
        Some(identity) => {
            let chain = CertificateDer::from_pem_slice(identity.certificate.as_bytes()).unwrap();
            let key = PrivateKeyDer::from_pem_slice(identity.key.as_bytes()).unwrap();
            builder.with_client_auth_cert(vec![chain], key).unwrap()
        }
    }
}

/// The status of the answer to a request over HTTP/1.1, or the error.
async fn answer(
    stage: &ServingStage,
    config: ClientConfig,
    request: &str,
) -> Result<String, String> {
    let text = exchange(stage, config, request).await?;
    Ok(text.split(' ').nth(1).unwrap_or_default().to_owned())
}

/// The answer to a request over HTTP/1.1, or the error.
async fn exchange(
    stage: &ServingStage,
    config: ClientConfig,
    request: &str,
) -> Result<String, String> {
    let exchange = async {
        let socket = TcpStream::connect(stage.settings.http).await?;
        let name = ServerName::try_from("localhost").unwrap();
        let mut stream = TlsConnector::from(Arc::new(config))
            .connect(name, socket)
            .await?;
        stream.write_all(request.as_bytes()).await?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        Ok(String::from_utf8_lossy(&answer).into_owned())
    };
    let ended = timeout(BOUND, exchange).await.expect("an end in time");
    ended.map_err(|error: std::io::Error| error.to_string())
}

/// A page that follows the events.
async fn watch(stage: &ServingStage, config: ClientConfig) -> TlsStream<TcpStream> {
    let socket = TcpStream::connect(stage.settings.http).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let connector = TlsConnector::from(Arc::new(config));
    let mut stream = connector.connect(name, socket).await.unwrap();
    stream
        .write_all(get("/v1/events").as_bytes())
        .await
        .unwrap();
    let mut first = [0; 15];
    stream.read_exact(&mut first).await.unwrap();
    assert_eq!(&first, b"HTTP/1.1 200 OK");
    stream
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
}

fn put() -> String {
    let body = policy("a", "*", 100);
    let length = body.len();
    format!(
        "PUT /v1/policies/a HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn only_clients_on_the_list_may_read() {
    let authority = authority();
    let (stage, _folder) = stage(&authority, "spiffe://tests/good/*").await;
    let good = client(&authority, "spiffe://tests/good/one", 4000);
    let unlisted = client(&authority, "spiffe://tests/other/one", 4000);

    let answered = answer(&stage, config(&authority, Some(&good)), &get("/v1/proxies")).await;
    assert_eq!(answered.as_deref(), Ok("200"));
    for path in ["/metrics", "/v1/proxies"] {
        let config = config(&authority, Some(&unlisted));
        assert_eq!(
            answer(&stage, config, &get(path)).await.as_deref(),
            Ok("403")
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_s_certificate_cannot_change_a_policy() {
    let authority = authority();
    let (stage, folder) = stage(&authority, "spiffe://tests/good/*").await;
    let writes = async |name: &str, request: String| {
        let identity = client(&authority, name, 4000);
        let config = config(&authority, Some(&identity));
        answer(&stage, config, &request).await.unwrap()
    };
    let delete = || put().replacen("PUT", "DELETE", 1);
    let (admin, proxy) = ("spiffe://tests/good/admin", "spiffe://tests/good/proxy");

    assert_eq!(writes(proxy, put()).await, "401");
    assert_eq!(writes(admin, put()).await, "201", "without a token");
    assert_eq!(writes(proxy, delete()).await, "401");
    let with_token = put().replace(
        "connection",
        &format!("authorization: Bearer {TOKEN}\r\nif-match: *\r\nconnection"),
    );
    assert_eq!(writes(proxy, with_token).await, "200", "with the token");

    // The service reads the list again. A client that is no longer on it may not write.
    list(folder.path(), "writers", proxy);
    until("the proxy may write", async || {
        writes(proxy, delete()).await == "204"
    })
    .await;
    assert_eq!(writes(admin, put()).await, "401");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_list_of_writers_certificates_allow_no_writes() {
    let authority = authority();
    let folder = tempfile::tempdir().unwrap();
    install(folder.path(), &server(&authority));
    fs::write(folder.path().join("ca.crt"), authority.pem()).unwrap();
    let stage = ServingStage::with(|settings| {
        settings.files.token = None;
        settings.files.tls = Some(ServerTlsFiles {
            certificate: folder.path().join("tls.crt"),
            key: folder.path().join("tls.key"),
            client_authorities: Some(folder.path().join("ca.crt")),
        });
    })
    .await;
    let any = client(&authority, "spiffe://tests/any", 4000);

    let answered = answer(&stage, config(&authority, Some(&any)), &put()).await;

    assert_eq!(answered.as_deref(), Ok("403"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_is_removed_from_the_list_is_disconnected() {
    let authority = authority();
    let (stage, folder) = stage(&authority, "spiffe://tests/good/one").await;
    let identity = client(&authority, "spiffe://tests/good/one", 4000);
    let mut watching = watch(&stage, config(&authority, Some(&identity))).await;
    let metric = async |series: &str| {
        let admin = client(&authority, "spiffe://tests/good/admin", 4000);
        let config = config(&authority, Some(&admin));
        let text = exchange(&stage, config, &get("/metrics")).await;
        text.is_ok_and(|text| text.contains(&format!("tidegate_control_{series}\n")))
    };

    // A list that cannot be used changes nothing. The service reports it.
    fs::write(folder.path().join("clients"), "# nobody\n").unwrap();
    list(folder.path(), "writers", "spiffe://tests/good/*");
    let other = client(&authority, "spiffe://tests/good/one", 4000);
    let may_write = async || {
        let config = config(&authority, Some(&other));
        answer(&stage, config, &put())
            .await
            .is_ok_and(|status| status == "201")
    };
    until("the other list was read", async || may_write().await).await;

    list(folder.path(), "clients", "spiffe://tests/good/admin");

    let mut rest = Vec::new();
    let ended = timeout(BOUND, watching.read_to_end(&mut rest)).await;
    assert!(ended.is_ok(), "a removed client still gets events");
    let refused = answer(
        &stage,
        config(&authority, Some(&identity)),
        &get("/metrics"),
    )
    .await;
    assert_eq!(refused.as_deref(), Ok("403"));
    for series in [
        "reloads_total{file=\"clients\",result=\"rejected\"} 1",
        "reloads_total{file=\"clients\",result=\"accepted\"} 1",
        "file_outdated{file=\"clients\"} 0",
    ] {
        until(series, async || metric(series).await).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_valid_token_is_used_and_an_invalid_one_is_not() {
    let stage = ServingStage::start().await;
    let file = stage.settings.files.token.clone().unwrap();
    let may_write = async |token: &str| {
        let call = tidegate_testbed::client::Call::delete("/v1/policies/none");
        let call = call.header("authorization", &format!("Bearer {token}"));
        stage.call(call).await.status == 404
    };
    let shows = async |series: &str| {
        let text = stage
            .call(tidegate_testbed::client::Call::get("/metrics"))
            .await
            .body;
        String::from_utf8_lossy(&text).contains(&format!("tidegate_control_{series}\n"))
    };
    assert!(may_write(TOKEN).await);

    fs::write(&file, "short").unwrap();
    until("the invalid token is reported", async || {
        shows("file_outdated{file=\"token\"} 1").await
    })
    .await;
    assert!(may_write(TOKEN).await, "the last valid token still works");

    fs::write(&file, "another token for tests").unwrap();
    until("the new token works", async || {
        may_write("another token for tests").await
    })
    .await;
    assert!(!may_write(TOKEN).await);
    assert!(shows("file_outdated{file=\"token\"} 0").await);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_proxies_on_the_list_are_served() {
    let authority = authority();
    let (stage, _folder) = stage(&authority, "spiffe://tests/good/*").await;
    let call = async |identity: &Identity| {
        let tls = ClientTlsConfig::new()
            .ca_certificate(Certificate::from_pem(authority.pem()))
            .domain_name("localhost")
            .identity(tonic::transport::Identity::from_pem(
                &identity.certificate,
                &identity.key,
            ));
        let url = format!("https://{}", stage.settings.xds);
        let endpoint = Endpoint::from_shared(url).unwrap().tls_config(tls);
        let channel = endpoint.unwrap().connect().await.unwrap();
        let request = DiscoveryRequest {
            node: node("edge"),
            resource_names: vec!["tidegate".to_owned()],
            ..DiscoveryRequest::default()
        };
        let mut client = ExtensionConfigDiscoveryServiceClient::new(channel);
        client.fetch_extension_configs(request).await
    };

    let good = call(&client(&authority, "spiffe://tests/good/one", 4000)).await;
    assert_eq!(good.unwrap().into_inner().resources.len(), 1);
    let unlisted = call(&client(&authority, "spiffe://tests/other/one", 4000)).await;
    assert_eq!(unlisted.unwrap_err().code(), tonic::Code::PermissionDenied);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_valid_certificate_no_client_connects() {
    let (ours, theirs) = (authority(), authority());
    let (stage, _folder) = stage(&ours, "*").await;
    let expired = client(&ours, "spiffe://tests/one", 2001);
    let foreign = client(&theirs, "spiffe://tests/one", 4000);

    for identity in [None, Some(&expired), Some(&foreign)] {
        let refused = answer(&stage, config(&ours, identity), &get("/metrics")).await;
        assert!(refused.is_err(), "{refused:?}");
    }
    // A request in plaintext does not get around the check.
    let mut socket = TcpStream::connect(stage.settings.http).await.unwrap();
    let request =
        get("/v1/proxies").replace("host", &format!("authorization: Bearer {TOKEN}\r\nhost"));
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let _ = timeout(BOUND, socket.read_to_end(&mut answer))
        .await
        .unwrap();
    assert!(!answer.starts_with(b"HTTP"), "answered in plaintext");
    // The service is still running.
    let good = client(&ours, "spiffe://tests/one", 4000);
    let answered = self::answer(&stage, config(&ours, Some(&good)), &get("/metrics")).await;
    assert_eq!(answered.as_deref(), Ok("200"));
}

#[tokio::test(flavor = "multi_thread")]
async fn changed_certificates_are_used() {
    let (first, second) = (authority(), authority());
    let (stage, folder) = stage(&first, "*").await;
    let good = client(&first, "spiffe://tests/one", 4000);
    let reach = async |trusted| {
        let config = config(trusted, Some(&good));
        answer(&stage, config, &get("/metrics")).await.is_ok()
    };
    assert!(reach(&first).await);

    install(folder.path(), &server(&second));

    until("the new certificate is shown", async || {
        reach(&second).await
    })
    .await;
    assert!(!reach(&first).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_show_when_certificates_expire() {
    let authority = authority();
    let (stage, folder) = stage(&authority, "*").await;
    let good = client(&authority, "spiffe://tests/one", 4000);
    let served = async |seconds: &str| {
        let config = config(&authority, Some(&good));
        let text = exchange(&stage, config, &get("/metrics")).await.unwrap();
        let name = "tidegate_control_certificate_not_after_timestamp_seconds";
        text.contains(&format!("{name}{{certificate=\"authority\"}} "))
            && text.contains(&format!("{name}{{certificate=\"served\"}} {seconds}\n"))
    };
    // The first second of the year 4000.
    until("the expiry is shown", async || served("64060588800").await).await;

    let name = SanType::DnsName("localhost".try_into().unwrap());
    install(folder.path(), &signed(&authority, &[name], 3000));

    until("the new expiry is shown", async || {
        served("32503680000").await
    })
    .await;
}

#[test]
fn invalid_certificates_are_not_used() {
    let authority = authority();
    let folder = tempfile::tempdir().unwrap();
    let good = server(&authority);
    install(folder.path(), &good);
    let files = ServerTlsFiles {
        certificate: folder.path().join("tls.crt"),
        key: folder.path().join("tls.key"),
        client_authorities: None,
    };
    let tls = Tls::load(files.clone()).unwrap();
    let config = || tls.config(PortProtocol::Http);
    let before = config();

    let other = server(&authority);
    let name = SanType::DnsName("localhost".try_into().unwrap());
    let expired = signed(&authority, &[name], 2001);
    for (certificate, key) in [
        ("no certificate", good.key.as_str()),
        (good.certificate.as_str(), other.key.as_str()),
        (expired.certificate.as_str(), expired.key.as_str()),
    ] {
        fs::write(&files.certificate, certificate).unwrap();
        fs::write(&files.key, key).unwrap();
        assert_eq!(tls.reload(), ReloadOutcome::Rejected);
        assert_eq!(tls.reload(), ReloadOutcome::Unchanged, "reported again");
        assert!(Arc::ptr_eq(&before, &config()));
        assert!(Tls::load(files.clone()).is_err());
    }
    let error = Tls::load(files.clone()).unwrap_err().to_string();
    assert!(
        error.contains("tls.crt: the certificate or one of its chain expired at 2001-01-01"),
        "{error}"
    );
    fs::remove_file(&files.key).unwrap();
    assert_eq!(tls.reload(), ReloadOutcome::Rejected);
    assert_eq!(tls.reload(), ReloadOutcome::Unchanged, "reported again");
    assert!(Arc::ptr_eq(&before, &config()));

    install(folder.path(), &other);
    assert_eq!(tls.reload(), ReloadOutcome::Accepted);
    assert!(!Arc::ptr_eq(&before, &config()));
}

#[tokio::test(flavor = "multi_thread")]
async fn plaintext_is_for_loopback_unless_allowed() {
    let everywhere = ([0, 0, 0, 0], 0).into();
    let folder = tempfile::tempdir().unwrap();
    let mut settings = crate::stage::settings(Some(folder.path().to_owned()), None);
    settings.xds = everywhere;
    let refused = tidegate_control::serve::ControlService::start(settings.clone()).await;
    assert!(
        refused
            .unwrap_err()
            .to_string()
            .contains("--allow-plaintext")
    );

    settings.allow_plaintext = true;
    let service = tidegate_control::serve::ControlService::start(settings)
        .await
        .unwrap();
    service.stop().await;
}
