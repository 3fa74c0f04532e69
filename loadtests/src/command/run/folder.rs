//! The folder of a run, and its conditions.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use tidegate_loadtests::journal::ResultJournal;
use tidegate_loadtests::matrix::Cell;
use tidegate_loadtests::result::{Circumstances, Parameter, RUN_FILE, Tool};
use tidegate_loadtests::tool::program;
use tidegate_testbed::about;
use tidegate_testbed::envoy::native_module;

use super::choice::{CELLS, NATIVE, REPEAT, RunChoice, STUDIES};
use super::options::StudyRunOptions;

/// Opens the folder and the journal of a new or a resumed run.
pub(super) fn open(
    options: &StudyRunOptions,
    choice: &RunChoice,
    cells: &[Cell],
) -> Result<(PathBuf, ResultJournal)> {
    let tools: BTreeSet<Tool> = cells.iter().map(Cell::tool).collect();
    let is_there = |tool: &Tool| tool.program().is_none_or(|name| program(name).is_ok());
    let mut planned: BTreeMap<String, usize> = BTreeMap::new();
    for cell in cells {
        *planned.entry(cell.study.to_owned()).or_default() += 1;
    }
    let text = |text: &str| Parameter::Text(text.to_owned());
    let mut parameters: BTreeMap<String, Parameter> = [
        (STUDIES.to_owned(), text(&choice.studies.join(","))),
        (CELLS.to_owned(), text(&choice.part)),
        ("envoy_workers".to_owned(), Parameter::Number(1.0)),
        (REPEAT.to_owned(), choice.repeat.into()),
    ]
    .into();
    if choice.with_native {
        // The digest of the module, because a run must not be resumed with another one.
        let module = native_module();
        let digest =
            about::sha256(&module).with_context(|| format!("read {}", module.display()))?;
        parameters.insert(NATIVE.to_owned(), text(&digest));
    }
    let info = Circumstances {
        run: choice.name.clone(),
        extent: choice.extent,
        parameters,
        planned,
        tools: tools.into_iter().filter(is_there).collect(),
    }
    .gather()?;
    let folder = options.out.join(&choice.name);
    let journal = if options.resume {
        ResultJournal::resume(&folder, &info)?
    } else if folder.join(RUN_FILE).exists() {
        bail!(
            "{}: found a run, expected none (RESUME=1 goes on with it)",
            folder.display()
        );
    } else {
        ResultJournal::begin(&folder, &info)?
    };
    Ok((folder, journal))
}
