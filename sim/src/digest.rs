//! A hash of a whole run: runs that differ in any event have different hashes.
//!
//! FNV-1a with 64 bits (Fowler, Noll and Vo). It is not cryptographic, but it is simple, the same on every machine, and
//! fast enough for every event of a run.

use std::fmt;

/// The digest of what was fed to it, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Digest(u64);

impl Digest {
    const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;

    /// Feeds bytes.
    pub fn feed_bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(Self::PRIME);
        }
    }

    /// Feeds a number.
    pub fn feed(&mut self, number: u64) {
        self.feed_bytes(&number.to_le_bytes());
    }

    /// The value now.
    #[must_use]
    pub const fn value(self) -> u64 {
        self.0
    }
}

impl Default for Digest {
    fn default() -> Self {
        Self(Self::BASIS)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_values_come_out() {
        let digest = |text: &str| {
            let mut digest = Digest::default();
            digest.feed_bytes(text.as_bytes());
            digest.value()
        };
        assert_eq!(digest(""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(digest("a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(digest("foobar"), 0x8594_4171_f739_67e8);
    }
}
