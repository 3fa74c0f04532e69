//! Learned state that outlives its process, and which of it is still believed then.
//!
//! ```text
//! mark | envelope of: plugin, clocks | learned state, in an envelope of its own
//! ```
//!
//! The monotonic clock of another process, or of another boot, has another start. So both clocks are saved together, and the
//! wall clock tells how much time has passed.
//!
//! What is learned slowly stays true for long: the latency without a queue, the capacity, the share of failures that is
//! usual. What describes a moment does not:
//!
//! - A breaker stays open as long as its interval lasts, and is closed afterwards. Callers would otherwise wait for probes of an
//!   upstream that may have been back for long.
//! - A standing queue and a ceiling from failures are believed for a minute: [`FRESH_FOR`]. Later, there is no limit until
//!   the first decision, a tick or two after the first request.
//! - Counts of requests under way, of probes and of workers are those of the process that ended.
//! - The rate of outcomes is forgotten. A proxy that has just started may have a fraction of the traffic, which must not look
//!   like an outage.

use core::time::Duration;

use serde::{Deserialize, Serialize};

use super::directive::Directive;
use super::directives::Directives;
use super::envelope::{WIRE_VERSION, WireError, open, seal};
use crate::breaker::{BreakerState, FIRST_FAILURE_RATE, Thresholds};
use crate::ladder::Margin;
use crate::limit::Quantiles;
use crate::time::Instant;
use crate::units::PerSecond;

/// What the bytes begin with.
const MARK: &[u8] = b"tidegate learned state\n";
/// How long a standing queue is believed.
const FRESH_FOR: Duration = Duration::from_secs(60);
/// How long anything is believed. A restart takes seconds; after an hour the services may be others.
const MAX_AGE: Duration = Duration::from_secs(3_600);
/// Wall clocks are set right by less than this.
const MAX_CLOCK_STEP: Duration = Duration::from_secs(60);
/// The usual share of failures is known, and the rate of outcomes is not: the least rate that is not 0.
const LEAST_RATE: PerSecond = PerSecond::new(1e-6);

/// The clocks of a process at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clocks {
    /// The clock that all verbs of the engine are given.
    pub monotonic: Instant,
    /// The wall clock, since its epoch.
    pub wall: Instant,
}

/// Learned state of one plugin, as it was saved.
#[derive(Clone, Debug, PartialEq)]
pub struct SavedState {
    /// The plugin's name.
    pub plugin: String,
    /// When it was saved.
    pub clocks: Clocks,
    /// Learned state.
    pub learned: Directives<'static>,
}

/// Saved state that is not used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SavedStateError {
    /// It is something else.
    #[error("found other content, expected learned state of Tidegate")]
    Foreign,
    /// Another version of the module wrote it.
    #[error("found version {found}, expected {WIRE_VERSION}")]
    Version {
        /// The version of the wire format.
        found: u8,
    },
    /// It was cut off or damaged.
    #[error("found learned state that is cut off or damaged, expected all of it")]
    Damaged,
    /// It is whole, but no leader can have written it.
    #[error("found {field} out of range, expected learned state as Tidegate writes it")]
    OutOfRange {
        /// The field of a [`Directive`].
        field: &'static str,
    },
    /// It is that of another plugin.
    #[error("found learned state of {found:?}, expected that of {expected:?}")]
    OfAnother {
        /// The plugin that it is of.
        found: String,
        /// The plugin that it was to be of.
        expected: String,
    },
    /// It was learned too long ago.
    #[error("found learned state {} s old, expected at most {} s", age.as_secs(), MAX_AGE.as_secs())]
    TooOld {
        /// How long ago.
        age: Duration,
    },
    /// The wall clock was set back since.
    #[error("found learned state from {} s in the future, expected the past", ahead.as_secs())]
    FromTheFuture {
        /// How far ahead.
        ahead: Duration,
    },
}

impl From<WireError> for SavedStateError {
    fn from(error: WireError) -> Self {
        match error {
            WireError::Version { found } => Self::Version { found },
            WireError::Malformed => Self::Damaged,
            WireError::OutOfRange { field } => Self::OutOfRange { field },
        }
    }
}

