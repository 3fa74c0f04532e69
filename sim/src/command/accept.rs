//! `sweep --accept`: acceptance stories, checked against `[accept]` of `sim/targets.toml`.

use std::process::ExitCode;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tidegate_sim::acceptance;
use tidegate_sim::compare::OURS;
use tidegate_sim::kind::ContenderKind;
use tidegate_sim::scenario::Scenario;
use tidegate_sim::sweep::{
    self, Axes, PlayedStory, Proxies, SweepStanding, axes, behind, standing,
};
use tidegate_sim::targets::{Accept, TargetVerdict, Targets};

use super::stories::{closing, play, save, save_stories};
use super::sweep_options::SweepOptions;

/// Stories of one kind.
struct KindOfStories {
    /// As `[accept]` names it.
    name: &'static str,
    axes: Axes,
    proxies: Proxies,
}

/// The groups of stories that are played, each with a bound in `[accept]`.
const GROUPS: [KindOfStories; 4] = [
    KindOfStories {
        name: "classic-one",
        axes: Axes::Classic,
        proxies: Proxies::One,
    },
    KindOfStories {
        name: "classic-some",
        axes: Axes::Classic,
        proxies: Proxies::Some,
    },
    KindOfStories {
        name: "all-axes-one",
        axes: Axes::All,
        proxies: Proxies::One,
    },
    KindOfStories {
        name: "all-axes-some",
        axes: Axes::All,
        proxies: Proxies::Some,
    },
];

/// Stories of each group: 400 in all.
const STORIES: u32 = 100;
/// How many stories with our lowest scores are shown for each group.
const LOWEST: usize = 5;
/// The contenders if none is named.
const CONTENDERS: [&str; 2] = [OURS, "none"];

impl KindOfStories {
    fn drawn(&self, seed: u64) -> Vec<Scenario> {
        let story = |number| sweep::story_of(self.axes, seed, number, self.proxies);
        (0..STORIES).map(story).collect()
    }
}

pub(super) fn run(options: &SweepOptions) -> Result<ExitCode> {
    let contenders = contenders(&options.contenders)?;
    let targets = Targets::read()?;
    let seed = acceptance::seed()?;
    out!("seed {seed}, which follows from core/src\n");
    let folder = options.out.join("stories");
    let mut verdicts: Vec<TargetVerdict> = Vec::new();
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
        verdicts.extend(bounds.judge(group.name, ours, &played));
    }
    let document = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "seed": seed,
        "groups": groups,
    });
    let bytes = serde_json::to_vec(&document)?;
    save(&options.out.join("accept.json"), &bytes)?;
    out!(
        "to play one again: make sim ARGS=\"run {}/NAME.toml\"",
        folder.display()
    );
    Ok(closing(&verdicts))
}

fn contenders(names: &[String]) -> Result<Vec<ContenderKind>> {
    if names.is_empty() {
        return super::contenders(&CONTENDERS.map(str::to_owned));
    }
    super::contenders(names)
}

fn bounds<'a>(targets: &'a Targets, group: &KindOfStories) -> Result<&'a Accept> {
    let bounds = targets.accept.get(group.name);
    bounds.with_context(|| format!("sim/targets.toml: expected [accept.{}]", group.name))
}

fn show(group: &KindOfStories, played: &[PlayedStory], standings: &[SweepStanding]) {
    out!("{}: {} stories", group.name, played.len());
    out!("{}", standing::text(standings));
    if group.axes == Axes::All {
        out!("{}", axes::text(&axes::axes(played)));
        if let Some((one, gap)) = axes::worst_calm(played) {
            out!(
                "nothing overloaded: behind `none` by {gap:.3} at most, in {}\n",
                one.name
            );
        }
    }
    let lowest = behind::lowest(played, LOWEST);
    if !lowest.is_empty() {
        out!("lowest of ours\n{}", behind::text(&lowest));
    }
}

fn figures(group: &KindOfStories, played: &[PlayedStory], standings: &[SweepStanding]) -> Value {
    let standing = |one: &SweepStanding| {
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
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn four_hundred_stories_are_played_and_each_kind_has_its_bounds() {
        let stories: usize = GROUPS.iter().map(|group| group.drawn(7).len()).sum();
        assert_eq!(stories, 400);
        let targets = Targets::read().unwrap();
        for group in &GROUPS {
            assert!(bounds(&targets, group).is_ok(), "{}", group.name);
        }
    }

    #[test]
    fn tidegate_plays_beside_no_protection_where_nobody_is_named() {
        let names =
            |kinds: Vec<ContenderKind>| kinds.iter().map(|kind| kind.name).collect::<Vec<_>>();
        assert_eq!(names(contenders(&[]).unwrap()), ["tidegate", "none"]);
        let named = contenders(&["bbr".to_owned()]).unwrap();
        assert_eq!(names(named), ["bbr"]);
    }

    #[test]
    fn groups_do_not_share_a_story() {
        let names: BTreeSet<String> = GROUPS
            .iter()
            .flat_map(|group| group.drawn(7))
            .map(|story| story.name)
            .collect();
        assert_eq!(names.len(), 400);
    }
}
