//! `run`: plays studies, and records each cell as soon as it is over.

mod choice;
mod folder;
mod options;

use std::fs;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use tidegate_loadtests::matrix::Cell;
use tidegate_loadtests::result::{CellOutcome, CellResult, Figure};
use tidegate_loadtests::runner::Runner;
use tidegate_loadtests::topology::Ports;
use tidegate_testbed::bench::clock::{BenchClock, spoken};
use tidegate_testbed::envoy;
use tidegate_testbed::run::{interrupted, raise_file_limit};

use choice::RunChoice;

pub(crate) use options::StudyRunOptions;

/// Exit code of a program that was interrupted.
const INTERRUPTED: u8 = 130;

/// Plays the chosen cells; fails if a cell has failed.
pub(crate) async fn run(options: &StudyRunOptions) -> Result<ExitCode> {
    let choice = RunChoice::of(options)?;
    let cells = choice.cells()?;
    if options.list {
        list(&cells);
        return Ok(ExitCode::SUCCESS);
    }
    // If a signal comes first, dropping the run ends the processes of the current cell.
    tokio::select! {
        ended = play_all(options, &choice, &cells) => ended,
        () = interrupted() => {
            eprintln!("\nloadtest: interrupted; what is over is kept, nothing is left running, RESUME=1 goes on");
            Ok(ExitCode::from(INTERRUPTED))
        }
    }
}

fn list(cells: &[Cell]) {
    let mut text: String = cells
        .iter()
        .map(|cell| cell.result(CellOutcome::Ok).name() + "\n")
        .collect();
    let left = BenchClock::new(cells.iter().map(Cell::length)).left();
    text += &format!("{} cells, about {}\n", cells.len(), spoken(left));
    // If a reader closes the pipe, it has seen enough.
    let _ = std::io::stdout().write_all(text.as_bytes());
}

async fn play_all(
    options: &StudyRunOptions,
    choice: &RunChoice,
    cells: &[Cell],
) -> Result<ExitCode> {
    check_parts(choice)?;
    raise_file_limit();
    let (folder, mut journal) = folder::open(options, choice, cells)?;
    let runner = Runner {
        folder: folder.clone(),
        ports: options.first_port.map_or(Ports::Any, Ports::From),
    };
    let is_due = |cell: &&Cell| !journal.has(&cell.result(CellOutcome::Ok));
    let due: Vec<&Cell> = cells.iter().filter(is_due).collect();
    let mut clock = BenchClock::new(due.iter().map(|cell| cell.length()));
    println!(
        "{}: {} of {} cells, about {}",
        folder.display(),
        due.len(),
        cells.len(),
        spoken(clock.left())
    );
    let mut failed = 0;
    for (number, cell) in (cells.len() - due.len() + 1..).zip(due) {
        let head = format!(
            "[{number}/{}] {}",
            cells.len(),
            cell.result(CellOutcome::Ok).name()
        );
        announce(&head, clock.left());
        let begun = Instant::now();
        let result = runner.play(cell, &file_name(cell)).await;
        clock.ended(cell.length(), begun.elapsed());
        journal.note(&result)?;
        failed += u32::from(result.error().is_some());
        println!(
            "{}{head}  {}  ({} left)",
            erase(),
            summary(&result),
            spoken(clock.left())
        );
    }
    println!(
        "results: {}",
        fs::canonicalize(&folder).unwrap_or(folder).display()
    );
    if failed == 0 {
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!(
        "loadtest: {failed} cells failed and are gaps in the report; RESUME=1 plays them again"
    );
    Ok(ExitCode::FAILURE)
}

/// Fails without Envoy or a module, as no cell can be played. A missing tool fails only its own cells.
fn check_parts(choice: &RunChoice) -> Result<()> {
    let native = choice.with_native;
    let native = native.then(|| (envoy::native_module(), "make native"));
    let always = [
        (envoy::binary(), "make tools"),
        (envoy::release_module(), "make module"),
    ];
    for (path, target) in always.into_iter().chain(native) {
        if !path.exists() {
            bail!("{} is missing: run `{target}`", path.display());
        }
    }
    Ok(())
}

/// The name of a cell as a folder name.
fn file_name(cell: &Cell) -> String {
    let name = cell.result(CellOutcome::Ok).name();
    let kept = |letter: char| {
        if letter.is_ascii_alphanumeric() {
            letter
        } else {
            '-'
        }
    };
    let words: Vec<String> = name
        .split_whitespace()
        .map(|word| word.chars().map(kept).collect())
        .collect();
    words.join("_")
}

/// The main figures, or the error, in one line.
fn summary(result: &CellResult) -> String {
    if let Some(error) = result.error() {
        return format!("FAILED: {}", error.lines().next().unwrap_or_default());
    }
    let shown = [
        Figure::Qps,
        Figure::SuccessRatio,
        Figure::GoodputRps,
        Figure::P99Ms,
    ]
    .into_iter();
    let shown = shown.filter_map(|figure| {
        let value = figure.of(&result.figures)?;
        Some(format!("{} {}", figure.head(), figure.shown(value)))
    });
    shown.collect::<Vec<_>>().join(", ")
}

/// On a terminal, shows the current cell until it is over.
fn announce(head: &str, left: Duration) {
    if std::io::stdout().is_terminal() {
        print!("{head}  ({} left)", spoken(left));
        // If the terminal is gone, progress is not needed.
        let _ = std::io::stdout().flush();
    }
}

/// The text that erases an announcement.
fn erase() -> &'static str {
    if std::io::stdout().is_terminal() {
        "\r\x1b[2K"
    } else {
        ""
    }
}
