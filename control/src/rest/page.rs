//! The page at `/`: policies and proxies, live.

/// No framework, nothing from elsewhere; texts from outside are only ever set as text.
pub(super) const PAGE: &str = include_str!("page.html");
