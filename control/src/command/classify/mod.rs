//! `tidegate classify`.

mod table;

use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::{ArgGroup, Args};
use serde_json::{Value, json};
use tidegate_control::policy::{CheckedPolicy, Policies};
use tidegate_core::config::{Config, CriticalityInputs, KeyBy, UpstreamName};
use tidegate_core::{Criticality, ServiceName, cohort_key, cohort_of, cohort_secret};

use super::node::{NodeOptions, find, names};
use super::output::OutputOption;
use super::{CommandFailure, CommandOutcome, files, output};

/// The header in which proxies count attempts.
const ATTEMPTS: &str = "x-envoy-attempt-count";

/// Show how the filter classifies a request: upstream, policy, class, cohort and exemption
///
/// The command reads the configuration with the filter's own code. It needs neither a proxy nor the control service.
/// Of several policies, choose one by --policy-name, or as the proxy of a node by --node-id, --cluster or --metadata.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("source").args(["config", "policy"]).required(true)))]
#[command(after_help = "Examples:
  tidegate classify --policy checkout.yaml --method POST --path /pay/1
  tidegate classify --policy policies/ --policy-name shop/checkout --path /pay/1
  tidegate classify --policy policies/ --node-id edge-1 --cluster edge --path /pay/1
  tidegate classify --config tidegate.json --path /report --header 'x-criticality: sheddable'
  tidegate classify --policy checkout.yaml --upstream 'outbound|80||payments.shop.svc.cluster.local' -o json")]
pub(super) struct Classify {
    /// Configuration of the filter (JSON or YAML)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["policy_name", "node_id", "cluster", "metadata"])]
    config: Option<PathBuf>,
    /// Policies: a file, a directory (its .yaml, .yml and .json files), or - for standard input
    #[arg(long, value_name = "FILE|DIR")]
    policy: Option<PathBuf>,
    /// The policy that counts: NAME or NAMESPACE/NAME
    #[arg(long, value_name = "NAME", conflicts_with_all = ["node_id", "cluster", "metadata"])]
    policy_name: Option<String>,
    #[command(flatten)]
    node: NodeOptions,
    /// Envoy's cluster that the request is routed to
    #[arg(long, value_name = "CLUSTER", default_value = "upstream")]
    upstream: String,
    /// Envoy's route
    #[arg(long, value_name = "NAME")]
    route: Option<String>,
    /// Method of the request
    #[arg(long, value_name = "METHOD", default_value = "GET")]
    method: String,
    /// Path of the request; its query is ignored
    #[arg(long, value_name = "PATH", default_value = "/")]
    path: String,
    /// A header of the request; may be repeated
    #[arg(long = "header", value_name = "NAME: VALUE")]
    headers: Vec<String>,
    /// URI in the client's certificate
    #[arg(long, value_name = "URI")]
    client_identity: Option<String>,
    #[command(flatten)]
    output: OutputOption,
}

/// A request as its headers describe it.
struct ClassifiedRequest<'a> {
    command: &'a Classify,
    headers: Vec<(String, String)>,
}

impl Classify {
    pub(super) fn run(&self) -> Result<CommandOutcome, CommandFailure> {
        let Some((policy, config)) = self.read()? else {
            return Ok(CommandOutcome::Found);
        };
        let headers: Result<Vec<_>, CommandFailure> =
            self.headers.iter().map(|text| header(text)).collect();
        let request = ClassifiedRequest {
            command: self,
            headers: headers?,
        };
        let mut value = request.classify(&config);
        if let Some(part) = value.get_mut("policy").and_then(Value::as_object_mut) {
            part.insert("name".to_owned(), json!(policy));
        }
        self.output.print(&value, || table::text(&value))?;
        Ok(CommandOutcome::Clean)
    }

    /// The configuration and the name of its policy, if it is from one; `None` if it has errors, which are printed.
    fn read(&self) -> Result<Option<(Option<String>, Config)>, CommandFailure> {
        let Some(path) = &self.config else {
            let paths: Vec<PathBuf> = self.policy.iter().cloned().collect();
            let (_, gathered) = files::policies(&paths)?;
            for problem in &gathered.problems {
                output::note(problem);
            }
            if !gathered.problems.is_empty() {
                return Ok(None);
            }
            let policy = self.chosen(&gathered.policies)?;
            let name = policy.name().to_string();
            return Ok(Some((Some(name), policy.config().clone())));
        };
        let texts = files::texts(std::slice::from_ref(path))?;
        let bytes = texts.first().map(|(_, bytes)| bytes.as_slice());
        match Config::from_json(&as_json(bytes.unwrap_or_default())?) {
            Ok(config) => Ok(Some((None, config))),
            Err(errors) => {
                for line in errors.to_string().lines() {
                    output::note(&format_args!("{}: {line}", path.display()));
                }
                Ok(None)
            }
        }
    }

