//! Whether Envoy took a pushed configuration.

use crate::envoy::admin::{Admin, AdminError};

/// Envoy's verdict on a pushed configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PushOutcome {
    /// It is in force.
    Accepted,
    /// It was rejected; the old one stays in force.
    Rejected,
}

/// How many configurations Envoy has accepted and rejected.
#[derive(Debug, Clone, Copy)]
pub(in crate::envoy) struct Verdicts {
    accepted: u64,
    rejected: u64,
}

impl Verdicts {
    pub(in crate::envoy) async fn read(admin: &Admin) -> Result<Self, AdminError> {
        let stats = admin.stats("extension_config_discovery").await?;
        let sum = |suffixes: &[&str]| {
            let hit = |name: &str| suffixes.iter().any(|suffix| name.ends_with(suffix));
            stats
                .iter()
                .filter(|(name, _)| hit(name))
                .map(|(_, value)| *value)
                .sum()
        };
        Ok(Self {
            accepted: sum(&[".config_reload"]),
            rejected: sum(&[".config_fail", ".update_rejected"]),
        })
    }

    pub(in crate::envoy) const fn since(self, before: Self) -> Option<PushOutcome> {
        if self.rejected > before.rejected {
            Some(PushOutcome::Rejected)
        } else if self.accepted > before.accepted {
            Some(PushOutcome::Accepted)
        } else {
            None
        }
    }
}
