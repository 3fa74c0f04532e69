//! `tidegate serve`: one file per group of options.

mod file;
mod filter;
mod kubernetes;
mod log;
mod print;
mod security;
mod traffic;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{ArgMatches, Args, Command};
use tidegate_control::net::PATIENCE;
use tidegate_control::serve::{ControlService, ServeSettings};
use tidegate_core::config::parse_duration;
use tokio::signal::unix::{SignalKind, signal};

use super::{CommandFailure, CommandOutcome, output};
pub(super) use filter::{MODULE, NATIVE_MODULE};

use filter::Filter;
use kubernetes::Kubernetes;
use log::ServiceLog;
use security::Security;
use traffic::Traffic;

/// Serve configuration to proxies by xDS, with policies from a directory, REST or Kubernetes
///
/// Every option can also be set by an environment variable or in a settings file: the command line takes precedence
/// over the environment, and the environment over the file. The log goes to standard error, one JSON object per line.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tidegate serve --policies policies/ --module /etc/envoy/tidegate.wasm
  tidegate serve --state /var/lib/tidegate --token-file token --module /etc/envoy/tidegate.wasm
  tidegate serve --kubernetes --extension-url oci://registry.example.com/tidegate/filter:0.1.0 --extension-sha256 0123...
  tidegate serve --policies policies/ --prometheus http://127.0.0.1:9090
  tidegate serve --print-settings > settings.yaml

A proxy requests its configuration under the name given by --name:
  http_filters:
  - name: tidegate
    config_discovery:
      config_source:
        api_config_source: {api_type: GRPC, transport_api_version: V3, grpc_services: [{envoy_grpc: {cluster_name: tidegate}}]}
        resource_api_version: V3
      type_urls: [type.googleapis.com/envoy.extensions.filters.http.wasm.v3.Wasm]
      apply_default_config_without_warming: true
      default_config:  # in force until the control service answers
        '@type': type.googleapis.com/envoy.extensions.filters.http.wasm.v3.Wasm
        config:
          name: tidegate
          root_id: tidegate
          failure_policy: FAIL_OPEN
          vm_config:
            vm_id: tidegate
            runtime: envoy.wasm.runtime.v8
            code: {local: {filename: /etc/envoy/tidegate.wasm}}
          configuration:
            '@type': type.googleapis.com/google.protobuf.StringValue
            value: '{\"mode\":\"observe\",\"slo\":{\"latency\":{\"quantile\":0.99,\"target\":\"1s\"}}}'
Without default_config, an Envoy that starts while the control service is away answers every request with 500.
For the native module, the name is that of --native-name, and both types are
envoy.extensions.filters.http.dynamic_modules.v3.DynamicModuleFilter; docs/install/native.md has its default_config.")]
pub(super) struct Serve {
    /// Settings file (YAML); its keys are the names of these options in camelCase, without dashes
    #[arg(long, value_name = "FILE", env = "TIDEGATE_SETTINGS")]
    settings: Option<PathBuf>,
    /// Print the settings in force as a settings file, with the origin of each, and exit
    #[arg(long)]
    print_settings: bool,
    /// Directory of policy files (.yaml, .yml, .json), watched
    #[arg(long, value_name = "DIR", env = "TIDEGATE_POLICIES")]
    policies: Option<PathBuf>,
    /// Directory for policies that are sent by REST
    #[arg(long, value_name = "DIR", env = "TIDEGATE_STATE")]
    state: Option<PathBuf>,
    /// Turn all policies off: every request passes, and nothing is counted; `tidegate disable --all` does it without a restart
    #[arg(long, env = "TIDEGATE_DISABLED")]
    disabled: bool,
    /// Interval at which files (policies, certificates, lists, token) are read again
    #[arg(long, value_name = "TIME", env = "TIDEGATE_RESCAN", default_value = "5s", value_parser = time)]
    rescan: Duration,
    /// Address for proxies
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "TIDEGATE_XDS_LISTEN",
        default_value = "127.0.0.1:18000"
    )]
    xds_listen: SocketAddr,
    /// Address for REST, metrics and the status page
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "TIDEGATE_HTTP_LISTEN",
        default_value = "127.0.0.1:18080"
    )]
    http_listen: SocketAddr,
    /// Address for health checks (/healthz, /readyz), in plaintext
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "TIDEGATE_HEALTH_LISTEN",
        default_value = "127.0.0.1:18081"
    )]
    health_listen: SocketAddr,
    /// Most concurrent connections of proxies
    #[arg(
        long,
        value_name = "N",
        env = "TIDEGATE_MAX_PROXIES",
        default_value_t = 10_000
    )]
    max_proxies: usize,
    /// Most concurrent connections of one address, per port, and most of its discovery streams
    #[arg(
        long,
        value_name = "N",
        env = "TIDEGATE_MAX_PER_PEER",
        default_value_t = 100
    )]
    max_per_peer: usize,
    /// How long connections may take to end on shutdown
    #[arg(long, value_name = "TIME", env = "TIDEGATE_GRACE", default_value = "5s", value_parser = time)]
    grace: Duration,
    #[command(flatten)]
    log: ServiceLog,
    #[command(flatten)]
    security: Security,
    #[command(flatten)]
    filter: Filter,
    #[command(flatten)]
    kubernetes: Kubernetes,
    #[command(flatten)]
    traffic: Traffic,
}

