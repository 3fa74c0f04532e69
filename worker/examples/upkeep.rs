//! Plays ticks of a proxy with many upstreams on a host without cost, so that instructions can be counted.
//!
//! ```text
//! cargo build --release -p tidegate-worker --example upkeep
//! valgrind --tool=callgrind --toggle-collect='*measured*' target/release/examples/upkeep 1000 idle 20
//! ```
//!
//! The arguments: how many upstreams, how they are used (`idle`: once by every worker before the count; `busy`: once
//! by every worker in every tick; `mixed`: a tenth of them), how many ticks are counted, and `seated` if the leader is known, as
//! in the native module. There are four workers and a main thread, as in `make bench-cost`.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use core::time::Duration;

use tidegate_core::Instant;
use tidegate_core::classify::Length;
use tidegate_core::config::Config;
use tidegate_core::reply::LocalReply;
use tidegate_worker::api::{
    Expect, Headers, Host, HostError, LogLevel, MetricId, MetricKind, SharedValue, WriteResult,
    attribute,
};
use tidegate_worker::coordination::Seat;
use tidegate_worker::plugin::{PluginObject, TICK};
use tidegate_worker::stream::Stream;

const WORKERS: usize = 4;
const CONFIG: &str = r#"{"slo":{"latency":{"quantile":0.99,"target":"300ms"}}}"#;

/// One process; clones are its VMs' ways to it.
#[derive(Clone, Debug, Default)]
struct UpkeepProxy(Rc<UpkeepProcess>);

#[derive(Debug, Default)]
struct UpkeepProcess {
    nanos: Cell<u64>,
    cluster: RefCell<Vec<u8>>,
    shared: RefCell<HashMap<String, SharedValue>>,
    names: RefCell<HashMap<String, u32>>,
    metrics: RefCell<Vec<u64>>,
    calls: Cell<u64>,
    bytes: Cell<usize>,
}

impl UpkeepProcess {
    fn called(&self, bytes: usize) {
        self.calls.set(self.calls.get() + 1);
        self.bytes.set(self.bytes.get() + bytes);
    }

    fn change(&self, id: MetricId, change: impl FnOnce(&mut u64)) {
        self.called(0);
        let place = usize::try_from(id.0).unwrap_or(usize::MAX);
        if let Some(value) = self.metrics.borrow_mut().get_mut(place) {
            change(value);
        }
    }
}

impl Host for UpkeepProxy {
    fn now(&self) -> Result<Instant, HostError> {
        Ok(Instant::from_nanos(self.0.nanos.get()))
    }

    fn wall_clock(&self) -> Result<Instant, HostError> {
        self.now()
    }

    fn attribute(&self, path: &[u8]) -> Result<Option<Cow<'_, [u8]>>, HostError> {
        Ok(match path {
            attribute::CLUSTER => Some(Cow::Owned(self.0.cluster.borrow().clone())),
            attribute::ENDPOINTS => Some(Cow::Owned(3_u64.to_le_bytes().to_vec())),
            _ => None,
        })
    }

    fn header(&self, _map: Headers, name: &str) -> Result<Option<Cow<'_, [u8]>>, HostError> {
        Ok((name == ":status").then_some(Cow::Borrowed(b"200")))
    }

    fn header_map(&self, _map: Headers) -> Result<Vec<u8>, HostError> {
        Ok(Vec::new())
    }

    fn send_local_reply(&self, _reply: &LocalReply<'_>) -> Result<(), HostError> {
        Ok(())
    }

    fn define_metric(&self, _kind: MetricKind, name: &str) -> Result<MetricId, HostError> {
        let mut metrics = self.0.metrics.borrow_mut();
        let mut names = self.0.names.borrow_mut();
        let next = u32::try_from(metrics.len()).unwrap_or(u32::MAX);
        let id = *names.entry(name.to_owned()).or_insert(next);
        if id == next {
            metrics.push(0);
        }
        Ok(MetricId(id))
    }

    fn increment_metric(&self, id: MetricId, by: i64) -> Result<(), HostError> {
        self.0
            .change(id, |value| *value = value.wrapping_add_signed(by));
        Ok(())
    }

    fn record_metric(&self, id: MetricId, value: u64) -> Result<(), HostError> {
        self.0.change(id, |place| *place = value);
        Ok(())
    }

    fn metric(&self, id: MetricId) -> Result<u64, HostError> {
        let mut read = 0;
        self.0.change(id, |value| read = *value);
        Ok(read)
    }

    fn shared(&self, key: &str) -> Result<Option<SharedValue>, HostError> {
        let value = self.0.shared.borrow().get(key).cloned();
        self.0
            .called(value.as_ref().map_or(0, |value| value.bytes.len()));
        Ok(value)
    }

    fn set_shared(
        &self,
        key: &str,
        value: &[u8],
        expect: Expect,
    ) -> Result<WriteResult, HostError> {
        self.0.called(value.len());
        let mut shared = self.0.shared.borrow_mut();
        let found = shared.get(key).map(|value| value.version);
        let as_expected = match expect {
            Expect::Anything => true,
            Expect::Absent => found.is_none(),
            Expect::Version(version) => found == Some(version),
        };
        if !as_expected {
            return Ok(WriteResult::Beaten);
        }
        let version = found.unwrap_or_default() + 1;
        let bytes = value.to_vec();
        shared.insert(
            key.to_owned(),
            SharedValue {
                bytes: bytes.into(),
                version,
            },
        );
        Ok(WriteResult::Done)
    }

    fn configuration(&self) -> Result<Vec<u8>, HostError> {
        Ok(CONFIG.into())
    }

    fn set_tick_period(&self, _period: Duration) -> Result<(), HostError> {
        Ok(())
    }

    fn log(&self, _level: LogLevel, line: &str) -> Result<(), HostError> {
        eprintln!("{line}");
        Ok(())
    }
}

