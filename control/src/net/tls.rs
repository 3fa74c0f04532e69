//! TLS with certificates that are reloaded from their files.
//!
//! Certificates are replaced while the service runs (cert-manager, SPIFFE agents). The files are read every few
//! seconds, because they are few, and because links, renames and volumes each report a change in another way or not
//! at all. Invalid certificates are logged once, and the last valid ones stay in use.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use jiff::Timestamp;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tracing::{error, info};

use super::expiry::Expiry;
use super::followed::ReloadOutcome;
use super::port::PortProtocol;

/// The files of the certificates (PEM).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerTlsFiles {
    /// The certificate of the service, followed by intermediate ones.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// The authorities whose clients may connect; `None`: clients need no certificate.
    pub client_authorities: Option<PathBuf>,
}

/// Why certificates cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The content of a file is invalid.
    #[error("{}: {reason}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// Certificate and key do not match, or a similar error.
    #[error("unusable certificates")]
    Unusable(#[from] rustls::Error),
}

/// The TLS configuration of a server; cheap to clone.
#[derive(Debug, Clone)]
pub struct Tls {
    files: Arc<ServerTlsFiles>,
    current: Arc<RwLock<Current>>,
}

#[derive(Debug)]
struct Current {
    usable: Usable,
    tried: Tried,
}

/// The usable content of the files.
#[derive(Debug)]
struct Usable {
    grpc: Arc<ServerConfig>,
    http: Arc<ServerConfig>,
    expiry: Expiry,
}

/// The bytes of the files.
type FileContents = Vec<Vec<u8>>;

/// The bytes at the last attempt, or why they could not be read.
type Tried = Result<FileContents, String>;

impl Tls {
    /// Reads the certificates.
    ///
    /// # Errors
    /// When they cannot be read or used.
    pub fn load(files: ServerTlsFiles) -> Result<Self, TlsError> {
        let contents = read(&files)?;
        let current = Current {
            usable: usable(&files, &contents)?,
            tried: Ok(contents),
        };
        Ok(Self {
            files: Arc::new(files),
            current: Arc::new(RwLock::new(current)),
        })
    }

    /// The configuration for new connections of a port.
    #[must_use]
    pub fn config(&self, protocol: PortProtocol) -> Arc<ServerConfig> {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(match protocol {
            PortProtocol::Grpc => &current.usable.grpc,
            PortProtocol::Http => &current.usable.http,
        })
    }

    /// When the certificates in use expire.
    #[must_use]
    pub fn expiry(&self) -> Expiry {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        current.usable.expiry
    }

    /// Reads the files again and uses new valid certificates. Blocks while it reads.
    pub fn reload(&self) -> ReloadOutcome {
        let file = self.files.certificate.display();
        // An unreadable file is most likely being replaced.
        let found = read(&self.files).map_err(|error| described(&error));
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        if current.tried == found {
            return ReloadOutcome::Unchanged;
        }
        let next = found
            .as_ref()
            .map_err(Clone::clone)
            .and_then(|contents| usable(&self.files, contents).map_err(|error| described(&error)));
        let outcome = match next {
            Ok(usable) => {
                current.usable = usable;
                info!(%file, "certificates reloaded");
                ReloadOutcome::Accepted
            }
            Err(error) => {
                error!(error, %file, "the new certificates are invalid; the last valid ones stay in use");
                ReloadOutcome::Rejected
            }
        };
        // Remember invalid certificates too, so that they are logged once.
        current.tried = found;
        outcome
    }
}

/// An error with its cause.
fn described(error: &TlsError) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

fn read(files: &ServerTlsFiles) -> Result<FileContents, TlsError> {
    let read = |path: &PathBuf| {
        std::fs::read(path).map_err(|source| TlsError::Read {
            path: path.clone(),
            source,
        })
    };
    [&files.certificate, &files.key]
        .into_iter()
        .chain(&files.client_authorities)
        .map(read)
        .collect()
}

/// The usable content of the files. Expired certificates are rejected, because clients would reject them.
fn usable(files: &ServerTlsFiles, contents: &[Vec<u8>]) -> Result<Usable, TlsError> {
    let config = config(files, contents)?;
    let offering = |protocol: PortProtocol| {
        let mut config = config.clone();
        config.alpn_protocols = protocol.names().iter().map(|name| name.to_vec()).collect();
        Arc::new(config)
    };
    let expiry = Expiry::of(contents);
    let now = Timestamp::now();
    match expiry.served.map(Timestamp::from_second) {
        Some(Ok(end)) if end < now => Err(TlsError::Content {
            path: files.certificate.clone(),
            reason: format!("the certificate or one of its chain expired at {end}"),
        }),
        _ => Ok(Usable {
            grpc: offering(PortProtocol::Grpc),
            http: offering(PortProtocol::Http),
            expiry,
        }),
    }
}

fn config(files: &ServerTlsFiles, contents: &[Vec<u8>]) -> Result<ServerConfig, TlsError> {
    let [certificate, key, authorities @ ..] = contents else {
        return Err(TlsError::Unusable(rustls::Error::General(
            "certificate and key".to_owned(),
        )));
    };
    let chain = certificates(&files.certificate, certificate)?;
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| TlsError::Content {
        path: files.key.clone(),
        reason: error.to_string(),
    })?;
    let builder =
        ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()?;
    let builder = match (&files.client_authorities, authorities.first()) {
        (Some(path), Some(pem)) => {
            let mut roots = RootCertStore::empty();
            for authority in certificates(path, pem)? {
                roots.add(authority)?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(
                Arc::new(roots),
                Arc::new(rustls::crypto::ring::default_provider()),
            )
            .build()
            .map_err(|error| TlsError::Content {
                path: path.clone(),
                reason: error.to_string(),
            })?;
            builder.with_client_cert_verifier(verifier)
        }
        _ => builder.with_no_client_auth(),
    };
    Ok(builder.with_single_cert(chain, key)?)
}

fn certificates(path: &Path, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let wrong = |reason: String| TlsError::Content {
        path: path.to_owned(),
        reason,
    };
    let found: Vec<_> = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<_, _>>()
        .map_err(|error| wrong(error.to_string()))?;
    if found.is_empty() {
        return Err(wrong("found no certificate".to_owned()));
    }
    Ok(found)
}
