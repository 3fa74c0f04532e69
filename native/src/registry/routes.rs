//! Routes that have a configuration of their own, and the end of the plugins behind them.
//!
//! ```text
//!  first configuration --> in use --- last configuration ends ---> ending --- no request is left, Envoy was told ---> gone
//!                             ^                                      |
//!                             +-------- another configuration -------+
//! ```
//!
//! Envoy keeps what it was last told of a gauge. So a plugin that ends stays until its last request has ended, and then all its
//! gauges become 0.

use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use crate::plugin::{NamedConfig, NativePlugin};

/// What an operator puts into the `filter_name` of a route that is to keep its name.
const MARK: char = '@';
/// Those who know a plugin that has ended: the list of all plugins, and that of those that end.
const KNOWN_BY: usize = 2;

/// The configuration of a route.
#[derive(Debug)]
pub(crate) struct RouteConfig {
    pub(crate) plugin: Arc<NativePlugin>,
    config: NamedConfig,
}

/// All of them.
#[derive(Debug)]
pub(super) struct Routes {
    /// As long as they live, the newest last.
    configs: Vec<Arc<RouteConfig>>,
    ending: Vec<Arc<NativePlugin>>,
}

/// Whether any route has a configuration of its own, readable without the mutex: only then requests look for one.
static HAS_ROUTES: AtomicBool = AtomicBool::new(false);

/// Whether any route has a configuration of its own.
pub(crate) fn has_routes() -> bool {
    HAS_ROUTES.load(Ordering::Relaxed)
}

/// The name of a route's plugin. Without a name of the operator's, only the configuration tells it from that of another route.
pub(super) fn plugin_name(filter_name: &str, config: &NamedConfig) -> String {
    if filter_name.contains(MARK) {
        filter_name.to_owned()
    } else {
        format!("{filter_name}{MARK}{:016x}", config.digest)
    }
}

impl Routes {
    pub(super) const fn new() -> Self {
        Self {
            configs: Vec::new(),
            ending: Vec::new(),
        }
    }

    /// A route has this configuration.
    pub(super) fn begin(
        &mut self,
        plugin: Arc<NativePlugin>,
        config: NamedConfig,
    ) -> Arc<RouteConfig> {
        self.ending.retain(|other| !Arc::ptr_eq(other, &plugin));
        let route = Arc::new(RouteConfig { plugin, config });
        self.configs.push(Arc::clone(&route));
        HAS_ROUTES.store(true, Ordering::Relaxed);
        route
    }

    /// A configuration has ended. Of those that remain for its plugin, the newest is in force; with the last one the plugin ends.
    pub(super) fn end(&mut self, config: &Arc<RouteConfig>) {
        let plugin = &config.plugin;
        let was_newest = self
            .newest(plugin)
            .is_some_and(|it| Arc::ptr_eq(it, config));
        self.configs.retain(|other| !Arc::ptr_eq(other, config));
        HAS_ROUTES.store(!self.configs.is_empty(), Ordering::Relaxed);
        match self.newest(plugin) {
            Some(newest) if was_newest => plugin.reconfigure(newest.config.clone()),
            Some(_) => {}
            None => self.ending.push(Arc::clone(plugin)),
        }
    }

    /// Takes the plugins that have ended, and that nobody uses any more.
    pub(super) fn take_ended(&mut self) -> Vec<Arc<NativePlugin>> {
        let is_unused = |plugin: &mut Arc<NativePlugin>| Arc::strong_count(plugin) == KNOWN_BY;
        self.ending.extract_if(.., is_unused).collect()
    }

    fn newest(&self, plugin: &Arc<NativePlugin>) -> Option<&Arc<RouteConfig>> {
        self.configs
            .iter()
            .rfind(|route| Arc::ptr_eq(&route.plugin, plugin))
    }
}
