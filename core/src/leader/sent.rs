//! The directive of one upstream as it was last published.
//!
//! Workers know a directive by its stamp, and skip one that they follow already. Learned state changes a little in every
//! round, even while the upstream has no requests: its usual rate, for example, decays. So for an upstream at rest, changes
//! of learned state alone are published only once a second. Changes that workers act on are published at once.

use core::time::Duration;

use super::controller::MergedReports;
use crate::exchange::{Directive, Directives};
use crate::time::Instant;

/// How often learned state of an upstream at rest is published if nothing else changed.
const LEARNED_EVERY: Duration = Duration::from_secs(1);

/// Whether the upstream has requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UpstreamUse {
    /// It has, or requests ended in the round.
    InUse,
    /// It has none.
    AtRest,
}

impl UpstreamUse {
    /// Judges a round. Requests that end count as well, because the laws learn from them.
    pub(super) fn of(round: &MergedReports) -> Self {
        if round.is_active() || round.sample.tally.fingerprint() != 0 {
            Self::InUse
        } else {
            Self::AtRest
        }
    }
}

/// How a directive differs from the one that was last published.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum DirectiveNews {
    /// In nothing.
    Nothing,
    /// In learned state alone.
    Learned,
    /// In what workers act on, or none was published.
    Act,
}

impl DirectiveNews {
    /// What `now` says that `before` did not.
    pub(super) fn between(before: &Directive, now: &Directive) -> Self {
        let acts_alike = Directive {
            learned: before.learned,
            ..*now
        } == *before;
        match acts_alike {
            false => Self::Act,
            true if before.learned != now.learned => Self::Learned,
            true => Self::Nothing,
        }
    }
}

/// One upstream's directive as it was last published: its bytes. What it said is not kept.
#[derive(Debug)]
pub(super) struct SentDirective {
    at: Instant,
    pub(super) entry: Box<[u8]>,
}

impl SentDirective {
    /// None was published yet.
    pub(super) fn none() -> Self {
        Self {
            at: Instant::ZERO,
            entry: Box::default(),
        }
    }

    /// Publishes this directive with this stamp from now on.
    pub(super) fn replace(&mut self, directive: &Directive, stamp: u32, now: Instant) {
        // In its old room, if that is as long.
        let mut entry = core::mem::take(&mut self.entry).into_vec();
        entry.clear();
        Directives::write(directive, stamp, &mut entry);
        *self = Self {
            at: now,
            entry: entry.into(),
        };
    }

    /// Whether the bytes need not be replaced yet. `news` is what has changed since; what changed and changed back counts as news,
    /// which is published for nothing.
    pub(super) fn is_current(
        &self,
        news: DirectiveNews,
        demand: UpstreamUse,
        now: Instant,
    ) -> bool {
        match news {
            DirectiveNews::Nothing => true,
            DirectiveNews::Learned => {
                let is_soon = self.at <= now && now.saturating_since(self.at) < LEARNED_EVERY;
                demand == UpstreamUse::AtRest && is_soon
            }
            DirectiveNews::Act => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::PerSecond;

    const BACKEND: u64 = 7;

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    fn learned(rate: f64) -> Directive {
        let mut directive = Directive::unknown(BACKEND);
        directive.learned.breaker.rates.outcomes = PerSecond::new(rate);
        directive
    }

    /// Whether each of these directives, a tenth of a second apart, is published with a stamp of its own.
    fn published(demand: UpstreamUse, directives: &[Directive]) -> Vec<bool> {
        let mut sent = SentDirective::none();
        let mut news = DirectiveNews::Act;
        let mut last = Directive::unknown(BACKEND);
        let mut before = Vec::new();
        let rounds = directives.iter().zip(1..);
        let published = rounds.map(|(directive, round)| {
            let now = at(100 * u64::from(round));
            news = news.max(DirectiveNews::between(&last, directive));
            last = *directive;
            if !sent.is_current(news, demand, now) {
                sent.replace(directive, round, now);
                news = DirectiveNews::Nothing;
            }
            let entry = sent.entry.to_vec();
            let is_new = entry != before;
            before = entry;
            is_new
        });
        published.collect()
    }

    #[test]
    fn an_unchanged_directive_keeps_its_stamp() {
        let same = [learned(5.0); 3];
        assert_eq!(published(UpstreamUse::InUse, &same), [true, false, false]);
    }

    #[test]
    fn learned_state_is_published_at_once_in_use_and_once_a_second_at_rest() {
        let decaying: Vec<Directive> = (0..25_u8).map(|it| learned(f64::from(it))).collect();
        assert!(
            published(UpstreamUse::InUse, &decaying)
                .iter()
                .all(|new| *new)
        );
        let at_rest = published(UpstreamUse::AtRest, &decaying);
        let rounds = at_rest.iter().enumerate().filter(|(_, new)| **new);
        assert_eq!(
            rounds.map(|(round, _)| round).collect::<Vec<_>>(),
            [0, 10, 20]
        );
    }

    #[test]
    fn changes_that_workers_act_on_are_published_at_once() {
        let wider = Directive {
            limit: 9,
            reserve: 9,
            ..learned(4.0)
        };
        let directives = [learned(5.0), wider, learned(3.0)];
        assert_eq!(published(UpstreamUse::AtRest, &directives), [true; 3]);
    }

    #[test]
    fn a_clock_that_jumped_back_delays_nothing() {
        let mut sent = SentDirective::none();
        sent.replace(&learned(5.0), 1, at(9_000));
        let is_current =
            |millis| sent.is_current(DirectiveNews::Learned, UpstreamUse::AtRest, at(millis));
        assert!(is_current(9_900) && !is_current(10_000) && !is_current(100));
    }
}
