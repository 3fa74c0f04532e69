//! Gathers the metadata of a run that is about to begin from this machine.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::process::Command;

use tidegate_testbed::{about, envoy};

use super::info::UNKNOWN;
use super::{Extent, Parameter, RunInfo, Tool};
use crate::tool;

/// Metadata of a run that only the runner knows.
#[derive(Debug, Clone)]
pub struct Circumstances {
    /// Name of the run.
    pub run: String,
    /// The requested part of the matrix.
    pub extent: Extent,
    /// Settings from the command line, and others that apply to all cells.
    pub parameters: BTreeMap<String, Parameter>,
    /// Cells of each study, repetitions included.
    pub planned: BTreeMap<String, usize>,
    /// The tools that take part.
    pub tools: Vec<Tool>,
}

/// Why the metadata of a run could not be gathered.
#[derive(Debug, thiserror::Error)]
pub enum GatherError {
    /// The module does not exist.
    #[error("read {} (`make module` builds it)", path.display())]
    Module {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A tool is missing or does not print its version.
    #[error("{} does not say its version: run `ci/load.sh`", path.display())]
    Tool {
        /// The program.
        path: PathBuf,
    },
}

impl Circumstances {
    /// Gathers everything else from the machine, the working copy and the tools.
    ///
    /// # Errors
    /// When the module or a tool is missing.
    pub fn gather(self) -> Result<RunInfo, GatherError> {
        let facts = about::metadata();
        let fact = |name: &str| {
            facts
                .get(name)
                .cloned()
                .unwrap_or_else(|| UNKNOWN.to_owned())
        };
        let mut versions: BTreeMap<String, String> = ["tidegate", "envoy"]
            .map(|name| (name.to_owned(), fact(name)))
            .into();
        for tool in &self.tools {
            if let Some(program) = tool.program() {
                versions.insert(program.to_owned(), version(*tool, program)?);
            }
        }
        let module_sha256 = about::module_sha256().map_err(|source| GatherError::Module {
            path: envoy::release_module(),
            source,
        })?;
        Ok(RunInfo {
            run: self.run,
            machine: fact("processor"),
            cores: fact("cores").parse().unwrap_or(0),
            kernel: fact("kernel"),
            versions,
            module_sha256,
            commit: fact("commit"),
            date: fact("date"),
            extent: self.extent,
            parameters: self.parameters,
            planned: self.planned,
        })
    }
}

/// The version that a tool prints.
fn version(kind: Tool, name: &str) -> Result<String, GatherError> {
    let path = tool::path(name);
    let output = Command::new(&path)
        .arg("version")
        .output()
        .ok()
        .filter(|output| output.status.success());
    let said = output
        .map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
        .unwrap_or_default();
    version_of(kind, &said).ok_or(GatherError::Tool { path })
}

/// The version in a tool's output: `k6 v1.8.1 (go1.26.8, linux/amd64)`, or the first word for the others.
fn version_of(tool: Tool, said: &str) -> Option<String> {
    let word = match tool {
        Tool::K6 => said.split_whitespace().nth(1),
        Tool::Fortio | Tool::Testbed => said.split_whitespace().next(),
    };
    word.map(|word| word.trim_start_matches('v').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_picked_out() {
        let k6 = "k6 v1.8.1 (go1.26.8, linux/amd64)\nExtensions: none";
        assert_eq!(version_of(Tool::K6, k6).as_deref(), Some("1.8.1"));
        assert_eq!(
            version_of(Tool::Fortio, "1.75.3\n").as_deref(),
            Some("1.75.3")
        );
        assert_eq!(version_of(Tool::Fortio, ""), None);
    }
}
