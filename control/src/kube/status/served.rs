//! The condition `Programmed` of a policy for standalone proxies.
//!
//! A replica knows only its own streams, but one replica writes the status for all. So it can say that a version is
//! rejected, but not that every proxy runs it.

use super::condition::ConditionState;
use super::reason::Reason;
use super::state::ReconcileState;
use crate::fleet::RejectedPolicy;
use crate::policy::CheckedPolicy;
use crate::render::PluginConfig;

const UNSEEN: &str = "connected standalone proxies receive it; /v1/proxies of each replica shows which have acknowledged it";

/// What the condition says; `off`: why every request passes.
pub(super) fn served(
    policy: &CheckedPolicy,
    state: &ReconcileState,
    off: Option<&str>,
) -> ConditionState {
    if let Some(rejected) = rejected(policy, state) {
        let message = format!(
            "proxies that reject it: {}, and none of this replica runs it: {}",
            rejected.proxies,
            rejected.message.replace(char::is_control, " ")
        );
        return ConditionState::no(Reason::Rejected, message);
    }
    match off {
        Some(off) => ConditionState::yes(Reason::Disabled, format!("{UNSEEN}; {off}")),
        None => ConditionState::yes(Reason::Served, UNSEEN),
    }
}

/// How the proxies reject this version of the policy; `None`: one of them runs it, or none has answered.
pub(super) fn rejected<'a>(
    policy: &CheckedPolicy,
    state: &'a ReconcileState,
) -> Option<&'a RejectedPolicy> {
    let rejected = state.rejected.get(policy.name())?;
    let wanted = PluginConfig::under(policy, state.shutoff.is_off()).version;
    // The streams are looked at some time after a change of the policy.
    (rejected.version == wanted).then_some(rejected)
}
