//! The gaps of a run, listed first.

use std::path::PathBuf;

use tidegate_report::page::Page;
use tidegate_report::table::Table;

use crate::result::{Damage, LoadtestRun};

/// Maximum of failed cells to list; if more failed, a longer list is no help.
const MOST: usize = 40;

/// Lists what failed, what was not run and what could not be read; adds nothing if the run is complete.
pub(super) fn section(page: &mut Page, run: &LoadtestRun) {
    let failed: Vec<_> = run.failed().collect();
    let not_run: Vec<_> = run.not_run().collect();
    if failed.is_empty() && not_run.is_empty() && run.damaged.is_empty() {
        return;
    }
    page.heading(&format!("Gaps in {}", run.info.run));
    for (study, count) in not_run {
        page.paragraph(&format!("{study}: {count} planned cells were not run."));
    }
    for damage in &run.damaged {
        // The path of the folder is of no use to readers elsewhere.
        let name = damage.path.file_name().map(PathBuf::from);
        let damage = Damage {
            path: name.unwrap_or_default(),
            ..damage.clone()
        };
        page.paragraph(&damage.to_string());
    }
    let rows = failed
        .iter()
        .take(MOST)
        .map(|cell| vec![cell.name(), cell.error().unwrap_or_default().to_owned()]);
    page.table(Table::with_names(
        2,
        &["failed cell", "why"],
        rows.collect(),
    ));
    if let Some(more) = failed.len().checked_sub(MOST).filter(|more| *more > 0) {
        page.paragraph(&format!("And {more} more."));
    }
}
