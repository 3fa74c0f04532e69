//! The options for everything around the configuration at the proxies.

use std::time::Duration;

use clap::{Args, ValueEnum};
use tidegate_control::xds::{Module, OnCrash, PluginTemplate};

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
        default_value = "/etc/envoy/tidegate.wasm"
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
    /// Name of the filter, under which proxies request its configuration
    #[arg(
        long = "name",
        value_name = "NAME",
        env = "TIDEGATE_NAMES",
        value_delimiter = ',',
        default_value = "tidegate"
    )]
    names: Vec<String>,
    /// Plugins with the same id share a VM
    #[arg(
        long,
        value_name = "ID",
        env = "TIDEGATE_VM_ID",
        default_value = "tidegate"
    )]
    vm_id: String,
    /// What happens to requests when the VM has crashed
    #[arg(long, value_enum, env = "TIDEGATE_ON_CRASH", default_value_t)]
    on_crash: Crash,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Crash {
    /// They fail until the VM is replaced, a second later
    #[default]
    Reload,
    /// They pass without the filter
    Open,
    /// They fail
    Closed,
}

/// First wait before a crashed VM is replaced.
const RELOAD_BACKOFF: Duration = Duration::from_secs(1);

impl Filter {
    pub(super) fn plugin(self) -> Result<PluginTemplate, CommandFailure> {
        if self.module_url.is_some() {
            needs(&self.module_sha256, "module-sha256", "module-url")?;
        }
        if self.module_sha256.is_some() {
            needs(&self.module_url, "module-url", "module-sha256")?;
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
                Crash::Closed => OnCrash::Closed,
            },
            reload_backoff: RELOAD_BACKOFF,
        })
    }
}
