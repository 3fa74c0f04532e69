//! The resource that a proxy gets: the plugin's configuration inside Envoy's own messages.
//!
//! Everything around the configuration (where the module is, the id of its VM, what happens when it crashes)
//! comes from the settings of the service and is the same for all proxies. A proxy gets the WebAssembly module or the
//! native one, by the name that it requests.

use std::time::Duration;

use envoy_types::pb::envoy::config::core::v3::{
    AsyncDataSource, BackoffStrategy, DataSource, HttpUri, RemoteDataSource, TypedExtensionConfig,
    async_data_source, data_source, http_uri,
};
use envoy_types::pb::envoy::extensions::filters::http::wasm::v3::Wasm;
use envoy_types::pb::envoy::extensions::wasm::v3::{
    FailurePolicy, PluginConfig, ReloadConfig, VmConfig, plugin_config,
};
use envoy_types::pb::google::protobuf::{Any, Duration as WireDuration};
use prost::Message;
use serde_json::{Value, json};

use super::document::{ROOT_ID, STRING_TYPE, text};
use super::native::{NativeModule, NativeTemplate};
use super::resource::{Desired, Name, Resource, ResourceVersion};
use crate::render;

const WASM_TYPE: &str = "type.googleapis.com/envoy.extensions.filters.http.wasm.v3.Wasm";
const RUNTIME: &str = "envoy.wasm.runtime.v8";

/// The name under which proxies usually request the WebAssembly module, and the usual id of its VM.
pub const USUAL_NAME: &str = "tidegate";

/// The name under which proxies usually request the native module.
pub const USUAL_NATIVE_NAME: &str = "tidegate-native";

/// First wait before a crashed VM is replaced.
pub const RELOAD_BACKOFF: Duration = Duration::from_secs(1);

/// Longest wait before a crashed VM is replaced, as a multiple of the first wait.
const MAX_BACKOFF_FACTOR: u32 = 10;

/// A version ends with this many hex digits of the hash over the whole resource.
const SURROUNDINGS_DIGITS: usize = 8;

/// Where proxies find the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Module {
    /// A file on the proxy's machine.
    File(String),
    /// A URL that the proxy fetches.
    Remote {
        /// The URL.
        url: String,
        /// SHA-256 of the module in hexadecimal, which Envoy requires.
        sha256: String,
        /// The proxy's own cluster that leads to the URL's host.
        cluster: String,
    },
}

/// What happens to requests when the module's VM has crashed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnCrash {
    /// The VM is replaced after a backoff; requests fail until then.
    Reload,
    /// Requests pass without the filter.
    Open,
    /// Requests fail.
    Close,
}

/// Everything around the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginTemplate {
    /// Names under which proxies request the WebAssembly module with their configuration (the filter's name in their
    /// bootstrap).
    pub names: Vec<String>,
    /// Where the module is.
    pub module: Module,
    /// Plugins with the same id share a VM per worker.
    pub vm_id: String,
    /// What happens after a crash.
    pub on_crash: OnCrash,
    /// First wait before a crashed VM is replaced.
    pub reload_backoff: Duration,
    /// The template of the native module.
    pub native: NativeTemplate,
}

impl PluginTemplate {
    /// The usual template with these modules: both under their usual names, and a VM that is replaced after a crash.
    #[must_use]
    pub fn usual(module: Module, native: NativeModule) -> Self {
        Self {
            names: vec![USUAL_NAME.to_owned()],
            module,
            vm_id: USUAL_NAME.to_owned(),
            on_crash: OnCrash::Reload,
            reload_backoff: RELOAD_BACKOFF,
            native: NativeTemplate {
                names: vec![USUAL_NATIVE_NAME.to_owned()],
                module: native,
            },
        }
    }

