//! The resource that a proxy gets: the plugin's configuration inside Envoy's own messages.
//!
//! Everything around the configuration (where the module is, the id of its VM, what happens when it crashes)
//! comes from the settings of the service and is the same for all proxies.

use std::time::Duration;

use envoy_types::pb::envoy::config::core::v3::{
    AsyncDataSource, BackoffStrategy, DataSource, HttpUri, RemoteDataSource, TypedExtensionConfig,
    async_data_source, data_source, http_uri,
};
use envoy_types::pb::envoy::extensions::filters::http::wasm::v3::Wasm;
use envoy_types::pb::envoy::extensions::wasm::v3::{
    FailurePolicy, PluginConfig, ReloadConfig, VmConfig, plugin_config,
};
use envoy_types::pb::google::protobuf::{Any, Duration as WireDuration, StringValue};
use prost::Message;

use super::resource::{Desired, Name, Resource, ResourceVersion};
use crate::render;

const WASM_TYPE: &str = "type.googleapis.com/envoy.extensions.filters.http.wasm.v3.Wasm";
const STRING_TYPE: &str = "type.googleapis.com/google.protobuf.StringValue";
const RUNTIME: &str = "envoy.wasm.runtime.v8";

/// The filter's only root context.
const ROOT_ID: &str = "tidegate";

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
    Closed,
}

/// Everything around the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginTemplate {
    /// Names under which proxies request their configuration (the filter's name in their bootstrap).
    pub names: Vec<String>,
    /// Where the module is.
    pub module: Module,
    /// Plugins with the same id share a VM per worker.
    pub vm_id: String,
    /// What happens after a crash.
    pub on_crash: OnCrash,
    /// First wait before a crashed VM is replaced.
    pub reload_backoff: Duration,
}

impl PluginTemplate {
    /// The resources of a proxy that should run this configuration.
    ///
    /// A version begins with the version of the configuration, so that people recognize it, and ends with a
    /// hash of the whole resource, so that another module is another version.
    #[must_use]
    pub fn desired(&self, config: &render::PluginConfig) -> Desired {
        let typed_config = Any {
            type_url: WASM_TYPE.to_owned(),
            value: self.wasm(&config.config).encode_to_vec(),
        };
        let resource = |name: &String| {
            let body = TypedExtensionConfig {
                name: name.clone(),
                typed_config: Some(typed_config.clone()),
            }
            .encode_to_vec();
            let whole = ResourceVersion::of(&body);
            let surroundings = whole.as_str().get(..SURROUNDINGS_DIGITS);
            let version = format!("{}-{}", config.version, surroundings.unwrap_or_default());
            Resource {
                name: Name::from(name.as_str()),
                version: ResourceVersion::new(&version),
                body: body.into(),
            }
        };
        self.names.iter().map(resource).collect()
    }

    fn wasm(&self, config: &str) -> Wasm {
        let policy = match self.on_crash {
            OnCrash::Reload => FailurePolicy::FailReload,
            OnCrash::Open => FailurePolicy::FailOpen,
            OnCrash::Closed => FailurePolicy::FailClosed,
        };
        let backoff = BackoffStrategy {
            base_interval: Some(duration(self.reload_backoff)),
            max_interval: Some(duration(self.reload_backoff * MAX_BACKOFF_FACTOR)),
        };
        let configuration = StringValue {
            value: config.to_owned(),
        };
        Wasm {
            config: Some(PluginConfig {
                name: ROOT_ID.to_owned(),
                root_id: ROOT_ID.to_owned(),
                failure_policy: policy.into(),
                reload_config: Some(ReloadConfig {
                    backoff: Some(backoff),
                }),
                configuration: Some(Any {
                    type_url: STRING_TYPE.to_owned(),
                    value: configuration.encode_to_vec(),
                }),
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
    use super::*;
    use crate::render::PluginConfig as Rendered;

    fn plugin(module: &str) -> PluginTemplate {
        PluginTemplate {
            names: vec!["tidegate".to_owned(), "inbound".to_owned()],
            module: Module::File(module.to_owned()),
            vm_id: "tidegate".to_owned(),
            on_crash: OnCrash::Reload,
            reload_backoff: Duration::from_secs(1),
        }
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
