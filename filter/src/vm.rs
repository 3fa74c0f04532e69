//! The contents of a VM: plugins, root contexts and streams; it dispatches the proxy's callbacks to them.
//!
//! Envoy enters by number of context: a root context for each configuration of a plugin, a stream context for each
//! request. The rules that matter here:
//!
//! - A stream context's life ends with its log callback, which Envoy calls once for every stream, whatever happened to
//!   it, after all else.
//! - The state of a plugin must survive its root context, of which a configuration push makes a new one. It lives in
//!   the VM, by the plugin's name.
//!
//! Edges: a callback for a context that is not there, or one that comes while another runs, does nothing.

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::rc::Rc;

use tidegate_core::config::Config;

use tidegate_worker::api::{Host, LogLevel, MetricKind, attribute};
use tidegate_worker::faults::Fault;
use tidegate_worker::metrics::name::Naming;
use tidegate_worker::metrics::table::FAULTS_TOTAL;
use tidegate_worker::plugin::{PluginObject, TICK};
use tidegate_worker::stream::Stream;

/// One plugin, shared by its contexts.
pub type SharedPlugin<H> = Rc<RefCell<PluginObject<H>>>;

/// Everything in a VM; see the module.
#[derive(Debug)]
pub struct Vm<H: Host>(RefCell<Contexts<H>>);

#[derive(Debug)]
struct Contexts<H: Host> {
    /// By the plugin's name. Few.
    plugins: Vec<(String, SharedPlugin<H>)>,
    /// The plugin of each root context, by the context's number. Few, and never removed: Envoy makes one for each
    /// push.
    roots: Vec<(u32, SharedPlugin<H>)>,
    streams: HashMap<u32, Stream<SharedPlugin<H>>, BuildHasherDefault<SpreadHash>>,
}

impl<H: Host> Default for Vm<H> {
    fn default() -> Self {
        Self(RefCell::new(Contexts {
            plugins: Vec::new(),
            roots: Vec::new(),
            streams: HashMap::default(),
        }))
    }
}

impl<H: Host + Clone> Vm<H> {
    /// Reads the configuration of a root context from `host`. Returns whether it is in force; if not, the errors are logged, and
    /// the one before stays in force.
    pub fn configure(&self, host: &H, root: u32) -> bool {
        let name = host.attribute(attribute::PLUGIN_NAME).ok().flatten();
        let name = String::from_utf8_lossy(&name.unwrap_or_default()).into_owned();
        let (config, digest) = match read_config(host) {
            Ok(read) => read,
            Err(lines) => {
                for line in lines {
                    let line = format!("tidegate: configuration rejected: {line}");
                    // Nothing is left to do about a log that fails.
                    let _ = host.log(LogLevel::Error, &line);
                }
                count_rejection(host, &name);
                return false;
            }
        };
        let known = self.0.borrow().plugin(&name);
        let plugin = if let Some(plugin) = known {
            plugin.borrow_mut().reconfigure(config, root);
            plugin
        } else {
            let plugin = PluginObject::new(host.clone(), &name, config, root);
            let plugin = Rc::new(RefCell::new(plugin));
            let named = (name, Rc::clone(&plugin));
            self.0.borrow_mut().plugins.push(named);
            plugin
        };
        plugin.borrow_mut().name_config(digest);
        self.0.borrow_mut().roots.push((root, plugin));
        host.set_tick_period(TICK).is_ok()
    }
}

impl<H: Host> Vm<H> {
    /// A new context: a stream of the root context with the number `root`, or a root context itself if that is 0.
    pub fn create(&self, id: u32, root: u32) {
        if root != 0
            && let Ok(mut contexts) = self.0.try_borrow_mut()
            && let Some(plugin) = contexts.plugin_of(root)
        {
            contexts.streams.insert(id, Stream::new(plugin));
        }
    }

    /// A tick of a root context.
    pub fn tick(&self, root: u32) {
        let plugin = self.0.borrow().plugin_of(root);
        if let Some(plugin) = plugin
            && let Ok(mut plugin) = plugin.try_borrow_mut()
        {
            plugin.tick(root);
        }
    }

    /// A callback of a stream; `None` when there is no such stream.
    pub fn on_stream<T>(
        &self,
        id: u32,
        call: impl FnOnce(&mut Stream<SharedPlugin<H>>) -> T,
    ) -> Option<T> {
        let mut contexts = self.0.try_borrow_mut().ok()?;
        contexts.streams.get_mut(&id).map(call)
    }

    /// A stream has ended.
    pub fn end(&self, id: u32) {
        let stream = self
            .0
            .try_borrow_mut()
            .ok()
            .and_then(|mut contexts| contexts.streams.remove(&id));
        // Dropped outside of the borrow, because the drop may read from the host.
        drop(stream);
    }
}

/// What tests look at.
#[cfg(test)]
impl<H: Host> Vm<H> {
    pub(crate) fn plugin_of(&self, root: u32) -> Option<SharedPlugin<H>> {
        self.0.borrow().plugin_of(root)
    }

    pub(crate) fn streams(&self) -> usize {
        self.0.borrow().streams.len()
    }
}

impl<H: Host> Contexts<H> {
    fn plugin(&self, name: &str) -> Option<SharedPlugin<H>> {
        let found = self.plugins.iter().find(|(known, _)| known == name);
        found.map(|(_, plugin)| Rc::clone(plugin))
    }

    fn plugin_of(&self, root: u32) -> Option<SharedPlugin<H>> {
        // The newest first: that is where requests come from.
        let found = self.roots.iter().rev().find(|(id, _)| *id == root);
        found.map(|(_, plugin)| Rc::clone(plugin))
    }
}

/// Context numbers are counted up: one multiplication spreads them (Fibonacci hashing, Knuth, TAOCP 3, 6.4).
#[derive(Default)]
struct SpreadHash(u64);

impl Hasher for SpreadHash {
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

/// The configuration and its digest, or every line of what is wrong with it.
fn read_config(host: &impl Host) -> Result<(Config, u64), Vec<String>> {
    let bytes = host
        .configuration()
        .map_err(|error| vec![error.to_string()])?;
    Config::named_from_json(&bytes)
        .map_err(|errors| errors.to_string().lines().map(str::to_owned).collect())
}

/// Counts a rejected configuration at once: Envoy tries a configuration out in a VM of its own, which may never tick.
fn count_rejection(host: &impl Host, plugin: &str) {
    let kind = Some(Fault::Configuration.as_str());
    let name = Naming::of_plugin(plugin).name(&FAULTS_TOTAL, "", kind);
    if let Ok(id) = host.define_metric(MetricKind::Counter, &name) {
        // The rejection is in the log and in Envoy's own counts too.
        let _ = host.increment_metric(id, 1);
    }
}
