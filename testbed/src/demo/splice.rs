//! Replaces a phase by its repetition.

use std::time::Duration;

use super::SideRecord;
use super::disturbance::StoryPart;
use tidegate_sim::series::SeriesSample;

impl SideRecord {
    /// Replaces its own data of this stretch by those of `other`.
    pub(super) fn take_over(&mut self, stretch: StoryPart, other: &Self) {
        self.records
            .retain(|record| !stretch.holds(record.arrival.at));
        let again = other.records.iter();
        self.records.extend(
            again
                .filter(|record| stretch.holds(record.arrival.at))
                .cloned(),
        );
        // The upstream of the other play counted from zero.
        let (from, to) = (stretch.from, stretch.to);
        let before = received_by(&self.samples, from);
        let old = received_by(&self.samples, to).saturating_sub(before);
        let other_before = received_by(&other.samples, from);
        let new = received_by(&other.samples, to).saturating_sub(other_before);
        let holds = |sample: &SeriesSample| stretch.holds(Duration::from_secs_f64(sample.at_s));
        let mut samples: Vec<SeriesSample> = Vec::new();
        for sample in self.samples.iter().filter(|sample| !holds(sample)) {
            let is_later = sample.at_s >= to.as_secs_f64();
            samples.push(SeriesSample {
                received: if is_later {
                    (sample.received + new).saturating_sub(old)
                } else {
                    sample.received
                },
                ..*sample
            });
        }
        samples.extend(
            other
                .samples
                .iter()
                .filter(|sample| holds(sample))
                .map(|sample| SeriesSample {
                    received: before + sample.received.saturating_sub(other_before),
                    ..*sample
                }),
        );
        samples.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
        self.samples = samples;
    }
}

/// Attempts that had reached the upstream at this time.
fn received_by(samples: &[SeriesSample], at: Duration) -> u64 {
    let until = samples
        .iter()
        .take_while(|sample| sample.at_s <= at.as_secs_f64());
    until.last().map_or(0, |sample| sample.received)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_sim::arrivals::Arrival;
    use tidegate_sim::record::{Answer, Record};

    /// One request and one sample a second from `from` to 9 s, with `rate` attempts a second.
    fn side(from: u32, rate: u64, latency: Duration) -> SideRecord {
        let record = |second: u32| Record {
            arrival: Arrival {
                at: Duration::from_secs(u64::from(second)),
                client: 0,
                path: "/".into(),
                criticality: None,
                upload: None,
                reads_for: None,
            },
            answer: Answer::Ok,
            latency,
            attempts: 1,
            sheds: 0,
        };
        let sample = |second: u32| SeriesSample {
            at_s: f64::from(second),
            received: u64::from(second - from) * rate,
            ..SeriesSample::default()
        };
        SideRecord {
            records: (from..10).map(record).collect(),
            samples: (from..10).map(sample).collect(),
            envoy_cpu_s: 1.0,
        }
    }

    #[test]
    fn a_repeated_stretch_replaces_the_first_and_nothing_else() {
        let (slow, fast) = (Duration::from_millis(90), Duration::from_millis(10));
        let mut told = side(0, 10, slow);
        let stretch = StoryPart {
            from: Duration::from_secs(4),
            to: Duration::from_secs(6),
        };
        told.take_over(stretch, &side(3, 100, fast));
        told.records.sort_by_key(|record| record.arrival.at);
        let latencies: Vec<u128> = told
            .records
            .iter()
            .map(|record| record.latency.as_millis())
            .collect();
        assert_eq!(latencies, [90, 90, 90, 90, 10, 10, 90, 90, 90, 90]);
        let received: Vec<u64> = told.samples.iter().map(|sample| sample.received).collect();
        // 100 a second within the stretch, 10 a second outside.
        assert_eq!(received, [0, 10, 20, 30, 40, 140, 240, 250, 260, 270]);
    }
}
