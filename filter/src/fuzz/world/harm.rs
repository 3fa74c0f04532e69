//! What goes wrong in a hostile script: calls that fail, shared data that others overwrite, VMs that trap.

use tidegate_core::units::{PerSecond, Seconds};
use tidegate_core::{
    BreakerState, Directive, Directives, FloorCheckpoint, Instant, Learned, LimitCheckpoint,
    Margin, UpstreamKey,
};
use tidegate_worker::api::{Headers, Host as _};
use tidegate_worker::exchange::keys::Keys;

use super::values::CLUSTERS;
use super::{PLUGIN, World};
use crate::fuzz::script::Hostile;
use crate::vm::Vm;

impl World {
    pub(super) fn go_wrong(&mut self, hostile: Hostile) {
        match hostile {
            Hostile::Fail { calls, status } => self.host().fail(calls, status.into()),
            Hostile::Heal => self.heal(),
            Hostile::Beat(is_beaten) => self.host().beat(is_beaten),
            Hostile::RejectMetrics(true) => self.host().reject_metrics(),
            Hostile::RejectMetrics(false) => self.host().accept_metrics(),
            Hostile::Overwrite { key, at, byte } => {
                self.host().overwrite(&shared_key(key), |bytes| {
                    match bytes.get_mut(usize::from(at)) {
                        Some(place) => *place = byte,
                        None => bytes.push(byte),
                    }
                })
            }
            Hostile::Copy { from, to } => {
                let mut copied = Vec::new();
                self.host()
                    .overwrite(&shared_key(from), |bytes| copied.clone_from(bytes));
                self.host()
                    .overwrite(&shared_key(to), |bytes| *bytes = copied);
            }
            Hostile::Directive { kind, number } => self.forge(kind, number),
            Hostile::Map { cut, byte } => {
                self.host().set_raw_map(None);
                if let Ok(mut bytes) = self.host().header_map(Headers::Request) {
                    let at = usize::from(cut) % bytes.len().max(1);
                    if let Some(place) = bytes.get_mut(at) {
                        *place = byte;
                    }
                    bytes.truncate(usize::from(cut / 8).max(1));
                    self.host().set_raw_map(Some(bytes));
                }
            }
            Hostile::Trap { vm } => self.trap(vm),
            Hostile::Clock(value) => self.host().set_clock(u64::from(value) << 44),
        }
    }

    /// A directive that no leader wrote, with any number in it.
    fn forge(&self, kind: u8, number: u16) {
        let at = Instant::from_nanos(u64::from(number) << 20);
        let directive = Directive {
            upstream: UpstreamKey::hash(CLUSTERS[usize::from(kind) % 3], None),
            epoch: u32::from(number),
            breaker: match kind / 3 % 3 {
                0 => BreakerState::Closed,
                1 => BreakerState::Open {
                    until: at,
                    probes: number.into(),
                },
                _ => BreakerState::Ramp {
                    limit: u32::from(number).max(1),
                },
            },
            limit: u32::from(number).max(1),
            reserve: u32::MAX,
            grants: kind.is_multiple_of(2).then_some(number.into()),
            margin: Margin::NONE,
            workers: number.max(1),
            unended: u32::MAX - u32::from(number),
            answered_up_to: at,
            learned: Learned {
                limit: LimitCheckpoint {
                    floor: FloorCheckpoint {
                        mean: Seconds::new(number.into()),
                        ..FloorCheckpoint::default()
                    },
                    capacity: PerSecond::new(kind.into()),
                    ..LimitCheckpoint::default()
                },
                ..Learned::default()
            },
        };
        let bytes = Directives::new(number.into(), at, [directive]).encode();
        let keys = Keys::new(PLUGIN);
        let key = if kind > 127 {
            keys.learned()
        } else {
            keys.directives()
        };
        self.host().overwrite(key, |value| *value = bytes);
    }

    /// The VM is gone with all that it had under way, and a new one is in its place.
    fn trap(&mut self, vm: usize) {
        self.hosts[vm].trap();
        self.vms[vm] = Vm::default();
        self.hosts[vm] = self.hosts[vm].another_vm();
        self.open.retain(|stream| stream.vm != vm);
        self.answered.retain(|stream| stream.vm != vm);
        self.configure(vm, 1, 0);
    }

    pub(in crate::fuzz) fn heal(&self) {
        self.host().fail(0, 0);
        self.host().beat(false);
        self.host().accept_metrics();
        self.host().set_raw_map(None);
    }
}

fn shared_key(number: u8) -> String {
    let keys = Keys::new(PLUGIN);
    match number % 10 {
        0 => keys.workers().to_owned(),
        1 => keys.lease(),
        2 => keys.directives().to_owned(),
        3 => keys.learned().to_owned(),
        4 => format!("{}/0", keys.names()),
        5 => keys.cohorts(),
        6 => keys.serial(),
        place => keys.slice(usize::from(place - 7)),
    }
}
