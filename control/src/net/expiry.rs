//! When certificates expire. After that no client can connect, so metrics show the time in advance.

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use x509_parser::parse_x509_certificate;

/// When the first of some certificates expires, in seconds since 1970.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Expiry {
    /// For the service's certificates, including the chain.
    pub served: Option<i64>,
    /// For the authorities whose clients may connect.
    pub authorities: Option<i64>,
}

impl Expiry {
    /// Reads PEM texts: the certificate with its chain, its key, and optionally the authorities.
    pub(super) fn of(contents: &[Vec<u8>]) -> Self {
        let first = |index: usize| contents.get(index).and_then(|pem| not_after(pem));
        Self {
            served: first(0),
            authorities: first(2),
        }
    }
}

/// The earliest time; `None` if no certificate can be read.
fn not_after(pem: &[u8]) -> Option<i64> {
    CertificateDer::pem_slice_iter(pem)
        .filter_map(Result::ok)
        .filter_map(|der| {
            let (_, certificate) = parse_x509_certificate(&der).ok()?;
            Some(certificate.validity().not_after.timestamp())
        })
        .min()
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    use super::*;

    fn pem(year: i32) -> String {
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(year, 1, 1);
        let key = KeyPair::generate().unwrap();
        params.self_signed(&key).unwrap().pem()
    }

    #[test]
    fn the_first_certificate_of_a_chain_to_expire_counts() {
        let chain = format!("{}{}", pem(2040), pem(2030)).into_bytes();
        let authorities = pem(2035).into_bytes();

        let found = Expiry::of(&[chain, Vec::new(), authorities]);

        assert_eq!(found.served, Some(1_893_456_000));
        assert_eq!(found.authorities, Some(2_051_222_400));
    }

    #[test]
    fn a_text_without_certificate_has_no_expiry() {
        assert_eq!(Expiry::of(&[b"none".to_vec()]), Expiry::default());
    }
}
