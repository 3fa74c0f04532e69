//! The studies: published experiments, each as the cells of its matrix.
//!
//! | name | experiment |
//! |---|---|
//! | `transition` | Adaptive Circuit Breaker Configuration for Transition from Istio Sidecar to Ambient Mode (2025) |
//! | `traffic` | Efficient service mesh traffic management for cloud-native applications (2026), section 4.2 |
//! | `ambient` | Ambient Mesh: Can Sidecar-less Istio Make Applications Faster? (2024) |
//! | `score` | Performance and security of sidecar proxies (2026), the composite score |
//! | `replicas` | Test report: Istio ambient vs sidecar (2024) |
//! | `clients` | none: the same with more clients instead of more servers |
//!
//! They repeat the form of each experiment: the settings that vary, the offered load, the figures. Machines and services
//! differ, so figures should be compared with each other and not with the published ones.

mod ambient;
mod clients;
mod plan;
mod replicas;
mod score;
mod traffic;
mod transition;

pub use plan::Study;
pub(crate) use traffic::{REQUESTS_BEFORE_SPIKE, storm_spike};

/// All studies.
pub const ALL: [Study; 6] = [
    transition::STUDY,
    traffic::STUDY,
    ambient::STUDY,
    score::STUDY,
    replicas::STUDY,
    clients::STUDY,
];

/// No study has this name.
#[derive(Debug, thiserror::Error)]
#[error("study: found {0}, expected one of: {known}", known = ALL.map(|study| study.name).join(", "))]
pub struct UnknownStudy(String);

impl Study {
    /// The study with this name.
    ///
    /// # Errors
    /// If there is none.
    pub fn of(name: &str) -> Result<Self, UnknownStudy> {
        let found = ALL.into_iter().find(|study| study.name == name);
        found.ok_or_else(|| UnknownStudy(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::Extent;
    use std::collections::BTreeSet;
    use std::time::Duration;

    /// Time to start and end the processes of a cell: twice the mean of the committed run.
    const START: Duration = Duration::from_millis(700);

    #[test]
    fn every_cell_is_there_once() {
        for extent in [Extent::Reduced, Extent::Full] {
            for study in ALL {
                let cells = study.cells(extent).unwrap();
                assert!(!cells.is_empty(), "{}", study.name);
                let names: BTreeSet<String> = cells
                    .iter()
                    .map(|cell| cell.result(crate::result::CellOutcome::Ok).name())
                    .collect();
                assert_eq!(names.len(), cells.len(), "{} {extent}", study.name);
                assert!(cells.iter().all(|cell| cell.study == study.name));
            }
        }
    }

    #[test]
    fn all_reduced_studies_together_take_at_most_half_an_hour() {
        let cells = ALL
            .iter()
            .flat_map(|study| study.cells(Extent::Reduced).unwrap());
        let whole: Duration = cells.map(|cell| cell.length() + START).sum();
        assert!(whole <= Duration::from_secs(30 * 60), "{whole:?}");
    }

    #[test]
    fn studies_are_found_by_name() {
        assert_eq!(Study::of("score").unwrap().name, "score");
        let said = Study::of("scor").unwrap_err().to_string();
        assert_eq!(
            said,
            "study: found scor, expected one of: transition, traffic, ambient, score, replicas, clients"
        );
    }
}
