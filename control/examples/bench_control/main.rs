//! `make bench-control`: how long a change of policy takes to reach every proxy, how much memory streams take, and how
//! long policies take to render.
//!
//! The service runs in its own process, so that its memory is measured alone. The proxies are clients in this process,
//! each with its own connection, as Envoys have. The time runs from the rename of the policy file until a client has
//! read the push. The exit code is 1 if a target is missed. `--out` writes the figures to a file.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a benchmark that fails must stop and say where"
)]

mod rendering;

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use clap::Parser;
use envoy_types::pb::envoy::config::core::v3::Node;
use envoy_types::pb::envoy::service::discovery::v3::DiscoveryRequest;
use envoy_types::pb::envoy::service::extension::v3::extension_config_discovery_service_client::ExtensionConfigDiscoveryServiceClient as Client;
use serde_json::{Value, json};
use tidegate_supervise::{Log, Process};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Endpoint;

/// The longest time to wait for the pushes of one change.
const BOUND: Duration = Duration::from_secs(60);

/// The targets, from the issue of the control service.
const MAX_P99: Duration = Duration::from_secs(1);
const MAX_IDLE_BYTES: u64 = 50 << 20;
const MAX_STREAM_BYTES: u64 = 60 << 10;
const MAX_RENDER: Duration = Duration::from_millis(200);

/// The memory of the idle service is measured at this many streams.
const IDLE_STREAMS: usize = 100;

/// Measure the control service with many proxies
#[derive(Debug, Parser)]
struct BenchArguments {
    /// Streams in all
    #[arg(long, default_value_t = 2_000)]
    streams: usize,
    /// Number of policy changes
    #[arg(long, default_value_t = 10)]
    changes: u32,
    /// File for the figures, as JSON
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// How long the service may take to start.
const READY_WITHIN: Duration = Duration::from_secs(60);

/// The service; killed when dropped.
struct MeasuredService {
    process: Process,
    xds: SocketAddr,
}

impl MeasuredService {
    async fn start(policies: &Path, streams: usize) -> Self {
        let mut program = std::env::current_exe().unwrap();
        program.pop();
        program.set_file_name("tidegate");
        let mut command = Command::new(program);
        command
            .arg("serve")
            .arg("--policies")
            .arg(policies)
            .args([
                "--xds-listen",
                "127.0.0.1:0",
                "--http-listen",
                "127.0.0.1:0",
                "--health-listen",
                "127.0.0.1:0",
            ])
            // All streams come from one address.
            .args(["--max-per-peer", &streams.to_string()])
            .args(["--log", "warn,tidegate_control::serve=info"]);
        let mut process = Process::start("tidegate", command, Log::Unnamed).unwrap();
        let xds = |line: &str| {
            let line: Value = serde_json::from_str(line).ok()?;
            line.get("xds")?.as_str()?.parse().ok()
        };
        let xds = process.line(READY_WITHIN, xds).await.unwrap();
        Self { process, xds }
    }

    fn resident_bytes(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap();
        let line = status
            .lines()
            .find(|line| line.starts_with("VmRSS:"))
            .unwrap();
        let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
        kib << 10
    }
}

/// A proxy that accepts every push and sends the time at which it got it. It ends with its stream.
async fn proxy(addr: SocketAddr, number: usize, got: mpsc::UnboundedSender<Instant>) {
    let endpoint = Endpoint::from_shared(format!("http://{addr}")).unwrap();
    let mut client = Client::new(endpoint.connect().await.unwrap());
    let (requests, outbound) = mpsc::channel(1);
    let first = DiscoveryRequest {
        node: Some(Node {
            id: format!("proxy-{number}"),
            ..Node::default()
        }),
        resource_names: vec!["tidegate".to_owned()],
        ..DiscoveryRequest::default()
    };
    requests.send(first.clone()).await.unwrap();
    let stream = client.stream_extension_configs(ReceiverStream::new(outbound));
    let mut responses = stream.await.unwrap().into_inner();
    while let Ok(Some(push)) = responses.message().await {
        let _ = got.send(Instant::now());
        let answer = DiscoveryRequest {
            node: None,
            version_info: push.version_info,
            response_nonce: push.nonce,
            ..first.clone()
        };
        if requests.send(answer).await.is_err() {
            return;
        }
    }
}

async fn arrivals(got: &mut mpsc::UnboundedReceiver<Instant>, count: usize) -> Vec<Instant> {
    let mut times = Vec::with_capacity(count);
    while times.len() < count {
        match timeout(BOUND, got.recv()).await {
            Ok(Some(time)) => times.push(time),
            _ => panic!("{} of {count} pushes after {BOUND:?}", times.len()),
        }
    }
    times
}

fn write(folder: &Path, limit: u32) {
    let policy = format!(
        "apiVersion: tidegate.dev/v1alpha1\nkind: BreakerPolicy\nmetadata: {{name: all}}\nspec:\n  proxies: [{{id: 'proxy-*'}}]\n  slo: {{latency: {{quantile: 0.99, target: 300ms}}}}\n  limit: {{max: {limit}}}\n"
    );
    fs::write(folder.join("new"), policy).unwrap();
    fs::rename(folder.join("new"), folder.join("all.yaml")).unwrap();
}

/// The smallest time that at least `percent` percent of the times do not exceed.
fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or_default()
}

