//! All plugins and configurations of the process.
//!
//! A plugin belongs to its name, which is the filter's name in Envoy's configuration, not to a configuration. So filter
//! chains with the same name share state, and a new configuration keeps learned state. The newest configuration that lives
//! is in force: Envoy destroys one at once if it rejects something beside it. A route that has a configuration of its own has
//! a plugin of its own, which ends with it (see `routes`).

#![expect(unsafe_code, reason = "schedulers belong to Envoy")]

mod routes;

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::abi::{self, EnvoyPtr};
use crate::histograms::HistogramIds;
use crate::metrics::{KnownCells, MetricIds, PluginMetrics};
use crate::plugin::{NamedConfig, NativePlugin};

use routes::Routes;
pub(crate) use routes::{RouteConfig, has_routes};

/// One configuration of a filter.
#[derive(Debug)]
pub(crate) struct FilterConfig {
    pub(crate) plugin: Arc<NativePlugin>,
    config: NamedConfig,
    ids: MetricIds,
    histograms: HistogramIds,
    scheduler: Scheduler,
    /// What it has made known to Envoy, by the plugin's name.
    known: Mutex<HashMap<String, KnownCells>>,
}

/// The way to Envoy's main thread. Null while configurations are only validated.
#[derive(Debug)]
struct Scheduler(EnvoyPtr);

// SAFETY: Envoy's scheduler may be used from any thread, says its ABI.
unsafe impl Send for Scheduler {}
// SAFETY: as above; commits are made under the registry's mutex.
unsafe impl Sync for Scheduler {}

impl Drop for Scheduler {
    fn drop(&mut self) {
        if !self.0.is_null() {
            // SAFETY: Envoy made it, and this is the only owner.
            unsafe {
                abi::envoy_dynamic_module_callback_http_filter_config_scheduler_delete(self.0);
            }
        }
    }
}

/// All of them.
#[derive(Debug)]
struct PluginRegistry {
    plugins: Vec<Arc<NativePlugin>>,
    /// In force or about to end, the newest last.
    configs: Vec<Arc<FilterConfig>>,
    routes: Routes,
}

static REGISTRY: Mutex<PluginRegistry> = Mutex::new(PluginRegistry {
    plugins: Vec::new(),
    configs: Vec::new(),
    routes: Routes::new(),
});
static CHANGED: Condvar = Condvar::new();

fn registry() -> MutexGuard<'static, PluginRegistry> {
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Puts a configuration into force, for a process with this many workers.
pub(crate) fn configure(
    name: &str,
    config: NamedConfig,
    workers: usize,
    envoy: EnvoyPtr,
) -> Arc<FilterConfig> {
    let ids = MetricIds::define(envoy);
    let histograms = HistogramIds::define(envoy);
    // SAFETY: the hook under way gave the configuration.
    let scheduler =
        unsafe { abi::envoy_dynamic_module_callback_http_filter_config_scheduler_new(envoy) };
    let mut registry = registry();
    let filter = Arc::new(FilterConfig {
        plugin: registry.plugin(name, &config, workers),
        config,
        ids,
        histograms,
        scheduler: Scheduler(scheduler),
        known: Mutex::default(),
    });
    tell(&registry.plugins, &filter, |metrics, known| {
        metrics.hand_over(envoy, &filter.ids, known);
    });
    registry.configs.push(Arc::clone(&filter));
    CHANGED.notify_all();
    filter
}

/// Puts the configuration of a route into force. Routes whose plugins have one name share state.
pub(crate) fn configure_route(name: &str, config: NamedConfig, workers: usize) -> Arc<RouteConfig> {
    let name = routes::plugin_name(name, &config);
    let mut registry = registry();
    let plugin = registry.plugin(&name, &config, workers);
    registry.routes.begin(plugin, config)
}

/// A configuration has ended. Its plugin stays, with the newest configuration that remains.
pub(crate) fn forget(config: &Arc<FilterConfig>) {
    let mut registry = registry();
    let plugin = &config.plugin;
    let is_own = |other: &&Arc<FilterConfig>| Arc::ptr_eq(&other.plugin, plugin);
    let was_newest = registry.configs.iter().rfind(is_own);
    let was_newest = was_newest.is_some_and(|newest| Arc::ptr_eq(newest, config));
    registry.configs.retain(|other| !Arc::ptr_eq(other, config));
    if was_newest && let Some(newest) = registry.configs.iter().rfind(is_own) {
        plugin.reconfigure(newest.config.clone());
    }
    let gone = config.known();
    let others: Vec<_> = registry.configs.iter().map(|other| other.known()).collect();
    for plugin in &registry.plugins {
        let name = plugin.name();
        if let Some(gone) = gone.get(name) {
            let others: Vec<_> = others.iter().filter_map(|known| known.get(name)).collect();
            plugin.shared().metrics.forget(gone, &others);
        }
    }
}

