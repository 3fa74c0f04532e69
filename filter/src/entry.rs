//! The module's exports, and what lives in a VM.
//!
//! Envoy enters the VM through the functions below, by number of context: a root context for each configuration of
//! a plugin, a stream context for each request. They are the filter's own rather than the SDK's, which costs 5,000
//! instructions a request more (`docs/decisions/0005-own-exports.md`). The rules of the ABI that matter here:
//!
//! - A stream context's life ends with `proxy_on_log`, which Envoy calls once for every stream, whatever happened
//!   to it, after all else. `proxy_on_done` and `proxy_on_delete` are not exported, so that they cost nothing.
//! - The state of a plugin must survive its root context, of which a configuration push makes a new one. It lives in
//!   the VM, by the plugin's name.
//! - What the proxy returns in bytes lies in memory it got from `proxy_on_memory_allocate`; `host.rs` owns it again.

#![expect(
    unsafe_code,
    reason = "exports have the names that the proxy looks for, and the C library has constructors"
)]

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::rc::Rc;

use tidegate_core::classify::Length;
use tidegate_core::config::Config;

use crate::api::{Host, LogLevel, MetricKind, attribute};
use crate::faults::Fault;
use crate::host::Envoy;
use crate::metrics::name::Naming;
use crate::metrics::table::FAULTS_TOTAL;
use crate::plugin::{Plugin, TICK};
use crate::stream::{Next, Stream};

type SharedPlugin = Rc<RefCell<Plugin<Envoy>>>;

/// What the proxy is told about a callback: go on.
const CONTINUE: u32 = 0;
/// Hold the request: it has been answered.
const PAUSE: u32 = 1;

thread_local! {
    static VM: RefCell<Vm> = RefCell::default();
}

/// Everything in this VM.
#[derive(Default)]
struct Vm {
    /// By the plugin's name. Few.
    plugins: Vec<(String, SharedPlugin)>,
    /// The plugin of each root context, by the context's number. Few, and never removed: Envoy makes one for each
    /// push.
    roots: Vec<(u32, SharedPlugin)>,
    streams: HashMap<u32, Stream<Envoy>, BuildHasherDefault<Spread>>,
}

impl Vm {
    fn plugin(&self, name: &str) -> Option<SharedPlugin> {
        let found = self.plugins.iter().find(|(known, _)| known == name);
        found.map(|(_, plugin)| Rc::clone(plugin))
    }

    fn plugin_of(&self, root: u32) -> Option<SharedPlugin> {
        // The newest first: that is where requests come from.
        let found = self.roots.iter().rev().find(|(id, _)| *id == root);
        found.map(|(_, plugin)| Rc::clone(plugin))
    }
}

