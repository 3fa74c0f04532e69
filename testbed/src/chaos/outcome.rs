//! What came of a fault.

use serde::{Deserialize, Serialize};

use super::fault::InjectedFault;
use super::invariants::{Broken, Facts};

/// One fault and what came of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FaultOutcome {
    /// The fault.
    pub fault: InjectedFault,
    /// What was seen; `None` when it could not be done or looked at.
    pub facts: Option<Facts>,
    /// What does not hold.
    pub broken: Vec<Broken>,
}
