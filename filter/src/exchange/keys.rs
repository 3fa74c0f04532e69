//! Keys of shared data.

use tidegate_core::{FORMER_VERSIONS, UpstreamKey, WIRE_VERSION};

/// The keys of one plugin: `tidegate/<wire version>/<hash of the plugin's name>/...`.
#[derive(Clone, Debug)]
pub struct Keys {
    plugin: u64,
    prefix: String,
}

impl Keys {
    /// Those of the plugin that the proxy's configuration calls `plugin`.
    #[must_use]
    pub fn new(plugin: &str) -> Self {
        Self::of(UpstreamKey::hash(plugin, None), WIRE_VERSION)
    }

    /// Those that earlier versions of the module have for the same plugin, the newest first.
    pub fn former(&self) -> impl Iterator<Item = Self> {
        let plugin = self.plugin;
        FORMER_VERSIONS
            .into_iter()
            .map(move |version| Self::of(plugin, version))
    }

    fn of(plugin: u64, version: u8) -> Self {
        Self {
            plugin,
            prefix: format!("tidegate/{version}/{plugin:016x}"),
        }
    }

    /// Who has which place.
    #[must_use]
    pub fn workers(&self) -> String {
        format!("{}/workers", self.prefix)
    }

    /// Who leads.
    #[must_use]
    pub fn lease(&self) -> String {
        format!("{}/lease", self.prefix)
    }

    /// What the worker at `place` saw.
    #[must_use]
    pub fn slice(&self, place: usize) -> String {
        format!("{}/slice/{place}", self.prefix)
    }

    /// What holds.
    #[must_use]
    pub fn directives(&self) -> String {
        format!("{}/directives", self.prefix)
    }

    /// What was learned.
    #[must_use]
    pub fn learned(&self) -> String {
        format!("{}/learned", self.prefix)
    }

    /// Upstreams with metrics of their own.
    #[must_use]
    pub fn names(&self) -> String {
        format!("{}/names", self.prefix)
    }

    /// How many VMs there have been.
    #[must_use]
    pub fn serial(&self) -> String {
        format!("{}/serial", self.prefix)
    }
}