impl Serve {
    /// The settings file that the command line or the environment names.
    pub(super) fn file(matches: &ArgMatches) -> Option<&PathBuf> {
        matches.get_one(file::FLAG)
    }

    /// The values in a settings file.
    pub(super) fn defaults(
        grammar: &Command,
        path: &Path,
    ) -> Result<Vec<file::Setting>, CommandFailure> {
        file::defaults(grammar, path)
    }

    /// The grammar of this command with these defaults.
    pub(super) fn with(grammar: Command, defaults: Vec<file::Setting>) -> Command {
        file::with(grammar, defaults)
    }

    /// Serves until a signal stops it. `command` is its grammar, `matches` is the parsed command line.
    pub(super) fn run(
        self,
        command: &Command,
        matches: &ArgMatches,
    ) -> Result<CommandOutcome, CommandFailure> {
        if self.print_settings {
            output::print(&print::settings(command, matches))?;
            return Ok(CommandOutcome::Clean);
        }
        let runtime = tokio::runtime::Runtime::new()
            .map_err(|error| CommandFailure(format!("cannot start threads: {error}")))?;
        let _entered = runtime.enter();
        let traces = self.log.begin()?;
        let served = self
            .settings()
            .and_then(|settings| runtime.block_on(serve(settings)));
        if let Some(traces) = traces {
            traces.stop();
        }
        served.map(|()| CommandOutcome::Clean)
    }

    fn settings(self) -> Result<ServeSettings, CommandFailure> {
        let kubernetes = self.kubernetes.settings()?;
        if self.policies.is_none() && self.state.is_none() && kubernetes.is_none() {
            let expected = "expected --policies DIR, --state DIR, --kubernetes, or several";
            return Err(CommandFailure(format!("no source of policies: {expected}")));
        }
        let allow_plaintext = self.security.allow_plaintext;
        Ok(ServeSettings {
            policies: self.policies,
            state: self.state,
            disabled: self.disabled,
            kubernetes,
            traffic: self.traffic.settings()?,
            rescan: self.rescan,
            xds: self.xds_listen,
            http: self.http_listen,
            health: self.health_listen,
            files: self.security.files()?,
            allow_plaintext,
            max_proxies: self.max_proxies,
            max_per_peer: self.max_per_peer,
            patience: PATIENCE,
            grace: self.grace,
            plugin: self.filter.plugin()?,
        })
    }
}

async fn serve(settings: ServeSettings) -> Result<(), CommandFailure> {
    let signals = [SignalKind::terminate(), SignalKind::interrupt()].map(signal);
    let [Ok(mut terminate), Ok(mut interrupt)] = signals else {
        return Err(CommandFailure("cannot listen for signals".to_owned()));
    };
    let service = ControlService::start(settings)
        .await
        .map_err(|error| CommandFailure(error.to_string()))?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    service.stop().await;
    Ok(())
}

/// Checks that `option` is set if `given` is; clap's own check does not know the settings file.
fn needs<T>(option: &Option<T>, name: &str, given: &str) -> Result<(), CommandFailure> {
    match option {
        Some(_) => Ok(()),
        None => Err(CommandFailure(format!("--{given} needs --{name}"))),
    }
}

/// Parses a duration like the configuration does.
fn time(text: &str) -> Result<Duration, String> {
    parse_duration(text).ok_or_else(|| "expected a time such as 250ms, 5s or 1m".to_owned())
}
