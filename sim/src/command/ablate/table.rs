//! The table: how scores change without each mechanism.

mod scores;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;
use tidegate_core::ablation::{Mechanism, Mechanisms};
use tidegate_sim::scenario::{Measure, Range};

use scores::{ScoreChange, mean, missed, scores};

/// A mean that changes by no more than this counts as unchanged.
const NOTHING: f64 = 0.002;
/// A scenario that loses no more than this counts as unharmed.
const BEARABLE: f64 = 0.01;

/// Most missed expectations that the page names.
const SHOWN: usize = 2;

/// What stories are averaged over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum StoryGroup {
    /// The scenarios of this repository.
    Scenarios,
    /// Random stories with one proxy and one endpoint.
    OneProxy,
    /// Random stories with several.
    Several,
}

impl StoryGroup {
    const ALL: [Self; 3] = [Self::Scenarios, Self::OneProxy, Self::Several];
}

/// One run.
#[derive(Debug, Clone)]
pub(super) struct AblationRun {
    pub(super) group: StoryGroup,
    pub(super) story: String,
    pub(super) repetition: u64,
    /// In 0..=1.
    pub(super) score: f64,
    /// What the scenario expects, and what it got.
    pub(super) expected: Vec<(Measure, Range, Option<f64>)>,
    /// Mechanisms that the run asked about.
    pub(super) asked: Mechanisms,
}

/// What is known of one mechanism, or of several that are off together.
#[derive(Debug, Clone, Serialize)]
pub(super) struct MechanismRow {
    name: String,
    what: String,
    /// Runs in which it could have made a difference.
    runs: usize,
    changes: BTreeMap<StoryGroup, ScoreChange>,
    /// The scenario, and the random story, that loses most without it.
    worst_scenario: Option<(String, f64)>,
    worst_story: Option<(String, f64)>,
    /// Of both kinds the one that gains most.
    best: Option<(String, f64)>,
    /// Expectations of scenarios that are met with it and missed without it, by the median of the seeds.
    missed: Vec<String>,
}

/// All rows, under the means with every mechanism.
#[derive(Debug, Clone)]
pub(super) struct AblationTable {
    pub(super) head: String,
    pub(super) means: BTreeMap<StoryGroup, f64>,
    pub(super) rows: Vec<MechanismRow>,
}

impl MechanismRow {
    /// `without` holds the runs of `base` that asked about one of the mechanisms, played without all of them.
    pub(super) fn new(off: &[Mechanism], base: &[AblationRun], without: &[AblationRun]) -> Self {
        let key = |outcome: &AblationRun| (outcome.story.clone(), outcome.repetition);
        let replaced: BTreeMap<_, &AblationRun> = without.iter().map(|o| (key(o), o)).collect();
        let after: Vec<AblationRun> = base
            .iter()
            .map(|outcome| (*replaced.get(&key(outcome)).unwrap_or(&outcome)).clone())
            .collect();
        let (before, after_of) = (scores(base), scores(&after));
        let changed = |((group, story), score): (&(StoryGroup, String), &f64)| {
            let before = before.get(&(*group, story.clone()));
            let change = score - before.copied().unwrap_or(f64::NAN);
            (*group == StoryGroup::Scenarios, (story.clone(), change))
        };
        let changes: Vec<(bool, (String, f64))> = after_of.iter().map(changed).collect();
        let of = |scenarios: bool| {
            let those = changes
                .iter()
                .filter(move |(is_one, _)| *is_one == scenarios);
            those.map(|(_, change)| change)
        };
        let least = |a: &&(String, f64), b: &&(String, f64)| a.1.total_cmp(&b.1);
        let lost = |change: &&(String, f64)| change.1 < 0.0;
        let gained = |change: &&(String, f64)| change.1 > 0.0;
        let met = missed(base);
        let now_missed = missed(&after);
        Self {
            name: joined(off, Mechanism::name, "+"),
            what: joined(off, Mechanism::what, " "),
            runs: without.len(),
            changes: StoryGroup::ALL
                .into_iter()
                .filter_map(|group| Some((group, ScoreChange::of(group, &before, &after_of)?)))
                .collect(),
            worst_scenario: of(true).min_by(least).filter(lost).cloned(),
            worst_story: of(false).min_by(least).filter(lost).cloned(),
            best: of(true)
                .chain(of(false))
                .max_by(least)
                .filter(gained)
                .cloned(),
            missed: now_missed.difference(&met).cloned().collect(),
        }
    }

    /// The greatest loss of a mean; negative when every group gains.
    fn worth(&self) -> f64 {
        let losses = self.changes.values().map(|change| -change.change);
        losses.fold(f64::NEG_INFINITY, f64::max)
    }

