//! Asks a running service over HTTP.
//!
//! It sends one request per connection, because a command sends only one. The
//! certificate authorities must be given: the service has a certificate of the
//! operator's own authority, not of a public one.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use http::{Method, Request, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::CommandFailure;

/// Largest accepted answer, in bytes: enough for ten thousand proxies.
const MAX_ANSWER_BYTES: usize = 64 << 20;

/// Longest excerpt of an answer in an error, in characters.
const MAX_SHOWN: usize = 200;

/// Certificates for https, as PEM files.
#[derive(Clone, Debug)]
pub(super) struct ClientTlsFiles {
    /// Certificate authorities for the service.
    pub(super) authorities: PathBuf,
    /// Client certificate and key.
    pub(super) identity: Option<(PathBuf, PathBuf)>,
}

/// A change of something that the service stores.
#[derive(Clone, Debug)]
pub(super) enum ServiceWrite {
    /// PUT this text.
    Put(String),
    /// DELETE.
    Delete,
}

type ServiceRequest = Request<Full<Bytes>>;

/// A client of one service.
pub(super) struct ServiceClient {
    url: String,
    host: String,
    port: u16,
    path: String,
    tls: Option<Arc<ClientConfig>>,
}

impl ServiceClient {
    /// The service at `url`.
    pub(super) fn new(url: &str, tls: Option<&ClientTlsFiles>) -> Result<Self, CommandFailure> {
        let expected = || {
            CommandFailure(format!(
                "--server {url}: expected a URL such as http://127.0.0.1:18080"
            ))
        };
        let uri: Uri = url.parse().map_err(|_| expected())?;
        let host = uri.host().ok_or_else(expected)?;
        let (tls, port) = match (uri.scheme_str(), tls) {
            (Some("http"), _) => (None, 80),
            (Some("https"), Some(files)) => (Some(Arc::new(config(files)?)), 443),
            (Some("https"), None) => {
                return Err(CommandFailure(format!("--server {url}: https needs --ca")));
            }
            _ => return Err(expected()),
        };
        Ok(Self {
            url: url.to_owned(),
            // An IPv6 address is written in brackets.
            host: host.trim_matches(['[', ']']).to_owned(),
            port: uri.port_u16().unwrap_or(port),
            path: uri.path().trim_end_matches('/').to_owned(),
            tls,
        })
    }

    /// The service's answer to a GET of `path`.
    pub(super) fn get(&self, path: &str, timeout: Duration) -> Result<Vec<u8>, CommandFailure> {
        self.send(
            timeout,
            self.request(Method::GET, path, None, String::new()),
        )
    }

    /// The service's answer to a change of `path`.
    pub(super) fn write(
        &self,
        path: &str,
        write: &ServiceWrite,
        token: Option<&str>,
        timeout: Duration,
    ) -> Result<Vec<u8>, CommandFailure> {
        let (method, body) = match write {
            ServiceWrite::Put(body) => (Method::PUT, body.clone()),
            ServiceWrite::Delete => (Method::DELETE, String::new()),
        };
        self.send(timeout, self.request(method, path, token, body))
    }

    fn request(
        &self,
        method: Method,
        path: &str,
        token: Option<&str>,
        body: String,
    ) -> Result<ServiceRequest, CommandFailure> {
        let request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.path))
            .header(header::HOST, format!("{}:{}", self.host, self.port))
            .header(header::ACCEPT, "application/json");
        let request = match token {
            Some(token) => request.header(header::AUTHORIZATION, format!("Bearer {token}")),
            None => request,
        };
        let body = Full::new(Bytes::from(body));
        request.body(body).map_err(|error| self.failure(&error))
    }

    fn send(
        &self,
        timeout: Duration,
        request: Result<ServiceRequest, CommandFailure>,
    ) -> Result<Vec<u8>, CommandFailure> {
        let request = request?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| self.failure(&error))?;
        runtime.block_on(async {
            match tokio::time::timeout(timeout, self.ask(request)).await {
                Ok(answer) => answer,
                Err(_) => Err(self.failure(&format_args!("no answer within {timeout:?}"))),
            }
        })
    }

    async fn ask(&self, request: ServiceRequest) -> Result<Vec<u8>, CommandFailure> {
        let stream = TcpStream::connect((self.host.as_str(), self.port))
            .await
            .map_err(|error| self.failure(&error))?;
        let Some(tls) = &self.tls else {
            return self.exchange(stream, request).await;
        };
        let name = ServerName::try_from(self.host.clone()).map_err(|error| self.failure(&error))?;
        let stream = TlsConnector::from(Arc::clone(tls))
            .connect(name, stream)
            .await
            .map_err(|error| self.failure(&error))?;
        self.exchange(stream, request).await
    }

    async fn exchange<S>(
        &self,
        stream: S,
        request: ServiceRequest,
    ) -> Result<Vec<u8>, CommandFailure>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|error| self.failure(&error))?;
        // The driver ends with the answer; the request reports the driver's error as well.
        let driver = tokio::spawn(connection);
        let answer = sender.send_request(request).await;
        let answer = answer.map_err(|error| self.failure(&error))?;
        let status = answer.status();
        let body = Limited::new(answer.into_body(), MAX_ANSWER_BYTES);
        let body = body.collect().await.map_err(|error| self.failure(&error))?;
        driver.abort();
        let bytes = body.to_bytes().to_vec();
        if status == StatusCode::OK {
            return Ok(bytes);
        }
        let excerpt: String = String::from_utf8_lossy(&bytes)
            .chars()
            .filter(|c| !c.is_control())
            .take(MAX_SHOWN)
            .collect();
        Err(self.failure(&format_args!("{status} {excerpt}")))
    }

    fn failure(&self, reason: &dyn std::fmt::Display) -> CommandFailure {
        CommandFailure(format!("{}: {reason}", self.url))
    }
}

fn config(files: &ClientTlsFiles) -> Result<ClientConfig, CommandFailure> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(&files.authorities)? {
        roots
            .add(certificate)
            .map_err(|error| failure(&files.authorities, &error))?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| CommandFailure(format!("TLS: {error}")))?
        .with_root_certificates(roots);
    let Some((certificate, key)) = &files.identity else {
        return Ok(builder.with_no_client_auth());
    };
    let chain = certificates(certificate)?;
    let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| failure(key, &error))?;
    builder
        .with_client_auth_cert(chain, secret)
        .map_err(|error| failure(certificate, &error))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, CommandFailure> {
    let bytes = fs::read(path).map_err(|error: io::Error| failure(path, &error))?;
    let found: Vec<_> = CertificateDer::pem_slice_iter(&bytes)
        .collect::<Result<_, _>>()
        .map_err(|error| failure(path, &error))?;
    if found.is_empty() {
        return Err(failure(path, &"found no PEM certificate"));
    }
    Ok(found)
}

fn failure(path: &Path, reason: &dyn std::fmt::Display) -> CommandFailure {
    CommandFailure(format!("{}: {reason}", path.display()))
}
