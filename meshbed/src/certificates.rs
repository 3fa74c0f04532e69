//! New certificates and keys for each cluster.

use std::net::{IpAddr, Ipv4Addr};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, SanType};

/// What the API server needs for its clients to trust it, all as PEM.
pub(crate) struct Certificates {
    /// The authority that clients trust.
    pub(crate) authority: String,
    /// The server's certificate for 127.0.0.1.
    pub(crate) server: String,
    /// Its key.
    pub(crate) server_key: String,
    /// The private key that signs tokens of service accounts.
    pub(crate) token_key: String,
    /// The public key that verifies them.
    pub(crate) token_public_key: String,
}

impl Certificates {
    /// Generates all of them.
    pub(crate) fn make() -> Result<Self, rcgen::Error> {
        let mut params = CertificateParams::new(Vec::new())?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params
            .distinguished_name
            .push(DnType::CommonName, "meshbed");
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;

        let mut params = CertificateParams::new(vec!["localhost".to_owned()])?;
        let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
        params.subject_alt_names.push(SanType::IpAddress(loopback));
        let key = KeyPair::generate()?;
        let server = params.signed_by(&key, &authority)?;
        let tokens = KeyPair::generate()?;
        Ok(Self {
            authority: authority.pem(),
            server: server.pem(),
            server_key: key.serialize_pem(),
            token_key: tokens.serialize_pem(),
            token_public_key: tokens.public_key_pem(),
        })
    }
}
