//! Where a run is kept: its folder, its name, and what it is made of.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use tidegate_loadtests::journal::Journal;
use tidegate_loadtests::matrix::Cell;
use tidegate_loadtests::result::{Circumstances, Extent, Parameter, RUN_FILE, Tool};
use tidegate_loadtests::tool::program;
use tidegate_testbed::about;

use super::{Options, extent};

/// The folder of the run and its journal, begun or gone on with.
pub(super) fn open(options: &Options, cells: &[Cell]) -> Result<(PathBuf, Journal)> {
    let extent = extent(options);
    let name = match (&options.name, options.resume) {
        (Some(name), _) => name.clone(),
        (None, true) => last(&options.out, extent)?,
        (None, false) => new_name(extent),
    };
    let tools: BTreeSet<Tool> = cells.iter().map(Cell::tool).collect();
    let is_there = |tool: &Tool| tool.program().is_none_or(|name| program(name).is_ok());
    let mut planned: BTreeMap<String, usize> = BTreeMap::new();
    for cell in cells {
        *planned.entry(cell.study.to_owned()).or_default() += 1;
    }
    let text = |text: &str| Parameter::Text(text.to_owned());
    let info = Circumstances {
        run: name.clone(),
        extent,
        parameters: [
            ("studies".to_owned(), text(&options.studies.join(","))),
            ("cells".to_owned(), text(&options.cells)),
            ("envoy_workers".to_owned(), Parameter::Number(1.0)),
        ]
        .into(),
        planned,
        tools: tools.into_iter().filter(is_there).collect(),
    }
    .gather()?;
    let folder = options.out.join(&name);
    let journal = if options.resume {
        Journal::resume(&folder, &info)?
    } else if folder.join(RUN_FILE).exists() {
        bail!(
            "{}: found a run, expected none (RESUME=1 goes on with it)",
            folder.display()
        );
    } else {
        Journal::begin(&folder, &info)?
    };
    Ok((folder, journal))
}

/// Extent, date and time, such as `reduced-20261121-1030`.
fn new_name(extent: Extent) -> String {
    let date = about::metadata().remove("date").unwrap_or_default();
    let digits: String = date.chars().filter(char::is_ascii_digit).collect();
    let (day, time) = digits.split_at_checked(8).unwrap_or((&digits, ""));
    format!("{extent}-{day}-{time}")
}

/// The last run of an extent; names sort by time.
fn last(out: &Path, extent: Extent) -> Result<String> {
    let begins = format!("{extent}-");
    let folders = fs::read_dir(out).with_context(|| format!("read {}", out.display()))?;
    let names = folders
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned());
    let last = names
        .filter(|name| name.starts_with(&begins) && out.join(name).join(RUN_FILE).exists())
        .max();
    last.with_context(|| {
        format!(
            "{}: found no run whose name begins with {begins}",
            out.display()
        )
    })
}
