//! Who a client is, by its certificate, and whether that is on a list.
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

/// Names of clients, in which `*` stands for any text.
#[derive(Debug, Clone, Default)]
pub struct Names(Vec<Pattern>);

impl Names {
    /// Names as they stand in a file: one a line, without empty lines and those that begin with `#`. There may
    /// be none.
    ///
    /// # Errors
    /// The first line that is no name.
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

    /// The same, of which there must be one at least: a list that was emptied by mistake must not be taken for
    /// one that lets nobody in.
    ///
    /// # Errors
    /// That there is none, or the first line that is no name.
    pub fn parse_some(text: &str) -> Result<Self, String> {
        let names = Self::parse(text)?;
        if names.0.is_empty() {
            return Err("no name in it, expected one a line".to_owned());
        }
        Ok(names)
    }

    /// Whether one of the names in this client's certificate is among them.
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
    fn only_clients_with_a_name_on_the_list_are_on_it() {
        let text = "# edge\nspiffe://mesh/ns/edge/*\n\n  proxy.example\n";
        let names = Names::parse(text).unwrap();

        assert!(names.contain(&peer(&["spiffe://mesh/ns/edge/sa/envoy"])));
        assert!(names.contain(&peer(&["other", "proxy.example"])));
        assert!(!names.contain(&peer(&["spiffe://mesh/ns/other/sa/envoy"])));
        assert!(!names.contain(&peer(&[])));
    }

    #[test]
    fn a_list_without_a_name_contains_nobody_and_may_be_refused() {
        let empty = Names::parse("# nobody\n").unwrap();
        assert!(!empty.contain(&peer(&["proxy.example"])));
        assert!(Names::parse_some("# nobody\n").is_err());
    }

    #[test]
    fn a_line_that_is_no_name_is_told_by_its_number() {
        let wrong = "a".repeat(10_000);
        let error = Names::parse(&format!("good\n{wrong}\n")).unwrap_err();
        assert!(error.starts_with("line 2: "), "{error}");
    }
}
