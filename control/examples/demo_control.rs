//! `make demo-control`: changes a policy twice while load runs through a real Envoy, which follows it.
//!
//! The service, Envoy, the upstream and the callers use free ports of this machine. The exit code is 1 if a request is
//! lost or if the filter does not follow.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a demonstration that fails must stop and say where"
)]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;
use tidegate_control::serve::{ControlService, ServeSettings};
use tidegate_testbed::client::Caller;
use tidegate_testbed::envoy::{Cluster, DiscoveryProtocol, Envoy, Plugin, release_module};
use tidegate_testbed::upstream::Upstream;

/// The longest time to wait for anything.
const BOUND: Duration = Duration::from_secs(30);

/// The pause between two checks.
const POLL: Duration = Duration::from_millis(20);

/// How long each policy is observed.
const SCENE: Duration = Duration::from_secs(3);

/// How many requests the upstream serves at once, and how long each takes.
const SLOTS: u32 = 16;
const SERVICE: Duration = Duration::from_millis(20);

/// Callers that send requests all the time. They are more than the tight limit admits.
const CALLERS: usize = 8;

/// The number of answers of each kind.
type SharedAnswers = Arc<Mutex<BTreeMap<String, u64>>>;

fn write(folder: &Path, name: &str, limit: u32) {
    let policy = format!(
        "apiVersion: tidegate.dev/v1alpha1\nkind: BreakerPolicy\nmetadata: {{name: {name}}}\nspec:\n  proxies: [{{id: 'tidegate-*'}}]\n  slo: {{latency: {{quantile: 0.99, target: 300ms}}}}\n  limit: {{min: {limit}, max: {limit}, initial: {limit}}}\n"
    );
    fs::write(folder.join("new"), policy).unwrap();
    fs::rename(folder.join("new"), folder.join("policy.yaml")).unwrap();
}

async fn call(caller: Caller, answers: SharedAnswers, stop: Arc<AtomicBool>) {
    while !stop.load(Ordering::Relaxed) {
        let what = match caller.get("/").await {
            Ok(reply) if reply.status == 200 => "answered".to_owned(),
            Ok(reply) => match reply.details() {
                Some(details) if details.starts_with("tidegate_shed_") => details.to_owned(),
                other => format!("LOST: {} {other:?}", reply.status),
            },
            Err(error) => format!("LOST: {error}"),
        };
        *answers.lock().unwrap().entry(what).or_default() += 1;
    }
}

/// Waits until the service says that Envoy runs this policy's newest version.
async fn current(http: &Caller, policy: &str) -> String {
    let started = Instant::now();
    while started.elapsed() < BOUND {
        let reply = http.get("/v1/proxies").await.unwrap();
        let value: Value = serde_json::from_slice(&reply.body).unwrap();
        let proxy = value.pointer("/proxies/0").unwrap_or(&Value::Null);
        let field = |path: &str| proxy.pointer(path).and_then(Value::as_str);
        let running = field("/resources/tidegate/running");
        let is_current = running == field("/resources/tidegate/wanted");
        if let (Some(running), true, Some(found)) = (running, is_current, field("/policy"))
            && found == policy
        {
            return running.to_owned();
        }
        tokio::time::sleep(POLL).await;
    }
    panic!("envoy does not run {policy} after {BOUND:?}");
}

fn settings(policies: &Path) -> ServeSettings {
    ServeSettings {
        policies: Some(policies.to_owned()),
        ..ServeSettings::on_loopback(&release_module())
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "wide", 100);
    let service = ControlService::start(settings(folder.path()))
        .await
        .unwrap();
    let http = Caller::http1(service.http());
    let upstream = Upstream::constant("main", SLOTS, SERVICE).await.unwrap();
    let envoy = Envoy::builder()
        .cluster(Cluster::new("main", upstream.addr()))
        .cluster(Cluster::new("control", service.xds()).http2())
        .plugin(Plugin::tidegate(&Value::Null).served("control", DiscoveryProtocol::Ecds))
        .start()
        .await
        .unwrap();
    println!(
        "service http://{}, Envoy http://{}",
        service.http(),
        envoy.addr()
    );
    let (answers, stop) = (SharedAnswers::default(), Arc::<AtomicBool>::default());
    let callers: Vec<_> = (0..CALLERS)
        .map(|_| {
            let caller = Caller::http1(envoy.addr());
            tokio::spawn(call(caller, Arc::clone(&answers), Arc::clone(&stop)))
        })
        .collect();
    let (mut is_lost, mut sheds) = (false, Vec::new());
    for (name, limit) in [("wide", 100), ("tight", 2), ("wide-again", 100)] {
        write(folder.path(), name, limit);
        let version = current(&http, name).await;
        // Requests under way at the change belong to neither policy's figures.
        let between = std::mem::take(&mut *answers.lock().unwrap());
        is_lost |= between.keys().any(|what| what.starts_with("LOST"));
        tokio::time::sleep(SCENE).await;
        let counts = std::mem::take(&mut *answers.lock().unwrap());
        println!("policy {name} (limit {limit}, version {version}):");
        for (what, count) in &counts {
            println!("  {count:>8} {what}");
        }
        is_lost |= counts.keys().any(|what| what.starts_with("LOST"));
        sheds.push(counts.get("tidegate_shed_limit").copied().unwrap_or(0));
    }
    stop.store(true, Ordering::Relaxed);
    for caller in callers {
        caller.await.unwrap();
    }
    is_lost |= answers
        .lock()
        .unwrap()
        .keys()
        .any(|what| what.starts_with("LOST"));
    service.stop().await;
    let has_followed = matches!(sheds.as_slice(), [0, tight, _] if *tight > 0);
    println!(
        "{}, {}",
        if is_lost {
            "requests were LOST"
        } else {
            "no request was lost"
        },
        if has_followed {
            "the filter followed"
        } else {
            "the filter did NOT follow"
        },
    );
    if has_followed && !is_lost {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
