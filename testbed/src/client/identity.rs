//! Identities of workloads in a mesh, and how a workload verifies another: SPIFFE identities in certificates.
//!
//! A mesh's certificates name no host: a pod's address changes, its service account stays. The identity is a URI
//! (`spiffe://cluster.local/ns/shop/sa/web`) among the certificate's alternative names, so that the usual check of the host
//! name would fail. Here the chain is checked as usual, and the URI instead of the host name.
//!
//! Sources: SPIFFE ID and X.509-SVID, <https://github.com/spiffe/spiffe/tree/main/standards>.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::{CryptoProvider, ring, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, PeerIncompatible, RootCertStore,
    SignatureScheme, version,
};
use webpki::EndEntityCert;

/// The protocol inside TLS.
const HTTP2: &[u8] = b"h2";

/// Why an identity cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// A text holds no certificates or no key.
    #[error("read the {what}")]
    Pem {
        /// Which of the three texts.
        what: &'static str,
        /// The cause.
        source: rustls::pki_types::pem::Error,
    },
    /// Certificates and key do not match, or are of an unsupported kind.
    #[error("use the identity")]
    Tls(#[from] rustls::Error),
}

/// A workload's certificate, its key, and the roots that it trusts: three texts in PEM, as a mesh's agent writes them.
#[derive(Clone)]
pub struct Identity {
    /// The certificate and its intermediates.
    pub chain: String,
    /// Its private key.
    pub key: String,
    /// Roots that it trusts.
    pub roots: String,
}

impl std::fmt::Debug for Identity {
    // The key stays out of logs.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Identity").finish_non_exhaustive()
    }
}

impl Identity {
    /// A TLS 1.3 configuration for HTTP/2 with a server that must be `server`, a SPIFFE identity.
    pub(super) fn config(&self, server: &str) -> Result<ClientConfig, IdentityError> {
        let pem = |what| move |source| IdentityError::Pem { what, source };
        let certificates = |text: &str, what| {
            CertificateDer::pem_slice_iter(text.as_bytes())
                .collect::<Result<Vec<_>, _>>()
                .map_err(pem(what))
        };
        let mut roots = RootCertStore::empty();
        for root in certificates(&self.roots, "roots")? {
            roots.add(root)?;
        }
        let chain = certificates(&self.chain, "chain")?;
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes()).map_err(pem("key"))?;
        let provider = Arc::new(ring::default_provider());
        let verifier = Believes {
            server: server.to_owned(),
            roots,
            provider: Arc::clone(&provider),
        };
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&version::TLS13])?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_client_auth_cert(chain, key)?;
        config.alpn_protocols = vec![HTTP2.to_vec()];
        Ok(config)
    }
}

/// Trusts a server whose certificate comes from one of the roots and names one identity.
#[derive(Debug)]
struct Believes {
    server: String,
    roots: RootCertStore,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Believes {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let algorithms = self.provider.signature_verification_algorithms.all;
        let parsed = ParsedCertificate::try_from(certificate)?;
        verify_server_cert_signed_by_trust_anchor(&parsed, &self.roots, between, now, algorithms)?;
        let names = EndEntityCert::try_from(certificate)
            .map_err(|_| rustls::Error::from(CertificateError::BadEncoding))?;
        if names.valid_uri_names().any(|name| name == self.server) {
            Ok(ServerCertVerified::assertion())
        } else {
            Err(CertificateError::NotValidForName.into())
        }
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        // TLS 1.2 was not offered.
        Err(PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig.into())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let algorithms = self.provider.signature_verification_algorithms;
        algorithms.supported_schemes()
    }
}
