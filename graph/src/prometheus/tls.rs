//! TLS: certificates of the client, and explanations of failed connections.
//!
//! Certificates are read and checked before they are used, because the HTTP library does not report what is wrong with them.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{AlertDescription, CertificateError, RootCertStore, crypto};
use ureq::tls::{Certificate, ClientCert, PrivateKey, RootCerts, TlsConfig};

use super::error::SettingsError;

/// The TLS configuration: `authorities` instead of those of the system, and a client certificate with its key.
pub(super) fn configuration(
    authorities: Option<&Path>,
    identity: Option<(&Path, &Path)>,
) -> Result<TlsConfig, SettingsError> {
    let provider = Arc::new(crypto::ring::default_provider());
    let mut builder = TlsConfig::builder();
    builder = match authorities {
        Some(path) => {
            let mut store = RootCertStore::empty();
            let found = certificates(path)?;
            for certificate in &found {
                let added = store.add(certificate.clone());
                added.map_err(|error| failure(path, &error))?;
            }
            let roots: Vec<_> = found.iter().map(owned).collect();
            builder.root_certs(RootCerts::new_with_certs(&roots))
        }
        None => builder.root_certs(RootCerts::PlatformVerifier),
    };
    if let Some((certificate, key)) = identity {
        let chain = certificates(certificate)?;
        let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| {
            failure(key, &format_args!("{error}, expected a private key in PEM"))
        })?;
        // Without this check, the HTTP library would panic.
        rustls::sign::CertifiedKey::from_der(chain.clone(), secret, &provider).map_err(
            |error| {
                let expected = certificate.display();
                failure(
                    key,
                    &format_args!("{error}, expected the key of {expected}"),
                )
            },
        )?;
        let chain: Vec<_> = chain.iter().map(owned).collect();
        let pem = fs::read(key).map_err(|error| failure(key, &error))?;
        let secret = PrivateKey::from_pem(&pem).map_err(|error| failure(key, &error))?;
        builder = builder.client_cert(Some(ClientCert::new_with_certs(&chain, secret)));
    }
    Ok(builder.unversioned_rustls_crypto_provider(provider).build())
}

/// The TLS error, if there is one.
pub(super) fn fault(error: &ureq::Error) -> Option<&rustls::Error> {
    match error {
        ureq::Error::Rustls(fault) => Some(fault),
        ureq::Error::Io(error) => error.get_ref()?.downcast_ref(),
        _ => None,
    }
}

/// What was expected instead.
pub(super) const fn expected(fault: &rustls::Error) -> &'static str {
    use AlertDescription as Alert;
    match fault {
        rustls::Error::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        ) => "a certificate for the host in the URL",
        rustls::Error::InvalidCertificate(
            CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. },
        ) => "a certificate that is valid now, by the clock of this machine",
        rustls::Error::InvalidCertificate(_) => {
            "a certificate of an authority that is trusted here, by the system or by --ca"
        }
        rustls::Error::AlertReceived(
            Alert::CertificateRequired
            | Alert::BadCertificate
            | Alert::UnknownCA
            | Alert::CertificateUnknown
            | Alert::CertificateExpired
            | Alert::CertificateRevoked
            | Alert::UnsupportedCertificate
            | Alert::AccessDenied
            | Alert::HandshakeFailure,
        ) => "a client certificate that the server accepts (--cert with --key)",
        rustls::Error::InvalidMessage(_) => "a server that speaks TLS: is its URL one of http?",
        _ => "a connection with TLS 1.2 or 1.3",
    }
}

fn owned(certificate: &CertificateDer<'static>) -> Certificate<'static> {
    Certificate::from_der(certificate).to_owned()
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, SettingsError> {
    let bytes = fs::read(path).map_err(|error| failure(path, &error))?;
    let found: Vec<_> = CertificateDer::pem_slice_iter(&bytes)
        .collect::<Result<_, _>>()
        .map_err(|error| failure(path, &error))?;
    if found.is_empty() {
        return Err(failure(path, &"found no certificate, expected PEM"));
    }
    Ok(found)
}

fn failure(path: &Path, reason: &dyn std::fmt::Display) -> SettingsError {
    SettingsError::File {
        path: path.to_owned(),
        reason: reason.to_string(),
    }
}
