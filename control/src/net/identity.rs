//! Who a client is, by its certificate, and whether that is on the list.
//!
//! The certificate has been verified by then; here only its names are read: URIs (SPIFFE ids) and DNS names
//! of the subject's alternative names. The common name is not looked at, as anywhere today.

use rustls::pki_types::CertificateDer;
use tidegate_core::config::Pattern;
use x509_parser::extensions::GeneralName;
use x509_parser::parse_x509_certificate;

use super::Peer;

/// The names in a certificate; none if it cannot be read.
pub(super) fn identities(certificate: &CertificateDer<'_>) -> Vec<String> {
    let Ok((_, certificate)) = parse_x509_certificate(certificate) else {
        return Vec::new();
    };
    let Ok(Some(names)) = certificate.subject_alternative_name() else {
        return Vec::new();
    };
    let name = |name: &GeneralName<'_>| match name {
        GeneralName::URI(text) | GeneralName::DNSName(text) => Some((*text).to_owned()),
        _ => None,
    };
    names.value.general_names.iter().filter_map(name).collect()
}

/// The list of clients that may come in; empty: every client with a valid certificate.
#[derive(Debug, Clone, Default)]
pub struct Allowed(Vec<Pattern>);

impl Allowed {
    /// A list of names, in which `*` stands for any text; the first that is no pattern is the error.
    ///
    /// # Errors
    /// The text that is no pattern.
    pub fn parse(names: &[String]) -> Result<Self, String> {
        let pattern = |name: &String| Pattern::parse(name).ok_or_else(|| name.clone());
        names
            .iter()
            .map(pattern)
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// Whether this client is on the list.
    #[must_use]
    pub fn admits(&self, peer: &Peer) -> bool {
        self.0.is_empty()
            || peer
                .identities
                .iter()
                .any(|identity| self.0.iter().any(|pattern| pattern.matches(identity)))
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;

    fn peer(identities: &[&str]) -> Peer {
        Peer {
            addr: SocketAddr::from(([127, 0, 0, 1], 1)),
            identities: identities.iter().map(ToString::to_string).collect(),
        }
    }

    #[test]
    fn only_names_on_the_list_are_admitted() {
        let names = ["spiffe://mesh/ns/edge/*", "proxy.example"].map(ToOwned::to_owned);
        let allowed = Allowed::parse(&names).unwrap();

        assert!(allowed.admits(&peer(&["spiffe://mesh/ns/edge/sa/envoy"])));
        assert!(allowed.admits(&peer(&["other", "proxy.example"])));
        assert!(!allowed.admits(&peer(&["spiffe://mesh/ns/other/sa/envoy"])));
        assert!(!allowed.admits(&peer(&[])));
    }

    #[test]
    fn without_a_list_everyone_is_admitted() {
        assert!(Allowed::default().admits(&peer(&[])));
    }
}
