//! The names in a client's certificate, and lists of such names.
//!
//! The certificate is already verified; this module only reads its names: URIs (SPIFFE ids) and DNS names of the
//! subject's alternative names. The common name is ignored, as is usual today.

use rustls::pki_types::CertificateDer;
use tidegate_core::config::Pattern;
use x509_parser::extensions::GeneralName;
use x509_parser::parse_x509_certificate;

use super::peer::Peer;

/// The names in a certificate; empty if it cannot be read.
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

/// Names of clients; `*` stands for any text.
#[derive(Debug, Clone, Default)]
pub struct ClientNames(Vec<Pattern>);

impl ClientNames {
    /// Parses a file: one name per line; empty lines and lines that begin with `#` are ignored. The list may be
    /// empty.
    ///
    /// # Errors
    /// The first line that is not a name.
    pub fn parse(text: &str) -> Result<Self, String> {
        let lines = text.lines().map(str::trim).enumerate();
        lines
            .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
            .map(|(before, line)| {
                Pattern::parse(line).ok_or_else(|| {
                    let number = before.saturating_add(1);
                    format!("line {number}: found {line:?}, expected a name with at most a few *")
                })
            })
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// Like [`Self::parse`], but rejects an empty list: a list that was emptied by mistake must not lock out
    /// every client.
    ///
    /// # Errors
    /// When the list is empty, or the first line that is not a name.
    pub fn parse_some(text: &str) -> Result<Self, String> {
        let names = Self::parse(text)?;
        if names.0.is_empty() {
            return Err("found no name, expected one per line".to_owned());
        }
        Ok(names)
    }

    /// Whether the list contains one of the names in this client's certificate.
    #[must_use]
    pub fn contain(&self, peer: &Peer) -> bool {
        let is_named = |identity: &String| self.0.iter().any(|name| name.matches(identity));
        peer.identities.iter().any(is_named)
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
    fn a_client_is_on_the_list_if_one_of_its_names_is() {
        let text = "# edge\nspiffe://mesh/ns/edge/*\n\n  proxy.example\n";
        let names = ClientNames::parse(text).unwrap();

        assert!(names.contain(&peer(&["spiffe://mesh/ns/edge/sa/envoy"])));
        assert!(names.contain(&peer(&["other", "proxy.example"])));
        assert!(!names.contain(&peer(&["spiffe://mesh/ns/other/sa/envoy"])));
        assert!(!names.contain(&peer(&[])));
    }

    #[test]
    fn an_empty_list_contains_nobody_and_can_be_rejected() {
        let empty = ClientNames::parse("# nobody\n").unwrap();
        assert!(!empty.contain(&peer(&["proxy.example"])));
        assert!(ClientNames::parse_some("# nobody\n").is_err());
    }

    #[test]
    fn an_invalid_line_is_reported_by_its_number() {
        let wrong = "a".repeat(10_000);
        let error = ClientNames::parse(&format!("good\n{wrong}\n")).unwrap_err();
        assert!(error.starts_with("line 2: "), "{error}");
    }
}
