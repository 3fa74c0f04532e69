//! Requests that a shard holds: at its proxies and at its endpoints.

use tidegate_core::Permit;

use crate::fleet::slab::SlabTicket;

/// A request that a proxy holds.
#[derive(Debug)]
pub(super) struct HeldRequest {
    pub(super) proxy: u32,
    pub(super) endpoint: u32,
    pub(super) permit: Permit,
}

/// A request at an endpoint, and the shard that sent it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Visit {
    pub(super) shard: u32,
    pub(super) ticket: SlabTicket,
}