/// The configuration of a route has ended.
pub(crate) fn forget_route(config: &Arc<RouteConfig>) {
    registry().routes.end(config);
}

/// The plugin with this name.
pub(crate) fn find(name: &str) -> Option<Arc<NativePlugin>> {
    registry().find(name).cloned()
}

/// Whether there is a plugin whose name begins so.
#[cfg(test)]
pub(crate) fn knows(name: &str) -> bool {
    let registry = registry();
    registry
        .plugins
        .iter()
        .any(|it| it.name().starts_with(name))
}

/// Waits while there is no configuration.
pub(crate) fn wait_for_a_configuration() {
    let mut registry = registry();
    while registry.configs.is_empty() {
        registry = CHANGED
            .wait(registry)
            .unwrap_or_else(PoisonError::into_inner);
    }
}

/// All plugins.
pub(crate) fn plugins() -> Vec<Arc<NativePlugin>> {
    registry().plugins.clone()
}

/// A tick: asks Envoy to call [`publish`] on its main thread, if there may be something to tell.
pub(crate) fn schedule_publishing() {
    let registry = registry();
    // Each is asked, because each counts its ticks.
    let due = registry.plugins.iter().filter(|plugin| {
        let shared = plugin.shared();
        shared.metrics.is_due() || shared.latencies.are_counted()
    });
    if due.count() == 0 {
        return;
    }
    if let Some(newest) = registry.configs.last()
        && !newest.scheduler.0.is_null()
    {
        // SAFETY: under the mutex the scheduler is not deleted. It knows whether its configuration still exists.
        unsafe {
            abi::envoy_dynamic_module_callback_http_filter_config_scheduler_commit(
                newest.scheduler.0,
                0,
            );
        }
    }
}

/// Publishes the metrics of all plugins through this configuration, on Envoy's main thread.
pub(crate) fn publish(config: &FilterConfig, envoy: EnvoyPtr) {
    let (plugins, ended) = {
        let mut registry = registry();
        let ended = registry.take_ended();
        (registry.plugins.clone(), ended)
    };
    tell(&plugins, config, |metrics, known| {
        metrics.publish(envoy, &config.ids, known);
    });
    tell(&ended, config, |metrics, known| {
        metrics.end(envoy, &config.ids, known);
    });
    for plugin in plugins.iter().chain(&ended) {
        let latencies = &plugin.shared().latencies;
        config.histograms.publish(envoy, plugin.name(), latencies);
    }
    let registry = registry();
    for plugin in &ended {
        for config in &registry.configs {
            config.known().remove(plugin.name());
        }
    }
}

/// Has Envoy told of the metrics of all plugins, beside what it knows by this configuration.
fn tell(
    plugins: &[Arc<NativePlugin>],
    config: &FilterConfig,
    mut step: impl FnMut(&PluginMetrics, &mut KnownCells),
) {
    let mut known = config.known();
    for plugin in plugins {
        let metrics = &plugin.shared().metrics;
        match known.get_mut(plugin.name()) {
            Some(known) => step(metrics, known),
            None => step(metrics, known.entry(plugin.name().to_owned()).or_default()),
        }
    }
}

impl FilterConfig {
    fn known(&self) -> MutexGuard<'_, HashMap<String, KnownCells>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PluginRegistry {
    fn find(&self, name: &str) -> Option<&Arc<NativePlugin>> {
        self.plugins.iter().find(|it| it.name() == name)
    }

    /// Takes the plugins that have ended.
    fn take_ended(&mut self) -> Vec<Arc<NativePlugin>> {
        let ended = self.routes.take_ended();
        self.plugins
            .retain(|it| !ended.iter().any(|ended| Arc::ptr_eq(it, ended)));
        ended
    }

    /// The plugin with this name, with this configuration.
    fn plugin(&mut self, name: &str, config: &NamedConfig, workers: usize) -> Arc<NativePlugin> {
        if let Some(known) = self.find(name) {
            known.reconfigure(config.clone());
            return Arc::clone(known);
        }
        let plugin = Arc::new(NativePlugin::new(name, workers, config.clone()));
        self.plugins.push(Arc::clone(&plugin));
        plugin
    }
}
