//! The cost of a request, for all subjects in turn.
//!
//! All Envoys run throughout, and each round measures each of them once, so that other load on the machine affects all of
//! them alike. After the requests of a round, the same process is measured under a trickle of them: two counts at two rates
//! separate the cost of a request from the cost of a second (timers, the plugin's tick, which has more to do while there is
//! traffic).

use std::time::{Duration, Instant};

use serde::Serialize;

use super::CostError;
use super::counter::CounterTool;
use super::http::{RawConnection, RawRequest};
use super::load::{AnswersByStatus, Loop};
use super::process::{MeasuredEnvoy, Shape};
use super::subject::{ANSWERED, HANGING, SHED_STATUS, Subject};
use tidegate_sim::number::{float, quantile};

/// How much is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestEffort {
    /// Rounds; each measures every row once.
    pub rounds: u32,
    /// Requests of a row in a round.
    pub requests: u64,
    /// Connections, each with one request under way.
    pub connections: usize,
    /// How long a process is measured under a trickle of requests, in each round.
    pub background: Duration,
}

impl RequestEffort {
    /// Sufficient effort for `tool`: exact counters need little, CPU time much.
    #[must_use]
    pub const fn enough_for(tool: CounterTool) -> Self {
        let (rounds, requests, background_ms) = match tool {
            CounterTool::Perf => (5, 20_000, 500),
            CounterTool::Valgrind => (3, 2_000, 2_000),
            CounterTool::Cpu => (15, 10_000, 300),
        };
        Self {
            rounds,
            requests,
            connections: 16,
            background: Duration::from_millis(background_ms),
        }
    }
}

/// A trickle is this number of requests at once, ...
const TRICKLE: u64 = 4;
/// ... and then this pause, shorter than a tick of the plugin.
const TRICKLE_EVERY: Duration = Duration::from_millis(50);

/// Median and range of a figure over the rounds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CostSpread {
    /// The median.
    pub median: f64,
    /// The lowest.
    pub min: f64,
    /// The highest.
    pub max: f64,
}

impl CostSpread {
    fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let at = |share| quantile(&values, share).unwrap_or(f64::NAN);
        Self {
            median: at(0.5),
            min: at(0.0),
            max: at(1.0),
        }
    }
}

/// The cost of one kind of request on one subject, in the counter's unit.
#[derive(Debug, Clone, Serialize)]
pub struct RequestRow {
    /// The subject, and what happened to its requests.
    pub name: String,
    /// Per request, without background.
    pub per_request: CostSpread,
    /// Per second, regardless of the rate: timers, and the plugin's tick in every VM.
    pub background_per_second: CostSpread,
    /// Requests that were measured.
    pub requests: u64,
}

/// A row to be measured.
struct RowPlan {
    name: String,
    subject: usize,
    request: RawRequest,
    expected: u16,
    per_request: Vec<f64>,
    background: Vec<f64>,
}

/// An Envoy and its connections, which must live as long as it.
struct Bench {
    measured: MeasuredEnvoy,
    clients: Loop,
    // The request that takes the only place at the hanging upstream.
    _holder: Option<RawConnection>,
}

/// Measures all `subjects`; a module's shed requests have a separate row.
///
/// # Errors
/// If an Envoy or the counter does not work, or a request gets another answer than the row expects.
pub fn measure(
    subjects: &[Subject],
    tool: CounterTool,
    effort: RequestEffort,
    said: &mut dyn FnMut(&str),
) -> Result<Vec<RequestRow>, CostError> {
    let mut benches = Vec::new();
    for subject in subjects {
        said(&format!("start envoy: {}", subject.name()));
        benches.push(Bench::start(subject, tool, effort)?);
    }
    let mut plans: Vec<RowPlan> = subjects.iter().enumerate().flat_map(plans).collect();
    for plan in &plans {
        said(&format!("warm up: {}", plan.name));
        if let Some(bench) = benches.get_mut(plan.subject) {
            bench.run(plan, effort.requests)?;
        }
    }
    for round in 1..=effort.rounds {
        said(&format!("round {round} of {}", effort.rounds));
        for plan in &mut plans {
            if let Some(bench) = benches.get_mut(plan.subject) {
                bench.round(plan, tool, effort)?;
            }
        }
    }
    Ok(plans
        .into_iter()
        .map(|plan| RequestRow {
            name: plan.name,
            per_request: CostSpread::of(plan.per_request),
            background_per_second: CostSpread::of(plan.background),
            requests: effort.requests * u64::from(effort.rounds),
        })
        .collect())
}