    /// Whether some runs asked about it, and no mean changes by more than [`NOTHING`] without it.
    fn is_nothing_on_average(&self) -> bool {
        self.runs > 0 && self.changes.values().all(|one| one.change.abs() <= NOTHING)
    }

    /// Whether, in addition, no scenario loses much, and none misses its expectations.
    fn is_candidate(&self) -> bool {
        let loss = self.worst_scenario.as_ref().map_or(0.0, |worst| -worst.1);
        self.is_nothing_on_average() && loss <= BEARABLE && self.missed.is_empty()
    }

    /// One line for a terminal.
    pub(super) fn line(&self) -> String {
        let changes = self.changes.values();
        let changes: Vec<String> = changes.map(|one| format!("{:+.4}", one.change)).collect();
        let (worst, missed) = (most(self.worst_scenario.as_ref()), self.missed.len());
        format!(
            "{:<22} {}  worst {worst}, {missed} expectations missed, {} runs",
            self.name,
            changes.join(" "),
            self.runs
        )
    }

    fn cells(&self) -> String {
        let mut text = format!("| `{}` | {} |", self.name, self.what);
        for group in StoryGroup::ALL {
            let cell = self.changes.get(&group).map_or_else(
                || " - |".to_owned(),
                |one| format!(" {:+.4} ± {:.4} |", one.change, one.error),
            );
            text += &cell;
        }
        let missed = some(&self.missed);
        let worst = [&self.worst_scenario, &self.worst_story];
        for one in worst.into_iter().chain([&self.best]) {
            let _ = write!(text, " {} |", most(one.as_ref()));
        }
        let _ = write!(text, " {missed} | {} |", self.runs);
        text
    }
}

impl AblationTable {
    pub(super) fn new(head: String, base: &[AblationRun]) -> Self {
        let scores = scores(base);
        let mean_of = |group: StoryGroup| {
            let those = scores.iter().filter(|((one, _), _)| *one == group);
            let those: Vec<f64> = those.map(|(_, score)| *score).collect();
            Some((group, mean(&those)?))
        };
        Self {
            head,
            means: StoryGroup::ALL.into_iter().filter_map(mean_of).collect(),
            rows: Vec::new(),
        }
    }

    /// The page, the mechanism that is worth most first.
    pub(super) fn markdown(&self) -> String {
        let mut rows: Vec<&MechanismRow> = self.rows.iter().collect();
        rows.sort_by(|a, b| b.worth().total_cmp(&a.worth()).then(a.name.cmp(&b.name)));
        let mean = |group| self.means.get(&group).copied().unwrap_or(f64::NAN);
        let mut text = format!(
            "{}\n\nMeans with every mechanism: scenarios {:.4}, stories with one proxy {:.4}, stories with several {:.4}.\n\n",
            self.head,
            mean(StoryGroup::Scenarios),
            mean(StoryGroup::OneProxy),
            mean(StoryGroup::Several)
        );
        text += &listed(
            &rows,
            "changes no mean by more than 0.002",
            MechanismRow::is_nothing_on_average,
        );
        text += &listed(
            &rows,
            "changes no mean by more than 0.002, costs no scenario more than 0.01 and misses no expectation",
            MechanismRow::is_candidate,
        );
        let unasked = |row: &MechanismRow| row.runs == 0;
        text += &listed(&rows, "cannot be judged, as no run comes to them", unasked);
        text += "| without | what it does | scenarios | one proxy | several | worst scenario | worst story | best of all \
                 | expectations missed | runs concerned |\n|---|---|---|---|---|---|---|---|---|---|\n";
        for row in rows {
            text += &row.cells();
            text.push('\n');
        }
        text
    }
}

fn listed(rows: &[&MechanismRow], what: &str, is_so: fn(&MechanismRow) -> bool) -> String {
    let names = rows.iter().filter(|row| is_so(row));
    let names: Vec<String> = names.map(|row| format!("`{}`", row.name)).collect();
    let list = if names.is_empty() {
        "none".to_owned()
    } else {
        names.join(", ")
    };
    format!(
        "Turning one of these {} off {what}: {list}.\n\n",
        names.len()
    )
}

/// How many there are, and the first of them: the JSON names all.
fn some(names: &[String]) -> String {
    let shown: Vec<&str> = names.iter().take(SHOWN).map(String::as_str).collect();
    match names.len() {
        0 => "0".to_owned(),
        count if count <= SHOWN => format!("{count}: {}", shown.join(", ")),
        count => format!("{count}: {}, ...", shown.join(", ")),
    }
}

