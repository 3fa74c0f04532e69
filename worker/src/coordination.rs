//! This worker's part among the workers of the proxy: it publishes its slice, and leads or follows.

use tidegate_core::Instant;

use crate::api::Host;
use crate::exchange::keys::Keys;
use crate::exchange::lease::Duty;
use crate::exchange::{Exchange, Role};
use crate::proxy::Proxy;
use crate::reconcile::Reconciler;

/// How the leader is found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Seat {
    /// By a lease: workers come and go.
    #[default]
    Elected,
    /// This worker leads as long as the process lives.
    Leader,
    /// Another one does.
    Follower,
}

/// One worker's part.
#[derive(Debug)]
pub struct Coordination {
    pub(crate) exchange: Exchange,
    pub(crate) reconciler: Reconciler,
    seat: Seat,
    role: Role,
    duty: Duty,
}

/// How a tick changed the role of this worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoleChange {
    /// Nothing.
    None,
    /// It leads from now on.
    TookOver,
    /// Another worker leads from now on.
    Resigned,
}

impl Coordination {
    /// The worker with this number, which follows until it has claimed the lease.
    #[must_use]
    pub fn new(keys: Keys, worker: u64, now: Instant) -> Self {
        Self {
            exchange: Exchange::new(keys, worker),
            reconciler: Reconciler::new(now),
            seat: Seat::default(),
            role: Role::Follower,
            duty: Duty::Idle,
        }
    }

    /// Sets how the leader is found.
    pub const fn assign(&mut self, seat: Seat) {
        self.seat = seat;
    }

    /// Whether this worker decides.
    #[must_use]
    pub const fn role(&self) -> Role {
        self.role
    }

    /// This worker has requests to serve.
    pub const fn serve(&mut self) {
        self.duty = Duty::Serving;
    }

    /// Publishes this worker's slice, and finds out which worker leads.
    pub fn take_part<H: Host>(
        &mut self,
        proxy: &Proxy<H>,
        slice: &[u8],
        now: Instant,
    ) -> RoleChange {
        let Proxy { host, faults, .. } = proxy;
        self.exchange.publish(host, faults, slice);
        let role = match self.seat {
            Seat::Elected => self.exchange.lead(host, faults, self.duty, now),
            Seat::Leader => Role::Leader,
            Seat::Follower => Role::Follower,
        };
        let before = core::mem::replace(&mut self.role, role);
        match (before, role) {
            (Role::Follower, Role::Leader | Role::Alone) => {
                self.reconciler = Reconciler::new(now);
                RoleChange::TookOver
            }
            (Role::Leader | Role::Alone, Role::Follower) => RoleChange::Resigned,
            _ => RoleChange::None,
        }
    }
}
