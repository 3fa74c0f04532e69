//! The version of a configuration: a hash of its bytes.

use std::fmt;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

/// Bytes of the hash in a version: enough that two configurations never share
/// a version by chance, short enough for a log line.
const VERSION_BYTES: usize = 16;

/// The first 128 bits of the SHA-256 of a configuration, in hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConfigVersion(Arc<str>);

impl ConfigVersion {
    /// The version of `config`.
    #[must_use]
    pub fn of(config: &str) -> Self {
        let hash = Sha256::digest(config.as_bytes());
        let hex: String = hash
            .iter()
            .take(VERSION_BYTES)
            .map(|byte| format!("{byte:02x}"))
            .collect();
        Self(Arc::from(hex))
    }

    /// 32 hexadecimal digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ConfigVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
