//! What is told of a policy, from how it stands.

use super::condition::{Account, Reason, Verdict};
use super::held::Held;
use super::outlook::{Outlook, Standing};
use super::refusal::Cause;
use crate::policy::{Contest, Extent, Policy, Targets};
use crate::render::PluginConfig;
use crate::resource::OverruledTarget;

/// What is told of `held`.
#[must_use]
pub(super) fn account(held: &Held, outlook: &Outlook) -> Account {
    let accepted = match &held.errors {
        None if outlook.barred.is_some() => barred(outlook),
        None => Verdict::yes(Reason::Accepted, "the policy is sound"),
        Some(errors) => Verdict::no(Reason::Invalid, errors.to_string().replace('\n', "; ")),
    };
    let whole = outlook
        .contests
        .iter()
        .filter(|c| c.extent == Extent::Whole);
    Account {
        accepted,
        programmed: programmed(held, outlook),
        conflicted: conflicted(outlook),
        version: version(held, outlook),
        overruled: whole
            .map(|contest| OverruledTarget {
                target: contest.target.clone(),
                by: contest.winner.to_string(),
            })
            .collect(),
    }
}

fn is_for_proxies(policy: &Policy) -> bool {
    matches!(policy.targets(), Targets::Proxies(_))
}

/// That it names standalone proxies from a namespace that may not.
fn barred(outlook: &Outlook) -> Verdict {
    let problem = outlook.barred.as_ref();
    let words = problem.map(|problem| {
        let (path, found, expected) = (&problem.path, &problem.found, &problem.expected);
        format!("{path}: found {found}, expected {expected}")
    });
    Verdict::no(Reason::ProxiesNotAllowed, words.unwrap_or_default())
}

fn programmed(held: &Held, outlook: &Outlook) -> Verdict {
    let Some(policy) = &held.sound else {
        return Verdict::no(
            Reason::Invalid,
            "no version is in force: the policy is invalid",
        );
    };
    if held.errors.is_some() {
        let message = "the last valid version of the policy stays in force";
        return Verdict::no(Reason::Invalid, message);
    }
    if outlook.barred.is_some() {
        return barred(outlook);
    }
    if is_for_proxies(policy) {
        let message = "standalone proxies that connect get it; /v1/proxies shows what each runs";
        return Verdict::yes(Reason::Served, message);
    }
    if outlook.flavour.is_none() {
        let message = "the API server has neither TrafficExtension nor WasmPlugin, or not the configured one: is Istio installed?";
        return Verdict::no(Reason::NoExtensionApi, message);
    }
    if outlook.objects.is_empty() {
        return Verdict::no(Reason::Overruled, "other policies have all its targets");
    }
    let blocked = outlook.objects.iter().find_map(|(key, standing)| {
        let (reason, message) = match standing {
            Standing::Current => return None,
            Standing::Due | Standing::Leaving => (
                Reason::Pending,
                format!("{key} is being removed and comes again"),
            ),
            Standing::Refused(Cause::Rejected(words)) => {
                (Reason::Rejected, format!("{key} is not taken: {words}"))
            }
            Standing::Refused(Cause::Failed) => (
                Reason::Failed,
                format!("{key} could not be written; it is tried again"),
            ),
            Standing::Foreign
            | Standing::Added(_)
            | Standing::Altered
            | Standing::Refused(Cause::FieldsTaken(_)) => (
                Reason::Conflicted,
                format!("{key} is not as it ought to be: see Conflicted"),
            ),
        };
        Some(Verdict::no(reason, message))
    });
    let names = || {
        let names: Vec<String> = outlook
            .objects
            .iter()
            .map(|(key, _)| key.to_string())
            .collect();
        names.join(", ")
    };
    blocked.unwrap_or_else(|| Verdict::yes(Reason::Programmed, names()))
}

fn conflicted(outlook: &Outlook) -> Verdict {
    let foreign = outlook.objects.iter().find_map(|(key, standing)| {
        let (reason, message) = match standing {
            Standing::Foreign => (
                Reason::NameTaken,
                format!("{key} exists and is not owned by this policy; it is not modified"),
            ),
            Standing::Refused(Cause::FieldsTaken(words)) => {
                (Reason::FieldsTaken, format!("{key}: {words}"))
            }
            Standing::Added(path) => (
                Reason::FieldsAdded,
                format!("{key}: {path} was set by somebody else"),
            ),
            Standing::Altered => (
                Reason::Altered,
                format!("{key} was changed on its way in, such as by a webhook"),
            ),
            Standing::Current | Standing::Due | Standing::Leaving | Standing::Refused(_) => {
                return None;
            }
        };
        Some(Verdict::yes(reason, message))
    });
    foreign
        .or_else(|| contested(outlook))
        .unwrap_or_else(|| Verdict::no(Reason::NoConflict, "nothing is in its way"))
}

fn contested(outlook: &Outlook) -> Option<Verdict> {
    let said = |extent: Extent, say: fn(&Contest) -> String| {
        let of_extent = outlook.contests.iter().filter(|c| c.extent == extent);
        let said: Vec<String> = of_extent.map(say).collect();
        (!said.is_empty()).then(|| said.join("; "))
    };
    let whole = said(Extent::Whole, |contest| {
        format!("{} is that of {}", contest.target, contest.winner)
    });
    let part = said(Extent::Part, |contest| {
        format!(
            "{} also holds for part of {}: requests there must pass both",
            contest.winner, contest.target
        )
    });
    match (whole, part) {
        (None, None) => None,
        (None, Some(part)) => Some(Verdict::yes(Reason::Overlapping, part)),
        (Some(whole), _) if outlook.objects.is_empty() => {
            Some(Verdict::yes(Reason::Overruled, whole))
        }
        (Some(whole), part) => {
            let message = [Some(whole), part].into_iter().flatten();
            let message: Vec<String> = message.collect();
            Some(Verdict::yes(Reason::PartlyOverruled, message.join("; ")))
        }
    }
}

/// The version in force: that of the policy once all its objects are current; before that, what was told last.
fn version(held: &Held, outlook: &Outlook) -> Option<String> {
    let policy = held.sound.as_ref()?;
    let is_current = |(_, standing): &(_, Standing)| *standing == Standing::Current;
    let is_programmed = !outlook.objects.is_empty() && outlook.objects.iter().all(is_current);
    if is_programmed || (is_for_proxies(policy) && outlook.barred.is_none()) {
        return Some(PluginConfig::of(policy).version.to_string());
    }
    held.status.version.clone().filter(|_| outlook.has_objects)
}
