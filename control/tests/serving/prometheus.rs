//! A scripted Prometheus on loopback: it answers from a recording, with the current time, or as a test sets it.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use tidegate_control::traffic::{CredentialFiles, PrometheusTerms, TrafficSettings, TrafficTerms};
use tidegate_graph::{
    BuildTerms, MetricsChoice, ObservationWindow, PlannedQuery, Recording, planned,
};

const EMPTY: &str = r#"{"status":"success","data":{"resultType":"vector","result":[]}}"#;

/// The end of the recordings, and their last scrape. Answers replace these with the time of the query.
const RECORDED_AT: [&str; 2] = ["1700000000", "1699999900"];

/// How the server answers.
#[derive(Clone, Debug)]
pub(crate) enum PrometheusScript {
    /// From the recording.
    Recording(String),
    /// With a page that is not Prometheus.
    Page(&'static str),
    /// With no answer: the connection stays open.
    Silence,
}

/// The server. It ends with the process of the test.
#[derive(Clone, Debug)]
pub(crate) struct ScriptedPrometheus {
    url: String,
    script: Arc<Mutex<PrometheusScript>>,
}

impl ScriptedPrometheus {
    pub(crate) fn start(script: PrometheusScript) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Self {
            url: format!("http://{}", listener.local_addr().unwrap()),
            script: Arc::new(Mutex::new(script)),
        };
        let script = Arc::clone(&server.script);
        thread::spawn(move || {
            let mut silent = Vec::new();
            for stream in listener.incoming() {
                let stream = stream.unwrap();
                let script = script.lock().unwrap_or_else(PoisonError::into_inner);
                let script = script.clone();
                silent.extend(answer(stream, &script));
            }
        });
        server
    }

    /// Sets how the server answers from now on.
    pub(crate) fn play(&self, script: PrometheusScript) {
        *self.script.lock().unwrap() = script;
    }

    /// Settings of a service that reads the graph from this server, often.
    pub(crate) fn settings(&self) -> TrafficSettings {
        TrafficSettings {
            terms: TrafficTerms {
                prometheus: PrometheusTerms {
                    url: self.url.clone(),
                    credentials: CredentialFiles::None,
                    authorities: None,
                    identity: None,
                    timeout: Duration::from_secs(30),
                },
                window_seconds: WINDOW.window_seconds,
                step_seconds: Some(WINDOW.step_seconds),
                choice: MetricsChoice::First,
                caller_label: "job".to_owned(),
                build: BuildTerms::default(),
            },
            interval: Duration::from_millis(50),
        }
    }
}

const WINDOW: ObservationWindow = ObservationWindow {
    end: 0,
    window_seconds: 3_600,
    step_seconds: 300,
};

/// Answers one request. Returns the connection if it gets no answer.
fn answer(mut stream: TcpStream, script: &PrometheusScript) -> Option<TcpStream> {
    let head: Vec<String> = BufReader::new(stream.try_clone().unwrap())
        .lines()
        .map_while(Result::ok)
        .take_while(|line| !line.is_empty())
        .collect();
    let body = match script {
        PrometheusScript::Silence => return Some(stream),
        PrometheusScript::Page(page) => (*page).to_owned(),
        PrometheusScript::Recording(text) => recorded(text, head.first()?),
    };
    let length = body.len();
    // A client that has shut down may have closed the connection.
    let _ = write!(
        stream,
        "HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    );
    None
}

fn recorded(text: &str, line: &str) -> String {
    let value = |name: &str| {
        let (_, rest) = line.split_once(&format!("{name}=")).unwrap();
        decoded(rest.split(['&', ' ']).next().unwrap())
    };
    let (promql, time) = (value("query"), value("time"));
    let recording = Recording::parse(text).unwrap();
    let plan = planned(WINDOW, &recording.caller_label).unwrap();
    let query = plan.iter().find(|query| query.promql == promql);
    let body = |query: &PlannedQuery| {
        let mut answers = recording.answers.iter();
        answers
            .find(|answer| answer.family == query.family && answer.measure == query.measure)?
            .body
    };
    let found = query.and_then(body);
    found.map_or_else(
        || EMPTY.to_owned(),
        |body| {
            let text = body.get().to_owned();
            RECORDED_AT
                .iter()
                .fold(text, |text, old| text.replace(old, &time))
        },
    )
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digits = [rest.next().unwrap(), rest.next().unwrap()];
                u8::from_str_radix(str::from_utf8(&digits).unwrap(), 16).unwrap()
            }
            b'+' => b' ',
            other => other,
        });
    }
    String::from_utf8(bytes).unwrap()
}
