//! What a story of all axes has beyond the classic ones.
//!
//! Each extra changes the finished story, so that a story without any is the classic story of its number. Changes of the
//! service come before changes of the clients.

use super::uniform::Uniform;
use super::{callers, responses};
use crate::scenario::Scenario;

/// One extra.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extra {
    /// Every answer takes longer than the objective.
    Unreachable,
    /// Responses with bodies, which hold a slot or not, after headers that come early or not.
    Body,
    Contention,
    Backlog,
    Pauses,
    /// Long streams beside ordinary requests.
    Streams,
    Uploads,
    /// A caller beyond its quota.
    Quota,
    /// A caller that asks for a path that always fails.
    Crash,
    /// A part of the requests takes longer.
    SlowClass,
    /// A part of the requests takes longer, and that part changes.
    MixShift,
    /// The service becomes slower, and is never overloaded.
    Slower,
}

const OTHERS: [Extra; 11] = {
    use Extra::{
        Backlog, Contention, Crash, MixShift, Pauses, Quota, SlowClass, Slower, Streams,
        Unreachable, Uploads,
    };
    [
        Unreachable,
        Contention,
        Backlog,
        Pauses,
        Streams,
        Slower,
        SlowClass,
        MixShift,
        Uploads,
        Quota,
        Crash,
    ]
};

/// Chance that responses have bodies; of each of the others it is about 0.12.
const BODIES: f64 = 0.35;

/// Draws the extras of a story, none in one of nine, and applies them.
pub(super) fn add(story: &mut Scenario, uniform: &mut Uniform) {
    let has_body = uniform.happens(BODIES);
    let most = uniform.one_of(0, &[1, 1, 2, 2, 2]);
    let mut chosen = uniform.some_of(&OTHERS, most);
    if has_body {
        // After the objective, before what depends on slots.
        let place = usize::from(chosen.first() == Some(&Extra::Unreachable));
        chosen.insert(place, Extra::Body);
    }
    // These change the same requests: only the first of them is kept.
    let is_mix =
        |extra: &Extra| matches!(extra, Extra::Slower | Extra::SlowClass | Extra::MixShift);
    let mut mixes = 0;
    chosen.retain(|extra| {
        mixes += usize::from(is_mix(extra));
        !is_mix(extra) || mixes < 2
    });
    let mut words = Vec::new();
    for extra in chosen {
        words.extend(match extra {
            Extra::Unreachable => Some(responses::unreachable(story)),
            Extra::Body => responses::body(story, uniform),
            Extra::Contention => responses::contention(story, uniform),
            Extra::Backlog => responses::backlog(story, uniform),
            Extra::Pauses => responses::pauses(story, uniform),
            Extra::Streams => callers::streams(story, uniform),
            Extra::Slower => callers::slower_for_all(story, uniform),
            Extra::SlowClass => callers::slow_class(story, uniform),
            Extra::MixShift => callers::mix_shift(story, uniform),
            Extra::Uploads => callers::uploads(story, uniform),
            Extra::Quota => callers::quota(story, uniform),
            Extra::Crash => callers::crash(story, uniform),
        });
    }
    for word in words {
        story.title.push_str("; ");
        story.title.push_str(&word);
    }
}
