//! Reads and checks a list: returns a valid list, or all of its errors with their lines.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde::Deserialize;
use toml::Spanned;

use super::page::GapsPage;
use super::{FILE, Known, KnownGap, KnownGaps, KnownGapsError, PAGE, at};
use crate::targets::Margins;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawGaps {
    seeds: Spanned<u64>,
    #[serde(default)]
    scenarios: BTreeMap<Spanned<String>, RawGap>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawGap {
    behind_best_untuned: Option<Spanned<f64>>,
    behind_tuned: Option<Spanned<f64>>,
    reason: Option<Spanned<String>>,
    see: Option<Spanned<String>>,
}

/// Scores are at most 1, so no gap is greater.
const MOST_BEHIND: f64 = 1.0;

impl KnownGaps {
    /// The list of this repository, and the page that explains it.
    ///
    /// # Errors
    /// When a file cannot be read or the list does not parse; with all errors of an invalid list.
    pub fn read(
        scenarios: &BTreeSet<&str>,
        rule: Margins,
    ) -> Result<(Self, GapsPage), KnownGapsError> {
        let page = GapsPage::new(&text_of(&at(PAGE))?);
        let known = Known {
            scenarios,
            rule,
            anchors: &page.anchors(),
        };
        let limits = Self::parse(&text_of(&at(FILE))?, FILE, known)?;
        Ok((limits, page))
    }

    /// Parses and checks a list; `origin` names it in errors.
    ///
    /// # Errors
    /// When the text does not parse; with all errors of an invalid list.
    pub fn parse(text: &str, origin: &str, known: Known<'_>) -> Result<Self, KnownGapsError> {
        parse(text, origin, known)
    }
}

fn text_of(path: &Path) -> Result<String, KnownGapsError> {
    fs::read_to_string(path).map_err(|source| KnownGapsError::Read {
        path: path.to_owned(),
        source,
    })
}

fn parse(text: &str, origin: &str, known: Known<'_>) -> Result<KnownGaps, KnownGapsError> {
    let raw: RawGaps = toml::from_str(text).map_err(|error| KnownGapsError::Parse {
        origin: origin.to_owned(),
        message: error.to_string(),
    })?;
    let mut check = Check {
        text,
        origin,
        known,
        faults: Vec::new(),
    };
    let seeds = *raw.seeds.as_ref();
    if seeds == 0 {
        check.fault(raw.seeds.span().start, "seeds: found 0, expected 1 or more");
    }
    let mut scenarios = BTreeMap::new();
    for (name, raw) in raw.scenarios {
        let gap = check.gap(&name, raw);
        scenarios.insert(name.into_inner(), gap);
    }
    if check.faults.is_empty() {
        Ok(KnownGaps { seeds, scenarios })
    } else {
        Err(KnownGapsError::Refused(check.faults))
    }
}

struct Check<'a> {
    text: &'a str,
    origin: &'a str,
    known: Known<'a>,
    faults: Vec<String>,
}

