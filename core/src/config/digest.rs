//! A short name for what a document says.
//!
//! Control planes carry the document in a protobuf `Struct` and write it again for the proxy. The order of keys, blanks and
//! the form of numbers change on the way, the meaning does not. So the digest is of the tree. A reader of the document can
//! tell by it which proxies run it.

use super::document::Node;

const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0100_0000_01b3;

impl Node {
    /// The same number for documents with the same meaning, in every process and every version. Not for adversaries: two
    /// documents can be made to have the same one.
    #[must_use]
    pub fn digest(&self) -> u64 {
        match self {
            Self::Null => mixed(0, &[]),
            Self::Bool(value) => mixed(1, &[u8::from(*value)]),
            #[expect(
                clippy::cast_precision_loss,
                reason = "a Struct carries every number as a double, so larger numbers have lost it already"
            )]
            Self::Whole(value) => of_number(*value as f64),
            Self::Number(value) => of_number(*value),
            Self::Text(text) => mixed(3, text.as_bytes()),
            Self::List(items) => items.iter().fold(mixed(4, &[]), |digest, item| {
                mixed(digest, &item.digest().to_le_bytes())
            }),
            // A sum does not depend on the order.
            Self::Object(entries) => entries.iter().fold(mixed(5, &[]), |digest, (key, value)| {
                let entry = mixed(value.digest(), key.as_bytes());
                digest.wrapping_add(mixed(6, &entry.to_le_bytes()))
            }),
        }
    }
}

fn of_number(value: f64) -> u64 {
    // Adding zero turns -0.0 into 0.0.
    mixed(2, &(value + 0.0).to_bits().to_le_bytes())
}

/// 64-bit FNV-1a of `bytes`, begun with `start`.
fn mixed(start: u64, bytes: &[u8]) -> u64 {
    let begun = (OFFSET ^ start).wrapping_mul(PRIME);
    bytes.iter().fold(begun, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(PRIME)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn digest(text: &str) -> u64 {
        Node::parse(text.as_bytes()).unwrap().digest()
    }

    #[test]
    fn documents_with_the_same_meaning_have_one_digest() {
        for (a, b) in [
            (
                r#"{"a":1,"b":{"c":[1,2]}}"#,
                r#"{ "b": {"c": [1.0, 2e0]}, "a": 1.0 }"#,
            ),
            (r#"{"a":-0.0}"#, r#"{"a":0}"#),
            (r#"{"a":"\u00fc"}"#, r#"{"a":"ü"}"#),
        ] {
            assert_eq!(digest(a), digest(b), "{a}");
        }
    }

    #[test]
    fn other_documents_have_others() {
        let documents = [
            "{}",
            "[]",
            "null",
            "0",
            "false",
            "true",
            r#""""#,
            r#"{"a":1}"#,
            r#"{"a":2}"#,
            r#"{"b":1}"#,
            r#"{"a":"1"}"#,
            r#"{"a":1,"b":2}"#,
            r#"{"a":2,"b":1}"#,
            r#"{"a":{"b":1}}"#,
            r#"{"a":[1,2]}"#,
            r#"{"a":[2,1]}"#,
            r#"{"a":[[1],2]}"#,
            r#"{"ab":"c"}"#,
            r#"{"a":"bc"}"#,
        ];
        let digests: BTreeSet<u64> = documents.iter().map(|text| digest(text)).collect();
        assert_eq!(digests.len(), documents.len());
    }

    #[test]
    fn it_stays_what_it_is_from_version_to_version() {
        assert_eq!(
            format!("{:016x}", digest(super::super::MINIMAL_EXAMPLE)),
            "0deaab62d0d33002"
        );
    }
}
