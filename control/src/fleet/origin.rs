//! How a discovery stream reached the service.

/// The discovery service that a stream uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiscoveryApi {
    /// Extension configuration discovery (ECDS).
    Ecds,
    /// Aggregated discovery (ADS).
    Ads,
}

impl DiscoveryApi {
    /// The name in status and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ecds => "ecds",
            Self::Ads => "ads",
        }
    }
}

/// How a stream reached the service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamOrigin {
    /// The service it uses.
    pub api: DiscoveryApi,
    /// `sotw` or `delta`.
    pub dialect: &'static str,
    /// The peer at the other end.
    pub peer: String,
}
