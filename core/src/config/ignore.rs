//! Health checks.
//!
//! A health check must see the upstream as it is, so a few checks at a time are never shed. A thousand cheap checks must not
//! make a dying upstream look healthy, so their outcomes do not count. Any caller can send the user-agent of a health
//! checker. So a user-agent is exempt only if the configuration names it, and beyond those few a check is an ordinary
//! request.

use super::pattern::{Pattern, without_query};
use super::reader::Section;
use super::schema;

/// Longest start of a user-agent, in bytes.
const MAX_AGENT_BYTES: usize = 128;

/// Which requests are exempt and not counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ignore {
    paths: Vec<Pattern>,
    user_agents: Vec<Box<str>>,
}

impl Ignore {
    /// Whether [`Self::matches`] uses the path.
    #[must_use]
    pub const fn needs_path(&self) -> bool {
        !self.paths.is_empty()
    }

    /// Whether [`Self::matches`] uses the user-agent.
    #[must_use]
    pub const fn needs_user_agent(&self) -> bool {
        !self.user_agents.is_empty()
    }

    /// Whether the request is exempt. An input that was not read is `None`.
    #[must_use]
    pub fn matches(&self, path: Option<&str>, user_agent: Option<&str>) -> bool {
        path.map(without_query)
            .is_some_and(|path| self.paths.iter().any(|pattern| pattern.matches(path)))
            || user_agent.is_some_and(|agent| {
                self.user_agents
                    .iter()
                    .any(|start| agent.starts_with(&**start))
            })
    }

    pub(super) fn read(s: &mut Section<'_>) -> Self {
        let agent = |text: &str| -> Option<Box<str>> {
            let fits = (1..=MAX_AGENT_BYTES).contains(&text.len());
            (fits && !text.chars().any(char::is_control)).then(|| text.into())
        };
        Self {
            paths: s
                .texts(
                    "paths",
                    schema::MAX_ENTRIES,
                    schema::PATH_EXPECTED,
                    Pattern::path,
                )
                .unwrap_or_default(),
            user_agents: s
                .texts(
                    "userAgents",
                    schema::MAX_ENTRIES,
                    schema::AGENT_EXPECTED,
                    agent,
                )
                .unwrap_or_default(),
        }
    }
}