    /// The resources of a proxy that should run this configuration.
    ///
    /// A version begins with the version of the configuration, so that people recognize it, and ends with a
    /// hash of the whole resource, so that another module gives another version.
    #[must_use]
    pub fn desired(&self, config: &render::PluginConfig) -> Desired {
        let wasm = Any {
            type_url: WASM_TYPE.to_owned(),
            value: self.wasm(&config.config).encode_to_vec(),
        };
        let native = self.native.typed_config(&config.config);
        let kinds = [(&self.names, wasm), (&self.native.names, native)];
        kinds
            .iter()
            .flat_map(|(names, filter)| names.iter().map(|name| resource(name, filter, config)))
            .collect()
    }

    /// The WebAssembly filter as JSON, for an Envoy whose configuration is a file.
    #[must_use]
    pub fn json(&self, config: &str) -> Value {
        let policy = match self.on_crash {
            OnCrash::Reload => "FAIL_RELOAD",
            OnCrash::Open => "FAIL_OPEN",
            OnCrash::Close => "FAIL_CLOSED",
        };
        let seconds = |time: Duration| format!("{}s", time.as_secs_f64());
        json!({
            "@type": WASM_TYPE,
            "config": {
                "name": ROOT_ID,
                "root_id": ROOT_ID,
                "failure_policy": policy,
                "reload_config": {"backoff": {
                    "base_interval": seconds(self.reload_backoff),
                    "max_interval": seconds(self.reload_backoff * MAX_BACKOFF_FACTOR),
                }},
                "configuration": {"@type": STRING_TYPE, "value": config},
                "vm_config": {
                    "vm_id": self.vm_id,
                    "runtime": RUNTIME,
                    "code": self.module.json(),
                },
            },
        })
    }

    fn wasm(&self, config: &str) -> Wasm {
        let policy = match self.on_crash {
            OnCrash::Reload => FailurePolicy::FailReload,
            OnCrash::Open => FailurePolicy::FailOpen,
            OnCrash::Close => FailurePolicy::FailClosed,
        };
        let backoff = BackoffStrategy {
            base_interval: Some(duration(self.reload_backoff)),
            max_interval: Some(duration(self.reload_backoff * MAX_BACKOFF_FACTOR)),
        };
        Wasm {
            config: Some(PluginConfig {
                name: ROOT_ID.to_owned(),
                root_id: ROOT_ID.to_owned(),
                failure_policy: policy.into(),
                reload_config: Some(ReloadConfig {
                    backoff: Some(backoff),
                }),
                configuration: Some(text(config)),
                vm: Some(plugin_config::Vm::VmConfig(VmConfig {
                    vm_id: self.vm_id.clone(),
                    runtime: RUNTIME.to_owned(),
                    code: Some(self.module.source()),
                    ..VmConfig::default()
                })),
                ..PluginConfig::default()
            }),
        }
    }
}

/// The resource `name` with this filter.
fn resource(name: &str, filter: &Any, config: &render::PluginConfig) -> Resource {
    let body = TypedExtensionConfig {
        name: name.to_owned(),
        typed_config: Some(filter.clone()),
    }
    .encode_to_vec();
    let whole = ResourceVersion::of(&body);
    let surroundings = whole.as_str().get(..SURROUNDINGS_DIGITS);
    let version = format!("{}-{}", config.version, surroundings.unwrap_or_default());
    Resource {
        name: Name::from(name),
        version: ResourceVersion::new(&version),
        body: body.into(),
    }
}

/// How long a proxy waits for the module.
const FETCH_TIMEOUT: Duration = Duration::from_secs(30);

impl Module {
    fn source(&self) -> AsyncDataSource {
        let specifier = match self {
            Self::File(path) => async_data_source::Specifier::Local(DataSource {
                specifier: Some(data_source::Specifier::Filename(path.clone())),
                ..DataSource::default()
            }),
            Self::Remote {
                url,
                sha256,
                cluster,
            } => async_data_source::Specifier::Remote(RemoteDataSource {
                http_uri: Some(HttpUri {
                    uri: url.clone(),
                    timeout: Some(duration(FETCH_TIMEOUT)),
                    http_upstream_type: Some(http_uri::HttpUpstreamType::Cluster(cluster.clone())),
                }),
                sha256: sha256.clone(),
                retry_policy: None,
            }),
        };
        AsyncDataSource {
            specifier: Some(specifier),
        }
    }

