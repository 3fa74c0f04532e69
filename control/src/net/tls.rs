//! TLS whose certificates follow their files.
//!
//! Certificates are replaced while the service runs (cert-manager, SPIFFE agents). The files are looked at
//! every few seconds, because they are few, and because links, renames and volumes each tell of a change in
//! another way or not at all. What cannot be used is said once and the last good ones stay.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use jiff::Timestamp;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tracing::{error, info};

use super::{Expiry, Look, Protocol};

/// Where certificates stand, as PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate of the service, with intermediate ones after it.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// The authorities whose clients may come in; `None`: clients show no certificate.
    pub client_authorities: Option<PathBuf>,
}

/// Why certificates cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("read {}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A file is not what it should be.
    #[error("{}: {reason}", path.display())]
    Content {
        /// Which.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// Certificate and key do not go together, or the like.
    #[error("these certificates cannot be used")]
    Unusable(#[from] rustls::Error),
}

/// The TLS side of a server; cheap to clone.
#[derive(Debug, Clone)]
pub struct Tls {
    files: Arc<TlsFiles>,
    current: Arc<RwLock<Current>>,
}

#[derive(Debug)]
struct Current {
    usable: Usable,
    tried: Tried,
}

/// What can be used of the files.
#[derive(Debug)]
struct Usable {
    grpc: Arc<ServerConfig>,
    http: Arc<ServerConfig>,
    expiry: Expiry,
}

/// What stands in the files.
type Contents = Vec<Vec<u8>>;

/// The contents when they were last tried, or why they could not be read.
type Tried = Result<Contents, String>;

impl Tls {
    /// Reads the certificates.
    ///
    /// # Errors
    /// When they cannot be read or used.
    pub fn load(files: TlsFiles) -> Result<Self, TlsError> {
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

    /// What new connections of a port are to use.
    #[must_use]
    pub fn config(&self, protocol: Protocol) -> Arc<ServerConfig> {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(match protocol {
            Protocol::Grpc => &current.usable.grpc,
            Protocol::Http => &current.usable.http,
        })
    }

    /// When what is in use expires.
    #[must_use]
    pub fn expiry(&self) -> Expiry {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        current.usable.expiry
    }

    /// Takes over what is new in the files. Blocks while it reads.
    pub fn reload(&self) -> Look {
        let file = self.files.certificate.display();
        // What cannot be read is half way through a replacement, most likely.
        let found = read(&self.files).map_err(|error| told(&error));
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        if current.tried == found {
            return Look::Same;
        }
        let next = found
            .as_ref()
            .map_err(Clone::clone)
            .and_then(|contents| usable(&self.files, contents).map_err(|error| told(&error)));
        let look = match next {
            Ok(usable) => {
                current.usable = usable;
                info!(%file, "certificates reloaded");
                Look::Taken
            }
            Err(error) => {
                error!(error, %file, "cannot use new certificates; the last good ones stay");
                Look::Refused
            }
        };
        // Bad ones, too, so that they are complained of once.
        current.tried = found;
        look
    }
}

/// An error with its cause.
fn told(error: &TlsError) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

fn read(files: &TlsFiles) -> Result<Contents, TlsError> {
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

/// What is in the files, if it can be used and has not expired: clients would refuse it.
fn usable(files: &TlsFiles, contents: &[Vec<u8>]) -> Result<Usable, TlsError> {
    let config = config(files, contents)?;
    let offering = |protocol: Protocol| {
        let mut config = config.clone();
        config.alpn_protocols = protocol.names().iter().map(|name| name.to_vec()).collect();
        Arc::new(config)
    };
    let expiry = Expiry::of(contents);
    let now = Timestamp::now();
    match expiry.served.map(Timestamp::from_second) {
        Some(Ok(end)) if end < now => Err(TlsError::Content {
            path: files.certificate.clone(),
            reason: format!("it, or one of its chain, expired at {end}"),
        }),
        _ => Ok(Usable {
            grpc: offering(Protocol::Grpc),
            http: offering(Protocol::Http),
            expiry,
        }),
    }
}

fn config(files: &TlsFiles, contents: &[Vec<u8>]) -> Result<ServerConfig, TlsError> {
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
        return Err(wrong("no certificate in it".to_owned()));
    }
    Ok(found)
}
