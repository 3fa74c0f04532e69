//! Runs for people: one self-contained page, and the same tables as Markdown.
//!
//! What is shown is a [`document::Document`] of headings, tables and charts, which becomes HTML or Markdown. Each study
//! has a section of its own: a table of all cells with the spread of their repetitions ([`groups`]), bars
//! ([`panel`]), values over time ([`over_time`]), and for some a comparison that answers the study's question.
//!
//! Edges: what failed or was not run is listed first and leaves a cross where its bar would be; lines of a file that
//! could not be read are named.

mod added;
mod document;
mod gaps;
mod groups;
mod over_time;
mod panel;
mod pictures;
mod scores;
mod storm;
mod study;
mod transition;

pub use document::{Block, Document};
pub(crate) use groups::{Group, groups};

use crate::result::Run;
use crate::score::Targets;

/// The report of some runs; with several, a study is shown as the last run that has it tells.
#[must_use]
pub fn report(runs: &[Run], targets: &Targets) -> Document {
    let mut document = Document::new("Load tests");
    document.paragraph(
        "Published experiments with fortio, k6 and the testbed's client, repeated on real Envoys on one machine over \
         loopback, with and without Tidegate. Figures are to be compared with each other, not with those that were \
         published on other machines. A figure of several repetitions is the median, with the least and the greatest \
         behind it; a cross in a chart is a cell that failed or was not run.",
    );
    for run in runs {
        document.note(&circumstances(run));
    }
    for run in runs {
        gaps::section(&mut document, run);
    }
    for section in study::SECTIONS {
        let of_study = |run: &&Run| run.cells.iter().any(|cell| cell.study == section.name);
        if let Some(run) = runs.iter().rev().find(of_study) {
            section.write(&mut document, run, targets);
        }
    }
    for run in runs {
        study::write_unknown(&mut document, run);
    }
    document
}

/// On what, when and with what a run was made, in one paragraph.
pub(crate) fn circumstances(run: &Run) -> String {
    let info = &run.info;
    let versions = info
        .versions
        .iter()
        .map(|(name, version)| format!("{name} {version}"));
    let parameters = info
        .parameters
        .iter()
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