fn joined(off: &[Mechanism], word: impl Fn(Mechanism) -> &'static str, between: &str) -> String {
    let words: Vec<&str> = off.iter().map(|one| word(*one)).collect();
    words.join(between)
}

fn most(change: Option<&(String, f64)>) -> String {
    change.map_or_else(
        || "-".to_owned(),
        |(story, change)| format!("{change:+.3} {story}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(group: StoryGroup, story: &str, repetition: u64, score: f64) -> AblationRun {
        AblationRun {
            group,
            story: story.to_owned(),
            repetition,
            score,
            expected: Vec::new(),
            asked: Mechanisms::NONE,
        }
    }

    fn base() -> Vec<AblationRun> {
        vec![
            outcome(StoryGroup::Scenarios, "a", 0, 0.9),
            outcome(StoryGroup::Scenarios, "a", 1, 0.7),
            outcome(StoryGroup::Scenarios, "b", 0, 1.0),
            outcome(StoryGroup::OneProxy, "s1-00000", 0, 0.5),
        ]
    }

    #[test]
    fn runs_that_were_not_played_again_count_as_before() {
        let without = [outcome(StoryGroup::Scenarios, "a", 1, 0.5)];
        let row = MechanismRow::new(&[Mechanism::Hold], &base(), &without);
        let change = row.changes[&StoryGroup::Scenarios];
        assert!((change.change + 0.05).abs() < 1e-9, "{change:?}");
        assert!((change.mean - 0.85).abs() < 1e-9, "{change:?}");
        assert!((change.error - 0.05).abs() < 1e-9, "{change:?}");
        let worst = row.worst_scenario.as_ref().unwrap();
        assert!(worst.0 == "a" && (worst.1 + 0.1).abs() < 1e-9, "{worst:?}");
        assert_eq!(row.worst_story, None, "no random story loses");
        assert_eq!(row.best, None, "nothing gains");
        assert!(row.changes[&StoryGroup::OneProxy].change.abs() < 1e-9);
        assert!(!row.changes.contains_key(&StoryGroup::Several));
        assert!(!row.is_nothing_on_average() && !row.is_candidate());
    }

    #[test]
    fn what_may_go_changes_no_mean_and_costs_no_scenario_much() {
        let many = |score: f64| -> Vec<AblationRun> {
            let names = (0..9).map(|number| format!("a{number}"));
            let rest = names.map(|name| outcome(StoryGroup::Scenarios, &name, 0, 0.9));
            rest.chain([outcome(StoryGroup::Scenarios, "b", 0, score)])
                .collect()
        };
        for (score, expected) in [
            (0.9, true),
            (0.891, true),
            (0.889, false),
            (0.919, true),
            (0.93, false),
        ] {
            let without = [outcome(StoryGroup::Scenarios, "b", 0, score)];
            let row = MechanismRow::new(&[Mechanism::Hold], &many(0.9), &without);
            assert_eq!(row.is_candidate(), expected, "{score}");
        }
        let row = MechanismRow::new(&[Mechanism::Hold], &many(0.9), &[]);
        assert!(!row.is_candidate(), "no run came to it");
    }

    #[test]
    fn what_is_worth_most_comes_first() {
        let mut table = AblationTable::new("head".to_owned(), &base());
        let row = |mechanism, score| {
            MechanismRow::new(
                &[mechanism],
                &base(),
                &[outcome(StoryGroup::Scenarios, "b", 0, score)],
            )
        };
        table.rows = vec![
            row(Mechanism::Votes, 1.0),
            row(Mechanism::Hold, 0.2),
            row(Mechanism::Growth, 0.6),
        ];
        let text = table.markdown();
        let place = |name: &str| text.find(&format!("| `{name}` |")).unwrap();
        assert!(place("hold") < place("growth") && place("growth") < place("votes"));
        assert!(text.contains("these 1 off changes no mean by more than 0.002: `votes`."));
    }

    #[test]
    fn an_expectation_is_missed_by_the_median_of_the_seeds() {
        let range = Range {
            min: Some(0.5),
            max: None,
        };
        let with = |values: [f64; 3]| -> Vec<AblationRun> {
            let runs = values.into_iter().zip(0..);
            let runs = runs.map(|(value, repetition)| AblationRun {
                expected: vec![(Measure::Score, range, Some(value))],
                ..outcome(StoryGroup::Scenarios, "a", repetition, value)
            });
            runs.collect()
        };
        let row =
            |values| MechanismRow::new(&[Mechanism::Hold], &with([0.6, 0.6, 0.4]), &with(values));
        assert_eq!(row([0.4, 0.6, 0.4]).missed, ["a score"]);
        assert!(row([0.1, 0.6, 0.6]).missed.is_empty());
    }
}
