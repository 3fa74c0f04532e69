//! The kinds of contenders: their names, and how one is made.

use crate::contender::{ContenderError, Made};
use crate::run::Run;
use crate::scenario::Scenario;

/// A contender that can be had by its name.
#[derive(Debug, Clone, Copy)]
pub struct ContenderKind {
    /// Name on the command line and in tables, kebab-case.
    pub name: &'static str,
    /// One line that says what it is.
    pub title: &'static str,
    /// How one is made, and who chose its settings.
    pub make: Make,
}

/// How a contender is made, and who chose its settings.
#[derive(Debug, Clone, Copy)]
pub enum Make {
    /// As it was published. Makes one for a proxy of the scenario. No two proxies of a run get the same seed.
    Published(fn(&Scenario, seed: u64) -> Made),
    /// The same, set by somebody who knows the capacity, which nobody does outside a laboratory.
    Tuned(fn(&Scenario, seed: u64) -> Made),
    /// Plays the scenario with one setting after another and answers with the best run: a bound, not a rival.
    Hindsight(fn(&Scenario) -> Result<Run, ContenderError>),
}

impl ContenderKind {
    /// Whether somebody chose its settings who knows more than a proxy can.
    #[must_use]
    pub const fn is_tuned(&self) -> bool {
        matches!(self.make, Make::Tuned(_) | Make::Hindsight(_))
    }

    /// Whether it is no rival but a bound: it plays a scenario many times, and only where it is asked for by name.
    #[must_use]
    pub const fn is_bound(&self) -> bool {
        matches!(self.make, Make::Hindsight(_))
    }
}
