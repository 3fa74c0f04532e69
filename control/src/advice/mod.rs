//! Advice from the service graph and from what is configured. This module reads the files and writes policies as text;
//! [`tidegate_advise`] computes the advice. Nothing is ever applied.

mod cluster;
mod extensions;
mod in_force;
mod policies;
mod settings;
mod virtual_service;

pub use cluster::promised_for;
pub use extensions::{ExtensionTexts, extension_texts, read_made};
pub(crate) use in_force::rule_for_host;
pub use in_force::{advised, compared, out_of_reach, policies_for};
pub use policies::{AdvicePlacement, PolicyTexts, left_out, policy_texts};
pub use settings::MeshSettings;