impl SavedState {
    /// The bytes to save. `learned` is what [`Directives::encode`] wrote.
    #[must_use]
    pub fn encode(plugin: &str, clocks: Clocks, learned: &[u8]) -> Vec<u8> {
        let mut bytes = MARK.to_vec();
        bytes.extend(seal(&(plugin, clocks), learned.to_vec()));
        bytes
    }

    /// Reads what [`SavedState::encode`] wrote: all of it or nothing.
    ///
    /// # Errors
    /// If the bytes are something else, of another version, damaged, or have a number that no leader writes.
    pub fn decode(bytes: &[u8]) -> Result<Self, SavedStateError> {
        let sealed = bytes.strip_prefix(MARK).ok_or(SavedStateError::Foreign)?;
        let ((plugin, clocks), learned) = open::<(String, Clocks)>(sealed.into())?;
        Ok(Self {
            plugin,
            clocks,
            learned: Directives::decode(learned.into_owned())?,
        })
    }

    /// What of it is still believed by the plugin with this name, in the time of the present process.
    ///
    /// # Errors
    /// If it is of another plugin, too old, or from the future.
    pub fn restore(
        &self,
        plugin: &str,
        now: Clocks,
    ) -> Result<Directives<'static>, SavedStateError> {
        if self.plugin != plugin {
            return Err(SavedStateError::OfAnother {
                found: self.plugin.clone(),
                expected: plugin.to_owned(),
            });
        }
        let ahead = self.clocks.wall.saturating_since(now.wall);
        if ahead > MAX_CLOCK_STEP {
            return Err(SavedStateError::FromTheFuture { ahead });
        }
        let restart = Restart {
            then: self.clocks.monotonic,
            now: now.monotonic,
            took: now.wall.saturating_since(self.clocks.wall),
        };
        let unsaved = restart.then.saturating_since(self.learned.at);
        let age = restart.took.saturating_add(unsaved);
        if age > MAX_AGE {
            return Err(SavedStateError::TooOld { age });
        }
        let entries = self.learned.entries();
        let entries = entries.map(|entry| restart.restore(entry, age));
        Ok(Directives::new(self.learned.leader, now.monotonic, entries))
    }
}

/// From one process to the next.
#[derive(Clone, Copy, Debug)]
struct Restart {
    /// When it began, by the clock of the one.
    then: Instant,
    /// When it ended, by the clock of the other.
    now: Instant,
    took: Duration,
}

impl Restart {
    /// An instant of the one in the time of the other.
    fn carry(&self, instant: Instant) -> Instant {
        let ahead = instant.saturating_since(self.then);
        let behind = self.then.saturating_since(instant);
        self.now + ahead - self.took.saturating_add(behind)
    }

    fn restore(&self, mut entry: Directive, age: Duration) -> Directive {
        let limit = &mut entry.learned.limit;
        limit.latest = Quantiles::default();
        if age > FRESH_FOR && (limit.hold.is_some() || limit.ceiling.is_some()) {
            (limit.hold, limit.ceiling) = (None, None);
            entry.limit = u32::MAX;
        }
        let breaker = &mut entry.learned.breaker;
        let usual = breaker.rates.usual_failures();
        if usual.is_some() {
            breaker.rates.outcomes = LEAST_RATE;
        }
        entry.breaker = self.reopen(entry.breaker, usual.unwrap_or(FIRST_FAILURE_RATE));
        if entry.breaker == BreakerState::Closed {
            breaker.outage = None;
        } else if let Some(outage) = &mut breaker.outage {
            outage.since = self.carry(outage.since);
        }
        Directive {
            reserve: entry.limit,
            // The ceilings of probes and grants count from zero in this process.
            grants: None,
            margin: Margin::NONE,
            workers: 1,
            unended: 0,
            // All requests of this process are later.
            answered_up_to: Instant::ZERO,
            ..entry
        }
    }

