//! `tidegate render`.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Map, Value, json};
use tidegate_control::document::{documents, value_of, yaml};
use tidegate_control::policy::{CheckedPolicy, Policies, PolicyName, ProxyNode};
use tidegate_control::render::{PluginConfig, Rendered, render};

use super::output::{HEADING, OutputOption, table};
use super::target::TargetOptions;
use super::{CommandFailure, CommandOutcome, files, output};

/// Show the configuration that a proxy would get
///
/// With --node-id, --cluster or --metadata: the configuration of the proxy with this node, and the
/// policies that are overruled there. With --policy: the configuration of that policy's proxies. With
/// none of them: every policy with its version. With --target: what to put into Envoy's own configuration.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tidegate render policies/ --node-id edge-1 --cluster edge --metadata zone=eu-1a
  tidegate render policies/ --policy shop/checkout -o json
  tidegate render policies/ --policy shop/checkout --target native
  tidegate render policies/")]
pub(super) struct Render {
    /// Files, directories (their .yaml, .yml and .json files), or - for standard input
    #[arg(required = true, value_name = "FILE|DIR")]
    paths: Vec<PathBuf>,
    /// Node id of the proxy
    #[arg(long, value_name = "ID")]
    node_id: Option<String>,
    /// Node cluster of the proxy
    #[arg(long, value_name = "NAME")]
    cluster: Option<String>,
    /// Node metadata of the proxy: KEY=TEXT, or an object as JSON or YAML; may be repeated
    #[arg(long, value_name = "KEY=TEXT|OBJECT")]
    metadata: Vec<String>,
    /// This policy instead of a proxy: NAME or NAMESPACE/NAME
    #[arg(long, value_name = "NAME", conflicts_with_all = ["node_id", "cluster", "metadata"])]
    policy: Option<String>,
    #[command(flatten)]
    target: TargetOptions,
    #[command(flatten)]
    output: OutputOption,
}

impl Render {
    pub(super) fn run(&self) -> Result<CommandOutcome, CommandFailure> {
        let (_, gathered) = files::policies(&self.paths)?;
        if !gathered.problems.is_empty() {
            for problem in &gathered.problems {
                output::note(problem);
            }
            return Ok(CommandOutcome::Found);
        }
        let policies = &gathered.policies;
        if let Some(name) = &self.policy {
            let config = PluginConfig::of(find(policies, name)?);
            self.show(&Rendered {
                config: config.config,
                version: config.version,
                policy: Some(parse_name(name)),
                overruled: Vec::new(),
            })?;
        } else if self.node_id.is_none() && self.cluster.is_none() && self.metadata.is_empty() {
            if self.target.is_wanted() {
                return Err(CommandFailure(
                    "--target: expected one configuration: --policy NAME, or a proxy by --node-id, --cluster or --metadata"
                        .to_owned(),
                ));
            }
            self.list(policies)?;
        } else {
            self.show(&render(policies, &self.proxy()?))?;
        }
        Ok(CommandOutcome::Clean)
    }

    fn proxy(&self) -> Result<ProxyNode, CommandFailure> {
        let mut metadata = Map::new();
        for text in &self.metadata {
            metadata.extend(metadata_of(text)?);
        }
        Ok(ProxyNode {
            id: self.node_id.clone().unwrap_or_default(),
            cluster: self.cluster.clone().unwrap_or_default(),
            metadata,
        })
    }

    fn show(&self, rendered: &Rendered) -> Result<(), CommandFailure> {
        if let Some(filter) = self.target.filter(&rendered.config) {
            return self.output.print(&filter, || yaml(&filter));
        }
        let config: Value = serde_json::from_str(&rendered.config)
            .map_err(|error| CommandFailure(format!("the rendered configuration: {error}")))?;
        let policy = rendered.policy.as_ref().map(ToString::to_string);
        let overruled: Vec<String> = rendered.overruled.iter().map(ToString::to_string).collect();
        let value = json!({
            "policy": policy,
            "overruled": overruled,
            "version": rendered.version.as_str(),
            "digest": rendered.digest(),
            "config": config,
        });
        self.output.print(&value, || {
            let line = |name: &str, value: &str| format!("{HEADING}{name:<10}{HEADING:#}{value}\n");
            let none = "none matches: observe-mode defaults";
            [
                line("policy", policy.as_deref().unwrap_or(none)),
                line(
                    "overruled",
                    &if overruled.is_empty() {
                        "-".to_owned()
                    } else {
                        overruled.join(", ")
                    },
                ),
                line("version", rendered.version.as_str()),
                line("digest", &rendered.digest()),
                format!("{config:#}\n"),
            ]
            .concat()
        })
    }

    fn list(&self, policies: &Policies) -> Result<(), CommandFailure> {
        let rows: Vec<[String; 3]> = policies
            .iter()
            .map(|policy| {
                [
                    policy.name().to_string(),
                    PluginConfig::of(policy).version.to_string(),
                    policy.targets().to_string(),
                ]
            })
            .collect();
        let value = rows
            .iter()
            .map(|[policy, version, targets]| {
                json!({"policy": policy, "version": version, "targets": targets})
            })
            .collect();
        self.output
            .print(&value, || table(["POLICY", "VERSION", "TARGETS"], &rows))
    }
}

fn parse_name(text: &str) -> PolicyName {
    match text.split_once('/') {
        Some((namespace, name)) => PolicyName::new(Some(namespace.to_owned()), name.to_owned()),
        None => PolicyName::new(None, text.to_owned()),
    }
}

fn find<'a>(policies: &'a Policies, name: &str) -> Result<&'a CheckedPolicy, CommandFailure> {
    policies
        .get(&parse_name(name))
        .map(|policy| &**policy)
        .ok_or_else(|| {
            let known: Vec<String> = policies.iter().map(|p| p.name().to_string()).collect();
            CommandFailure(format!(
                "no policy {name}; known policies: {}",
                known.join(", ")
            ))
        })
}

fn metadata_of(text: &str) -> Result<Map<String, Value>, CommandFailure> {
    if !text.trim_start().starts_with('{') {
        return match text.split_once('=') {
            Some((key, value)) => Ok([(key.to_owned(), Value::from(value))].into_iter().collect()),
            None => Err(CommandFailure(format!(
                "--metadata {text}: expected KEY=TEXT or an object"
            ))),
        };
    }
    let (found, malformed) = documents(text.as_bytes());
    match (
        found.first().map(|document| value_of(document.root())),
        malformed,
    ) {
        (_, Some(error)) => Err(CommandFailure(format!("--metadata: {error}"))),
        (Some(Value::Object(object)), None) => Ok(object),
        _ => Err(CommandFailure(format!("--metadata {text}: not an object"))),
    }
}
