//! The page that explains the limits: its headings, and its table with a [row](super::row) for each scenario of the list.

use std::collections::BTreeSet;

use super::row::GapRow;
use super::{FILE, KnownGaps, PAGE};

/// Head of the table, by which it is found.
const HEAD: &str = "| scenario | Tidegate | best untuned rival | tuned | may be behind by | why |";
const RULE: &str = "|---|---|---|---|---|---|";

/// The page's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GapsPage {
    text: String,
}

impl GapsPage {
    /// The page with this text.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self {
            text: text.to_owned(),
        }
    }

    /// The text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The anchors that readers' browsers make from the headings: small letters, dashes for spaces, no other signs.
    #[must_use]
    pub fn anchors(&self) -> BTreeSet<String> {
        let mut is_code = false;
        let mut anchors = BTreeSet::new();
        for line in self.text.lines() {
            is_code ^= line.trim_start().starts_with("```");
            let heading = line.trim_start_matches('#');
            if is_code || heading.len() == line.len() || !heading.starts_with(' ') {
                continue;
            }
            let kept = heading.trim().chars().filter_map(|sign| match sign {
                ' ' => Some('-'),
                '-' | '_' => Some(sign),
                _ if sign.is_alphanumeric() => Some(sign),
                _ => None,
            });
            anchors.insert(kept.collect::<String>().to_lowercase());
        }
        anchors
    }

    /// The lines of the table below its head, each with its number; none without the table.
    fn lines(&self) -> Option<Vec<(usize, &str)>> {
        let mut lines = self.text.lines().zip(1..);
        lines.find(|(line, _)| *line == HEAD)?;
        let rows = lines.skip(1).take_while(|(line, _)| line.starts_with('|'));
        Some(rows.map(|(line, number)| (number, line)).collect())
    }

    /// The rows of the table that can be read.
    #[must_use]
    pub fn rows(&self) -> Vec<GapRow> {
        let lines = self.lines().unwrap_or_default();
        lines
            .iter()
            .filter_map(|(_, line)| GapRow::read(line))
            .collect()
    }

    /// Where the table does not agree with the list, each as `file:line: what is wrong`.
    #[must_use]
    pub fn faults(&self, known_gaps: &KnownGaps) -> Vec<String> {
        let Some(lines) = self.lines() else {
            return vec![format!("{PAGE}: there is no table with the head {HEAD}")];
        };
        let mut faults = Vec::new();
        let mut seen = BTreeSet::new();
        for (number, line) in lines {
            let mut fault = |what: &str| faults.push(format!("{PAGE}:{number}: {what}"));
            let Some(row) = GapRow::read(line) else {
                fault(&format!("expected six cells as in {HEAD}"));
                continue;
            };
            match known_gaps.scenarios.get(&row.scenario) {
                None => fault(&format!("{} is not in {FILE}", row.scenario)),
                Some(known) => row.faults(known).iter().for_each(|what| fault(what)),
            }
            if !seen.insert(row.scenario.clone()) {
                fault(&format!("{} has a row already", row.scenario));
            }
        }
        let missing = known_gaps
            .scenarios
            .keys()
            .filter(|name| !seen.contains(*name));
        faults.extend(missing.map(|name| format!("{PAGE}: {name} of {FILE} has no row")));
        faults
    }

    /// The page with these rows in its table; none if it has no table.
    #[must_use]
    pub fn with_rows(&self, rows: &[GapRow]) -> Option<Self> {
        let old = self.lines()?.len();
        let (before, after) = self.text.split_once(HEAD)?;
        // The rest of the head's line, the rule, and the old rows.
        let after: String = after.split_inclusive('\n').skip(2 + old).collect();
        let rows: String = rows.iter().map(|row| row.line() + "\n").collect();
        Some(Self {
            text: format!("{before}{HEAD}\n{RULE}\n{rows}{after}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::KnownGap;
    use super::super::row::tests::found;
    use super::*;

    const TEXT: &str = "# Limits\n\n```text\n# no heading\n```\n\n## Within 0.01 of `none`\n\n\
        | scenario | Tidegate | best untuned rival | tuned | may be behind by | why |\n|---|---|---|---|---|---|\n\
        | outage | 0.978 | none 1.000 | static-tuned 0.999 | 0.03, - | [probes](#limits) |\n\nAnd more.\n";

    fn granted() -> KnownGap {
        KnownGap {
            behind_best_untuned: Some(0.03),
            behind_tuned: None,
            reason: "probes".to_owned(),
            see: "limits".to_owned(),
        }
    }

    fn known_gaps(names: &[&str]) -> KnownGaps {
        let scenarios = names.iter().map(|name| ((*name).to_owned(), granted()));
        KnownGaps {
            seeds: 7,
            scenarios: scenarios.collect::<BTreeMap<_, _>>(),
        }
    }

    #[test]
    fn anchors_are_those_of_headings_outside_code() {
        let anchors: Vec<String> = GapsPage::new(TEXT).anchors().into_iter().collect();
        assert_eq!(anchors, ["limits", "within-001-of-none"]);
    }

    #[test]
    fn a_table_that_agrees_has_no_fault() {
        let page = GapsPage::new(TEXT);
        assert_eq!(page.faults(&known_gaps(&["outage"])), [""; 0]);
        assert_eq!(
            page.rows(),
            [GapRow::new("outage", found(0.978), &granted())]
        );
    }

    #[test]
    fn rows_and_list_have_the_same_scenarios() {
        let page = GapsPage::new(TEXT);
        assert_eq!(
            page.faults(&known_gaps(&["hang"])),
            [
                "docs/laws/limits-of-the-measure.md:11: outage is not in sim/limits.toml",
                "docs/laws/limits-of-the-measure.md: hang of sim/limits.toml has no row"
            ]
        );
        let row = page.rows().remove(0);
        let twice = page.with_rows(&[row.clone(), row]).unwrap();
        let faults = twice.faults(&known_gaps(&["outage"]));
        assert!(faults[0].contains("has a row already"), "{faults:?}");
    }

    #[test]
    fn a_row_says_what_the_list_says() {
        for (is, other) in [
            ("0.03, -", "0.04, -"),
            ("probes", "bursts"),
            ("#limits", "#other"),
            ("0.978", "0.96"),
            ("0.978", "NaN"),
            ("0.978", "much"),
        ] {
            let page = GapsPage::new(&TEXT.replace(is, other));
            let faults = page.faults(&known_gaps(&["outage"]));
            assert!(!faults.is_empty(), "{other}");
            assert!(faults[0].contains(".md:11: "), "{faults:?}");
        }
        let without = GapsPage::new("# Limits\n").faults(&known_gaps(&["outage"]));
        assert!(without[0].contains("there is no table"), "{without:?}");
    }

    #[test]
    fn rows_are_replaced_and_the_rest_stays() {
        let rows = [
            GapRow::new("hang", found(0.98), &granted()),
            GapRow::new("outage", found(0.979), &granted()),
        ];
        let page = GapsPage::new(TEXT).with_rows(&rows).unwrap();
        assert_eq!(page.rows(), rows);
        assert!(page.text().ends_with("\n\nAnd more.\n"), "{}", page.text());
        assert_eq!(page.text().lines().count(), TEXT.lines().count() + 1);
        assert_eq!(GapsPage::new("no table").with_rows(&rows), None);
    }
}
