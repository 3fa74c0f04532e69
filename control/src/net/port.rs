//! The protocols of ports, and why a connection is turned away.

/// The protocol of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PortProtocol {
    /// HTTP/2 only, which gRPC needs.
    Grpc,
    /// HTTP/1.1 and HTTP/2.
    Http,
}

impl PortProtocol {
    /// The protocol names in TLS (ALPN).
    #[must_use]
    pub const fn names(self) -> &'static [&'static [u8]] {
        match self {
            Self::Grpc => &[b"h2"],
            Self::Http => &[b"h2", b"http/1.1"],
        }
    }
}

/// Why a connection is not served, or no longer served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnedAway {
    /// Its peer has too many connections.
    Crowded,
    /// It had no active request for too long.
    Silent,
    /// Its client is not on the list, or was removed from it.
    Unlisted,
}

impl TurnedAway {
    /// The label value in metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Crowded => "crowded",
            Self::Silent => "silent",
            Self::Unlisted => "unlisted",
        }
    }
}

/// An event that a port reports to its listeners, such as the metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PortEvent {
    /// A connection was closed without being served, or while it was served.
    TurnedAway {
        /// The name of the port.
        port: &'static str,
        /// Why.
        reason: TurnedAway,
    },
}
