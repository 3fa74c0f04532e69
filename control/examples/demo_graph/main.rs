//! `make demo-graph`: makes a policy from the traffic of a chain of services, and shows the effect of that policy under load.
//!
//! A gateway calls `web`. `web` needs `cart`, which needs `stock`. `web` also calls `offers`, but can do without it.
//! Each caller has its own Envoy, a real Prometheus scrapes the Envoys, and the control service reads the graph from
//! Prometheus. The recommended policy is put in force unchanged, in mode `observe`, and then with `enforce`. Each time,
//! `offers` gets twice as many requests as it can serve. With `--stay` the page remains until Ctrl-C. The exit code is
//! 1 if enforcing does not help, or if the demonstration takes longer than [`LONGEST`].

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a demonstration that fails must stop and say where"
)]

mod chain;
#[expect(dead_code, reason = "a test uses the rest")]
#[path = "../../tests/graph/prometheus.rs"]
mod prometheus;
#[expect(dead_code, reason = "a test uses the rest")]
#[path = "../../tests/graph/service.rs"]
mod service;
#[expect(dead_code, reason = "a test uses the rest")]
#[path = "../../tests/graph/truth.rs"]
mod truth;

use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use tidegate_advise::recommend::{AdviceTerms, recommend};
use tidegate_control::advice::{AdvicePlacement, policy_texts};
use tidegate_control::serve::{ControlService, ServeSettings};
use tidegate_control::traffic::{CredentialFiles, PrometheusTerms, TrafficSettings, TrafficTerms};
use tidegate_graph::{BuildTerms, BuiltGraph, MetricsChoice, build};
use tidegate_meshbed::until;
use tidegate_testbed::client::Caller;
use tidegate_testbed::envoy::{release_module, repository};

use chain::{DemoChain, ENVOYS, GOOD, OVERLOAD, USUAL};
use prometheus::Prometheus;

/// How long traffic is observed, and how long an overload lasts.
const OBSERVED: Duration = Duration::from_secs(40);
const OVERLOADED: Duration = Duration::from_secs(10);

/// The longest time for the whole demonstration, before the page remains: three times what it takes on a quiet machine.
const LONGEST: Duration = Duration::from_secs(300);
/// Enforcing helps if at least this share of the requests is answered in time, and at least twice the share of mode `observe`.
const PROMISED_SHARE: f64 = 0.5;

/// The running demonstration, and the share of good answers in each mode.
struct Played {
    control: ControlService,
    chain: DemoChain,
    _server: Prometheus,
    /// The policies in force: without them the page would report an error.
    _policies: tempfile::TempDir,
    observed: f64,
    enforced: f64,
}

fn terms(url: String) -> TrafficTerms {
    TrafficTerms {
        prometheus: PrometheusTerms {
            url,
            credentials: CredentialFiles::None,
            authorities: None,
            identity: None,
            timeout: Duration::from_secs(30),
        },
        window_seconds: 30,
        step_seconds: Some(5),
        choice: MetricsChoice::First,
        caller_label: "job".to_owned(),
        build: BuildTerms::default(),
    }
}

fn graph(terms: &TrafficTerms) -> BuiltGraph {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let answers = terms.collected(&terms.prometheus.client().unwrap(), now.as_secs());
    build(&answers.unwrap().recording(), terms.build).unwrap()
}

fn settings(policies: &Path) -> ServeSettings {
    ServeSettings {
        policies: Some(policies.to_owned()),
        ..ServeSettings::on_loopback(&release_module())
    }
}

async fn body(http: &Caller, path: &str) -> Option<Value> {
    let reply = http.get(path).await.ok()?;
    (reply.status == 200).then(|| serde_json::from_slice(&reply.body).unwrap())
}

/// Puts policies in force, and waits until all proxies run them.
async fn in_force(http: &Caller, policies: &Path, text: &str) {
    fs::write(policies.join("new"), text).unwrap();
    fs::rename(policies.join("new"), policies.join("recommended.yaml")).unwrap();
    until("all Envoys run the policy", async || {
        let found = body(http, "/v1/proxies").await.unwrap_or_default();
        let proxies = found["proxies"].as_array().cloned().unwrap_or_default();
        proxies.len() == ENVOYS
            && proxies.iter().all(|proxy| {
                let resource = &proxy["resources"]["tidegate"];
                proxy["policy"] == "recommended"
                    && resource["running"].is_string()
                    && resource["running"] == resource["wanted"]
            })
    })
    .await;
}

