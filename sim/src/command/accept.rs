//! `sweep --accept`: stories that nobody chose, held against `[accept]` of `sim/targets.toml`.

use std::process::ExitCode;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tidegate_sim::acceptance;
use tidegate_sim::compare::OURS;
use tidegate_sim::contender::Kind;
use tidegate_sim::scenario::Scenario;
use tidegate_sim::sweep::{self, Played, Proxies, Standing, behind, standing};
use tidegate_sim::targets::{Accept, Targets, Verdict};

use super::sweep::{Options, closing, play, save, save_stories};

/// Stories of one kind.
struct Group {
    /// As `[accept]` names it.
    name: &'static str,
    stories: u32,
    proxies: Proxies,
}

/// What is played: 400 stories in all. A kind of stories that can be drawn anew is a group here, and a bound in
/// `[accept]`.
const GROUPS: [Group; 2] = [
    Group {
        name: "one",
        stories: 200,
        proxies: Proxies::One,
    },
    Group {
        name: "some",
        stories: 200,
        proxies: Proxies::Some,
    },
];

/// So many stories are shown with our lowest scores, of each group.
const LOWEST: usize = 5;
/// Who plays where nobody is named.
const CONTENDERS: [&str; 2] = [OURS, "none"];

impl Group {
    fn drawn(&self, seed: u64) -> Vec<Scenario> {
        let drawn = (0..self.stories).map(|number| sweep::story(seed, number, self.proxies));
        drawn.collect()
    }
}

pub(super) fn run(options: &Options) -> Result<ExitCode> {
    let contenders = contenders(&options.contenders)?;
    let targets = Targets::read()?;
    let seed = acceptance::seed()?;
    println!("seed {seed}, which follows from core/src\n");
    let folder = options.out.join("stories");
    let mut verdicts: Vec<Verdict> = Vec::new();
    let mut groups: Vec<Value> = Vec::new();
    for group in &GROUPS {
        let bounds = bounds(&targets, group)?;
        let stories = group.drawn(seed);
        save_stories(&folder, &stories)?;
        let played = play(&stories, &contenders, options.threads)?;
        let standings = standing::standings(&played);
        show(group, &played, &standings);
        groups.push(figures(group, &played, &standings));
        let ours = standings.iter().find(|one| one.contender == OURS);
        verdicts.extend(bounds.judge(group.name, ours));
    }
    let document = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "seed": seed,
        "groups": groups,
    });
    let bytes = serde_json::to_vec(&document)?;
    save(&options.out.join("accept.json"), &bytes)?;
    println!(
        "to play one again: make sim ARGS=\"run {}/NAME.toml\"",
        folder.display()
    );
    Ok(closing(&verdicts))
}

fn contenders(names: &[String]) -> Result<Vec<Kind>> {
    if names.is_empty() {
        return super::contenders(&CONTENDERS.map(str::to_owned));
    }
    super::contenders(names)
}

fn bounds<'a>(targets: &'a Targets, group: &Group) -> Result<&'a Accept> {
    let bounds = targets.accept.get(group.name);
    bounds.with_context(|| format!("sim/targets.toml: expected [accept.{}]", group.name))
}

fn show(group: &Group, played: &[Played], standings: &[Standing]) {
    println!("{}: {} stories", group.name, played.len());
    println!("{}", standing::text(standings));
    let lowest = behind::lowest(played, LOWEST);
    if !lowest.is_empty() {
        println!("lowest of ours\n{}", behind::text(&lowest));
    }
}

fn figures(group: &Group, played: &[Played], standings: &[Standing]) -> Value {
    let standing = |one: &Standing| {
        json!({
            "contender": one.contender,
            "mean": one.mean,
            "tenth": one.tenth,
            "below_seven_tenths": one.bad,
        })
    };
    let standings: Vec<Value> = standings.iter().map(standing).collect();
    json!({"name": group.name, "standings": standings, "stories": played})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_hundred_stories_are_played_and_each_kind_has_its_bounds() {
        let stories: u32 = GROUPS.iter().map(|group| group.stories).sum();
        assert_eq!(stories, 400);
        let targets = Targets::read().unwrap();
        for group in &GROUPS {
            assert!(bounds(&targets, group).is_ok(), "{}", group.name);
        }
    }

    #[test]
    fn tidegate_plays_beside_no_protection_where_nobody_is_named() {
        let names = |kinds: Vec<Kind>| kinds.iter().map(|kind| kind.name).collect::<Vec<_>>();
        assert_eq!(names(contenders(&[]).unwrap()), ["tidegate", "none"]);
        let named = contenders(&["bbr".to_owned()]).unwrap();
        assert_eq!(names(named), ["bbr"]);
    }

    #[test]
    fn groups_do_not_share_a_story() {
        let names = GROUPS.map(|group| group.drawn(7)[0].name.clone());
        assert_ne!(names[0], names[1]);
    }
}
