//! A service under test, and functions that wait.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;
use tidegate_control::serve::{ControlService, ServeSettings};
use tidegate_testbed::client::{Call, CallReply, Caller};
use tidegate_testbed::envoy::release_module;
use tokio::time::{Instant, sleep};

/// The longest time that a test waits for something to happen.
pub(crate) const BOUND: Duration = Duration::from_secs(20);

/// The pause between two checks of a condition.
const POLL: Duration = Duration::from_millis(10);

/// The token that allows writes.
pub(crate) const TOKEN: &str = "a token for tests only";

pub(crate) struct ServingStage {
    pub(crate) service: Option<ControlService>,
    pub(crate) settings: ServeSettings,
    folder: TempDir,
}

impl ServingStage {
    /// A service with an empty folder of policies and a state directory.
    pub(crate) async fn start() -> Self {
        Self::with(|_| {}).await
    }

    /// The same with other settings.
    pub(crate) async fn with(change: impl FnOnce(&mut ServeSettings)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let policies = folder.path().join("policies");
        fs::create_dir(&policies).unwrap();
        let mut settings = settings(Some(policies), Some(folder.path().join("state")));
        let token = folder.path().join("token");
        fs::write(&token, TOKEN).unwrap();
        settings.files.token = Some(token);
        // The kernel gives these ports to nobody else while the service is stopped.
        for address in [&mut settings.xds, &mut settings.http, &mut settings.health] {
            address.set_port(tidegate_meshbed::ports::free());
        }
        change(&mut settings);
        let mut stage = Self {
            service: None,
            settings,
            folder,
        };
        stage.resume().await;
        stage
    }

    /// Starts the service again on the same ports, as soon as they are free.
    pub(crate) async fn resume(&mut self) {
        let started = Instant::now();
        let service = loop {
            match ControlService::start(self.settings.clone()).await {
                Ok(service) => break service,
                Err(error) => assert!(started.elapsed() < BOUND, "{error}"),
            }
            sleep(POLL).await;
        };
        self.settings.xds = service.xds();
        self.settings.http = service.http();
        self.settings.health = service.health();
        self.service = Some(service);
    }

    /// Stops the service.
    pub(crate) async fn stop(&mut self) {
        self.service.take().unwrap().stop().await;
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join("policies").join(name)
    }

    pub(crate) fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    /// Replaces a file of policies atomically.
    pub(crate) fn write(&self, name: &str, text: &str) {
        let new = self.folder.path().join("new");
        fs::write(&new, text).unwrap();
        fs::rename(new, self.file(name)).unwrap();
    }

    pub(crate) async fn call(&self, call: Call) -> CallReply {
        let caller = Caller::http1(self.settings.http);
        caller.call(&call).await.unwrap()
    }

    /// The status of a health check.
    pub(crate) async fn health(&self, path: &str) -> u16 {
        let caller = Caller::http1(self.settings.health);
        caller.get(path).await.unwrap().status
    }

    /// The document at a path.
    pub(crate) async fn json(&self, path: &str) -> Value {
        let reply = self.call(Call::get(path)).await;
        assert_eq!(reply.status, 200, "{path}");
        serde_json::from_slice(&reply.body).unwrap()
    }

    /// The first resource of the first proxy; null while there is none.
    pub(crate) async fn resource(&self) -> Value {
        let proxies = self.json("/v1/proxies").await;
        proxies["proxies"][0]["resources"]["tidegate"].clone()
    }

    pub(crate) async fn proxies(&self) -> usize {
        let proxies = self.json("/v1/proxies").await;
        proxies["proxies"].as_array().unwrap().len()
    }
}

/// Waits until `is_so` is true. Fails if that takes too long.
pub(crate) async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let started = Instant::now();
    while !is_so().await {
        assert!(started.elapsed() < BOUND, "not within {BOUND:?}: {what}");
        sleep(POLL).await;
    }
}

/// Settings for plaintext, on ports that the kernel chooses.
pub(crate) fn settings(policies: Option<PathBuf>, state: Option<PathBuf>) -> ServeSettings {
    ServeSettings {
        policies,
        state,
        rescan: Duration::from_millis(200),
        ..ServeSettings::on_loopback(&release_module())
    }
}

/// A policy for the proxies whose id matches `id`. Tests recognize it by its limit.
pub(crate) fn policy(name: &str, id: &str, limit: u32) -> String {
    format!(
        "apiVersion: tidegate.dev/v1alpha1
kind: BreakerPolicy
metadata: {{name: {name}}}
spec:
  proxies: [{{id: '{id}'}}]
  slo: {{latency: {{quantile: 0.99, target: 300ms}}}}
  limit: {{max: {limit}}}
"
    )
}