    /// The policy that is named, that wins the proxy that is named, or that is the only one.
    fn chosen<'a>(&self, policies: &'a Policies) -> Result<&'a CheckedPolicy, CommandFailure> {
        if let Some(name) = &self.policy_name {
            return find(policies, name);
        }
        let known = names(policies);
        if let Some(proxy) = self.node.proxy()? {
            let claims = policies.claims(&proxy);
            let winner = claims
                .first()
                .and_then(|claim| policies.get(claim.policy()));
            return winner.map(|policy| &**policy).ok_or_else(|| {
                CommandFailure(format!(
                    "no policy matches this proxy; known policies: {known}"
                ))
            });
        }
        let mut all = policies.iter();
        match (all.next(), all.next()) {
            (Some(policy), None) => Ok(policy),
            (None, _) => Err(CommandFailure(
                "--policy: found no policy, expected one".to_owned(),
            )),
            (Some(_), Some(_)) => Err(CommandFailure(format!(
                "--policy: found several policies, expected --policy-name with one of: {known}"
            ))),
        }
    }
}

/// JSON unchanged, YAML converted to JSON.
fn as_json(bytes: &[u8]) -> Result<Vec<u8>, CommandFailure> {
    if bytes.trim_ascii_start().starts_with(b"{") {
        return Ok(bytes.to_vec());
    }
    let (found, malformed) = tidegate_control::document::documents(bytes);
    if let Some(error) = malformed {
        return Err(CommandFailure(format!("--config: {error}")));
    }
    let value = found.first().map_or(Value::Null, |document| {
        tidegate_control::document::value_of(document.root())
    });
    Ok(value.to_string().into_bytes())
}

impl ClassifiedRequest<'_> {
    fn value(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    fn classify(&self, config: &Config) -> Value {
        let command = self.command;
        let cluster = command.upstream.as_str();
        let name = UpstreamName {
            service: ServiceName::parse(cluster).host,
            cluster,
            route: command.route.as_deref(),
        };
        let (rule, policy) = config.policy_for(&name);
        let key_by = policy.key_by().resolve(cluster);
        json!({
            "upstream": {
                "cluster": cluster,
                "service": name.service,
                "route": command.route.as_deref().filter(|_| config.needs_route()),
                "state": match key_by {
                    KeyBy::Authority => "one for each destination that requests name",
                    KeyBy::Nothing => "none: its requests pass without a decision",
                    KeyBy::Auto | KeyBy::Cluster => "one for the cluster",
                },
            },
            "policy": {
                "rule": rule.to_string(),
                "enabled": config.enabled(),
                "mode": policy.mode().name(),
                "enforcement": policy.enforcement().as_f64(),
                "quantile": policy.slo().latency_quantile().as_f64(),
                "targetMillis": millis(policy.slo().latency_target()),
            },
            "class": self.class(config),
            "retry": self.is_retry(),
            "waitMillis": config.deadline().time_left(|name| self.value(name).map(str::to_owned)).map(millis),
            "cohort": self.cohort(config),
            "exempt": self.exemption(config),
        })
    }

    fn class(&self, config: &Config) -> Value {
        let rules = config.criticality();
        let inputs = CriticalityInputs {
            path: Some(&self.command.path),
            method: Some(&self.command.method),
            client_identity: self.command.client_identity.as_deref(),
        };
        let header = rules.header();
        let sent = header.and_then(|name| self.value(name));
        let class = rules.classify(sent, &inputs);
        let by = match (sent.and_then(Criticality::from_header), header) {
            (Some(_), Some(header)) => format!("header {header}"),
            _ => rules.rule_for(&inputs).map_or_else(
                || "default".to_owned(),
                |index| format!("criticality.rules[{index}]"),
            ),
        };
        json!({"name": class.name(), "by": by})
    }

    /// Whether the request is a retry, by the filter's rule.
    fn is_retry(&self) -> bool {
        let attempt = self.value(ATTEMPTS);
        let attempt = attempt.and_then(|value| value.trim_ascii().parse::<u32>().ok());
        attempt.is_some_and(|attempt| attempt > 1)
    }

    fn cohort(&self, config: &Config) -> Value {
        let rules = config.criticality();
        let Some(header) = rules.cohort_header() else {
            return Value::Null;
        };
        let caller = self.value(header);
        // Without a key in the configuration, each proxy draws its own, which only its workers know.
        let place = caller.zip(rules.cohort_key()).map(|(caller, key)| {
            let now = SystemTime::now().duration_since(UNIX_EPOCH);
            let key = cohort_key(cohort_secret(key), now.unwrap_or_default());
            f64::from(cohort_of(caller, key)) / f64::from(u32::MAX)
        });
        json!({"header": header, "caller": caller, "place": place})
    }

    fn exemption(&self, config: &Config) -> Value {
        let ignore = config.ignore();
        let by_path = ignore.matches(Some(&self.command.path), None);
        let by_agent = ignore.matches(None, self.value("user-agent"));
        match (config.enabled(), by_path, by_agent) {
            (false, ..) => Value::from("enabled is false: every request passes"),
            (true, true, _) => Value::from("ignore.paths: it passes without a decision"),
            (true, false, true) => Value::from(
                "ignore.userAgents: one such request at a time in each worker is admitted where others are shed",
            ),
            (true, false, false) => Value::Null,
        }
    }
}

fn header(text: &str) -> Result<(String, String), CommandFailure> {
    let split = text.split_once(':').or_else(|| text.split_once('='));
    match split {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_ascii_lowercase(), value.trim().to_owned()))
        }
        _ => Err(CommandFailure(format!(
            "--header {text}: expected NAME: VALUE"
        ))),
    }
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
