//! `k6`: the scenarios of `loadtests/k6`, on a stage of their own or against `BASE_URL`.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Args;
use tidegate_loadtests::report::report;
use tidegate_loadtests::result::{
    CellResult, Circumstances, Extent, LoadtestRun, Parameter, RESULTS_FILE, RUN_FILE, Tool,
};
use tidegate_loadtests::score::ScoreTargets;
use tidegate_loadtests::suite::{self, PlayedTest, SuiteError};
use tidegate_testbed::run;
use tidegate_testbed::variant::Variant;

/// Play the scenarios of `loadtests/k6`, on a stage of their own or against the address in BASE_URL.
#[derive(Debug, Args)]
pub(crate) struct K6Options {
    /// Names of scenarios, separated by commas, or `all`.
    #[arg(long, default_value = "all", value_delimiter = ',')]
    tests: Vec<String>,
    /// The contender that protects the upstream of the stage.
    #[arg(long, default_value = "tidegate")]
    contender: String,
    /// Number of runs of each scenario.
    #[arg(long, default_value_t = 1)]
    repeat: u32,
    /// Folder for results, reports and k6's own files.
    #[arg(long, default_value = "out/k6")]
    out: PathBuf,
}

/// Exit code of a program that was interrupted.
const INTERRUPTED: u8 = 130;

/// Plays the scenarios; fails if a threshold was missed.
pub(crate) async fn run(options: &K6Options) -> Result<ExitCode> {
    let tests = suite::chosen(&options.tests)?;
    fs::create_dir_all(&options.out).with_context(|| format!("make {}", options.out.display()))?;
    let is_outside = has_address()?;
    let all = async {
        if is_outside {
            outside(&tests, options).await
        } else {
            on_stage(&tests, options).await
        }
    };
    // If a signal comes first, dropping the run ends k6 and Envoy.
    tokio::select! {
        ended = all => ended,
        () = run::interrupted() => {
            eprintln!("\nk6: interrupted; nothing is left running");
            Ok(ExitCode::from(INTERRUPTED))
        }
    }
}

/// Whether `BASE_URL` names an address, in the environment or in the file that `ENVIRONMENT` names.
fn has_address() -> Result<bool> {
    let set = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    if set("BASE_URL").is_some() {
        return Ok(true);
    }
    let Some(path) = set("ENVIRONMENT") else {
        return Ok(false);
    };
    let text = fs::read_to_string(&path).with_context(|| format!("read {path}"))?;
    names_address(&text).with_context(|| format!("read {path}"))
}

/// Whether the file of an environment names an address.
fn names_address(text: &str) -> Result<bool> {
    let file: serde_json::Value = serde_json::from_str(text)?;
    let address = file.pointer("/settings/BASE_URL");
    Ok(address
        .and_then(serde_json::Value::as_str)
        .is_some_and(|address| !address.is_empty()))
}

/// Plays against an external address: only k6's verdicts and pages are available.
async fn outside(tests: &[&str], options: &K6Options) -> Result<ExitCode> {
    let mut is_well = true;
    for test in tests {
        is_well &= told(test, suite::outside(test, &options.out).await, options);
    }
    Ok(if is_well {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

async fn on_stage(tests: &[&str], options: &K6Options) -> Result<ExitCode> {
    let variant: Variant = options.contender.parse()?;
    if let Some((module, target)) = variant.module().filter(|(module, _)| !module.exists()) {
        bail!(
            "contender {variant}: {} is missing: run `{target}`",
            module.display()
        );
    }
    run::raise_file_limit();
    let repeat = usize::try_from(options.repeat).unwrap_or(usize::MAX);
    let info = Circumstances {
        run: "k6".to_owned(),
        extent: if options.tests.iter().any(|name| name == "all") {
            Extent::Full
        } else {
            Extent::Reduced
        },
        parameters: [("tests".to_owned(), Parameter::Text(tests.join(",")))].into(),
        planned: [(suite::STUDY.to_owned(), tests.len().saturating_mul(repeat))].into(),
        tools: vec![Tool::K6],
    };
    let info = info.gather()?;
    let path = options.out.join(RUN_FILE);
    fs::write(&path, serde_json::to_string_pretty(&info)?)
        .with_context(|| format!("write {}", path.display()))?;
    let path = options.out.join(RESULTS_FILE);
    let mut results =
        fs::File::create(&path).with_context(|| format!("write {}", path.display()))?;
    let mut is_well = true;
    for repetition in 0..options.repeat {
        for test in tests {
            let played = suite::on_stage(test, variant, repetition, &options.out).await;
            let result = match &played {
                Ok(PlayedTest { result, .. }) => result.clone(),
                Err(error) => Some(suite::failed(test, variant, repetition, said(error))),
            };
            if let Some(result) = &result {
                writeln!(results, "{}", serde_json::to_string(result)?)
                    .with_context(|| format!("write {}", path.display()))?;
            }
            is_well &= told(test, played, options);
        }
    }
    let run = LoadtestRun::read(&options.out)?;
    super::report::write(
        &report(&[run], &ScoreTargets::ours()?),
        &options.out,
        "report",
    )?;
    Ok(if is_well {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Prints the result of a test; returns whether it passed.
fn told(test: &str, played: Result<PlayedTest, SuiteError>, options: &K6Options) -> bool {
    match played {
        Err(error) => {
            eprintln!("{test:<12} FAILED: {}", said(&error));
            false
        }
        Ok(PlayedTest {
            result,
            thresholds,
            missed,
        }) => {
            let figures = result.as_ref().map_or_else(String::new, summary);
            let (word, count) = if missed.is_empty() {
                ("kept", thresholds)
            } else {
                ("MISSED", missed.len())
            };
            println!("{test:<12} {word:<6} {count} of {thresholds} thresholds{figures}");
            for threshold in &missed {
                println!("{:<12} missed {threshold}", "");
            }
            if !missed.is_empty() {
                println!(
                    "{:<12} see {}",
                    "",
                    options.out.join(format!("{test}.log")).display()
                );
            }
            missed.is_empty()
        }
    }
}

/// The main figures in one line.
fn summary(result: &CellResult) -> String {
    use tidegate_loadtests::result::Figure;
    let of = |figure: Figure| {
        figure
            .of(&result.figures)
            .map_or_else(|| "-".to_owned(), |value| figure.shown(value))
    };
    format!(
        ", {} requests/s, good {}/s, shed {} %, p99 {} ms",
        of(Figure::Qps),
        of(Figure::GoodputRps),
        of(Figure::ShedRatio),
        of(Figure::P99Ms)
    )
}

/// An error with its causes.
fn said(error: &SuiteError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(next) = cause {
        text += &format!(": {next}");
        cause = next.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_of_an_environment_may_name_the_address() {
        let named = |text: &str| names_address(text).unwrap();
        assert!(named(r#"{"settings": {"BASE_URL": "http://a"}}"#));
        assert!(!named(r#"{"settings": {"BASE_URL": ""}}"#));
        assert!(!named(r#"{"settings": {"SLO_MS": 250}}"#));
        assert!(!named(r#"{"thresholds": {}}"#));
        assert!(names_address("no JSON").is_err());
    }
}
