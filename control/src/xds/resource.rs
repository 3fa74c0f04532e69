//! What a proxy should have: named resources, each with a version that is a hash of its content.
//!
//! A hash shows whether anything changed, even after a restart of the service, on another replica, or when an
//! edit of a policy is reverted.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use sha2::{Digest, Sha256};

/// Name of a resource, as the proxy requests it.
pub type Name = Arc<str>;

/// Version of a resource or of a set of resources: equal versions mean equal content.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceVersion(Arc<str>);

/// Hex digits of the hash in a version: 64 bits are enough, because a proxy compares only a handful of versions.
const DIGITS: usize = 16;

impl ResourceVersion {
    /// A version as received from a proxy.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self(text.into())
    }

    /// The version of this content.
    #[must_use]
    pub fn of(content: &[u8]) -> Self {
        Self(hex(&Sha256::digest(content)).into())
    }

    /// The version of a set: the version of its only member, or a hash over names and versions.
    ///
    /// `None` for the empty set.
    #[must_use]
    pub fn of_set<'a>(members: impl IntoIterator<Item = (&'a str, &'a Self)>) -> Option<Self> {
        let mut members = members.into_iter();
        let first = members.next()?;
        let Some(second) = members.next() else {
            return Some(first.1.clone());
        };
        let mut hash = Sha256::new();
        for (name, version) in [first, second].into_iter().chain(members) {
            for part in [name, version.as_str()] {
                hash.update(part);
                // A separator that occurs in neither, so that different sets give different bytes.
                hash.update([0]);
            }
        }
        Some(Self(hex(&hash.finalize()).into()))
    }

    /// The text that goes over the wire.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ResourceVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn hex(bytes: &[u8]) -> String {
    let digits = |byte: &u8| [byte >> 4, byte & 0xf];
    bytes
        .iter()
        .flat_map(digits)
        .take(DIGITS)
        .filter_map(|digit| char::from_digit(digit.into(), 16))
        .collect()
}

/// One resource, encoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    /// Its name.
    pub name: Name,
    /// Its version.
    pub version: ResourceVersion,
    /// The encoded message, without the `Any` around it.
    pub body: Bytes,
}

/// Everything that one proxy should have at this moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Desired(BTreeMap<Name, Resource>);

impl Desired {
    /// The resource with this name.
    #[must_use]
    pub fn resource(&self, name: &str) -> Option<&Resource> {
        self.0.get(name)
    }

    /// All resources, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Resource> {
        self.0.values()
    }
}

impl FromIterator<Resource> for Desired {
    fn from_iter<I: IntoIterator<Item = Resource>>(resources: I) -> Self {
        Self(
            resources
                .into_iter()
                .map(|resource| (resource.name.clone(), resource))
                .collect(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_a_prefix_of_the_content_s_hash() {
        assert_eq!(ResourceVersion::of(b"").as_str(), "e3b0c44298fc1c14");
        assert_eq!(ResourceVersion::of(b"a"), ResourceVersion::of(b"a"));
        assert_ne!(ResourceVersion::of(b"a"), ResourceVersion::of(b"b"));
    }

    #[test]
    fn a_set_of_one_has_its_member_s_version() {
        let version = ResourceVersion::new("v");
        assert_eq!(ResourceVersion::of_set([("a", &version)]), Some(version));
        assert_eq!(ResourceVersion::of_set([]), None);
    }

    #[test]
    fn a_set_s_version_changes_with_names_and_versions() {
        let (v, w) = (ResourceVersion::new("v"), ResourceVersion::new("w"));
        let both = ResourceVersion::of_set([("a", &v), ("b", &w)]);

        assert_ne!(both, ResourceVersion::of_set([("a", &w), ("b", &v)]));
        assert_ne!(both, ResourceVersion::of_set([("a", &v), ("c", &w)]));
        assert_ne!(
            both,
            ResourceVersion::of_set([("a", &v), ("b", &w), ("c", &v)])
        );
        assert_eq!(both, ResourceVersion::of_set([("a", &v), ("b", &w)]));
    }
}
