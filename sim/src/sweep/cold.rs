//! A story of all axes that begins under overload, so that a filter cannot first learn the service under normal load. It is
//! drawn last, so that a story without it does not change.

use super::uniform::Uniform;
use crate::scenario::Scenario;

/// Chance that a story begins so.
const COLD: f64 = 0.15;

/// Draws whether a story begins at the highest rate it comes to, where that is more than the service can serve.
pub(super) fn add(story: &mut Scenario, uniform: &mut Uniform) {
    if !uniform.happens(COLD) {
        return;
    }
    let Some(client) = story.clients.first_mut() else {
        return;
    };
    let rates = client.load.iter().filter_map(|point| point.x);
    let most = rates.fold(0.0, f64::max);
    let Some(first) = client.load.first_mut() else {
        return;
    };
    if most > 1.0 && first.x.is_some_and(|x| x < most) {
        first.x = Some(most);
        story.title.push_str("; overloaded from the start");
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Axes, Proxies, story_of};
    use super::*;

    #[test]
    fn a_cold_start_begins_at_the_highest_rate() {
        let stories = (0..200).map(|number| story_of(Axes::All, 1, number, Proxies::One));
        let cold: Vec<Scenario> = stories
            .filter(|story| story.title.contains("overloaded from the start"))
            .collect();
        assert!((5..=40).contains(&cold.len()), "{}", cold.len());
        for story in cold {
            let load = &story.clients[0].load;
            let most = load.iter().filter_map(|point| point.x).fold(0.0, f64::max);
            assert!(most > 1.0 && load[0].x == Some(most), "{}", story.title);
        }
    }
}
