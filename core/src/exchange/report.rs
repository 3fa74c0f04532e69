//! One worker's report of one upstream.

use serde::{Deserialize, Serialize};

use super::{counts, varint};
use crate::breaker::LocalTrip;
use crate::tally::{Counted, Tally};
use crate::time::Instant;

/// One worker's report of one upstream. Its counts stay packed in memory, as on the wire.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Report<'a> {
    /// Which upstream: [`crate::UpstreamKey::hash`].
    pub upstream: u64,
    /// When the worker began to count: with its VM, or later when the upstream came (back) into its registry.
    pub began: Instant,
    /// The worker's requests in flight now.
    pub in_flight: u32,
    /// The worker's uploads that may soon be in flight.
    pub uploading: u32,
    /// The worker's requests that have not ended and do not count as load: open responses, and those taken out of the count.
    pub open: u32,
    /// Of those in flight, how many wait for response headers far beyond the latency target.
    pub overdue: u32,
    /// The most requests in flight, in the whole proxy, that an arrival met since the last report but one.
    pub peak: u32,
    /// The fewest requests of other workers in flight that an arrival met since the last report but one: those in the whole
    /// proxy, minus this worker's own. Below zero if the proxy's count is too low; `None` if no request came.
    pub others: Option<i32>,
    /// When response headers last came.
    pub last_response: Instant,
    /// The latest admission among the requests that the worker saw answered; zero before the first.
    pub answered_up_to: Instant,
    /// Endpoints behind the upstream; 0 when unknown.
    pub endpoints: u32,
    /// The longest Retry-After since the last report but one, milliseconds.
    pub retry_after_ms: u32,
    /// The worker's last trip on its own evidence.
    pub trip: Option<LocalTrip>,
    /// All counts since `began`.
    pub(crate) counts: &'a [u8],
}

/// The name of an upstream, which a leader needs once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Introduction<'a> {
    /// The cluster's name.
    pub cluster: &'a str,
    /// The route's name, if there is one.
    pub route: Option<&'a str>,
    /// Whether the worker's breaker has ever tripped on its own evidence.
    pub tripped: bool,
}

impl<'a> Report<'a> {
    /// The same report with these counts, packed into `bytes`.
    pub(crate) fn with_counts(self, counted: &Counted, bytes: &'a mut Vec<u8>) -> Self {
        bytes.clear();
        counts::write(counted, bytes);
        Self {
            counts: bytes,
            ..self
        }
    }

    /// Whether nothing is under way and nothing happened lately.
    pub(crate) fn is_quiet(&self) -> bool {
        let under_way = [self.in_flight, self.uploading, self.open, self.overdue];
        let lately = [self.peak, self.retry_after_ms];
        under_way.iter().chain(&lately).all(|count| *count == 0) && self.others.is_none()
    }

    /// Appends the report to `bytes`: first fields of eight bytes, then small numbers. Written by hand, because there is one
    /// report for each upstream and worker on every tick, and this takes a third of the time of a serializer.
    pub(crate) fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.upstream.to_le_bytes());
        for time in [self.began, self.last_response, self.answered_up_to] {
            bytes.extend_from_slice(&time.as_nanos().to_le_bytes());
        }
        for number in [
            self.in_flight,
            self.uploading,
            self.open,
            self.overdue,
            self.peak,
            self.endpoints,
            self.retry_after_ms,
        ] {
            varint::put(number.into(), bytes);
        }
        varint::put(self.others.map_or(0, |others| 1 + zigzag(others)), bytes);
        match self.trip {
            None => bytes.push(0),
            Some(trip) => {
                bytes.push(1);
                // Writing plain data to a growing vector cannot fail; were it to, there would be no reports.
                *bytes = postcard::to_extend(&trip, core::mem::take(bytes)).unwrap_or_default();
            }
        }
        varint::put(self.counts.len() as u64, bytes);
        bytes.extend_from_slice(self.counts);
    }

    /// Takes one report off the bytes; `None` if they cannot be read.
    pub(super) fn take(bytes: &mut &'a [u8]) -> Option<Self> {
        let mut word = || {
            let (word, rest) = bytes.split_first_chunk::<8>()?;
            *bytes = rest;
            Some(u64::from_le_bytes(*word))
        };
        let [upstream, began, last_response, answered_up_to] = [word()?, word()?, word()?, word()?];
        let mut number = || u32::try_from(varint::take(bytes)?).ok();
        let [
            in_flight,
            uploading,
            open,
            overdue,
            peak,
            endpoints,
            retry_after_ms,
        ] = [
            number()?,
            number()?,
            number()?,
            number()?,
            number()?,
            number()?,
            number()?,
        ];
        let others = varint::take(bytes)?.checked_sub(1);
        let others = match others {
            Some(others) => Some(unzigzag(others)?),
            None => None,
        };
        let (has_tripped, rest) = bytes.split_first()?;
        *bytes = rest;
        let trip = match has_tripped {
            0 => None,
            _ => {
                let (trip, rest) = postcard::take_from_bytes(bytes).ok()?;
                *bytes = rest;
                Some(trip)
            }
        };
        let length = usize::try_from(varint::take(bytes)?).ok()?;
        let (counts, rest) = bytes.split_at_checked(length)?;
        *bytes = rest;
        Some(Self {
            upstream,
            began: Instant::from_nanos(began),
            in_flight,
            uploading,
            open,
            overdue,
            peak,
            others,
            last_response: Instant::from_nanos(last_response),
            answered_up_to: Instant::from_nanos(answered_up_to),
            endpoints,
            retry_after_ms,
            trip,
            counts,
        })
    }

    /// Adds the growth since an earlier report with these counts.
    pub(crate) fn add_news(&self, sum: &mut Tally, before: &[u8]) {
        counts::add_difference(sum, before, self.counts);
    }
}

/// Maps numbers near zero, of either sign, to small numbers.
const fn zigzag(number: i32) -> u64 {
    ((number << 1) ^ (number >> 31)).cast_unsigned() as u64
}

fn unzigzag(number: u64) -> Option<i32> {
    let number = u32::try_from(number).ok()?;
    Some((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::breaker::TripReason;

    #[test]
    fn a_report_survives_the_wire_and_leaves_the_bytes_behind_it() {
        let trip = LocalTrip {
            sequence: 3,
            epoch: u32::MAX,
            reason: TripReason::Hang,
        };
        for others in [None, Some(0), Some(-1), Some(i32::MAX), Some(i32::MIN)] {
            for trip in [None, Some(trip)] {
                let report = Report {
                    upstream: u64::MAX,
                    began: Instant::from_nanos(7),
                    in_flight: 1,
                    uploading: 2,
                    open: 9,
                    overdue: 300,
                    peak: u32::MAX,
                    others,
                    last_response: Instant::from_nanos(u64::MAX),
                    answered_up_to: Instant::from_nanos(7),
                    endpoints: 0,
                    retry_after_ms: 70_000,
                    trip,
                    counts: &[0, 1, 5, 9],
                };
                let mut bytes = Vec::new();
                report.write(&mut bytes);
                let whole = bytes.len();
                bytes.extend([1, 2, 3]);
                let mut rest = bytes.as_slice();
                assert_eq!(Report::take(&mut rest), Some(report));
                assert_eq!(rest, [1, 2, 3]);
                for end in 0..whole {
                    assert_eq!(Report::take(&mut &bytes[..end]), None, "cut at {end}");
                }
            }
        }
    }
}
