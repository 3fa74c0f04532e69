//! The definition of a study, and helpers that several studies need.

use std::collections::BTreeMap;
use std::time::Duration;

use tidegate_sim::profile::{Behaviour, ServiceTime};
use tidegate_sim::scenario::ScenarioError;

use crate::matrix::Cell;
use crate::result::{Extent, Parameter};

/// A published experiment.
#[derive(Debug, Clone, Copy)]
pub struct Study {
    /// Its name on the command line and in results.
    pub name: &'static str,
    /// Its published title.
    pub title: &'static str,
    pub(super) cells: fn(Extent) -> Result<Vec<Cell>, ScenarioError>,
}

impl Study {
    /// The cells of its matrix, in the order in which they are played.
    ///
    /// # Errors
    /// If a scenario of the study is not a valid document, which a test rules out.
    pub fn cells(&self, extent: Extent) -> Result<Vec<Cell>, ScenarioError> {
        (self.cells)(extent)
    }
}

/// One of two values, by extent.
pub(super) const fn by<T: Copy>(extent: Extent, reduced: T, full: T) -> T {
    match extent {
        Extent::Reduced => reduced,
        Extent::Full => full,
    }
}

/// Parameters by name.
pub(super) fn parameters<const N: usize>(
    pairs: [(&str, Parameter); N],
) -> BTreeMap<String, Parameter> {
    pairs
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

/// An upstream that answers at once, so that proxies and clients dominate the measurement.
pub(super) fn instant() -> Behaviour {
    Behaviour {
        slots: 10_000,
        service: ServiceTime::constant(Duration::ZERO),
        ..Behaviour::default()
    }
}

/// The objective with a quick upstream: effectively none.
pub(super) const LAX: Duration = Duration::from_millis(250);