fn plans((index, subject): (usize, &Subject)) -> Vec<RowPlan> {
    let plan = |name: String, path: &str, expected: u16| RowPlan {
        name,
        subject: index,
        request: RawRequest::get(path, &[]),
        expected,
        per_request: Vec::new(),
        background: Vec::new(),
    };
    match subject {
        Subject::NoFilter | Subject::AdaptiveConcurrency | Subject::Empty(_) => {
            vec![plan(subject.name().to_owned(), ANSWERED, 200)]
        }
        Subject::Module(_) | Subject::Native(_) | Subject::NativeWith(..) => vec![
            plan(format!("{}, admitted", subject.name()), ANSWERED, 200),
            plan(format!("{}, shed", subject.name()), HANGING, SHED_STATUS),
        ],
    }
}

impl Bench {
    fn start(
        subject: &Subject,
        tool: CounterTool,
        effort: RequestEffort,
    ) -> Result<Self, CostError> {
        let shape = Shape {
            workers: 1,
            many: 0,
        };
        let measured = MeasuredEnvoy::start(subject, shape, |binary, folder| {
            tool.command(binary, folder)
        })?;
        let clients = Loop::open(measured.entry(), effort.connections)?;
        let holder = if subject.is_tidegate() {
            let mut holder = RawConnection::open(measured.entry())?;
            holder.send(&RawRequest::get(HANGING, &[]))?;
            Some(holder)
        } else {
            None
        };
        Ok(Self {
            measured,
            clients,
            _holder: holder,
        })
    }

    fn run(&mut self, plan: &RowPlan, requests: u64) -> Result<(), CostError> {
        let answers: AnswersByStatus = self.clients.run(&plan.request, requests)?;
        if answers.keys().eq([&plan.expected]) {
            Ok(())
        } else {
            Err(CostError::Answers {
                what: plan.name.clone(),
                found: answers,
                expected: plan.expected,
            })
        }
    }

    fn round(
        &mut self,
        plan: &mut RowPlan,
        tool: CounterTool,
        effort: RequestEffort,
    ) -> Result<(), CostError> {
        let busy = self.watch(plan, tool, |bench, plan| {
            bench.run(plan, effort.requests)?;
            Ok(effort.requests)
        })?;
        let slow = self.watch(plan, tool, |bench, plan| {
            let (started, mut sent) = (Instant::now(), 0);
            while started.elapsed() < effort.background {
                bench.run(plan, TRICKLE)?;
                sent += TRICKLE;
                std::thread::sleep(TRICKLE_EVERY);
            }
            Ok(sent)
        })?;
        if let Some(costs) = split(busy, slow) {
            plan.per_request.push(costs.per_request);
            plan.background.push(costs.per_second);
        }
        Ok(())
    }

    fn watch(
        &mut self,
        plan: &RowPlan,
        tool: CounterTool,
        load: impl FnOnce(&mut Self, &RowPlan) -> Result<u64, CostError>,
    ) -> Result<Watched, CostError> {
        let started = Instant::now();
        let count = tool.begin(&self.measured)?;
        let requests = load(self, plan)?;
        let count = count.end(&self.measured)?;
        Ok(Watched {
            count: float(count),
            requests: float(requests),
            seconds: started.elapsed().as_secs_f64(),
        })
    }
}

/// A count, with the number of requests and the duration.
#[derive(Debug, Clone, Copy)]
struct Watched {
    count: f64,
    requests: f64,
    seconds: f64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Costs {
    per_request: f64,
    per_second: f64,
}

/// Solves `count = requests * per_request + seconds * per_second` for two such counts; `None` if their rates are too similar
/// to separate the two costs.
fn split(busy: Watched, slow: Watched) -> Option<Costs> {
    let both = busy.requests * slow.seconds - slow.requests * busy.seconds;
    let requests = busy.count * slow.seconds - slow.count * busy.seconds;
    let seconds = busy.requests * slow.count - slow.requests * busy.count;
    (both > f64::EPSILON).then(|| Costs {
        per_request: requests / both,
        per_second: seconds / both,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_rates_tell_requests_from_seconds() {
        let watched = |requests: f64, seconds: f64| Watched {
            count: requests * 250.0 + seconds * 1_000.0,
            requests,
            seconds,
        };
        let costs = split(watched(2_000.0, 3.0), watched(80.0, 2.0)).unwrap();
        assert!((costs.per_request - 250.0).abs() < 1e-6);
        assert!((costs.per_second - 1_000.0).abs() < 1e-6);
        assert_eq!(split(watched(2.0, 1.0), watched(4.0, 2.0)), None);
    }

    #[test]
    fn spread_is_median_and_range() {
        let spread = CostSpread::of(vec![3.0, 1.0, 9.0]);
        assert_eq!(
            spread,
            CostSpread {
                median: 3.0,
                min: 1.0,
                max: 9.0
            }
        );
    }
}
