//! The client over TLS: real handshakes, with certificates that are made for each test.

#![expect(clippy::unwrap_used, reason = "a test that panics fails")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, SanType,
    date_time_ymd,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned, crypto};
use tidegate_graph::prometheus::{
    AskError, AskPrometheus as _, ClientSettings, Credentials, PrometheusClient,
};

const ANSWER: &str = r#"{"status":"success","data":{"resultType":"vector","result":[]}}"#;

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority(name: &str) -> Authority {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, name);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// A certificate for 127.0.0.1 that `authority` signed.
struct Leaf {
    pem: String,
    der: CertificateDer<'static>,
    key: KeyPair,
}

fn leaf(authority: &Authority, change: impl FnOnce(&mut CertificateParams)) -> Leaf {
    let mut params = CertificateParams::default();
    params.subject_alt_names = vec![SanType::IpAddress(IpAddr::V4(Ipv4Addr::LOCALHOST))];
    change(&mut params);
    let key = KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, authority).unwrap();
    Leaf {
        pem: certificate.pem(),
        der: certificate.der().clone(),
        key,
    }
}

/// A server with this certificate; it takes only clients of the authority `clients`, if there is one.
fn server(own: &Leaf, clients: Option<&Authority>) -> String {
    let provider = Arc::new(crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .unwrap();
    let builder = match clients {
        Some(authority) => {
            let mut roots = RootCertStore::empty();
            roots.add(authority.der().clone()).unwrap();
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            builder.with_client_cert_verifier(verifier.build().unwrap())
        }
        None => builder.with_no_client_auth(),
    };
    let key = PrivateKeyDer::try_from(own.key.serialize_der()).unwrap();
    let config = builder
        .with_single_cert(vec![own.der.clone()], key)
        .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = BufReader::new(StreamOwned::new(connection, stream.unwrap()));
            let mut line = String::new();
            // Fails if either side does not accept the other.
            while stream.read_line(&mut line).is_ok_and(|length| length > 2) {
                line.clear();
            }
            let length = ANSWER.len();
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n");
            let _ = stream
                .get_mut()
                .write_all(format!("{head}{ANSWER}").as_bytes());
            // Until the client has read what it was sent, an alert too.
            let _ = stream.read(&mut [0]);
        }
    });
    url
}

/// Files of the client.
struct Files(tempfile::TempDir);

impl Files {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn write(&self, name: &str, pem: &str) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, pem).unwrap();
        path
    }

    /// What the server at `url` answers to a client that trusts `authority` and shows the certificate `own`.
    fn ask(
        &self,
        url: &str,
        authority: &Authority,
        own: Option<&Leaf>,
    ) -> Result<String, AskError> {
        let settings = ClientSettings {
            url: url.to_owned(),
            credentials: Credentials::None,
            authorities: Some(self.write("ca.pem", &authority.pem())),
            identity: own.map(|own| {
                let key = self.write("own.key", &own.key.serialize_pem());
                (self.write("own.pem", &own.pem), key)
            }),
            timeout: Duration::from_secs(30),
        };
        let client = PrometheusClient::new(&settings).unwrap();
        client.ask("vector(1)", 0, 1_000)
    }

    /// Why there is no answer: an error that begins with the URL.
    fn failure(&self, url: &str, authority: &Authority, own: Option<&Leaf>) -> String {
        let error = self.ask(url, authority, own).unwrap_err();
        assert!(matches!(error, AskError::Tls { .. }), "{error:?}");
        let text = error.to_string();
        let rest = text.strip_prefix(&format!("{url}: TLS: "));
        rest.unwrap().to_owned()
    }
}

#[test]
fn a_server_of_a_given_authority_is_trusted() {
    let own = authority("own");
    let url = server(&leaf(&own, |_| ()), None);

    assert_eq!(Files::new().ask(&url, &own, None).unwrap(), ANSWER);
}

#[test]
fn a_server_of_another_authority_is_not_trusted() {
    let url = server(&leaf(&authority("own"), |_| ()), None);

    let error = Files::new().failure(&url, &authority("other"), None);

    assert_eq!(
        error,
        "invalid peer certificate: UnknownIssuer: expected a certificate of an authority that is trusted here, by the system or by --ca"
    );
}

#[test]
fn a_certificate_for_another_host_is_not_trusted() {
    let own = authority("own");
    let other = leaf(&own, |params| {
        params.subject_alt_names = vec![SanType::DnsName("prometheus.example".try_into().unwrap())];
    });

    let error = Files::new().failure(&server(&other, None), &own, None);

    assert!(
        error.contains("prometheus.example")
            && error.ends_with(": expected a certificate for the host in the URL"),
        "{error}"
    );
}

#[test]
fn a_certificate_of_the_past_is_not_trusted() {
    let own = authority("own");
    let old = leaf(&own, |params| {
        params.not_before = date_time_ymd(2019, 1, 1);
        params.not_after = date_time_ymd(2020, 1, 1);
    });

    let error = Files::new().failure(&server(&old, None), &own, None);

    assert!(
        error.ends_with(": expected a certificate that is valid now, by the clock of this machine"),
        "{error}"
    );
}

#[test]
fn a_client_certificate_is_shown() {
    let own = authority("own");
    let clients = authority("clients");
    let url = server(&leaf(&own, |_| ()), Some(&clients));
    let client = leaf(&clients, |_| ());

    assert_eq!(Files::new().ask(&url, &own, Some(&client)).unwrap(), ANSWER);
}

#[test]
fn a_server_that_asks_for_a_client_certificate_gets_none_or_another() {
    let own = authority("own");
    let url = server(&leaf(&own, |_| ()), Some(&authority("clients")));
    let other = leaf(&authority("other"), |_| ());

    for client in [None, Some(&other)] {
        let error = Files::new().failure(&url, &own, client);
        assert!(
            error.starts_with("received fatal alert: ")
                && error.ends_with(
                    ": expected a client certificate that the server accepts (--cert with --key)"
                ),
            "{error}"
        );
    }
}

#[test]
fn a_server_without_tls_is_named() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 64]);
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    });

    let error = Files::new().failure(&url, &authority("own"), None);

    assert!(
        error.ends_with(": expected a server that speaks TLS: is its URL one of http?"),
        "{error}"
    );
}
