//! Versions of the module besides the default one, such as for a canary.
//!
//! A policy names a version, never a URL: the operator decides what runs in proxies.

use std::collections::BTreeMap;
use std::fmt;

use crate::policy::CheckedPolicy;

/// Where a version of the module is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleVersion {
    /// Where proxies fetch it from.
    pub url: String,
    /// Its SHA-256 in hexadecimal.
    pub sha256: Option<String>,
}

/// The versions that policies may name, and the versions that namespaces get.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModuleVersions {
    known: BTreeMap<String, ModuleVersion>,
    namespaces: BTreeMap<String, String>,
}

/// A policy names a version that the settings do not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleNotAllowed {
    found: String,
    known: Vec<String>,
}

impl fmt::Display for ModuleNotAllowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = match self.known.as_slice() {
            [] => "no version: the control service's settings name none".to_owned(),
            known => known.join(" or "),
        };
        write!(f, "spec.module: found {:?}, expected {known}", self.found)
    }
}

impl ModuleVersions {
    /// From `NAME=URL` or `NAME=URL#sha256:HEX`, and `NAMESPACE=NAME`.
    ///
    /// # Errors
    /// The first text that has another form, or a name that is given twice.
    pub fn parse(versions: &[String], namespaces: &[String]) -> Result<Self, String> {
        let mut parsed = Self::default();
        for text in versions {
            let (name, url) = pair(text, "--extension-version", "NAME=URL")?;
            let (url, sha256) = match url.rsplit_once("#sha256:") {
                Some((url, sha256)) => (url, Some(sha256.to_owned())),
                None => (url, None),
            };
            let version = ModuleVersion {
                url: url.to_owned(),
                sha256,
            };
            if parsed.known.insert(name.to_owned(), version).is_some() {
                return Err(format!(
                    "--extension-version {text}: expected each name once"
                ));
            }
        }
        for text in namespaces {
            let (namespace, name) = pair(text, "--namespace-version", "NAMESPACE=NAME")?;
            let before = parsed
                .namespaces
                .insert(namespace.to_owned(), name.to_owned());
            if before.is_some() {
                return Err(format!(
                    "--namespace-version {text}: expected each namespace once"
                ));
            }
        }
        Ok(parsed)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &ModuleVersion)> {
        self.known
            .iter()
            .map(|(name, version)| (name.as_str(), version))
    }

    pub(super) fn namespaces(&self) -> impl Iterator<Item = (&str, &str)> {
        let pairs = self.namespaces.iter();
        pairs.map(|(namespace, name)| (namespace.as_str(), name.as_str()))
    }

    pub(super) fn get(&self, name: &str) -> Option<&ModuleVersion> {
        self.known.get(name)
    }

    /// The name of the version that a policy gets; `None`: the default one.
    #[must_use]
    pub fn name_for<'a>(&'a self, policy: &'a CheckedPolicy) -> Option<&'a str> {
        let namespace = policy.name().namespace().unwrap_or_default();
        policy
            .module()
            .or_else(|| self.namespaces.get(namespace).map(String::as_str))
    }

    /// The version that a policy gets; `None`: the default one.
    pub(super) fn chosen(
        &self,
        policy: &CheckedPolicy,
    ) -> Result<Option<&ModuleVersion>, ModuleNotAllowed> {
        let Some(name) = self.name_for(policy) else {
            return Ok(None);
        };
        let found = self.known.get(name).map(Some);
        found.ok_or_else(|| ModuleNotAllowed {
            found: name.to_owned(),
            known: self.known.keys().cloned().collect(),
        })
    }
}

fn pair<'a>(text: &'a str, option: &str, expected: &str) -> Result<(&'a str, &'a str), String> {
    match text.split_once('=') {
        Some((left, right)) if !left.is_empty() && !right.is_empty() => Ok((left, right)),
        _ => Err(format!("{option} {text}: expected {expected}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(versions: &[&str], namespaces: &[&str]) -> Result<ModuleVersions, String> {
        let owned = |texts: &[&str]| texts.iter().map(ToString::to_string).collect::<Vec<_>>();
        ModuleVersions::parse(&owned(versions), &owned(namespaces))
    }

    #[test]
    fn a_checksum_may_follow_the_url() {
        let parsed = parse(
            &["a=https://x/y.wasm#sha256:0a", "b=oci://x/y@sha256:0b"],
            &["shop=b"],
        );
        let parsed = parsed.unwrap();
        let of = |name| {
            parsed
                .get(name)
                .map(|it| (it.url.as_str(), it.sha256.as_deref()))
        };
        assert_eq!(of("a"), Some(("https://x/y.wasm", Some("0a"))));
        assert_eq!(of("b"), Some(("oci://x/y@sha256:0b", None)));
        assert_eq!(parsed.namespaces().collect::<Vec<_>>(), [("shop", "b")]);
    }

    #[test]
    fn other_forms_and_repetitions_are_rejected() {
        for (versions, namespaces) in [
            (&["a"][..], &[][..]),
            (&["=x"], &[]),
            (&["a="], &[]),
            (&["a=x", "a=y"], &[]),
            (&[], &["shop"]),
            (&["a=x"], &["shop=a", "shop=a"]),
        ] {
            assert!(
                parse(versions, namespaces).is_err(),
                "{versions:?} {namespaces:?}"
            );
        }
    }
}
