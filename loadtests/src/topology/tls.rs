//! Certificates for mutual TLS between clients and Envoys, created for each cell.

use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, SanType};

use super::TopologyError;

/// PEM files. Clients and Envoys present the same certificate, which costs as much as two different ones.
#[derive(Debug, Clone)]
pub struct TlsFiles {
    /// The authority that both sides trust.
    pub authority: PathBuf,
    /// The certificate for 127.0.0.1.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

impl TlsFiles {
    /// Creates them in `folder`.
    ///
    /// # Errors
    /// When a key cannot be made, or a file cannot be written.
    pub fn make(folder: &Path) -> Result<Self, TopologyError> {
        let mut params = CertificateParams::new(Vec::new())?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        // A certificate with the same subject as its issuer would count as self-signed.
        let name = &mut params.distinguished_name;
        name.push(DnType::CommonName, "tidegate-loadtests");
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
        let mut params = CertificateParams::new(Vec::new())?;
        let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
        params.subject_alt_names.push(SanType::IpAddress(loopback));
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &authority)?;
        let write = |name: &str, text: &str| {
            let path = folder.join(name);
            match fs::write(&path, text) {
                Ok(()) => Ok(path),
                Err(source) => Err(TopologyError::Write { path, source }),
            }
        };
        Ok(Self {
            authority: write("authority.pem", &authority.pem())?,
            certificate: write("certificate.pem", &certificate.pem())?,
            key: write("key.pem", &key.serialize_pem())?,
        })
    }
}