#[tokio::main]
async fn main() -> ExitCode {
    let Ok(played) = tokio::time::timeout(LONGEST, play()).await else {
        eprintln!("FAILED: not done within {} s", LONGEST.as_secs());
        return ExitCode::FAILURE;
    };
    if std::env::args().any(|argument| argument == "--stay") {
        println!("the page remains until Ctrl-C");
        tokio::select! {
            _ = tokio::signal::ctrl_c() => {}
            () = async { loop { played.chain.load(USUAL, OBSERVED).await; } } => {}
        }
    }
    let (observed, enforced) = (played.observed, played.enforced);
    played.control.stop().await;
    if enforced >= PROMISED_SHARE && enforced >= 2.0 * observed {
        ExitCode::SUCCESS
    } else {
        eprintln!(
            "FAILED: enforcing did not help: {:.0} % of the requests were answered in time, expected at least {:.0} % and twice the {:.0} % of observe",
            enforced * 100.0,
            PROMISED_SHARE * 100.0,
            observed * 100.0
        );
        ExitCode::FAILURE
    }
}

async fn play() -> Played {
    let out = repository().join("out/demo-graph");
    fs::create_dir_all(&out).unwrap();
    let folder = tempfile::tempdir().unwrap();
    // The Envoys need the control service to start, and Prometheus needs the Envoys. So the service starts without a graph.
    let mut settings = settings(folder.path());
    let control = ControlService::start(settings.clone()).await.unwrap();
    settings.xds = control.xds();
    let chain = DemoChain::start(control.xds()).await;
    let server = Prometheus::start(&chain.targets()).await.unwrap();
    println!("the metrics: {}", server.url());
    let terms = terms(server.url());
    settings.traffic = Some(TrafficSettings {
        terms: terms.clone(),
        interval: Duration::from_secs(2),
    });
    control.stop().await;
    let control = ControlService::start(settings).await.unwrap();
    let http = Caller::http1(control.http());
    println!("the graph, live: http://{}/", control.http());

    println!(
        "1. {USUAL} requests a second for {} s, half of what offers can serve",
        OBSERVED.as_secs()
    );
    chain.load(USUAL, OBSERVED).await;
    until("the page has the graph", async || {
        let found = body(&http, "/v1/graph/busiest").await.unwrap_or_default();
        let calls = found["overview"]["calls"].as_array();
        calls.is_some_and(|calls| calls.len() >= 4)
    })
    .await;
    for (path, name) in [
        ("/v1/graph", "graph.json"),
        ("/v1/recommendations", "recommendations.json"),
    ] {
        let found = body(&http, path).await.unwrap();
        fs::write(out.join(name), format!("{found:#}")).unwrap();
    }
    let built = tokio::task::spawn_blocking(move || graph(&terms))
        .await
        .unwrap();
    let advice = recommend(&built, &AdviceTerms::default());
    let texts = policy_texts(&advice, &AdvicePlacement::Callers);
    fs::write(out.join("policies.yaml"), &texts.text).unwrap();
    println!("2. recommended, with the reasons in policies.yaml");
    for found in &advice {
        let name = &found.upstream.name;
        match &found.objective {
            Ok(objective) => println!(
                "   {name}: quantile {} within {:?}, success {}",
                objective.quantile, objective.target, objective.success_rate
            ),
            Err(reason) => println!("   {name}: none, {reason}"),
        }
    }

    println!(
        "3. {OVERLOAD} requests a second for {} s, twice as much",
        OVERLOADED.as_secs()
    );
    let mut results = Vec::new();
    for mode in ["observe", "enforce"] {
        let text = texts
            .text
            .replace("mode: observe", &format!("mode: {mode}"));
        in_force(&http, folder.path(), &text).await;
        let (sent, good) = chain.load(OVERLOAD, OVERLOADED).await;
        let share = ratio(good, sent);
        println!(
            "   mode {mode}: {} of {sent} requests were answered within {} ms ({:.0} %)",
            good,
            GOOD.as_millis(),
            share * 100.0
        );
        results.push(json!({"mode": mode, "sent": sent, "good": good, "share": share}));
    }
    let result = json!({"goodMillis": GOOD.as_millis(), "rate": OVERLOAD, "results": results});
    fs::write(out.join("result.json"), format!("{result:#}")).unwrap();
    println!("written to {}", out.display());
    let share = |index: usize| result["results"][index]["share"].as_f64().unwrap();
    Played {
        observed: share(0),
        enforced: share(1),
        control,
        chain,
        _server: server,
        _policies: folder,
    }
}

fn ratio(part: usize, whole: usize) -> f64 {
    let number = |count: usize| f64::from(u32::try_from(count).unwrap());
    number(part) / number(whole)
}
