//! `tidegate render`.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};
use tidegate_control::document::yaml;
use tidegate_control::policy::Policies;
use tidegate_control::render::{PluginConfig, Rendered, render};

use super::node::{NodeOptions, find, parse_name};
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
    #[command(flatten)]
    node: NodeOptions,
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
        } else if let Some(proxy) = self.node.proxy()? {
            self.show(&render(policies, &proxy))?;
        } else {
            if self.target.is_wanted() {
                return Err(CommandFailure(
                    "--target: expected one configuration: --policy NAME, or a proxy by --node-id, --cluster or --metadata"
                        .to_owned(),
                ));
            }
            self.list(policies)?;
        }
        Ok(CommandOutcome::Clean)
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
