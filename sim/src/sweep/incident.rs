//! The incident of a story: what happens to the service.

use std::time::Duration;

use super::rounded;
use super::service::{DrawnService, slower};
use super::uniform::Uniform;
use crate::number;
use crate::profile::{Change, Delay, Errors, UpstreamMode};
use crate::scenario::TimedChange;

/// What happens.
#[derive(Debug, Clone, Copy)]
enum IncidentKind {
    Nothing,
    Outage,
    Hang,
    SlowForGood,
    SlowForAWhile,
    Halved,
    Errors,
    Delays,
}

/// What happens to a service, and when.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct DrawnIncident {
    /// In order of time.
    pub(super) timeline: Vec<TimedChange>,
    /// In a few words; none where nothing happens.
    pub(super) words: Option<String>,
}

impl DrawnIncident {
    /// Draws one for a run of some length; nothing happens in three of ten.
    pub(super) fn drawn(uniform: &mut Uniform, service: &DrawnService, length: Duration) -> Self {
        let kind = uniform.one_of(
            IncidentKind::Nothing,
            &[
                IncidentKind::Nothing,
                IncidentKind::Nothing,
                IncidentKind::Outage,
                IncidentKind::Hang,
                IncidentKind::SlowForGood,
                IncidentKind::SlowForAWhile,
                IncidentKind::Halved,
                IncidentKind::Errors,
                IncidentKind::Delays,
            ],
        );
        let law = service.behaviour.service;
        let mut change = Vec::new();
        let words = match kind {
            IncidentKind::Nothing => {
                return Self {
                    timeline: Vec::new(),
                    words: None,
                };
            }
            IncidentKind::Outage => {
                change.push((0.4, Change::mode(UpstreamMode::Fail)));
                change.push((0.6, Change::mode(UpstreamMode::Serve)));
                "outage".to_owned()
            }
            IncidentKind::Hang => {
                change.push((0.4, Change::mode(UpstreamMode::Hang)));
                change.push((0.6, Change::mode(UpstreamMode::Serve)));
                "hang".to_owned()
            }
            IncidentKind::SlowForGood | IncidentKind::SlowForAWhile => {
                let factor = rounded::hundredths(uniform.between(1.3, 3.0));
                let to = |service| Change {
                    service: Some(service),
                    ..Change::default()
                };
                change.push((0.4, to(slower(&law, factor))));
                if matches!(kind, IncidentKind::SlowForAWhile) {
                    change.push((0.7, to(law)));
                    format!("{factor} x slower for a while")
                } else {
                    format!("{factor} x slower for good")
                }
            }
            IncidentKind::Halved => {
                let [fewer, again] = halved(service);
                change.push((0.4, fewer));
                change.push((0.7, again));
                "half the slots".to_owned()
            }
            IncidentKind::Errors => {
                let share = rounded::hundredths(uniform.between(0.05, 0.4));
                change.push((0.3, errors(share)));
                change.push((0.8, errors(0.0)));
                format!("errors {share}")
            }
            IncidentKind::Delays => {
                let share = rounded::hundredths(uniform.between(0.1, 0.5));
                let by = number::millis(service.objective) * uniform.between(0.2, 0.6);
                let by = rounded::millis(by);
                change.push((0.3, delay(share, by)));
                change.push((0.8, delay(0.0, Duration::ZERO)));
                format!("delays {share} by {} ms", by.as_millis())
            }
        };
        let timed = |(share, change)| TimedChange {
            at: rounded::part(length, share),
            change,
        };
        Self {
            timeline: change.into_iter().map(timed).collect(),
            words: Some(words),
        }
    }
}

/// Half of the slots, and all of them again; where endpoints have one each, half of the endpoints.
fn halved(service: &DrawnService) -> [Change; 2] {
    let behaviour = &service.behaviour;
    if behaviour.slots > 1 {
        return [behaviour.slots / 2, behaviour.slots].map(Change::slots);
    }
    [(behaviour.endpoints / 2).max(1), behaviour.endpoints].map(|endpoints| Change {
        endpoints: Some(endpoints),
        ..Change::default()
    })
}

fn errors(share: f64) -> Change {
    Change {
        errors: Some(Errors { share, status: 500 }),
        ..Change::default()
    }
}

fn delay(share: f64, by: Duration) -> Change {
    Change {
        delay: Some(Delay { share, by }),
        ..Change::default()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::sweep::ProxySpread;

    fn service(endpoints: u32, slots: u32) -> DrawnService {
        let spread = ProxySpread {
            proxies: 1,
            workers: 1,
            endpoints,
        };
        let mut service = DrawnService::drawn(&mut Uniform::of(1, 0), spread);
        service.behaviour.slots = slots;
        service
    }

    #[test]
    fn everything_happens_and_nothing_more_often() {
        let length = Duration::from_secs(30);
        let incidents: Vec<DrawnIncident> = (0..200)
            .map(|number| {
                DrawnIncident::drawn(&mut Uniform::of(1, number), &service(1, 16), length)
            })
            .collect();
        let quiet = incidents.iter().filter(|one| one.words.is_none()).count();
        // Three of ten; the standard deviation is 6.
        assert!((40..80).contains(&quiet), "{quiet}");
        let words = incidents.iter().filter_map(|one| one.words.as_deref());
        let plain = |word: &str| word.replace(|c: char| c.is_ascii_digit() || c == '.', "");
        let kinds: BTreeSet<String> = words.map(plain).collect();
        assert_eq!(kinds.len(), 7, "{kinds:?}");
    }

    #[test]
    fn half_of_the_slots_is_half_of_the_endpoints_where_each_has_one() {
        assert_eq!(halved(&service(1, 5)), [2, 5].map(Change::slots));
        let [fewer, again] = halved(&service(8, 1));
        assert_eq!((fewer.endpoints, again.endpoints), (Some(4), Some(8)));
    }
}
