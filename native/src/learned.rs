//! Learned state of one plugin, from the values that its workers share and back.

use core::time::Duration;
use std::sync::Arc;

use tidegate_core::{Clocks, SavedState, SavedStateError};
use tidegate_worker::api::{Expect, Host as _};
use tidegate_worker::exchange::keys::Keys;

use crate::host::{NativeHost, Shared};

/// What a plugin starts from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Restored {
    pub(crate) upstreams: usize,
    /// How long ago it was saved.
    pub(crate) age: Duration,
}

/// The version of learned state, which changes with each write; `None` if there is none.
pub(crate) fn version(plugin: &str, shared: &Arc<Shared>) -> Option<u32> {
    let value = shared.values.get(Keys::new(plugin).learned())?;
    Some(value.version)
}

/// Learned state as bytes, and its version; `None` if there is none.
pub(crate) fn save(plugin: &str, shared: &Arc<Shared>) -> Option<(Vec<u8>, u32)> {
    let value = shared.values.get(Keys::new(plugin).learned())?;
    let bytes = SavedState::encode(plugin, clocks(shared)?, &value.bytes);
    Some((bytes, value.version))
}

/// Puts what was [saved](save) where the plugin's workers look for it when they are made.
pub(crate) fn restore(
    bytes: &[u8],
    plugin: &str,
    shared: &Arc<Shared>,
) -> Result<Restored, SavedStateError> {
    let saved = SavedState::decode(bytes)?;
    let now = clocks(shared).unwrap_or(saved.clocks);
    let learned = saved.restore(plugin, now)?;
    let upstreams = learned.entries().count();
    let keys = Keys::new(plugin);
    let key = keys.learned();
    shared.values.set(key, &learned.encode(), Expect::Anything);
    Ok(Restored {
        upstreams,
        age: now.wall.saturating_since(saved.clocks.wall),
    })
}

/// `None` if the wall clock is before its epoch.
pub(crate) fn clocks(shared: &Arc<Shared>) -> Option<Clocks> {
    let host = NativeHost::new(Arc::clone(shared));
    let (monotonic, wall) = (host.now().ok()?, host.wall_clock().ok()?);
    Some(Clocks { monotonic, wall })
}
