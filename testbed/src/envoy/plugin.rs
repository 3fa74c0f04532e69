//! The Tidegate plugin in Envoy's configuration: inline, pushed through a file, or served by a control service.

mod discovery;
mod module;
mod verdict;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use super::duration::duration;
use super::error::EnvoyError;
use super::native;

use discovery::ConfigSource;
pub use discovery::DiscoveryProtocol;
pub use module::{MODULE_VARIABLE, release_module, test_module};
pub use verdict::PushOutcome;
pub(super) use verdict::Verdicts;

/// What happens after the plugin's VM has crashed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailurePolicy {
    /// A fresh VM after a back-off.
    Reload,
    /// Requests pass without the plugin.
    Open,
    /// Requests fail.
    Closed,
}

/// The plugin: module, identity, configuration, and how the configuration gets to Envoy.
#[derive(Debug, Clone)]
pub struct Plugin {
    name: String,
    config: String,
    module: PathBuf,
    vm_id: String,
    root_id: String,
    failure_policy: FailurePolicy,
    reload_backoff: Duration,
    source: ConfigSource,
    is_default: bool,
}

const WASM_TYPE: &str = "type.googleapis.com/envoy.extensions.filters.http.wasm.v3.Wasm";
const DISCOVERY_FILE: &str = "plugin.json";

impl Plugin {
    /// The release module with this configuration document, inline in the bootstrap.
    #[must_use]
    pub fn tidegate(config: &Value) -> Self {
        Self::with_text(&config.to_string())
    }

    /// The same with a document as text, which need not be valid.
    #[must_use]
    pub fn with_text(config: &str) -> Self {
        Self {
            name: "tidegate".to_owned(),
            config: config.to_owned(),
            module: release_module(),
            vm_id: "tidegate".to_owned(),
            root_id: "tidegate".to_owned(),
            failure_policy: FailurePolicy::Reload,
            reload_backoff: Duration::from_secs(1),
            source: ConfigSource::Inline,
            is_default: false,
        }
    }

    /// Lets the configuration come from a file by extension discovery, so that [`super::Envoy::push`] can replace it.
    #[must_use]
    pub fn pushed(mut self) -> Self {
        self.source = ConfigSource::File;
        self
    }

    /// Lets the configuration come from a control service behind the cluster of this name.
    #[must_use]
    pub fn served(mut self, cluster: &str, by: DiscoveryProtocol) -> Self {
        self.source = ConfigSource::Served {
            cluster: cluster.to_owned(),
            by,
        };
        self
    }

    /// Lets its own configuration be in force from the start until a pushed or served one comes (`default_config`).
    #[must_use]
    pub const fn by_default(mut self) -> Self {
        self.is_default = true;
        self
    }

    /// Sets another module (for example the one with test hooks).
    #[must_use]
    pub fn module(mut self, module: PathBuf) -> Self {
        self.module = module;
        self
    }

    /// Sets another name of the filter; a control service finds its configuration by this name.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        self
    }

    /// Sets another VM id: plugins with the same id share a VM per worker.
    #[must_use]
    pub fn vm_id(mut self, vm_id: &str) -> Self {
        vm_id.clone_into(&mut self.vm_id);
        self
    }

    /// Sets what happens after a crash (default: reload with a back-off of 1 s).
    #[must_use]
    pub const fn failure_policy(mut self, policy: FailurePolicy, reload_backoff: Duration) -> Self {
        self.failure_policy = policy;
        self.reload_backoff = reload_backoff;
        self
    }

    pub(super) fn is_pushed(&self) -> bool {
        self.source == ConfigSource::File
    }

    /// `dynamic_resources` of the bootstrap, if the plugin needs any.
    pub(super) fn dynamic_resources(&self) -> Option<Value> {
        match &self.source {
            ConfigSource::Served { cluster, by } if by.is_aggregated() => {
                Some(json!({"ads_config": by.api(cluster)}))
            }
            _ => None,
        }
    }

    pub(super) fn set_config(&mut self, config: &str) {
        config.clone_into(&mut self.config);
    }

    pub(super) fn set_module(&mut self, module: PathBuf) {
        self.module = module;
    }

    /// The entry in the connection manager's list of filters.
    pub(super) fn http_filter(&self, folder: &Path) -> Value {
        let mut source = match &self.source {
            ConfigSource::Inline => {
                return json!({"name": self.name, "typed_config": self.typed_config()});
            }
            ConfigSource::File => json!({"path_config_source": {
                "path": folder.join(DISCOVERY_FILE),
                "watched_directory": {"path": folder},
            }}),
            ConfigSource::Served { by, .. } if by.is_aggregated() => json!({"ads": {}}),
            ConfigSource::Served { cluster, by } => json!({"api_config_source": by.api(cluster)}),
        };
        if let Some(source) = source.as_object_mut() {
            source.insert("resource_api_version".to_owned(), json!("V3"));
        }
        let mut discovery = json!({"config_source": source, "type_urls": [self.type_url()]});
        if self.is_default
            && let Some(discovery) = discovery.as_object_mut()
        {
            discovery.insert("default_config".to_owned(), self.typed_config());
            // Otherwise Envoy waits for the control service all the same, for `initial_fetch_timeout`.
            discovery.insert(
                "apply_default_config_without_warming".to_owned(),
                Value::from(true),
            );
        }
        json!({"name": self.name, "config_discovery": discovery})
    }

    /// Writes the discovery file into Envoy's folder atomically: under another name, then renamed.
    pub(super) fn write_discovery(&self, folder: &Path, version: u64) -> Result<(), EnvoyError> {
        let response = json!({
            "version_info": version.to_string(),
            "resources": [{
                "@type": "type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig",
                "name": self.name,
                "typed_config": self.typed_config(),
            }],
        });
        let (path, new) = (folder.join(DISCOVERY_FILE), folder.join("plugin.new"));
        let io = |action, path: &Path| {
            let path = path.to_owned();
            move |source| EnvoyError::Io {
                action,
                path,
                source,
            }
        };
        fs::write(&new, response.to_string()).map_err(io("write", &new))?;
        fs::rename(&new, &path).map_err(io("rename to", &path))
    }

    /// The environment variable that Envoy needs to find the module.
    pub(super) fn variable(&self) -> Option<(&'static str, PathBuf)> {
        native::is_native(&self.module).then(|| native::search_path(&self.module))
    }

    fn type_url(&self) -> &'static str {
        if native::is_native(&self.module) {
            native::NATIVE_TYPE
        } else {
            WASM_TYPE
        }
    }

    fn typed_config(&self) -> Value {
        if native::is_native(&self.module) {
            return native::native_config(&self.module, &self.root_id, &self.config);
        }
        let policy = match self.failure_policy {
            FailurePolicy::Reload => "FAIL_RELOAD",
            FailurePolicy::Open => "FAIL_OPEN",
            FailurePolicy::Closed => "FAIL_CLOSED",
        };
        json!({
            "@type": WASM_TYPE,
            "config": {
                "name": "tidegate",
                "root_id": self.root_id,
                "failure_policy": policy,
                "reload_config": {"backoff": {
                    "base_interval": duration(self.reload_backoff),
                    "max_interval": duration(self.reload_backoff * 10),
                }},
                "vm_config": {
                    "vm_id": self.vm_id,
                    "runtime": "envoy.wasm.runtime.v8",
                    "code": {"local": {"filename": self.module}},
                },
                "configuration": {
                    "@type": "type.googleapis.com/google.protobuf.StringValue",
                    "value": self.config,
                },
            },
        })
    }
}
