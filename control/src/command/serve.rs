//! `tidegate serve`.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use tidegate_control::net::{Allowed, TlsFiles};
use tidegate_control::rest::Token;
use tidegate_control::serve::{Service, Settings};
use tidegate_control::xds::{Module, OnCrash, Plugin};
use tidegate_core::config::parse_duration;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

use super::{Failure, Outcome};

/// Serve configuration to proxies by xDS, and take policies from a directory and by REST
///
/// Every option can be set by the environment as well. Standard error is the log, a JSON object a line.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tidegate serve --policies policies/ --module /etc/envoy/tidegate.wasm
  tidegate serve --state /var/lib/tidegate --token-file token --module /etc/envoy/tidegate.wasm

A proxy asks for its configuration under the name that --name says:
  http_filters:
  - name: tidegate
    config_discovery:
      config_source:
        api_config_source: {api_type: GRPC, transport_api_version: V3, grpc_services: [{envoy_grpc: {cluster_name: tidegate}}]}
        resource_api_version: V3
      type_urls: [type.googleapis.com/envoy.extensions.filters.http.wasm.v3.Wasm]")]
pub(super) struct Serve {
    /// Directory of policy files (.yaml, .yml, .json), watched
    #[arg(long, value_name = "DIR", env = "TIDEGATE_POLICIES")]
    policies: Option<PathBuf>,
    /// Directory in which policies are stored that come by REST
    #[arg(long, value_name = "DIR", env = "TIDEGATE_STATE")]
    state: Option<PathBuf>,
    /// Longest time until changed policy files or certificates are seen that the system does not tell of
    #[arg(long, value_name = "TIME", env = "TIDEGATE_RESCAN", default_value = "5s", value_parser = time)]
    rescan: Duration,
    /// Where proxies connect
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "TIDEGATE_XDS_LISTEN",
        default_value = "127.0.0.1:18000"
    )]
    xds_listen: SocketAddr,
    /// Where REST, metrics and the page are
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "TIDEGATE_HTTP_LISTEN",
        default_value = "127.0.0.1:18080"
    )]
    http_listen: SocketAddr,
    /// Most connections of proxies at once
    #[arg(
        long,
        value_name = "N",
        env = "TIDEGATE_MAX_PROXIES",
        default_value_t = 10_000
    )]
    max_proxies: usize,
    /// How long connections may take to end on shutdown
    #[arg(long, value_name = "TIME", env = "TIDEGATE_GRACE", default_value = "5s", value_parser = time)]
    grace: Duration,
    /// Form of the log
    #[arg(long, value_enum, env = "TIDEGATE_LOG_FORMAT", default_value_t)]
    log_format: LogFormat,
    /// What is logged: a level, or levels by target
    #[arg(
        long,
        value_name = "FILTER",
        env = "TIDEGATE_LOG",
        default_value = "info"
    )]
    log: String,
    #[command(flatten)]
    security: Security,
    #[command(flatten)]
    filter: Filter,
}

/// Who may come in.
#[derive(Debug, Args)]
#[command(next_help_heading = "Security")]
struct Security {
    /// Certificate of the service (PEM), read again when it changes
    #[arg(
        long,
        value_name = "FILE",
        env = "TIDEGATE_TLS_CERT",
        requires = "tls_key"
    )]
    tls_cert: Option<PathBuf>,
    /// Its private key (PEM)
    #[arg(
        long,
        value_name = "FILE",
        env = "TIDEGATE_TLS_KEY",
        requires = "tls_cert"
    )]
    tls_key: Option<PathBuf>,
    /// Authorities (PEM) whose clients may come in; without it clients show no certificate
    #[arg(
        long,
        value_name = "FILE",
        env = "TIDEGATE_TLS_CLIENT_CA",
        requires = "tls_cert"
    )]
    tls_client_ca: Option<PathBuf>,
    /// Names (SPIFFE ids or DNS names, * for any text) of clients that may come in; none given: all
    #[arg(
        long = "allow-client",
        value_name = "NAME",
        env = "TIDEGATE_ALLOW_CLIENT",
        value_delimiter = ',',
        requires = "tls_client_ca"
    )]
    allow_clients: Vec<String>,
    /// Serve plaintext on addresses that others can reach
    #[arg(long, env = "TIDEGATE_ALLOW_PLAINTEXT")]
    allow_plaintext: bool,
    /// File with the bearer token for changing policies
    #[arg(long, value_name = "FILE", env = "TIDEGATE_TOKEN_FILE")]
    token_file: Option<PathBuf>,
}

