//! One scenario on one contender, with real sockets.

mod error;
mod sampler;
mod services;

use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use crate::client::open_loop;
use crate::envoy::{Envoy, EnvoyError, Metrics, Route};
use crate::variant::Variant;
use tidegate_sim::arrivals;
use tidegate_sim::profile::{HeaderTiming, Lie};
use tidegate_sim::record::Record;
use tidegate_sim::scenario::{Scenario, UpstreamProfile};
use tidegate_sim::score::Figures;
use tidegate_sim::series::{self, RunWindow, SeriesSample};

use sampler::Sampler;
use services::Services;

pub use error::RunError;
pub(crate) use sampler::sample;

/// The results of a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RunOutcome {
    /// Name of the scenario.
    pub scenario: String,
    /// The contender.
    pub variant: Variant,
    /// The figures.
    pub figures: Figures,
    /// CPU time of the Envoy process, in seconds.
    pub envoy_cpu_s: f64,
    /// Resident memory of the Envoy process at the end, in bytes.
    pub envoy_resident_bytes: u64,
    /// Good answers, sheds and so on over time.
    pub windows: Vec<RunWindow>,
    /// Upstreams and plugin over time.
    pub samples: Vec<SeriesSample>,
}

/// Time before the first arrival in which connections are opened and the plugin is started.
const HEAD_START: Duration = Duration::from_millis(200);

/// Lets this process, and those it starts, open as many files as the system allows.
///
/// A run that is overloaded and unprotected holds thousands of connections.
pub fn raise_file_limit() {
    let limit = getrlimit(Resource::Nofile);
    // If the system refuses, the lower limit stays and shows as failed connections.
    let _ = setrlimit(
        Resource::Nofile,
        Rlimit {
            current: limit.maximum,
            maximum: limit.maximum,
        },
    );
}

/// Returns when this process is asked to end (SIGINT, SIGTERM), so that the caller can drop everything in order.
pub async fn interrupted() {
    let (Ok(mut interrupt), Ok(mut terminate)) = (
        signal(SignalKind::interrupt()),
        signal(SignalKind::terminate()),
    ) else {
        // Without handlers the signals end this process, and the kernel then ends every Envoy.
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}

/// Runs `scenario` on `variant`; calls `progress` with the seconds passed.
///
/// # Errors
/// When upstreams or Envoy cannot be started or asked.
pub async fn run(
    scenario: &Scenario,
    variant: Variant,
    progress: impl Fn(Duration) + Send + Sync + 'static,
) -> Result<RunOutcome, RunError> {
    let keys = scenario.only_simulated();
    if !keys.is_empty() {
        return Err(RunError::OnlySimulated {
            scenario: scenario.name.clone(),
            keys,
        });
    }
    let envoy_error = |source| RunError::Envoy { variant, source };
    let services = Services::start(scenario).await?;
    let envoy = start_envoy(scenario, variant, &services)
        .await
        .map_err(envoy_error)?;
    services.connect(envoy.addr());

    let start = Instant::now() + HEAD_START;
    let acting = services.act(start);
    let sampler = Sampler {
        services: services.clone(),
        admin: envoy.admin().clone(),
        start,
        variant,
    };
    let (stop, stopped) = oneshot::channel();
    let sampling = tokio::spawn(sampler.sample(stopped, progress));
    let arrivals = Arc::new(arrivals::schedule(scenario));
    let (sender, mut receiver) = mpsc::unbounded_channel();
    let answered = open_loop::replay(
        Arc::new(scenario.clone()),
        arrivals,
        envoy.addr(),
        start,
        sender,
    )
    .await;
    let mut records: Vec<Record> = Vec::new();
    while let Ok(record) = receiver.try_recv() {
        records.push(record);
    }
    drop(stop);
    drop(acting);

    let samples = sampling.await.unwrap_or_default();
    let mut figures = Figures::of(scenario, &records, services.reached());
    figures.note_work(
        scenario,
        &services.work_since(start + scenario.warmup, &answered),
    );
    if variant.is_ours() {
        let metrics = envoy
            .admin()
            .tidegate()
            .await
            .map_err(|e| envoy_error(e.into()))?;
        figures.breaker_opened = Some(opened(&metrics));
    }
    Ok(RunOutcome {
        scenario: scenario.name.clone(),
        variant,
        figures,
        envoy_cpu_s: envoy.cpu_time().map_or(0.0, |time| time.as_secs_f64()),
        envoy_resident_bytes: envoy.resident_bytes().unwrap_or(0),
        windows: series::windows(scenario, &records),
        samples,
    })
}

/// How often a breaker opened, over all upstreams.
fn opened(metrics: &Metrics) -> u64 {
    metrics
        .iter()
        .filter(|metric| metric.name == "breaker_transitions_total")
        .filter(|metric| metric.labels.get("to").is_some_and(|to| to == "open"))
        .map(|metric| metric.value)
        .sum()
}

async fn start_envoy(
    scenario: &Scenario,
    variant: Variant,
    services: &Services,
) -> Result<Envoy, EnvoyError> {
    let mut builder = Envoy::builder().concurrency(scenario.workers);
    if scenario.upstreams.iter().any(has_bodies) {
        // The timeout of a route covers the whole response, and a stream may last long.
        builder = builder.route_timeout(Duration::ZERO);
    }
    for profile in &scenario.upstreams {
        builder = builder
            .cluster(variant.cluster(services.cluster(profile)))
            .route(Route::host(&profile.name).to(&profile.name));
    }
    variant.envoy(builder, scenario).start().await
}

/// Whether responses of a service ever last beyond their headers.
fn has_bodies(profile: &UpstreamProfile) -> bool {
    let mut stages = profile.stages().into_iter();
    stages.any(|(_, now)| {
        let is_silent = now.lies.values().any(|lie| *lie == Lie::Silence);
        let has_body = now.body.is_some() || !now.bodies.is_empty();
        has_body || is_silent || now.headers == HeaderTiming::AtOnce
    })
}
