//! What the invariants need to remember of a story: which worker held the lease, which decided, how many requests came.

use crate::process::Event;
use crate::workers::MILLI;

/// So long does a lease last after each tick of its holder.
const LEASE: u64 = 500 * MILLI;

/// What the invariants need to remember.
#[derive(Clone, Debug, Default, Hash)]
pub(crate) struct Watch {
    /// The holder of the lease of each version, by VM.
    holders: Vec<(u8, usize)>,
    /// By VM: decisions since it lost the lease; one that never had it has made all it may.
    pub(crate) late: Vec<u8>,
    pub(crate) arrived: i64,
    pub(crate) wrong: Option<String>,
}

impl Watch {
    /// Nothing has happened yet to so many VMs.
    pub(crate) fn new(vms: usize) -> Self {
        Self {
            late: vec![1; vms],
            ..Self::default()
        }
    }

    /// A VM of this wire version did something, in a callback that began then.
    pub(crate) fn see(&mut self, event: &Event, wire: u8, began: u64) {
        match event {
            Event::Lease {
                vm: number,
                before,
                after,
            } => {
                let [holder, _] = *after;
                if let Some([other, until]) = before
                    && *other != holder
                    && began < *until
                    && until - began <= LEASE
                {
                    self.wrong = Some(format!("vm {number} took a lease that another held"));
                }
                let held = self
                    .holders
                    .iter_mut()
                    .find(|(version, _)| *version == wire);
                match held {
                    Some(held) => held.1 = *number,
                    None => self.holders.push((wire, *number)),
                }
                self.late[*number] = 0;
            }
            Event::Decided { vm: number } => {
                if !self.holders.contains(&(wire, *number)) {
                    self.late[*number] += 1;
                }
                if self.late[*number] > 1 {
                    self.wrong = Some(format!("vm {number} decides again although another leads"));
                }
            }
        }
    }
}
