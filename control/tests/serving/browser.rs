//! A headless Chromium, driven by its DevTools protocol over one WebSocket.
//!
//! The tests need seven methods of the protocol. Crates with all of its methods are larger than the service. The
//! browser records all exceptions, all errors and warnings in the console, and all failed requests of the page.

use std::path::Path;
use std::process::Command;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tempfile::TempDir;
use tidegate_supervise::{Log, Process};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use crate::stage::{BOUND, until};

/// The environment variable with the path of the browser.
const VARIABLE: &str = "TIDEGATE_CHROMIUM";

/// A browser with one page.
pub(crate) struct Browser {
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    session: Option<String>,
    last_id: u64,
    complaints: Vec<String>,
    _process: Process,
    _profile: TempDir,
}

impl Browser {
    pub(crate) async fn start() -> Self {
        let program = std::env::var(VARIABLE).unwrap_or_else(|_| {
            let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
            workspace.join(".tools/bin/chromium").display().to_string()
        });
        let profile = tempfile::tempdir().unwrap();
        let mut command = Command::new(&program);
        command
            // The browser's sandbox needs rights that a container rarely has. The browser opens only the page under test.
            .args(["--headless", "--no-sandbox", "--disable-gpu"])
            .args(["--no-first-run", "--remote-debugging-port=0"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("about:blank");
        let started = Process::start("chromium", command, Log::Unnamed);
        let mut process =
            started.unwrap_or_else(|error| panic!("{program} ({VARIABLE}): {error:?}"));
        let address = |line: &str| Some(line.split_once("DevTools listening on ")?.1.to_owned());
        let url = process.line(BOUND, address).await.unwrap();
        let (socket, _) = connect_async(url.trim()).await.unwrap();
        let mut browser = Self {
            socket,
            session: None,
            last_id: 0,
            complaints: Vec::new(),
            _process: process,
            _profile: profile,
        };
        browser.attach().await;
        browser
    }

    async fn attach(&mut self) {
        let target = self
            .call("Target.createTarget", json!({"url": "about:blank"}))
            .await["targetId"]
            .clone();
        let attached = self
            .call(
                "Target.attachToTarget",
                json!({"targetId": target, "flatten": true}),
            )
            .await;
        self.session = attached["sessionId"].as_str().map(ToOwned::to_owned);
        for domain in ["Page", "Runtime", "Log"] {
            self.call(&format!("{domain}.enable"), json!({})).await;
        }
    }

    async fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.last_id += 1;
        let id = self.last_id;
        let mut message = json!({"id": id, "method": method, "params": parameters});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        let text = Message::text(message.to_string());
        self.socket.send(text).await.unwrap();
        loop {
            let next = timeout(BOUND, self.socket.next()).await;
            let Message::Text(text) = next.expect("an answer in time").unwrap().unwrap() else {
                continue;
            };
            let answer: Value = serde_json::from_str(&text).unwrap();
            if answer["id"] == id {
                assert!(answer["error"].is_null(), "{method}: {answer}");
                return answer["result"].clone();
            }
            self.listen(&answer);
        }
    }

    fn listen(&mut self, event: &Value) {
        let parameters = &event["params"];
        let is_bad = |level: &Value| level == "error" || level == "warning";
        let complaint = match event["method"].as_str() {
            Some("Runtime.exceptionThrown") => &parameters["exceptionDetails"],
            Some("Runtime.consoleAPICalled") if is_bad(&parameters["type"]) => &parameters["args"],
            Some("Log.entryAdded") if is_bad(&parameters["entry"]["level"]) => &parameters["entry"],
            _ => return,
        };
        self.complaints.push(complaint.to_string());
    }

    pub(crate) async fn open(&mut self, url: &str) {
        let opened = self.call("Page.navigate", json!({"url": url})).await;
        assert!(opened["errorText"].is_null(), "{url}: {opened}");
    }

    /// Sets the width of the window, in pixels, and the preferred color scheme.
    pub(crate) async fn look(&mut self, width: u32, scheme: &str) {
        let is_phone = width < 600;
        let size =
            json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": is_phone});
        self.call("Emulation.setDeviceMetricsOverride", size).await;
        let media = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.call("Emulation.setEmulatedMedia", media).await;
    }

    /// Evaluates an expression in the page, and returns its value.
    pub(crate) async fn value(&mut self, expression: &str) -> Value {
        let asked = json!({"expression": expression, "returnByValue": true});
        let answer = self.call("Runtime.evaluate", asked).await;
        let exception = &answer["exceptionDetails"];
        assert!(exception.is_null(), "{expression}: {exception}");
        answer["result"]["value"].clone()
    }

    /// Waits until an expression is true in the page.
    pub(crate) async fn shows(&mut self, expression: &str) {
        until(expression, async || self.value(expression).await == true).await;
    }

    /// The problems that the page reported since the last call.
    pub(crate) fn complaints(&mut self) -> Vec<String> {
        std::mem::take(&mut self.complaints)
    }
}
