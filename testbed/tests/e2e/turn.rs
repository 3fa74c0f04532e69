//! Who may use the machine.
//!
//! Scored runs need it to themselves: on two cores a second Envoy that starts up costs them goodput. Tests that
//! count single requests do not mind each other. Runs are writers of one lock, the others its readers.

use tokio::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

static MACHINE: RwLock<()> = RwLock::const_new(());

/// The right to use the machine, until it is dropped.
#[expect(dead_code, reason = "the guards are held, not read")]
pub(crate) enum Turn {
    Shared(RwLockReadGuard<'static, ()>),
    Alone(RwLockWriteGuard<'static, ()>),
}

/// Beside other tests that count single requests.
pub(crate) async fn shared() -> Turn {
    Turn::Shared(MACHINE.read().await)
}

/// Alone.
pub(crate) async fn alone() -> Turn {
    Turn::Alone(MACHINE.write().await)
}
