//! The report of runs: one self-contained page, and the same tables as Markdown.
//!
//! The content is a [`Page`] of headings, tables and charts, which becomes HTML or Markdown. Each study has its own section:
//! a table of all cells with the spread of their repetitions (`groups`), bars (`panel`), values over time
//! (`over_time`), and for some a comparison that answers the study's question.
//!
//! Edges: failed and missing cells are listed first and leave a cross where their bar would be; unreadable lines of a file
//! are listed.

mod added;
mod filter_cost;
mod gaps;
mod groups;
mod over_time;
mod panel;
mod pictures;
mod scores;
mod storm;
mod study;
mod transition;

pub(crate) use groups::{CellGroup, groups};

use tidegate_report::page::Page;

use crate::result::LoadtestRun;
use crate::score::ScoreTargets;

/// The report of some runs; a study that several have is shown from the last of them.
#[must_use]
pub fn report(runs: &[LoadtestRun], targets: &ScoreTargets) -> Page {
    let mut page = Page::new("Load tests");
    page.paragraph(
        "Published experiments with fortio, k6 and the testbed's client, repeated on real Envoys on one machine over \
         loopback, with and without Tidegate. Figures are to be compared with each other, not with those that were \
         published on other machines. A figure of several repetitions is the median, with the least and the greatest \
         behind it; of a single one nothing is known of its spread. A cross in a chart is a cell that failed or was not run.",
    );
    for run in runs {
        page.note(&circumstances(run));
    }
    for run in runs {
        gaps::section(&mut page, run);
    }
    for section in study::SECTIONS {
        let of_study = |run: &&LoadtestRun| run.cells.iter().any(|cell| cell.study == section.name);
        if let Some(run) = runs.iter().rev().find(of_study) {
            section.write(&mut page, run, targets);
        }
    }
    for run in runs {
        study::write_unknown(&mut page, run);
    }
    page
}

/// Machine, date, versions and conditions of a run, in one paragraph.
pub(crate) fn circumstances(run: &LoadtestRun) -> String {
    let info = &run.info;
    let versions = info
        .versions
        .iter()
        .map(|(name, version)| format!("{name} {version}"));
    // A parameter left empty on the command line is not a setting.
    let parameters = info
        .parameters
        .iter()
        .map(|(name, value)| (name, value.to_string()))
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| format!("{name} {value}"));
    let facts = [
        format!("run {} ({})", info.run, info.extent),
        info.date.clone(),
        format!("{}, {} cores", info.machine, info.cores),
        info.kernel.clone(),
        versions.collect::<Vec<_>>().join(", "),
        format!("commit {}", info.commit),
        format!(
            "module {}",
            info.module_sha256.get(..12).unwrap_or(&info.module_sha256)
        ),
        parameters.collect::<Vec<_>>().join(", "),
    ];
    facts.join(" · ")
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn committed_reports_are_what_their_results_say() {
        let baselines = Path::new(env!("CARGO_MANIFEST_DIR")).join("baselines");
        let folders: Vec<_> = fs::read_dir(baselines)
            .unwrap()
            .map(|folder| folder.unwrap().path())
            .collect();
        assert!(!folders.is_empty());
        for folder in folders {
            let run = LoadtestRun::read(&folder).unwrap();
            let fresh = report(&[run], &ScoreTargets::ours().unwrap()).markdown();
            let committed = fs::read_to_string(folder.join("report.md")).unwrap();
            assert!(
                fresh == committed,
                "make loadtest-report RUNS={} writes its report.md anew",
                folder.display()
            );
        }
    }
}
