//! Keys of shared data, made once: several are used on every tick.

use tidegate_core::{UpstreamKey, WIRE_VERSION};

/// The keys of one plugin: `tidegate/<wire version>/<hash of the plugin's name>/...`.
#[derive(Clone, Debug)]
pub struct Keys {
    prefix: String,
    workers: String,
    directives: String,
    learned: String,
    versions: String,
    info: String,
}

impl Keys {
    /// Those of the plugin that the proxy's configuration calls `plugin`.
    #[must_use]
    pub fn new(plugin: &str) -> Self {
        let plugin = UpstreamKey::hash(plugin, None);
        let prefix = format!("tidegate/{WIRE_VERSION}/{plugin:016x}");
        Self {
            workers: format!("{prefix}/workers"),
            directives: format!("{prefix}/directives"),
            learned: format!("{prefix}/learned"),
            prefix,
            versions: format!("tidegate/versions/{plugin:016x}"),
            info: format!("tidegate/info/{plugin:016x}"),
        }
    }

    /// Which worker has which place.
    #[must_use]
    pub fn workers(&self) -> &str {
        &self.workers
    }

    /// Which worker leads.
    #[must_use]
    pub fn lease(&self) -> String {
        format!("{}/lease", self.prefix)
    }

    /// The slice of the worker at `place`.
    #[must_use]
    pub fn slice(&self, place: usize) -> String {
        format!("{}/slice/{place}", self.prefix)
    }

    /// Directives.
    #[must_use]
    pub fn directives(&self) -> &str {
        &self.directives
    }

    /// Learned state.
    #[must_use]
    pub fn learned(&self) -> &str {
        &self.learned
    }

    /// Upstreams with metrics of their own: what the keys of their pages begin with.
    #[must_use]
    pub fn names(&self) -> String {
        format!("{}/names", self.prefix)
    }

    /// What keeps the cohorts of callers from being guessed.
    #[must_use]
    pub fn cohorts(&self) -> String {
        format!("{}/cohorts", self.prefix)
    }

    /// How many VMs there have been.
    #[must_use]
    pub fn serial(&self) -> String {
        format!("{}/serial", self.prefix)
    }

    /// Which versions of the module run. All versions have this key in common, and the next one.
    #[must_use]
    pub fn versions(&self) -> String {
        self.versions.clone()
    }

    /// What ran in this process, as metrics say it.
    #[must_use]
    pub fn info(&self) -> String {
        self.info.clone()
    }
}

/// Keys of slices by place, each made when it is first needed.
#[derive(Clone, Debug, Default)]
pub(super) struct SliceKeys(Vec<String>);

impl SliceKeys {
    /// The key of the slice of the worker at `place`.
    pub(super) fn at(&mut self, keys: &Keys, place: usize) -> &str {
        let known = self.0.len();
        if known <= place {
            self.0.extend((known..=place).map(|it| keys.slice(it)));
        }
        self.0.get(place).map_or("", String::as_str)
    }
}
