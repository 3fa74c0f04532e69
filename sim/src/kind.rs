//! The kinds of contenders: their names, and how one is made.

use crate::contender::{ContenderError, Made};
use crate::run::Run;
use crate::scenario::Scenario;

/// A contender that can be chosen by name.
#[derive(Debug, Clone, Copy)]
pub struct ContenderKind {
    /// Name on the command line and in tables, kebab-case.
    pub name: &'static str,
    /// One line that says what it is.
    pub title: &'static str,
    /// How one is made, and where its settings come from.
    pub make: Make,
}

/// How a contender is made, and where its settings come from.
#[derive(Debug, Clone, Copy)]
pub enum Make {
    /// With its published settings. Makes one for a proxy of the scenario. Each proxy of a run gets another seed.
    Published(fn(&Scenario, seed: u64) -> Made),
    /// Tuned to the capacity, which is known only in the simulator.
    Tuned(fn(&Scenario, seed: u64) -> Made),
    /// Measures inside the services what a proxy in front of them cannot see. It is shown beside the rivals, but is not one.
    Inside(fn(&Scenario, seed: u64) -> Made),
    /// Plays the scenario with one setting after another and returns the best run: a bound, not a rival.
    Hindsight(fn(&Scenario) -> Result<Run, ContenderError>),
}

impl ContenderKind {
    /// Whether it uses knowledge that a proxy does not have.
    #[must_use]
    pub const fn is_tuned(&self) -> bool {
        matches!(
            self.make,
            Make::Tuned(_) | Make::Inside(_) | Make::Hindsight(_)
        )
    }

    /// Whether it measures inside the services.
    #[must_use]
    pub const fn is_inside(&self) -> bool {
        matches!(self.make, Make::Inside(_))
    }

    /// Whether it is a bound rather than a rival: it plays a scenario many times, and only when named explicitly.
    #[must_use]
    pub const fn is_bound(&self) -> bool {
        matches!(self.make, Make::Hindsight(_))
    }
}
