//! What is said of a port: the protocol that is spoken there, and why a connection is turned away.

/// What is spoken on a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/2 only, as gRPC needs it.
    Grpc,
    /// HTTP/1.1 and HTTP/2.
    Http,
}

impl Protocol {
    /// As TLS names them.
    #[must_use]
    pub const fn names(self) -> &'static [&'static [u8]] {
        match self {
            Self::Grpc => &[b"h2"],
            Self::Http => &[b"h2", b"http/1.1"],
        }
    }
}

/// A connection that is not served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turned {
    /// Its peer has as many as it may.
    Crowded,
    /// Nothing was under way on it for too long.
    Silent,
    /// Its client is not on the list, or no longer.
    Unlisted,
}

impl Turned {
    /// As in metrics.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Crowded => "crowded",
            Self::Silent => "silent",
            Self::Unlisted => "unlisted",
        }
    }
}