    fn json(&self) -> Value {
        match self {
            Self::File(path) => json!({"local": {"filename": path}}),
            Self::Remote {
                url,
                sha256,
                cluster,
            } => json!({"remote": {
                "http_uri": {
                    "uri": url,
                    "timeout": format!("{}s", FETCH_TIMEOUT.as_secs()),
                    "cluster": cluster,
                },
                "sha256": sha256,
            }}),
        }
    }
}

fn duration(value: Duration) -> WireDuration {
    WireDuration {
        seconds: i64::try_from(value.as_secs()).unwrap_or(i64::MAX),
        // Below a second by definition.
        nanos: i32::try_from(value.subsec_nanos()).unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use envoy_types::pb::envoy::extensions::filters::http::dynamic_modules::v3::DynamicModuleFilter;
    use envoy_types::pb::google::protobuf::StringValue;
    use prost::Name as _;

    use super::*;
    use crate::render::PluginConfig as Rendered;

    fn plugin(module: &str) -> PluginTemplate {
        PluginTemplate {
            names: vec!["tidegate".to_owned(), "inbound".to_owned()],
            ..PluginTemplate::usual(
                Module::File(module.to_owned()),
                NativeModule::parse("tidegate"),
            )
        }
    }

    #[test]
    fn a_name_decides_between_the_kinds_and_the_document_is_the_same() {
        let rendered = Rendered::unmatched();

        let desired = plugin("/m.wasm").desired(&rendered);

        let types = desired.iter().map(|resource| {
            let config = TypedExtensionConfig::decode(&*resource.body).unwrap();
            let filter = config.typed_config.unwrap();
            (config.name, filter.type_url)
        });
        let native = DynamicModuleFilter::type_url();
        let wasm = |name: &str| (name.to_owned(), WASM_TYPE.to_owned());
        let expected = [
            wasm("inbound"),
            wasm("tidegate"),
            (USUAL_NATIVE_NAME.to_owned(), native),
        ];
        assert_eq!(types.collect::<Vec<_>>(), expected);
        let body = &desired.resource(USUAL_NATIVE_NAME).unwrap().body;
        let filter = TypedExtensionConfig::decode(&**body).unwrap();
        let filter = DynamicModuleFilter::decode(&*filter.typed_config.unwrap().value).unwrap();
        let text = StringValue::decode(&*filter.filter_config.unwrap().value).unwrap();
        assert_eq!(*text.value, *rendered.config);
    }

    #[test]
    fn the_resource_contains_the_rendered_configuration() {
        let rendered = Rendered::unmatched();

        let desired = plugin("/m.wasm").desired(&rendered);

        let body = &desired.resource("tidegate").unwrap().body;
        let config = TypedExtensionConfig::decode(&**body).unwrap();
        assert_eq!(config.name, "tidegate");
        let wasm = Wasm::decode(&*config.typed_config.unwrap().value).unwrap();
        let value = wasm.config.unwrap().configuration.unwrap().value;
        let text = StringValue::decode(&*value).unwrap().value;
        assert_eq!(*text, *rendered.config);
    }

    #[test]
    fn a_version_depends_on_name_and_module_and_begins_with_that_of_the_configuration() {
        let rendered = Rendered::unmatched();
        let version = |module: &str, name: &str| {
            let desired = plugin(module).desired(&rendered);
            desired.resource(name).unwrap().version.clone()
        };

        let base = version("/m.wasm", "tidegate");
        assert!(base.as_str().starts_with(rendered.version.as_str()));
        assert_eq!(base, version("/m.wasm", "tidegate"));
        assert_ne!(base, version("/other.wasm", "tidegate"));
        assert_ne!(base, version("/m.wasm", "inbound"));
    }
}
