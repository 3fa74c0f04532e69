//! Everything around the configuration in Istio's objects: where the module is, and what happens without it.
//!
//! Istio rejects an invalid object as a whole, so invalid settings are reported before anything is written.

use super::error::{Complaints, SettingError};
use super::versions::{ModuleNotAllowed, ModuleVersion, ModuleVersions};
use crate::policy::CheckedPolicy;

/// Digits of a SHA-256 in hexadecimal.
const SHA256_DIGITS: usize = 64;

/// URL schemes that Istio supports; a URL without a scheme is an OCI image.
const SCHEMES: [&str; 4] = ["oci", "https", "http", "file"];

/// Everything around the configuration in Istio's objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extension {
    /// Where proxies fetch the module from.
    pub url: String,
    /// SHA-256 of the module in hexadecimal.
    pub sha256: Option<String>,
    /// Secret, in the policy's namespace, for pulling an OCI image.
    pub pull_secret: Option<String>,
    /// What proxies do without a module, or when it crashes.
    pub fail_strategy: FailStrategy,
    /// Position in the filter chain.
    pub phase: FilterPhase,
    /// Order within the phase, greater first. The number of a selector's labels is added, so that the narrower of two
    /// policies that apply to one workload comes first.
    pub priority: i32,
    /// Other versions of the module, by name, and which policies get them.
    pub versions: ModuleVersions,
}

/// What proxies do without a module, or when it crashes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FailStrategy {
    /// Requests pass without the filter.
    #[default]
    Open,
    /// Requests fail.
    Close,
    /// A crashed VM is replaced. Requests fail until then, and wherever there is no module.
    Reload,
}

/// Position in the filter chain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FilterPhase {
    /// Istio's default: at the end.
    #[default]
    Unspecified,
    /// Before authentication.
    Authn,
    /// After authentication, before authorization.
    Authz,
    /// After authorization.
    Stats,
}

impl FailStrategy {
    /// Istio's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Open => "FAIL_OPEN",
            Self::Close => "FAIL_CLOSE",
            Self::Reload => "FAIL_RELOAD",
        }
    }
}

impl FilterPhase {
    /// Istio's name; `None`: not set.
    #[must_use]
    pub const fn name(self) -> Option<&'static str> {
        match self {
            Self::Unspecified => None,
            Self::Authn => Some("AUTHN"),
            Self::Authz => Some("AUTHZ"),
            Self::Stats => Some("STATS"),
        }
    }
}

impl Extension {
    /// Everything that Istio would reject, by the names of the options.
    #[must_use]
    pub fn errors(&self) -> Vec<SettingError> {
        let mut complaints = Complaints::default();
        complaints.unless(
            is_url(&self.url),
            "extension-url",
            &self.url,
            "oci://, https://, http:// or file:// and where the module is",
        );
        complaints.unless(
            self.sha256.is_some() || is_pinned(&self.url),
            "extension-sha256",
            "",
            "the checksum of the module: without it, the fetched content may be anything",
        );
        if let Some(sha256) = &self.sha256 {
            complaints.unless(
                is_sha256(sha256),
                "extension-sha256",
                sha256,
                "64 hexadecimal digits in lower case",
            );
        }
        if let Some(secret) = &self.pull_secret {
            complaints.unless(
                crate::policy::is_name(secret),
                "extension-pull-secret",
                secret,
                "the name of a Secret",
            );
        }
        for (name, version) in self.versions.iter() {
            complaints.unless(
                crate::policy::is_module_name(name),
                "extension-version",
                name,
                crate::policy::MODULE_EXPECTED,
            );
            complaints.unless(
                is_url(&version.url)
                    && (version.sha256.is_some() || is_pinned(&version.url))
                    && version.sha256.as_deref().is_none_or(is_sha256),
                "extension-version",
                &version.url,
                "a URL like extension-url, with its checksum: an image by its digest, or #sha256:HEX behind the URL",
            );
        }
        for (namespace, name) in self.versions.namespaces() {
            complaints.unless(
                crate::policy::is_name(namespace) && self.versions.get(name).is_some(),
                "namespace-version",
                &format!("{namespace}={name}"),
                "a namespace and the name of one of --extension-version",
            );
        }
        complaints.0
    }

