//! The events of a shard, and the messages between shards.

use tidegate_core::Instant;

use crate::fleet::slab::SlabTicket;

/// A message from one shard to another.
#[derive(Debug, Clone, Copy)]
pub(in crate::fleet) struct Message {
    pub(super) at: Instant,
    pub(super) what: ShardEvent,
}

/// An event of a shard.
#[derive(Debug, Clone, Copy)]
pub(super) enum ShardEvent {
    /// A caller's request reaches its proxy.
    AtProxy { caller: u32 },
    /// A request of a shard reaches an endpoint.
    AtEndpoint {
        endpoint: u32,
        shard: u32,
        ticket: SlabTicket,
    },
    /// A slot has done its work.
    Worked {
        endpoint: u32,
        delay_us: u32,
        visit: u32,
    },
    /// An answer reaches the proxy.
    Answer {
        ticket: SlabTicket,
        answer: EndpointAnswer,
    },
    /// The caller's cancellation reaches the proxy.
    Cancel { ticket: SlabTicket },
    /// Upkeep of a proxy.
    Tick { proxy: u32 },
    /// An endpoint enters the next stage of its life.
    Stage { endpoint: u32 },
    /// A sample of everything, at the end of a bin.
    Look { bin: u32 },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EndpointAnswer {
    Ok,
    Status(u16),
    Reset,
}

impl ShardEvent {
    /// Kind and subject as a number, for the digest.
    pub(super) fn code(self) -> u64 {
        let of = |kind: u64, subject: u32, more: u32| {
            kind << 60 ^ u64::from(subject) << 28 ^ u64::from(more)
        };
        match self {
            Self::AtProxy { caller } => of(1, caller, 0),
            Self::AtEndpoint {
                endpoint, ticket, ..
            } => of(2, ticket.place, endpoint),
            Self::Worked {
                endpoint, visit, ..
            } => of(3, visit, endpoint),
            Self::Answer { ticket, .. } => of(4, ticket.place, 0),
            Self::Cancel { ticket } => of(5, ticket.place, ticket.generation),
            Self::Tick { proxy } => of(6, proxy, 0),
            Self::Stage { endpoint } => of(7, endpoint, 0),
            Self::Look { bin } => of(8, bin, 0),
        }
    }
}