impl Check<'_> {
    fn gap(&mut self, name: &Spanned<String>, raw: RawGap) -> KnownGap {
        let (at, scenario) = (name.span().start, name.as_ref());
        if !self.known.scenarios.contains(scenario.as_str()) {
            self.fault(
                at,
                &format!("scenarios.{scenario}: there is no such scenario"),
            );
        }
        if raw.behind_best_untuned.is_none() && raw.behind_tuned.is_none() {
            let missing = format!(
                "scenarios.{scenario}: grants nothing, expected behind_best_untuned or behind_tuned"
            );
            self.fault(at, &missing);
        }
        let rule = self.known.rule;
        let mut bound =
            |key, raw, rule| self.bound(&format!("scenarios.{scenario}.{key}"), raw, rule);
        let behind_best_untuned = bound(
            "behind_best_untuned",
            raw.behind_best_untuned,
            rule.behind_best_untuned,
        );
        let behind_tuned = bound("behind_tuned", raw.behind_tuned, rule.behind_tuned);
        let see = self.words(at, &format!("scenarios.{scenario}.see"), raw.see.as_ref());
        if let Some(raw) = raw.see.as_ref()
            && !see.is_empty()
            && !self.known.anchors.contains(&see)
        {
            let unknown = format!(
                "scenarios.{scenario}.see: found {see}, expected the anchor of a heading of {}",
                PAGE
            );
            self.fault(raw.span().start, &unknown);
        }
        KnownGap {
            behind_best_untuned,
            behind_tuned,
            reason: self.words(
                at,
                &format!("scenarios.{scenario}.reason"),
                raw.reason.as_ref(),
            ),
            see,
        }
    }

    /// Reads a bound; it must grant more than the rule.
    fn bound(&mut self, key: &str, raw: Option<Spanned<f64>>, rule: f64) -> Option<f64> {
        let raw = raw?;
        let bound = *raw.as_ref();
        if !(bound > rule && bound <= MOST_BEHIND) {
            let fault = format!(
                "{key}: found {bound}, expected more than the rule, {rule}, and at most {MOST_BEHIND}"
            );
            self.fault(raw.span().start, &fault);
        }
        Some(bound)
    }

    /// The text of one cell of a table; the entry at `at` is incomplete without it.
    fn words(&mut self, at: usize, key: &str, raw: Option<&Spanned<String>>) -> String {
        let Some(raw) = raw else {
            self.fault(at, &format!("{key}: is missing"));
            return String::new();
        };
        let words = raw.as_ref().trim();
        if words.is_empty() {
            self.fault(raw.span().start, &format!("{key}: is empty"));
        }
        if words.contains(['\n', '|', '[', ']']) {
            let fault = format!("{key}: expected one line without |, [ and ], for a table");
            self.fault(raw.span().start, &fault);
        }
        words.to_owned()
    }

    fn fault(&mut self, at: usize, what: &str) {
        let before = self.text.get(..at).unwrap_or(self.text);
        let line = before.matches('\n').count() + 1;
        self.faults.push(format!("{}:{line}: {what}", self.origin));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::targets::Margins;

    const GOOD: &str = "seeds = 7\n\n[scenarios.outage]\nbehind_best_untuned = 0.03\nbehind_tuned = 0.04\n\
        reason = 'probes'\nsee = 'recoveries'\n";

    fn read(text: &str) -> Result<KnownGaps, KnownGapsError> {
        let known = Known {
            scenarios: &BTreeSet::from(["outage"]),
            rule: Margins {
                behind_best_untuned: 0.01,
                behind_tuned: 0.02,
            },
            anchors: &BTreeSet::from(["recoveries".to_owned()]),
        };
        parse(text, "limits.toml", known)
    }

    /// The faults of a text, one a line.
    fn faults(text: &str) -> String {
        read(text).unwrap_err().to_string()
    }

    #[test]
    fn what_is_granted_is_read_by_scenario() {
        let limits = read(GOOD).unwrap();
        let expected = KnownGap {
            behind_best_untuned: Some(0.03),
            behind_tuned: Some(0.04),
            reason: "probes".to_owned(),
            see: "recoveries".to_owned(),
        };
        assert_eq!(limits.seeds, 7);
        assert_eq!(limits.scenarios["outage"], expected);
    }

    #[test]
    fn an_unknown_scenario_is_rejected_with_its_line() {
        let found = faults(&GOOD.replace("outage", "outtage"));
        assert_eq!(
            found,
            "limits.toml:3: scenarios.outtage: there is no such scenario"
        );
    }

    #[test]
    fn reason_and_anchor_must_be_there() {
        let without = GOOD.replace("reason = 'probes'\nsee = 'recoveries'\n", "");
        assert_eq!(
            faults(&without),
            "limits.toml:3: scenarios.outage.see: is missing\n\
             limits.toml:3: scenarios.outage.reason: is missing"
        );
        let empty = GOOD.replace("'probes'", "' '");
        assert_eq!(
            faults(&empty),
            "limits.toml:6: scenarios.outage.reason: is empty"
        );
    }

    #[test]
    fn an_anchor_is_one_of_the_page() {
        let found = faults(&GOOD.replace("'recoveries'", "'nowhere'"));
        assert!(
            found.starts_with("limits.toml:7: scenarios.outage.see: found nowhere"),
            "{found}"
        );
    }

    #[test]
    fn a_bound_within_the_rule_grants_nothing_and_is_rejected() {
        for bound in ["0.01", "-1.0", "nan", "1.1"] {
            let found = faults(&GOOD.replace("0.03", bound));
            let expected = "limits.toml:4: scenarios.outage.behind_best_untuned: found";
            assert!(found.starts_with(expected), "{bound}: {found}");
        }
        let neither = GOOD.replace("behind_best_untuned = 0.03\nbehind_tuned = 0.04\n", "");
        assert!(faults(&neither).contains("limits.toml:3: scenarios.outage: grants nothing"));
    }

    #[test]
    fn all_faults_are_told_at_once() {
        let text = GOOD
            .replace("seeds = 7", "seeds = 0")
            .replace("outage", "b");
        let found = faults(&text.replace("0.04", "0.02"));
        assert_eq!(found.lines().count(), 3, "{found}");
    }

    #[test]
    fn unknown_keys_and_scenarios_named_twice_are_rejected_with_their_line() {
        let found = faults(&GOOD.replace("behind_tuned", "behind_tunned"));
        assert!(
            found.contains("line 5") && found.contains("behind_tunned"),
            "{found}"
        );
        let found = faults(&format!("{GOOD}\n[scenarios.outage]\nreason = 'again'\n"));
        assert!(
            found.contains("limits.toml") && found.contains("line 9"),
            "{found}"
        );
    }
}