    /// The state of the breaker. No probes have been sent yet in this process, by which the ceiling counts.
    fn reopen(&self, state: BreakerState, usual_failures: f64) -> BreakerState {
        match state {
            BreakerState::Open { until, .. } if self.carry(until) > self.now => {
                BreakerState::Open {
                    until: self.carry(until),
                    probes: Thresholds::new(usual_failures, 0.0, 1.0).probes.into(),
                }
            }
            BreakerState::Open { .. } | BreakerState::Ramp { .. } | BreakerState::Closed => {
                BreakerState::Closed
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::breaker::{BreakerCheckpoint, Outage, RatesCheckpoint};
    use crate::learned::Learned;
    use crate::limit::{FloorCheckpoint, LimitCheckpoint};
    use crate::units::{Requests, Seconds, Share};

    const SECOND: Duration = Duration::from_secs(1);
    const MINUTE: Duration = Duration::from_secs(60);
    /// The process that saves has run for an hour, since a boot that was some days ago.
    const SAVED: Clocks = Clocks {
        monotonic: Instant::from_nanos(500_000_000_000_000),
        wall: Instant::from_nanos(1_700_000_000_000_000_000),
    };

    /// The clocks of a process after another boot, this long after the save.
    fn after(span: Duration) -> Clocks {
        Clocks {
            monotonic: Instant::from_nanos(7_000_000_000),
            wall: SAVED.wall + span,
        }
    }

    /// An overloaded upstream, of which much is learned.
    fn directive() -> Directive {
        Directive {
            epoch: 4,
            limit: 12,
            reserve: 20,
            margin: Margin {
                share: 0.5,
                ..Margin::NONE
            },
            workers: 3,
            unended: 80,
            answered_up_to: SAVED.monotonic,
            learned: Learned {
                limit: LimitCheckpoint {
                    floor: FloorCheckpoint {
                        low: Seconds::new(0.01),
                        mean: Seconds::new(0.02),
                        tail: Seconds::new(0.05),
                    },
                    capacity: PerSecond::new(300.0),
                    hold: Some(Requests::new(12.0)),
                    endpoints: 2,
                    ..LimitCheckpoint::default()
                },
                breaker: BreakerCheckpoint {
                    rates: RatesCheckpoint {
                        failures: Share::new(0.25),
                        outcomes: PerSecond::new(300.0),
                    },
                    latency: Seconds::new(0.03),
                    outage: None,
                },
            },
            ..Directive::unknown(7)
        }
    }

    fn open(until: Instant) -> Directive {
        let mut open = directive();
        open.breaker = BreakerState::Open { until, probes: 99 };
        open.learned.breaker.outage = Some(Outage {
            since: SAVED.monotonic - SECOND * 3,
            open_interval_ms: 60_000,
        });
        open
    }

    fn saved(entry: &Directive) -> Vec<u8> {
        let learned = Directives::new(1, SAVED.monotonic, [entry]).encode();
        SavedState::encode("tidegate", SAVED, &learned)
    }

    /// What is believed of this so long after it was saved.
    fn restored(entry: &Directive, later: Duration) -> Directive {
        let state = SavedState::decode(&saved(entry)).unwrap();
        let directives = state.restore("tidegate", after(later)).unwrap();
        assert_eq!(directives.at, after(later).monotonic);
        let encoded = directives.encode();
        Directives::decode(encoded)
            .unwrap()
            .entries()
            .next()
            .unwrap()
    }

    #[test]
    fn limit_latency_and_capacity_outlive_a_restart_and_counts_do_not() {
        let restored = restored(&directive(), SECOND * 5);
        assert_eq!(restored.learned.limit, directive().learned.limit);
        assert_eq!((restored.limit, restored.reserve), (12, 12));
        assert_eq!((restored.workers, restored.unended), (1, 0));
        assert_eq!(restored.margin, Margin::NONE);
    }

    #[test]
    fn a_queue_is_believed_for_a_minute_and_then_nothing_is_shed_for_it() {
        assert_eq!(restored(&directive(), MINUTE).limit, 12);
        let later = restored(&directive(), MINUTE + SECOND);
        assert_eq!((later.limit, later.reserve), (u32::MAX, u32::MAX));
        let known = later.learned.limit;
        assert_eq!(known.hold, None);
        assert_eq!(known.floor, directive().learned.limit.floor);
        let mut calm = directive();
        calm.learned.limit.hold = None;
        assert_eq!(restored(&calm, MINUTE * 50).limit, 12);
    }

    #[test]
    fn an_open_breaker_stays_open_for_the_rest_of_its_interval() {
        let entry = open(SAVED.monotonic + SECOND * 60);
        let restored = restored(&entry, SECOND * 40);
        let now = after(SECOND * 40).monotonic;
        let until = now + SECOND * 20;
        // 0.25 of all outcomes usually fail: three probes decide, of which none was sent yet.
        assert_eq!(restored.breaker, BreakerState::Open { until, probes: 3 });
        let outage = restored.learned.breaker.outage.unwrap();
        // Seven seconds after the boot, it began before the clock did.
        assert_eq!(outage.since, Instant::ZERO);
        assert_eq!(outage.open_interval_ms, 60_000);
    }

    #[test]
    fn a_breaker_whose_interval_is_over_is_closed() {
        let past = open(SAVED.monotonic + SECOND * 60);
        let mut ramp = directive();
        ramp.breaker = BreakerState::Ramp { limit: 3 };
        for entry in [past, ramp] {
            let restored = restored(&entry, SECOND * 60);
            assert_eq!(restored.breaker, BreakerState::Closed);
            assert_eq!(restored.learned.breaker.outage, None);
        }
    }

    #[test]
    fn the_share_of_failures_is_known_and_the_rate_of_outcomes_is_not() {
        let rates = restored(&directive(), SECOND).learned.breaker.rates;
        assert_eq!(rates.failures, Share::new(0.25));
        assert!(rates.usual_failures().is_some() && rates.outcomes.get() < 1e-5);
        let mut unknown = directive();
        unknown.learned.breaker.rates = RatesCheckpoint::default();
        let rates = restored(&unknown, SECOND).learned.breaker.rates;
        assert_eq!(rates, RatesCheckpoint::default());
    }

    /// Why it is not restored.
    fn refused(plugin: &str, now: Clocks) -> String {
        let state = SavedState::decode(&saved(&directive())).unwrap();
        state.restore(plugin, now).unwrap_err().to_string()
    }

    #[test]
    fn state_of_another_plugin_or_time_is_not_restored() {
        assert_eq!(
            refused("other", after(SECOND)),
            "found learned state of \"tidegate\", expected that of \"other\""
        );
        assert_eq!(
            refused("tidegate", after(MINUTE * 61)),
            "found learned state 3660 s old, expected at most 3600 s"
        );
        let earlier = Clocks {
            wall: SAVED.wall - MINUTE * 2,
            ..SAVED
        };
        assert_eq!(
            refused("tidegate", earlier),
            "found learned state from 120 s in the future, expected the past"
        );
        let state = SavedState::decode(&saved(&directive())).unwrap();
        let set_right = Clocks {
            wall: SAVED.wall - SECOND * 30,
            ..SAVED
        };
        assert!(state.restore("tidegate", set_right).is_ok());
    }

    /// A leader that stopped deciding leaves what it last learned.
    #[test]
    fn age_counts_from_when_it_was_learned() {
        let learned = Directives::new(1, SAVED.monotonic - MINUTE * 59, [directive()]).encode();
        let bytes = SavedState::encode("tidegate", SAVED, &learned);
        let state = SavedState::decode(&bytes).unwrap();
        assert!(state.restore("tidegate", after(MINUTE)).is_ok());
        assert!(state.restore("tidegate", after(MINUTE * 2)).is_err());
    }

    #[test]
    fn other_content_other_versions_and_damage_are_told_apart() {
        let bytes = saved(&directive());
        assert_eq!(SavedState::decode(b""), Err(SavedStateError::Foreign));
        assert_eq!(SavedState::decode(b"{}"), Err(SavedStateError::Foreign));
        for end in MARK.len()..bytes.len() {
            let cut = SavedState::decode(&bytes[..end]);
            assert_eq!(cut, Err(SavedStateError::Damaged), "cut at {end}");
        }
        for place in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[place] ^= 0x10;
            assert!(SavedState::decode(&damaged).is_err(), "{place}");
        }
        let mut other = bytes;
        other[MARK.len()] = WIRE_VERSION + 1;
        let found = WIRE_VERSION + 1;
        assert_eq!(
            SavedState::decode(&other),
            Err(SavedStateError::Version { found })
        );
    }
}
