//! The options for everything around the configuration at the proxies.

use clap::{Args, ValueEnum};
use tidegate_control::xds::{
    Module, NativeModule, NativeTemplate, OnCrash, PluginTemplate, RELOAD_BACKOFF, USUAL_NAME,
    USUAL_NATIVE_NAME,
};

use super::needs;
use crate::command::CommandFailure;

/// Everything around the configuration at the proxies.
#[derive(Debug, Args)]
#[command(next_help_heading = "Filter")]
pub(super) struct Filter {
    /// Path of the module on the proxies' machines
    #[arg(
        long,
        value_name = "PATH",
        env = "TIDEGATE_MODULE",
        default_value = MODULE
    )]
    module: String,
    /// URL from which proxies fetch the module instead
    #[arg(long, value_name = "URL", env = "TIDEGATE_MODULE_URL")]
    module_url: Option<String>,
    /// SHA-256 of the module behind the URL
    #[arg(long, value_name = "HEX", env = "TIDEGATE_MODULE_SHA256")]
    module_sha256: Option<String>,
    /// The proxies' cluster for the host of the URL
    #[arg(
        long,
        value_name = "NAME",
        env = "TIDEGATE_MODULE_CLUSTER",
        default_value = "tidegate-module"
    )]
    module_cluster: String,
    /// Name of the filter, under which proxies request the WebAssembly module and its configuration
    #[arg(
        long = "name",
        value_name = "NAME",
        env = "TIDEGATE_NAMES",
        value_delimiter = ',',
        default_value = USUAL_NAME
    )]
    names: Vec<String>,
    /// Plugins with the same id share a VM
    #[arg(
        long,
        value_name = "ID",
        env = "TIDEGATE_VM_ID",
        default_value = USUAL_NAME
    )]
    vm_id: String,
    /// What happens to requests when the VM has crashed: they fail until a new VM has started (reload), pass until the proxy restarts (open), or fail until then (close)
    #[arg(long, value_enum, env = "TIDEGATE_ON_CRASH", default_value_t)]
    on_crash: Crash,
    /// Name of the filter, under which proxies request the native module instead
    #[arg(
        long = "native-name",
        value_name = "NAME",
        env = "TIDEGATE_NATIVE_NAMES",
        value_delimiter = ',',
        default_value = USUAL_NATIVE_NAME
    )]
    native_names: Vec<String>,
    /// Path of the native module on the proxies' machines, or the NAME of libNAME.so in the folder that their
    /// ENVOY_DYNAMIC_MODULES_SEARCH_PATH names
    #[arg(
        long,
        value_name = "PATH|NAME",
        env = "TIDEGATE_NATIVE_MODULE",
        default_value = NATIVE_MODULE
    )]
    native_module: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Crash {
    /// They fail until the VM is replaced, a second later
    #[default]
    Reload,
    /// They pass without the filter
    Open,
    /// They fail
    Close,
}

/// Where proxies have the module, unless they say otherwise.
pub(in crate::command) const MODULE: &str = "/etc/envoy/tidegate.wasm";

/// Where proxies have the native module, unless they say otherwise.
pub(in crate::command) const NATIVE_MODULE: &str = "/etc/envoy/libtidegate.so";

impl Filter {
    pub(super) fn plugin(self) -> Result<PluginTemplate, CommandFailure> {
        if self.module_url.is_some() {
            needs(&self.module_sha256, "module-sha256", "module-url")?;
        }
        if self.module_sha256.is_some() {
            needs(&self.module_url, "module-url", "module-sha256")?;
        }
        let both = |name: &&String| self.native_names.contains(name);
        if let Some(name) = self.names.iter().find(both) {
            return Err(CommandFailure(format!(
                "--native-name {name}: found a name that --name has too, expected another: it decides which module a \
                 proxy gets"
            )));
        }
        let module = match (self.module_url, self.module_sha256) {
            (Some(url), Some(sha256)) => Module::Remote {
                url,
                sha256,
                cluster: self.module_cluster,
            },
            _ => Module::File(self.module),
        };
        Ok(PluginTemplate {
            names: self.names,
            module,
            vm_id: self.vm_id,
            on_crash: match self.on_crash {
                Crash::Reload => OnCrash::Reload,
                Crash::Open => OnCrash::Open,
                Crash::Close => OnCrash::Close,
            },
            reload_backoff: RELOAD_BACKOFF,
            native: NativeTemplate {
                names: self.native_names,
                module: NativeModule::parse(&self.native_module),
            },
        })
    }
}