type UpkeepPlugin = Rc<RefCell<PluginObject<UpkeepProxy>>>;

/// One request to each of these upstreams by each worker, answered after some milliseconds.
fn serve(host: &UpkeepProxy, workers: &[UpkeepPlugin], upstreams: impl Iterator<Item = usize>) {
    for upstream in upstreams {
        *host.0.cluster.borrow_mut() = format!("outbound|80||service-{upstream}.svc").into_bytes();
        for worker in workers {
            let began = host.0.nanos.get();
            let mut stream = Stream::new(Rc::clone(worker));
            stream.on_request_headers(Length::HeadersOnly);
            let spread = u64::try_from(upstream % 37).unwrap_or_default();
            host.0.nanos.set(began + 5_000_000 + spread * 300_000);
            stream.on_response_headers(Length::HeadersOnly);
            drop(stream);
            host.0.nanos.set(began);
        }
    }
}

/// One tick of all VMs. Its instructions are counted.
#[inline(never)]
fn measured(all: &[UpkeepPlugin]) {
    for plugin in all {
        plugin.borrow_mut().tick(1);
    }
}

fn pass_tick(host: &UpkeepProxy) {
    let passed = u64::try_from(TICK.as_nanos()).unwrap_or_default();
    host.0.nanos.set(host.0.nanos.get() + passed);
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let word = |index: usize| words.get(index).map(String::as_str);
    let number = |index, or| word(index).and_then(|it| it.parse().ok()).unwrap_or(or);
    let (upstreams, ticks) = (number(0, 1_000_usize), number(2, 20_usize));
    let every = match word(1) {
        Some("busy") => 1,
        Some("mixed") => 10,
        _ => usize::MAX,
    };
    let host = UpkeepProxy::default();
    pass_tick(&host);
    let Ok(config) = Config::from_json(CONFIG.as_bytes()) else {
        return;
    };
    let all: Vec<UpkeepPlugin> = (0..=WORKERS)
        .map(|_| PluginObject::new(host.clone(), "tidegate", config.clone(), 1))
        .map(|plugin| Rc::new(RefCell::new(plugin)))
        .collect();
    let Some((main, workers)) = all.split_first() else {
        return;
    };
    if word(3) == Some("seated") {
        main.borrow_mut().assign(Seat::Leader);
        for worker in workers {
            worker.borrow_mut().assign(Seat::Follower);
        }
    }
    let tick = || {
        pass_tick(&host);
        for plugin in &all {
            plugin.borrow_mut().tick(1);
        }
    };
    tick();
    serve(&host, workers, 0..upstreams);
    (0..5).for_each(|_| tick());
    if every == 1 || every == 10 {
        for _ in 0..20 {
            serve(&host, workers, (0..upstreams).step_by(every));
            tick();
        }
    }
    let (mut calls, mut bytes) = (0, 0);
    let mut took = Duration::ZERO;
    for _ in 0..ticks {
        if every != usize::MAX {
            serve(&host, workers, (0..upstreams).step_by(every));
        }
        pass_tick(&host);
        let before = (host.0.calls.get(), host.0.bytes.get());
        let began = std::time::Instant::now();
        measured(&all);
        took += began.elapsed();
        calls += host.0.calls.get() - before.0;
        bytes += host.0.bytes.get() - before.1;
    }
    let ticks = u32::try_from(ticks).unwrap_or(u32::MAX).max(1);
    println!(
        "a tick: {} host calls, {} bytes, {:?}",
        calls / u64::from(ticks),
        bytes / usize::try_from(ticks).unwrap_or(1),
        took / ticks
    );
}
