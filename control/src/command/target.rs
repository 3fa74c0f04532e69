//! What `tidegate render` prints: the configuration itself, or Envoy's filter around it.

use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use tidegate_control::xds::{Module, NativeModule, PluginTemplate, USUAL_NAME};

use super::serve::{MODULE, NATIVE_MODULE};

/// The options for what surrounds a configuration.
#[derive(Debug, Args)]
pub(super) struct TargetOptions {
    /// Print an entry of Envoy's http_filters with the configuration in it, for an Envoy without the control service
    #[arg(long, value_enum, value_name = "KIND")]
    target: Option<FilterKind>,
    /// Where the proxy has the module [default: /etc/envoy/tidegate.wasm or /etc/envoy/libtidegate.so]. For the native one also
    /// the NAME of libNAME.so in the folder that ENVOY_DYNAMIC_MODULES_SEARCH_PATH names
    #[arg(long, value_name = "PATH|NAME", requires = "target")]
    module: Option<String>,
}

/// A kind of filter that Envoy can load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FilterKind {
    /// The WebAssembly module
    Wasm,
    /// The native module, a shared object
    Native,
}

impl TargetOptions {
    /// Whether Envoy's filter is wanted instead of the configuration itself.
    pub(super) const fn is_wanted(&self) -> bool {
        self.target.is_some()
    }

    /// The filter with this configuration; `None` if the configuration itself is wanted.
    pub(super) fn filter(&self, config: &str) -> Option<Value> {
        let module = self.module.as_deref();
        let plugin = PluginTemplate::usual(
            Module::File(module.unwrap_or(MODULE).to_owned()),
            NativeModule::parse(module.unwrap_or(NATIVE_MODULE)),
        );
        let typed_config = match self.target? {
            FilterKind::Wasm => plugin.json(config),
            FilterKind::Native => plugin.native.json(config),
        };
        Some(json!({"name": USUAL_NAME, "typed_config": typed_config}))
    }
}
