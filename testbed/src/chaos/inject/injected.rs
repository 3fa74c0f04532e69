//! What a fault did.

use anyhow::Result;

use crate::chaos::world::ChaosWorld;

/// What a fault did.
#[derive(Debug, Clone, Default)]
pub struct Injected {
    /// When it began and when it was undone, microseconds on the machine's monotonic clock.
    pub window: (u64, u64),
    /// Requests that it sent itself.
    pub calls: u64,
    /// Deviations from what the fault should have done.
    pub wrong: Vec<String>,
}

impl Injected {
    /// Records a deviation if Envoy does not run what the control service wants.
    pub(super) async fn expect_current(&mut self, world: &mut ChaosWorld) -> Result<()> {
        if !world.control.until_current().await? {
            let wrong = "Envoy does not run what the control service wants";
            self.wrong.push(wrong.to_owned());
        }
        Ok(())
    }
}
