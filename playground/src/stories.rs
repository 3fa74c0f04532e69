//! The stories of the laboratory, which are in the module.

use tidegate_sim::scenario::{Scenario, ScenarioError};

include!(concat!(env!("OUT_DIR"), "/texts.rs"));

/// The story of a page without a fragment.
pub const FIRST: &str = "step";

/// The names of all stories, in order.
pub fn names() -> impl Iterator<Item = &'static str> {
    TEXTS.iter().map(|(name, _)| *name)
}

/// A story by its name; `None` if there is no such story.
#[must_use]
pub fn named(name: &str) -> Option<Result<Scenario, ScenarioError>> {
    let (name, text) = TEXTS.iter().find(|(known, _)| *known == name)?;
    Some(Scenario::parse(text, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stories_are_those_of_the_laboratory() {
        let there = Scenario::read_folder(&tidegate_sim::scenario::folder()).unwrap();
        assert_eq!(names().count(), there.len());
        for told in there {
            let here = named(&told.name).unwrap().unwrap();
            assert!(here == told, "{}", told.name);
        }
        assert!(named(FIRST).is_some());
    }
}
