//! Partial failures, queues, retry storms and cascades over time: static breakers against Tidegate.
//!
//! Five parts. `users`: 290 users of k6 arrive, 100 a second, at a service that is partly broken. `chain`: the same in the
//! last of three services. `queue`: 80 to 120 % of the capacity with a waiting line of 20, or of another length. `storm`:
//! five seconds above the capacity, with callers that retry up to ten times, every 2 s or every 5 s, whatever the answer; the
//! published one begins at the capacity, with a line of 20. `cascade`: the last service of Bookinfo hangs for five seconds;
//! the publication has no such part.
//!
//! The broken or full service is the testbed's standard one: 400 requests a second, 40 ms each on average.

mod cell;
mod fault;
mod line;

use tidegate_sim::scenario::{Scenario, ScenarioError};
use tidegate_testbed::variant::Variant;

use super::plan::{Study, by};
use crate::contender::Protection;
use crate::matrix::{Cell, CellLoad};
use crate::result::Extent;

use cell::cell;
use fault::{FAULTS, chain, users};
use line::{QUEUE_LENGTH, QUEUES, few_queues, queue, storm};
pub(crate) use line::{REQUESTS_BEFORE_SPIKE, storm_spike};

pub(super) const STUDY: Study = Study {
    name: cell::NAME,
    title: "Efficient service mesh traffic management for cloud-native applications (2026), section 4.2",
    cells,
};

/// Contenders in every part of a full run. Each part has its own list for a reduced run.
const ALL: [Protection; 5] = [
    Protection::NONE,
    Protection::EFFICIENT,
    Protection::Known(Variant::AdaptiveConcurrency),
    Protection::Known(Variant::AdmissionControl),
    Protection::TIDEGATE,
];

const CASCADE: &str = include_str!("../../scenarios/cascade.toml");

fn cells(extent: Extent) -> Result<Vec<Cell>, ScenarioError> {
    let mut cells = Vec::new();
    for repetition in 0..by(extent, 1, 3) {
        for fault in &FAULTS {
            let few = [fault.published, Protection::TIDEGATE];
            for contender in by(extent, &few[..], &ALL[..]) {
                cells.push(users(fault, *contender, repetition, extent)?);
            }
            let few = [Protection::NONE, Protection::TIDEGATE];
            for contender in by(extent, &few[..], &ALL[..]) {
                cells.push(chain(fault, *contender, repetition, extent)?);
            }
        }
        let few = [Protection::EFFICIENT, Protection::TIDEGATE];
        let contenders = by(extent, &few[..], &ALL[..]);
        for percent in by(extent, &[80, 100, 120][..], &[80, 90, 100, 110, 120][..]) {
            for length in by(extent, few_queues(*percent), &QUEUES[..]) {
                for contender in contenders {
                    cells.push(queue((*percent, *length), *contender, repetition, extent)?);
                }
            }
        }
        for (every_s, length_s) in [(2, 18), (5, 22)] {
            let length_s = by(extent, length_s, 60);
            for length in by(extent, &[QUEUE_LENGTH][..], &QUEUES[..]) {
                for contender in contenders {
                    let times = (every_s, length_s);
                    cells.push(storm(Some(*length), times, *contender, repetition)?);
                }
            }
            for contender in contenders {
                cells.push(storm(None, (every_s, length_s), *contender, repetition)?);
            }
        }
        let few = [
            Protection::NONE,
            Protection::EFFICIENT,
            Protection::TIDEGATE,
        ];
        for contender in by(extent, &few[..], &ALL[..]) {
            let scenario = Scenario::parse(CASCADE, "cascade.toml")?;
            let known = [("load_rps", 100_u32.into()), ("setup", "bookinfo".into())];
            cells.push(cell(
                "cascade",
                known,
                *contender,
                repetition,
                (scenario, CellLoad::Cascade),
            ));
        }
    }
    Ok(cells)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_waiting_line_of_a_cell_is_that_of_its_name() {
        let cells = cells(Extent::Full).unwrap();
        let of = |name: &str| {
            let cell = cells.iter().find(|cell| cell.name == name).unwrap();
            cell.scenario.upstreams[0]
                .behaviour
                .queue
                .map(|queue| queue.max)
        };
        assert_eq!(of("queue offered=90%"), Some(20));
        assert_eq!(of("queue offered=120% length=50"), Some(50));
        assert_eq!(of("storm load=100% queue=10 retry=5s"), Some(10));
        assert_eq!(of("storm retry=5s"), None);
    }
}
