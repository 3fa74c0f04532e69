//! What the page shows before there is a run: stories, rivals, settings, and texts for reasons.

use std::collections::BTreeMap;

use serde::Serialize;
use tidegate_core::ShedReason;
use tidegate_sim::roster;
use tidegate_sim::tidegate;

use crate::explain;
use crate::field::SettingField;
use crate::load::{LoadUnit, MOST_PARTS};
use crate::objective::OBJECTIVES;
use crate::settings::{FIRST_RIVAL, OWN};
use crate::stories;
use crate::table;

/// All facts.
#[derive(Debug, Serialize)]
pub struct Facts {
    /// The name of the custom story.
    own: &'static str,
    stories: Vec<Titled<String>>,
    /// Tidegate, which the rivals are compared with.
    tidegate: &'static str,
    rivals: Vec<Titled<&'static str>>,
    first_rival: &'static str,
    fields: Vec<SettingField>,
    objectives_ms: [u32; 2],
    /// The greatest level of a load, by its unit.
    most_levels: BTreeMap<&'static str, f64>,
    most_parts: usize,
    /// The text for each reason to shed, by its name.
    sheds: BTreeMap<&'static str, &'static str>,
}

#[derive(Debug, Serialize)]
struct Titled<T> {
    name: &'static str,
    title: T,
}

impl Facts {
    /// All of them.
    #[must_use]
    pub fn all() -> Self {
        let told = stories::names().filter_map(|name| {
            let title = stories::named(name)?.ok()?.title;
            Some(Titled { name, title })
        });
        let rivals = roster::all().into_iter();
        let rivals = rivals.filter(|kind| kind.name != tidegate::KIND.name);
        let sheds = ShedReason::ALL.iter();
        Self {
            own: OWN,
            stories: told.collect(),
            tidegate: tidegate::KIND.name,
            rivals: rivals
                .map(|kind| Titled {
                    name: kind.name,
                    title: kind.title,
                })
                .collect(),
            first_rival: FIRST_RIVAL,
            fields: table::all(),
            objectives_ms: OBJECTIVES,
            most_levels: LoadUnit::ALL.map(|unit| (unit.name(), unit.most())).into(),
            most_parts: MOST_PARTS,
            sheds: sheds
                .map(|reason| (reason.as_str(), explain::shed(*reason)))
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_story_and_every_rival_that_competes_is_there() {
        let facts = Facts::all();
        assert_eq!(facts.stories.len(), stories::names().count());
        assert_eq!(facts.rivals.len(), roster::all().len() - 1);
        assert!(facts.rivals.iter().any(|rival| rival.name == FIRST_RIVAL));
    }
}