/// What surrounds the configuration at the proxies.
#[derive(Debug, Args)]
#[command(next_help_heading = "Filter")]
struct Filter {
    /// Path of the module on the proxies' machines
    #[arg(
        long,
        value_name = "PATH",
        env = "TIDEGATE_MODULE",
        default_value = "/etc/envoy/tidegate.wasm"
    )]
    module: String,
    /// URL from which proxies fetch the module instead
    #[arg(
        long,
        value_name = "URL",
        env = "TIDEGATE_MODULE_URL",
        requires = "module_sha256"
    )]
    module_url: Option<String>,
    /// SHA-256 of the module behind the URL
    #[arg(
        long,
        value_name = "HEX",
        env = "TIDEGATE_MODULE_SHA256",
        requires = "module_url"
    )]
    module_sha256: Option<String>,
    /// The proxies' cluster that leads to the URL's host
    #[arg(
        long,
        value_name = "NAME",
        env = "TIDEGATE_MODULE_CLUSTER",
        default_value = "tidegate-module"
    )]
    module_cluster: String,
    /// Name of the filter, under which proxies ask for its configuration
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
enum LogFormat {
    /// A JSON object a line
    #[default]
    Json,
    /// For people
    Text,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Crash {
    /// They fail until there is a fresh VM, a second later
    #[default]
    Reload,
    /// They pass without the filter
    Open,
    /// They fail
    Closed,
}

/// First wait before a crashed VM is replaced.
const RELOAD_BACKOFF: Duration = Duration::from_secs(1);

impl Serve {
    pub(super) fn run(self) -> Result<Outcome, Failure> {
        self.log()?;
        let settings = self.settings()?;
        let runtime = tokio::runtime::Runtime::new()
            .map_err(|error| Failure(format!("cannot start threads: {error}")))?;
        runtime.block_on(serve(settings))?;
        Ok(Outcome::Well)
    }

    fn log(&self) -> Result<(), Failure> {
        let filter =
            EnvFilter::try_new(&self.log).map_err(|error| Failure(format!("--log: {error}")))?;
        let log = tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_writer(std::io::stderr);
        match self.log_format {
            LogFormat::Json => log.json().flatten_event(true).init(),
            LogFormat::Text => log.init(),
        }
        Ok(())
    }

    fn settings(self) -> Result<Settings, Failure> {
        if self.policies.is_none() && self.state.is_none() {
            let expected = "expected --policies DIR, --state DIR, or both";
            return Err(Failure(format!("no source of policies: {expected}")));
        }
        let (tls, allowed, token) = self.security.read()?;
        Ok(Settings {
            policies: self.policies,
            state: self.state,
            rescan: self.rescan,
            xds: self.xds_listen,
            http: self.http_listen,
            tls,
            allowed,
            allow_plaintext: self.security.allow_plaintext,
            token,
            max_proxies: self.max_proxies,
            grace: self.grace,
            plugin: self.filter.plugin(),
        })
    }
}

impl Security {
    fn read(&self) -> Result<(Option<TlsFiles>, Allowed, Option<Token>), Failure> {
        let files = self.tls_cert.clone().zip(self.tls_key.clone());
        let tls = files.map(|(certificate, key)| TlsFiles {
            certificate,
            key,
            client_authorities: self.tls_client_ca.clone(),
        });
        let allowed = Allowed::parse(&self.allow_clients).map_err(|name| {
            Failure(format!(
                "--allow-client: found {name:?}, expected a name with at most a few *"
            ))
        })?;
        let token = self.token_file.as_ref().map(|path| {
            let text = fs::read_to_string(path)
                .map_err(|error| Failure(format!("{}: {error}", path.display())))?;
            Token::new(&text).ok_or_else(|| {
                Failure(format!(
                    "{}: expected a token of 16 bytes or more",
                    path.display()
                ))
            })
        });
        Ok((tls, allowed, token.transpose()?))
    }
}

impl Filter {
    fn plugin(self) -> Plugin {
        let module = match (self.module_url, self.module_sha256) {
            (Some(url), Some(sha256)) => Module::Remote {
                url,
                sha256,
                cluster: self.module_cluster,
            },
            _ => Module::File(self.module),
        };
        Plugin {
            names: self.names,
            module,
            vm_id: self.vm_id,
            on_crash: match self.on_crash {
                Crash::Reload => OnCrash::Reload,
                Crash::Open => OnCrash::Open,
                Crash::Closed => OnCrash::Closed,
            },
            reload_backoff: RELOAD_BACKOFF,
        }
    }
}

async fn serve(settings: Settings) -> Result<(), Failure> {
    let signals = [SignalKind::terminate(), SignalKind::interrupt()].map(signal);
    let [Ok(mut terminate), Ok(mut interrupt)] = signals else {
        return Err(Failure("cannot listen for signals".to_owned()));
    };
    let service = Service::start(settings)
        .await
        .map_err(|error| Failure(error.to_string()))?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    service.stop().await;
    Ok(())
}

/// A duration in the words of the configuration.
fn time(text: &str) -> Result<Duration, String> {
    parse_duration(text).ok_or_else(|| "expected a time such as 250ms, 5s or 1m".to_owned())
}