/// A figure and its upper bound.
struct BoundedFigure {
    name: &'static str,
    found: f64,
    target: f64,
    unit: &'static str,
}

impl BoundedFigure {
    const fn holds(&self) -> bool {
        self.found <= self.target
    }

    fn print(&self) {
        let (name, found, target, unit) = (self.name, self.found, self.target, self.unit);
        let word = if self.holds() { "holds" } else { "MISSED" };
        println!("{name:<42} {found:>10.2} {unit:<4} (target {target:.0}) {word}");
    }

    fn json(&self) -> Value {
        json!({"name": self.name, "found": self.found, "target": self.target, "unit": self.unit, "holds": self.holds()})
    }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// The processor's name, printed with the figures.
fn machine() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let named = text
        .lines()
        .find_map(|line| line.strip_prefix("model name"));
    let name = named.map_or("unknown", |rest| rest.trim_start_matches([' ', '\t', ':']));
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    format!("{name}, {cores} cores")
}

#[expect(clippy::cast_precision_loss, reason = "for people, far below 2^52")]
fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = BenchArguments::parse();
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), 100);
    let service = MeasuredService::start(folder.path(), arguments.streams).await;
    let (got, mut gets) = mpsc::unbounded_channel();
    let empty = service.resident_bytes();
    for number in 0..IDLE_STREAMS {
        tokio::spawn(proxy(service.xds, number, got.clone()));
    }
    arrivals(&mut gets, IDLE_STREAMS).await;
    let idle = service.resident_bytes();
    for number in IDLE_STREAMS..arguments.streams {
        tokio::spawn(proxy(service.xds, number, got.clone()));
    }
    arrivals(&mut gets, arguments.streams - IDLE_STREAMS).await;
    let full = service.resident_bytes();
    let mut worst = Duration::ZERO;
    for change in 1..=arguments.changes {
        let started = Instant::now();
        write(folder.path(), 100 + change);
        let times = arrivals(&mut gets, arguments.streams).await;
        let mut waits: Vec<Duration> = times.iter().map(|t| *t - started).collect();
        waits.sort();
        let (half, p99) = (percentile(&waits, 50), percentile(&waits, 99));
        println!(
            "change {change}: p50 {half:?}, p99 {p99:?}, last {:?}",
            percentile(&waits, 100)
        );
        worst = worst.max(p99);
    }
    let busy = service.resident_bytes();
    let more = u64::try_from(arguments.streams - IDLE_STREAMS)
        .unwrap_or(1)
        .max(1);
    let each = busy.max(full).saturating_sub(idle) / more;
    println!(
        "memory: {:.1} MiB at start, {:.1} MiB after the changes",
        mib(empty),
        mib(busy)
    );
    let times = rendering::measure();
    let figures = [
        BoundedFigure {
            name: "worst p99 from change to proxy",
            found: milliseconds(worst),
            target: milliseconds(MAX_P99),
            unit: "ms",
        },
        BoundedFigure {
            name: "memory with 100 streams",
            found: mib(idle),
            target: mib(MAX_IDLE_BYTES),
            unit: "MiB",
        },
        BoundedFigure {
            name: "memory per further stream, after changes",
            found: mib(each) * 1024.0,
            target: mib(MAX_STREAM_BYTES) * 1024.0,
            unit: "KiB",
        },
        BoundedFigure {
            name: "1,000 policies rendered",
            found: milliseconds(times.render),
            target: milliseconds(MAX_RENDER),
            unit: "ms",
        },
    ];
    figures.iter().for_each(BoundedFigure::print);
    println!(
        "{} policies read and checked in {:?}; one changed in {:?}, which touched {} proxy",
        rendering::POLICIES,
        times.read,
        times.change,
        times.touched
    );
    if let Some(path) = &arguments.out {
        let figures: Vec<Value> = figures.iter().map(BoundedFigure::json).collect();
        let document = json!({
            "machine": machine(),
            "isRelease": !cfg!(debug_assertions),
            "streams": arguments.streams,
            "changes": arguments.changes,
            "touchedByOneChange": times.touched,
            "figures": figures,
        });
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{document:#}\n")).unwrap();
        println!("written to {}", path.display());
    }
    if figures.iter().all(BoundedFigure::holds) && times.touched == 1 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
