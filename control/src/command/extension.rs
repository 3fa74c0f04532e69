//! Policies as Istio's objects, for meshes without the control service.

use clap::{Args, ValueEnum};
use tidegate_control::advice::extension_texts;
use tidegate_control::kube::istio::IstioApi;
use tidegate_control::kube::settings::{Extension, FailStrategy, FilterPhase, ModuleVersions};

use super::{CommandFailure, output};

/// Set on each option: a heading of the group would also apply to the options after it.
const HEADING: &str = "Objects of Istio";

/// The options of commands that print policies.
#[derive(Debug, Args)]
pub(super) struct ExtensionOption {
    /// Write Istio's objects that load the filter, instead of policies; for meshes without the control service
    #[arg(long, value_enum, value_name = "API", requires = "extension_url", help_heading = HEADING)]
    extension_api: Option<ExtensionApi>,
    /// Where Istio's proxies fetch the module: oci://, https://, http:// or file://
    #[arg(long, value_name = "URL", requires = "extension_api", help_heading = HEADING)]
    extension_url: Option<String>,
    /// SHA-256 of that module, or the digest of the image; required unless the URL is a file or contains the digest
    #[arg(long, value_name = "HEX", requires = "extension_api", help_heading = HEADING)]
    extension_sha256: Option<String>,
    /// Secret, in the namespace of each object, for pulling the image
    #[arg(long, value_name = "NAME", requires = "extension_api", help_heading = HEADING)]
    extension_pull_secret: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ExtensionApi {
    /// Istio 1.30 and later
    TrafficExtension,
    /// Earlier versions of Istio
    WasmPlugin,
}

impl ExtensionOption {
    /// Whether objects are wanted instead of policies.
    pub(super) const fn is_wanted(&self) -> bool {
        self.extension_api.is_some()
    }

    /// Prints valid policies, or the objects that carry them.
    pub(super) fn print(&self, policies: &str) -> Result<(), CommandFailure> {
        let (Some(api), Some(url)) = (self.extension_api, &self.extension_url) else {
            return output::print(policies);
        };
        let extension = Extension {
            url: url.clone(),
            sha256: self.extension_sha256.clone(),
            pull_secret: self.extension_pull_secret.clone(),
            fail_strategy: FailStrategy::default(),
            phase: FilterPhase::default(),
            priority: 0,
            versions: ModuleVersions::default(),
        };
        let errors: Vec<String> = extension
            .errors()
            .iter()
            .map(|e| format!("--{e}"))
            .collect();
        if !errors.is_empty() {
            return Err(CommandFailure(errors.join("\n")));
        }
        let api = match api {
            ExtensionApi::TrafficExtension => IstioApi::TrafficExtension,
            ExtensionApi::WasmPlugin => IstioApi::WasmPlugin,
        };
        let made = extension_texts(policies, &extension, api).map_err(|problems| {
            let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
            CommandFailure(lines.join("\n"))
        })?;
        for note in &made.notes {
            output::note(note);
        }
        output::print(&made.text)
    }
}
