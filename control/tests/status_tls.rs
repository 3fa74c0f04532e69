//! `tidegate status` against a service that asks for certificates.

#![expect(clippy::unwrap_used, reason = "a test that panics fails")]

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use rcgen::{CertifiedKey, KeyPair, generate_simple_self_signed};
use rustls::pki_types::PrivateKeyDer;
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_rustls::TlsAcceptor;

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 15\r\n\r\n{\"proxies\": []}";

fn certified(name: &str) -> CertifiedKey<KeyPair> {
    generate_simple_self_signed([name.to_owned()]).unwrap()
}

/// A server that accepts only clients with the certificate of `client`.
fn config(server: &CertifiedKey<KeyPair>, client: &CertifiedKey<KeyPair>) -> Arc<ServerConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut clients = RootCertStore::empty();
    clients.add(client.cert.der().clone()).unwrap();
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::new(clients), Arc::clone(&provider))
            .build()
            .unwrap();
    let key = PrivateKeyDer::try_from(server.signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier)
        .with_single_cert(vec![server.cert.der().clone()], key)
        .unwrap();
    Arc::new(config)
}

struct Files {
    folder: tempfile::TempDir,
}

impl Files {
    fn write(&self, name: &str, pem: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, pem).unwrap();
        path
    }
}

/// Runs `tidegate status`. Returns the exit code and both output streams.
async fn status(server: String, options: Vec<(&'static str, PathBuf)>) -> (i32, String) {
    let run = move || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
        command.args(["status", "--server", &server]);
        for (name, path) in options {
            command.arg(name).arg(path);
        }
        command.output().unwrap()
    };
    let output = tokio::task::spawn_blocking(run).await.unwrap();
    let text = [output.stdout, output.stderr].concat();
    (
        output.status.code().unwrap(),
        String::from_utf8(text).unwrap(),
    )
}

#[tokio::test]
async fn status_checks_the_service_and_shows_a_certificate() {
    let (service, client, stranger) = (
        certified("127.0.0.1"),
        certified("operator"),
        certified("127.0.0.1"),
    );
    let acceptor = TlsAcceptor::from(config(&service, &client));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = format!("https://{}", listener.local_addr().unwrap());
    let serving = tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            // A handshake that fails on either side ends here.
            if let Ok(mut stream) = acceptor.accept(stream).await {
                let mut request = [0; 1024];
                let _ = stream.read(&mut request).await;
                let _ = stream.write_all(ANSWER).await;
                let _ = stream.shutdown().await;
            }
        }
    });
    let files = Files {
        folder: tempfile::tempdir().unwrap(),
    };
    let ca = files.write("ca.pem", &service.cert.pem());
    let other_ca = files.write("other.pem", &stranger.cert.pem());
    let cert = files.write("cert.pem", &client.cert.pem());
    let key = files.write("key.pem", &client.signing_key.serialize_pem());
    let empty = files.write("empty.pem", "");

    let shown = |ca: &PathBuf| {
        vec![
            ("--ca", ca.clone()),
            ("--cert", cert.clone()),
            ("--key", key.clone()),
        ]
    };
    let (code, text) = status(server.clone(), shown(&ca)).await;
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("proxies: 0"), "{text}");

    let (code, text) = status(server.clone(), shown(&other_ca)).await;
    assert_eq!(code, 2, "{text}");
    assert!(text.contains("invalid peer certificate"), "{text}");

    let (code, text) = status(server.clone(), vec![("--ca", ca)]).await;
    assert_eq!(code, 2, "{text}");

    let (code, text) = status(server, vec![("--ca", empty)]).await;
    assert_eq!(code, 2, "{text}");
    assert!(text.contains("found no PEM certificate"), "{text}");
    serving.abort();
}
