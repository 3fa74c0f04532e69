//! Resident memory per worker, and the cost of keeping all that state while nothing happens.
//!
//! Each worker thread runs its own VM. Its cost is a difference: an Envoy with many workers compared with an Envoy with one,
//! divided by the number of additional workers, with the module and without it. Every worker has served every upstream before
//! memory is read, so that the figure includes their state. The second listener answers the requests over connections that
//! end with them, so that only state is left.

use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::CostError;
use super::counter::CounterTool;
use super::http::RawRequest;
use super::load::Loop;
use super::process::{MeasuredEnvoy, Shape};
use super::subject::{MANY, Subject, UPSTREAM_HEADER, cluster_name};
use tidegate_sim::number::float;

/// How much is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryEffort {
    /// Workers of the larger Envoy; the smaller has one.
    pub workers: u32,
    /// Upstreams that every worker serves.
    pub upstreams: u32,
    /// How often each Envoy is started; the figures are medians.
    pub repetitions: u32,
}

impl Default for MemoryEffort {
    fn default() -> Self {
        Self {
            workers: 4,
            upstreams: 1_000,
            repetitions: 5,
        }
    }
}

/// Connections for each worker: Envoy spreads them evenly.
const CONNECTIONS_PER_WORKER: u32 = 2;

/// Anonymous resident memory of one subject, in bytes (medians).
#[derive(Debug, Clone, Serialize)]
pub struct MemoryRow {
    /// The subject.
    pub name: String,
    /// With one worker.
    pub one_worker_bytes: u64,
    /// With [`MemoryEffort::workers`].
    pub many_workers_bytes: u64,
    /// For each additional worker.
    pub per_worker_bytes: f64,
    /// CPU time, in ms per second, that the larger Envoy needs for its upkeep, right after the upstreams were served.
    pub upkeep_ms_per_second: f64,
}

/// When memory is read, after the upstreams were served.
const MEMORY_AFTER: Duration = Duration::from_secs(2);
/// How long the upkeep is measured, after the upstreams were served: as long as the plugin reports every upstream, and as Envoy
/// waits between two flushes of its own metrics. One flush takes it some 50 ms, so each measurement has exactly one.
const UPKEEP_WATCHED: Duration = Duration::from_secs(5);

/// Readings of one Envoy.
#[derive(Debug, Clone, Copy, Default)]
struct SeenMemory {
    bytes: u64,
    upkeep_ms_per_second: f64,
}

impl SeenMemory {
    /// The median of each reading.
    fn median(all: &[Self]) -> Self {
        let mut bytes: Vec<u64> = all.iter().map(|seen| seen.bytes).collect();
        bytes.sort_unstable();
        let mut upkeep: Vec<f64> = all.iter().map(|seen| seen.upkeep_ms_per_second).collect();
        upkeep.sort_unstable_by(f64::total_cmp);
        let middle = all.len() / 2;
        Self {
            bytes: bytes.get(middle).copied().unwrap_or_default(),
            upkeep_ms_per_second: upkeep.get(middle).copied().unwrap_or_default(),
        }
    }
}

/// Measures all `subjects`.
///
/// # Errors
/// If an Envoy does not work or an upstream gives another answer than 200.
pub fn measure(
    subjects: &[Subject],
    effort: MemoryEffort,
    said: &mut dyn FnMut(&str),
) -> Result<Vec<MemoryRow>, CostError> {
    let requests: Vec<RawRequest> = (0..effort.upstreams)
        .map(|index| RawRequest::get(MANY, &[(UPSTREAM_HEADER, &cluster_name(index))]))
        .collect();
    let mut rows = Vec::new();
    for subject in subjects {
        let mut medians = [SeenMemory::default(); 2];
        for (median, workers) in medians.iter_mut().zip([1, effort.workers]) {
            said(&format!("memory: {}, workers: {workers}", subject.name()));
            let mut seen = Vec::new();
            for _ in 0..effort.repetitions {
                seen.push(watch(subject, workers, effort.upstreams, &requests)?);
            }
            *median = SeenMemory::median(&seen);
        }
        let [one, many] = medians;
        let more = f64::from(effort.workers.saturating_sub(1).max(1));
        rows.push(MemoryRow {
            name: subject.name().to_owned(),
            one_worker_bytes: one.bytes,
            many_workers_bytes: many.bytes,
            per_worker_bytes: (float(many.bytes) - float(one.bytes)) / more,
            upkeep_ms_per_second: many.upkeep_ms_per_second,
        });
    }
    Ok(rows)
}

fn watch(
    subject: &Subject,
    workers: u32,
    many: u32,
    requests: &[RawRequest],
) -> Result<SeenMemory, CostError> {
    let measured = MeasuredEnvoy::start(subject, Shape { workers, many }, |binary, _| {
        Command::new(binary)
    })?;
    let connections = usize::try_from(workers * CONNECTIONS_PER_WORKER).unwrap_or(1);
    let answers = Loop::open(measured.entry(), connections)?.run_each(requests)?;
    if !answers.keys().eq([&200]) {
        return Err(CostError::Answers {
            what: format!("memory: {}", subject.name()),
            found: answers,
            expected: 200,
        });
    }
    let started = Instant::now();
    let count = CounterTool::Cpu.begin(&measured)?;
    thread::sleep(MEMORY_AFTER);
    let bytes = measured.anonymous_bytes()?;
    thread::sleep(UPKEEP_WATCHED.saturating_sub(started.elapsed()));
    let upkeep_ms = float(count.end(&measured)?) / 1e6;
    Ok(SeenMemory {
        bytes,
        upkeep_ms_per_second: upkeep_ms / started.elapsed().as_secs_f64(),
    })
}