/// Context numbers are counted up: one multiplication spreads them (Fibonacci hashing, Knuth, TAOCP 3, 6.4).
#[derive(Default)]
struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u32(u32::from(*byte));
        }
    }

    fn write_u32(&mut self, number: u32) {
        self.0 = (self.0 ^ u64::from(number)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

fn on_stream<T>(id: u32, call: impl FnOnce(&mut Stream<Envoy>) -> T) -> Option<T> {
    VM.with(|vm| vm.try_borrow_mut().ok()?.streams.get_mut(&id).map(call))
}

unsafe extern "C" {
    fn __wasm_call_ctors();
}

#[unsafe(no_mangle)]
extern "C" fn _initialize() {
    // SAFETY: the linker makes it, and it must be called once before all else, which is what this function is for.
    unsafe { __wasm_call_ctors() };
    std::panic::set_hook(Box::new(|panic| {
        // The VM is lost either way.
        let _ = Envoy.log(LogLevel::Error, &format!("tidegate: {panic}"));
    }));
}

#[unsafe(no_mangle)]
extern "C" fn proxy_abi_version_0_2_1() {}

/// Memory for what the proxy returns: a leaked slice of exactly `size` bytes, which `host.rs` takes back.
#[unsafe(no_mangle)]
extern "C" fn proxy_on_memory_allocate(size: usize) -> *mut u8 {
    let memory: Box<[u8]> = vec![0; size].into_boxed_slice();
    Box::into_raw(memory).cast()
}

#[unsafe(no_mangle)]
extern "C" fn proxy_on_context_create(id: u32, root: u32) {
    VM.with(|vm| {
        if root != 0
            && let Ok(mut vm) = vm.try_borrow_mut()
            && let Some(plugin) = vm.plugin_of(root)
        {
            vm.streams.insert(id, Stream::new(plugin));
        }
    });
}

#[unsafe(no_mangle)]
extern "C" fn proxy_on_configure(root: u32, _size: usize) -> bool {
    let name = Envoy.attribute(attribute::PLUGIN_NAME).ok().flatten();
    let name = String::from_utf8_lossy(&name.unwrap_or_default()).into_owned();
    let known = VM.with_borrow(|vm| vm.plugin(&name));
    let config = match read_config() {
        Ok(config) => config,
        Err(lines) => {
            for line in lines {
                let line = format!("tidegate: configuration refused: {line}");
                // Nothing is left to do about a log that fails.
                let _ = Envoy.log(LogLevel::Error, &line);
            }
            count_refusal(&name);
            return false;
        }
    };
    let plugin = if let Some(plugin) = known {
        plugin.borrow_mut().reconfigure(config, root);
        plugin
    } else {
        let plugin = Plugin::new(Envoy, &name, config, root);
        let plugin = Rc::new(RefCell::new(plugin));
        VM.with_borrow_mut(|vm| vm.plugins.push((name, Rc::clone(&plugin))));
        plugin
    };
    VM.with_borrow_mut(|vm| vm.roots.push((root, plugin)));
    Envoy.set_tick_period(TICK).is_ok()
}

#[unsafe(no_mangle)]
extern "C" fn proxy_on_tick(root: u32) {
    let plugin = VM.with_borrow(|vm| vm.plugin_of(root));
    if let Some(plugin) = plugin
        && let Ok(mut plugin) = plugin.try_borrow_mut()
    {
        plugin.tick(root);
    }
}

#[unsafe(no_mangle)]
extern "C" fn proxy_on_request_headers(id: u32, _count: u32, end: u32) -> u32 {
    #[cfg(feature = "test-hooks")]
    crash_if_asked();
    match on_stream(id, |stream| stream.on_request_headers(length(end))) {
        Some(Next::Answered) => PAUSE,
        Some(Next::Continue) | None => CONTINUE,
    }
}

#[unsafe(no_mangle)]
extern "C" fn proxy_on_request_body(id: u32, _size: u32, end: u32) -> u32 {
    if end != 0 {
        on_stream(id, Stream::on_request_end);
    }
    CONTINUE
}

#[unsafe(no_mangle)]
extern "C" fn proxy_on_request_trailers(id: u32, _count: u32) -> u32 {
    on_stream(id, Stream::on_request_end);
    CONTINUE
}

#[unsafe(no_mangle)]
extern "C" fn proxy_on_response_headers(id: u32, _count: u32, end: u32) -> u32 {
    on_stream(id, |stream| stream.on_response_headers(length(end)));
    CONTINUE
}

const fn length(end: u32) -> Length {
    if end == 0 {
        Length::More
    } else {
        Length::HeadersOnly
    }
}

#[unsafe(no_mangle)]
extern "C" fn proxy_on_response_body(id: u32, _size: u32, end: u32) -> u32 {
    on_stream(id, |stream| {
        stream.on_response_body();
        if end != 0 {
            stream.on_response_end();
        }
    });
    CONTINUE
}

#[unsafe(no_mangle)]
extern "C" fn proxy_on_response_trailers(id: u32, _count: u32) -> u32 {
    on_stream(id, Stream::on_response_trailers);
    CONTINUE
}

#[unsafe(no_mangle)]
extern "C" fn proxy_on_log(id: u32) {
    // Dropped outside of the borrow: it may have something to read yet.
    let stream = VM.with(|vm| vm.try_borrow_mut().ok()?.streams.remove(&id));
    drop(stream);
}

/// The configuration, or every line of what is wrong with it.
fn read_config() -> Result<Config, Vec<String>> {
    let bytes = Envoy
        .configuration()
        .map_err(|error| vec![error.to_string()])?;
    Config::from_json(&bytes)
        .map_err(|errors| errors.to_string().lines().map(str::to_owned).collect())
}

/// A bad configuration only ever reaches a VM that Envoy makes to try it out: the count must not wait for a tick.
fn count_refusal(plugin: &str) {
    let kind = Some(Fault::Configuration.as_str());
    let name = Naming::of_plugin(plugin).name(&FAULTS_TOTAL, "", kind);
    if let Ok(id) = Envoy.define_metric(MetricKind::Counter, &name) {
        // The refusal is in the log and in Envoy's own counts too.
        let _ = Envoy.increment_metric(id, 1);
    }
}

/// A test makes the VM trap with a header.
#[cfg(feature = "test-hooks")]
fn crash_if_asked() {
    let asked = Envoy.header(crate::api::Headers::Request, "x-tidegate-test");
    if asked.ok().flatten().as_deref() == Some(b"panic") {
        std::process::abort();
    }
}
