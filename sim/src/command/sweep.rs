//! `sweep`: random services and stories with every untuned contender. With `--accept` see [`super::accept`].

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use serde_json::json;
use tidegate_sim::compare::OURS;
use tidegate_sim::kind::ContenderKind;
use tidegate_sim::roster;
use tidegate_sim::scenario::Scenario;
use tidegate_sim::sweep::{
    self, Axes, PlayedStory, Proxies, SweepStanding, axes, behind, standing,
};
use tidegate_sim::targets::{self, Found, Targets};

use super::accept;
use super::stories::{closing, play, save, save_stories};
pub(crate) use super::sweep_options::SweepOptions;
use super::sweep_options::{AxesArgument, ProxiesArgument};

/// How many stories are shown in which we are furthest behind ...
const FURTHEST: usize = 10;
/// ... and how many with our lowest scores.
const LOWEST: usize = 5;

pub(crate) fn run(options: &SweepOptions) -> Result<ExitCode> {
    if options.accept {
        return accept::run(options);
    }
    let contenders = contenders(&options.contenders)?;
    let bounds = bounds(options, &contenders)?;
    let stories = stories(options)?;
    let folder = options.out.join("stories");
    save_stories(&folder, &stories)?;
    let played = play(&stories, &contenders, options.threads)?;
    write_json(options, &played)?;
    let standings = standing::standings(&played);
    out!("{}", standing::text(&standings));
    show(&of_rivals(&played, &contenders));
    out!(
        "to play one again: make sim ARGS=\"run {}/NAME.toml\"",
        folder.display()
    );
    let standings = standing::standings(&of_rivals(&played, &contenders));
    Ok(bounds.map_or(ExitCode::SUCCESS, |bounds| check(bounds, &standings)))
}

fn contenders(names: &[String]) -> Result<Vec<ContenderKind>> {
    if names.is_empty() {
        let all = roster::all().into_iter();
        return Ok(all.filter(|kind| !kind.is_tuned()).collect());
    }
    super::contenders(names)
}

/// The bounds of the sweep, if `--check` asks for them; read before anything is played.
fn bounds(options: &SweepOptions, contenders: &[ContenderKind]) -> Result<Option<targets::Sweep>> {
    if !options.check {
        return Ok(None);
    }
    let rivals = contenders.iter().filter(|kind| !kind.is_bound());
    if rivals.count() < 2 || !contenders.iter().any(|kind| kind.name == OURS) {
        bail!("contenders: to check, expected {OURS} and at least one other");
    }
    let bounds = Targets::read()?.sweep;
    Ok(Some(bounds.context("sim/targets.toml: expected [sweep]")?))
}

fn stories(options: &SweepOptions) -> Result<Vec<Scenario>> {
    let proxies = match options.proxies {
        ProxiesArgument::One => Proxies::One,
        ProxiesArgument::Some => Proxies::Some,
    };
    let Some(end) = options.first.checked_add(options.stories) else {
        bail!("first: found {}, which leaves no numbers", options.first);
    };
    let numbers = options.first..end;
    let axes = match options.axes {
        AxesArgument::Classic => Axes::Classic,
        AxesArgument::All => Axes::All,
    };
    let drawn = numbers.map(|number| sweep::story_of(axes, options.seed, number, proxies));
    Ok(drawn.collect())
}

/// The stories without the scores of bounds, which are not rivals; with them if no rival played.
fn of_rivals(played: &[PlayedStory], contenders: &[ContenderKind]) -> Vec<PlayedStory> {
    let is_other = |kind: &&ContenderKind| kind.name != OURS && !kind.is_bound();
    let mut played = played.to_vec();
    if contenders.iter().any(|kind| is_other(&kind)) {
        for bound in contenders.iter().filter(|kind| kind.is_bound()) {
            for story in &mut played {
                story.scores.remove(bound.name);
            }
        }
    }
    played
}

/// Our scores on each axis, and the stories to look at.
fn show(played: &[PlayedStory]) {
    out!("{}", axes::text(&axes::axes(played)));
    if let Some((one, gap)) = axes::worst_calm(played) {
        out!(
            "nothing overloaded: behind `none` by {gap:.3} at most, in {}\n",
            one.name
        );
    }
    let furthest = behind::furthest(played, FURTHEST);
    if !furthest.is_empty() {
        out!("furthest behind\n{}", behind::text(&furthest));
    }
    let lowest = behind::lowest(played, LOWEST);
    if !lowest.is_empty() {
        out!("lowest of ours\n{}", behind::text(&lowest));
    }
}

/// Prints whether the bounds are met; a failure where one is missed.
fn check(bounds: targets::Sweep, standings: &[SweepStanding]) -> ExitCode {
    let ours = standings.iter().find(|one| one.contender == OURS);
    let other = standings.iter().find(|one| one.contender != OURS);
    // A contender that did not play has no figures and meets no bound.
    let verdicts = bounds.judge(Found {
        mean: ours.map_or(f64::NAN, |one| one.mean),
        best_other: other.map_or(("nobody", f64::NAN), |one| (one.contender, one.mean)),
        below_seven_tenths: ours.map_or(f64::NAN, |one| one.bad),
    });
    closing(&verdicts)
}

fn write_json(options: &SweepOptions, played: &[PlayedStory]) -> Result<()> {
    let document = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "seed": options.seed,
        "stories": played,
    });
    save(
        &options.out.join("sweep.json"),
        &serde_json::to_vec(&document)?,
    )
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use clap::Parser as _;

    use super::*;

    fn parse(args: &[&str]) -> Result<SweepOptions, clap::Error> {
        SweepOptions::try_parse_from([&["sweep"], args].concat())
    }

    #[test]
    fn seeds_from_1000_on_are_for_acceptance() {
        assert_eq!(parse(&["--seed", "999"]).unwrap().seed, 999);
        let error = parse(&["--seed", "1000"]).unwrap_err().to_string();
        assert!(error.contains("expected a seed below 1000"), "{error}");
        assert!(error.contains("--accept"), "{error}");
    }

    #[test]
    fn nobody_chooses_what_is_played_for_acceptance() {
        let options = parse(&["--accept"]).unwrap();
        assert_eq!(options.out, Path::new("out/sim-sweep-accept"));
        assert_eq!(parse(&[]).unwrap().out, Path::new("out/sim-sweep"));
        for choice in ["--seed", "--first", "--stories"] {
            assert!(parse(&["--accept", choice, "7"]).is_err(), "{choice}");
        }
        assert!(parse(&["--accept", "--proxies", "some"]).is_err());
        assert!(parse(&["--accept", "--axes", "all"]).is_err());
    }

    #[test]
    fn a_bound_is_nobody_to_be_ahead_of() {
        let kinds = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            contenders(&names).unwrap()
        };
        let played = [PlayedStory::of(
            "a",
            "t",
            [(OURS, 0.9), ("none", 0.5), ("best-static", 1.0)],
        )];
        let others = |names: &[&str]| {
            let left = of_rivals(&played, &kinds(names));
            left[0].scores.len()
        };
        assert_eq!(others(&[OURS, "none", "best-static"]), 2);
        assert_eq!(others(&[OURS, "best-static"]), 3, "asked for alone");
        let all = kinds(&["all"]);
        assert!(!all.iter().any(ContenderKind::is_bound));
        let named = kinds(&["all", "best-static"]);
        assert_eq!(named.len(), all.len() + 1);
    }
}
