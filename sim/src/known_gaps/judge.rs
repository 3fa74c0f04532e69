//! Our scores against the rule of the targets and against what is granted beyond it.
//!
//! ```text
//! behind by        not listed    listed
//! <= rule - CLEAR  met           missed in a whole run: take it out of the list
//! <= rule          met           met
//! <= bound         missed        at its limit
//!  > bound         missed        missed: further behind than is granted
//! ```
//!
//! Edges: only a [`RunScope::Whole`] run can show that an entry is not needed. Without the best rival, or with few seeds,
//! that is unknown.

use serde::Serialize;

use super::{FILE, KnownGap};
use crate::targets::{Gap, TargetVerdict};

/// What a run can be checked against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunScope {
    /// Some contenders, or fewer seeds than the list asks for: only gaps that are too large.
    Part,
    /// Every contender with as many seeds: the list and its page as well.
    Whole,
}

/// Whether a result meets its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Grade {
    /// It is enough.
    Met,
    /// It is less than the rule asks for, by no more than the list grants.
    AtLimit,
    /// It is not enough, or the list or its page is out of date.
    Missed,
}

impl Grade {
    /// In a word, for tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::AtLimit => "at limit",
            Self::Missed => "MISSED",
        }
    }
}

/// One statement about a comparison, judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judged {
    /// The scenario, or what differs between scenarios that must be alike.
    pub scenario: String,
    /// What is asked for.
    pub target: String,
    /// What was found.
    pub found: String,
    /// Whether that is enough.
    pub standing: Grade,
}

impl From<TargetVerdict> for Judged {
    fn from(verdict: TargetVerdict) -> Self {
        Self {
            scenario: verdict.scenario,
            target: verdict.target,
            found: verdict.found,
            standing: if verdict.is_met {
                Grade::Met
            } else {
                Grade::Missed
            },
        }
    }
}

/// A gap this far below the rule is not within it by chance: in scenarios near the rule, medians of fourteen runs with
/// other seeds differ by about that.
const CLEAR: f64 = 0.005;

/// Judges the gap to the best rival of a kind by the rule, and by what is granted to the scenario.
pub(crate) fn judge(scenario: &str, gap: &Gap, known: Option<&KnownGap>, held: RunScope) -> Judged {
    let rule = gap.verdict(scenario);
    let behind = gap.behind();
    let bound = known.and_then(|known| known.behind(gap.kind));
    let (standing, remark) = match bound {
        None if gap.is_within(gap.rule) => (Grade::Met, String::new()),
        None => (
            Grade::Missed,
            format!("{behind:.4} behind, and not in {FILE}"),
        ),
        Some(bound) if !gap.is_within(bound) => (
            Grade::Missed,
            format!("{behind:.4} behind, more than the {bound} of {FILE}"),
        ),
        Some(_) if held == RunScope::Whole && gap.is_within(gap.rule - CLEAR) => (
            Grade::Missed,
            format!("{behind:.4} behind, which needs no limit: take it out of {FILE}"),
        ),
        Some(_) if gap.is_within(gap.rule) => (Grade::Met, String::new()),
        Some(bound) => (
            Grade::AtLimit,
            format!("{behind:.4} behind, {bound} granted"),
        ),
    };
    let found = if remark.is_empty() {
        rule.found
    } else {
        format!("{}: {remark}", rule.found)
    };
    Judged {
        scenario: rule.scenario,
        target: rule.target,
        found,
        standing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::targets::{ContenderScore, RivalKind};

    /// Our score of 0.9 behind that of an untuned rival.
    fn behind(by: f64) -> Gap {
        Gap {
            kind: RivalKind::Untuned,
            ours: 0.9,
            rival: ContenderScore {
                contender: "none".to_owned(),
                kind: RivalKind::Untuned,
                score: 0.9 + by,
            },
            rule: 0.01,
        }
    }

    fn granted(behind_best_untuned: Option<f64>) -> KnownGap {
        KnownGap {
            behind_best_untuned,
            behind_tuned: Some(0.5),
            reason: "probes".to_owned(),
            see: "recoveries".to_owned(),
        }
    }

    fn standing(by: f64, bound: Option<f64>, held: RunScope) -> Grade {
        judge("outage", &behind(by), Some(&granted(bound)), held).standing
    }

    #[test]
    fn who_is_behind_without_being_listed_is_missed_by_name_with_figures() {
        let judged = judge("outage", &behind(0.03), None, RunScope::Part);
        assert_eq!(judged.standing, Grade::Missed);
        assert_eq!(judged.scenario, "outage");
        assert_eq!(
            judged.found,
            "0.9000 (none 0.9300): 0.0300 behind, and not in sim/limits.toml"
        );
        let judged = judge("outage", &behind(0.01), None, RunScope::Whole);
        assert_eq!(judged.standing, Grade::Met, "the rule includes its bound");
    }

    #[test]
    fn who_is_listed_for_another_kind_of_rival_is_held_to_the_rule() {
        assert_eq!(standing(0.03, None, RunScope::Whole), Grade::Missed);
        assert_eq!(standing(0.01, None, RunScope::Whole), Grade::Met);
    }

    #[test]
    fn who_is_listed_may_be_behind_up_to_the_bound() {
        assert_eq!(standing(0.03, Some(0.03), RunScope::Whole), Grade::AtLimit);
        let judged = judge(
            "outage",
            &behind(0.031),
            Some(&granted(Some(0.03))),
            RunScope::Part,
        );
        assert_eq!(judged.standing, Grade::Missed);
        assert!(
            judged.found.contains("more than the 0.03 of"),
            "{}",
            judged.found
        );
    }

    #[test]
    fn who_is_listed_without_need_is_missed_in_a_whole_run() {
        let judged = judge(
            "outage",
            &behind(0.004),
            Some(&granted(Some(0.03))),
            RunScope::Whole,
        );
        assert_eq!(judged.standing, Grade::Missed);
        assert!(judged.found.contains("take it out"), "{}", judged.found);
        assert_eq!(standing(-0.1, Some(0.03), RunScope::Whole), Grade::Missed);
        assert_eq!(
            standing(-0.1, Some(0.03), RunScope::Part),
            Grade::Met,
            "the best rival may not have played"
        );
    }

    #[test]
    fn who_is_within_the_rule_by_little_may_stay_listed() {
        assert_eq!(standing(0.008, Some(0.03), RunScope::Whole), Grade::Met);
    }
}