    /// These settings with the module that `policy` gets.
    ///
    /// # Errors
    /// When the policy names a version that the settings do not have.
    pub fn for_policy(&self, policy: &CheckedPolicy) -> Result<Self, ModuleNotAllowed> {
        let ModuleVersion { url, sha256 } = match self.versions.chosen(policy)? {
            Some(version) => version.clone(),
            None => return Ok(self.clone()),
        };
        Ok(Self {
            url,
            sha256,
            ..self.clone()
        })
    }
}

fn is_sha256(text: &str) -> bool {
    let is_digit = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    text.len() == SHA256_DIGITS && text.bytes().all(is_digit)
}

/// Whether the URL alone determines the content: a file of the proxy itself, or an image by its digest.
fn is_pinned(url: &str) -> bool {
    let (scheme, rest) = url.split_once("://").unwrap_or(("oci", url));
    let by_digest = |rest: &str| {
        let digest = rest.rsplit_once("@sha256:");
        digest.is_some_and(|(_, digest)| is_sha256(digest))
    };
    scheme == "file" || (scheme == "oci" && by_digest(rest))
}

fn is_url(url: &str) -> bool {
    let is_plain = !url.is_empty() && url.bytes().all(|b| b.is_ascii_graphic());
    let (scheme, rest) = match url.split_once("://") {
        Some((scheme, rest)) => (scheme, rest),
        None => ("oci", url),
    };
    is_plain && SCHEMES.contains(&scheme) && !rest.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extension(url: &str, sha256: Option<&str>) -> Extension {
        Extension {
            url: url.to_owned(),
            sha256: sha256.map(str::to_owned),
            pull_secret: None,
            fail_strategy: FailStrategy::default(),
            phase: FilterPhase::default(),
            priority: 0,
            versions: ModuleVersions::default(),
        }
    }

    #[test]
    fn urls_that_istio_accepts_are_valid() {
        for url in [
            "oci://registry.example/tidegate:1",
            "registry.example/tidegate:1",
            "https://example.com/tidegate.wasm",
            "file:///etc/tidegate.wasm",
        ] {
            assert_eq!(extension(url, Some(&"0a".repeat(32))).errors(), []);
        }
    }

    #[test]
    fn a_module_that_is_fetched_needs_a_checksum() {
        for url in [
            "oci://registry.example/tidegate:1",
            "registry.example/tidegate:1",
            "https://example.com/tidegate.wasm",
            "http://someone@sha256:example.com/tidegate.wasm",
            "oci://registry.example/tidegate@sha256:0a",
        ] {
            let errors = extension(url, None).errors();
            assert_eq!(errors.len(), 1, "{url}");
            assert_eq!(errors[0].path, "extension-sha256");
        }
        let digest = "0a".repeat(32);
        for url in [
            "file:///etc/tidegate.wasm".to_owned(),
            format!("oci://registry.example/tidegate@sha256:{digest}"),
            format!("registry.example/tidegate:1@sha256:{digest}"),
        ] {
            assert_eq!(extension(&url, None).errors(), [], "{url}");
        }
        let by_http = format!("http://example.com/@sha256:{digest}");
        assert_eq!(extension(&by_http, None).errors().len(), 1);
    }

    #[test]
    fn all_errors_are_reported_at_once() {
        let mut wrong = extension("ftp://example.com/x", Some(&"0A".repeat(32)));
        wrong.pull_secret = Some("Not a name".to_owned());

        let said: Vec<String> = wrong.errors().iter().map(ToString::to_string).collect();

        assert_eq!(said.len(), 3, "{said:?}");
        assert_eq!(
            said.first().unwrap(),
            "extension-url: found \"ftp://example.com/x\", expected oci://, https://, http:// or file:// and where the module is"
        );
    }
}
