//! What must be reached on the acceptance stories.

use serde::Deserialize;

use crate::scenario::Range;

/// Bounds for our scores in one group of stories, each of which counts as 1 at most. What is left out does not bind.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Accept {
    /// Our mean.
    pub mean: Range,
    /// A tenth of our scores lies below.
    #[serde(default)]
    pub tenth: Option<Range>,
    /// Share of the stories in which our score is below 0.7, at most.
    #[serde(default)]
    pub below_seven_tenths: Option<f64>,
    /// How far our score may be behind that without protection in any story in which nothing is overloaded.
    #[serde(default)]
    pub behind_none_where_calm: Option<f64>,
}

#[cfg(test)]
mod tests {
    use crate::targets::Targets;

    #[test]
    fn the_repository_has_bounds_for_classic_stories_and_for_those_of_all_axes() {
        let targets = Targets::read().unwrap();
        let groups: Vec<&str> = targets.accept.keys().map(String::as_str).collect();
        assert_eq!(
            groups,
            [
                "all-axes-one",
                "all-axes-some",
                "classic-one",
                "classic-some"
            ]
        );
        for (group, bounds) in targets.accept {
            let is_calm_bound = bounds.behind_none_where_calm.is_some();
            assert_eq!(is_calm_bound, group.starts_with("all-axes"), "{group}");
        }
    }
}
