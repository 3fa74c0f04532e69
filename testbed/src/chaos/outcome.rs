//! The result of a fault.

use serde::{Deserialize, Serialize};

use super::fault::InjectedFault;
use super::invariants::{Broken, FaultFacts};

/// One fault and its result.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FaultOutcome {
    /// The fault.
    pub fault: InjectedFault,
    /// What was observed; `None` if the fault or the observation failed.
    pub facts: Option<FaultFacts>,
    /// The invariants that do not hold.
    pub broken: Vec<Broken>,
}
