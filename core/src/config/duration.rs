//! Durations as people write them: `"250ms"`, `"1.5s"`, `"1m30s"`.
//!
//! A number without a unit is rejected, because readers would have to remember
//! the unit. A duration is a sum of parts. Each part is a decimal number with a
//! unit, larger units come first, and each unit comes once. Go, Envoy's protobuf
//! form (`"0.25s"`) and Kubernetes agree on this. They disagree on days, signs and
//! blanks, so these are rejected.

use std::fmt;
use std::time::Duration;

const NANOS_PER_UNIT: [(&str, u64); 5] = [
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
];

/// Most decimals with which a number can still be whole nanoseconds. An hour has 2^13 times an odd number of nanoseconds, and
/// no other unit has as high a power of two or five.
const MAX_DECIMALS: usize = 13;

/// The duration in `text`; `None` if it is not written as above, has a part
/// finer than a nanosecond, or exceeds 584 years.
#[must_use]
pub fn parse_duration(text: &str) -> Option<Duration> {
    if text.is_empty() {
        return None;
    }
    let mut rest = text;
    let mut units = NANOS_PER_UNIT.iter();
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let (number, after) = split_where(rest, |b| !(b.is_ascii_digit() || b == b'.'))?;
        let (unit, after) = split_where(after, |b| !b.is_ascii_lowercase())?;
        // `find` continues where it stopped: a unit must be smaller than the one before.
        let (_, nanos_per_unit) = units.find(|(name, _)| *name == unit)?;
        total = total.checked_add(nanos(number, *nanos_per_unit)?)?;
        rest = after;
    }
    Some(Duration::from_nanos(total))
}

fn split_where(text: &str, ends: impl Fn(u8) -> bool) -> Option<(&str, &str)> {
    let at = text.bytes().position(ends).unwrap_or(text.len());
    text.split_at_checked(at)
}

/// `number`, such as `"1"` or `"0.25"`, times `nanos_per_unit`; exact.
fn nanos(number: &str, nanos_per_unit: u64) -> Option<u64> {
    let (whole, fraction) = match number.split_once('.') {
        Some((whole, fraction)) if !fraction.is_empty() => (whole, fraction),
        Some(_) => return None,
        None => (number, ""),
    };
    let total = whole.parse::<u64>().ok()?.checked_mul(nanos_per_unit)?;
    let fraction = fraction.trim_end_matches('0');
    if fraction.is_empty() {
        return Some(total);
    }
    if fraction.len() > MAX_DECIMALS || !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let tenths = 10_u128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let behind = fraction
        .parse::<u128>()
        .ok()?
        .checked_mul(nanos_per_unit.into())?;
    // A part finer than a nanosecond counts as a mistake.
    behind
        .is_multiple_of(tenths)
        .then(|| total.checked_add(u64::try_from(behind / tenths).ok()?))?
}

/// A duration in the form that [`parse_duration`] reads, as short as possible
/// without losing a microsecond: `90s` is shown as `1m30s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Readable(pub Duration);

impl fmt::Display for Readable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = u64::try_from(self.0.as_nanos()).unwrap_or(u64::MAX);
        let mut is_empty = true;
        for (unit, nanos_per_unit) in NANOS_PER_UNIT {
            let count = rest / nanos_per_unit;
            if count > 0 {
                write!(f, "{count}{unit}")?;
                is_empty = false;
            }
            rest %= nanos_per_unit;
        }
        if is_empty {
            f.write_str("0s")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_add_up() {
        for (text, micros) in [
            ("250ms", 250_000),
            ("1s", 1_000_000),
            ("1.5s", 1_500_000),
            ("0.25s", 250_000),
            ("2m", 120_000_000),
            ("1m30s", 90_000_000),
            ("1h1m1s1ms1us", 3_661_001_001),
            ("1.5h", 5_400_000_000),
            ("0s", 0),
            ("007ms", 7_000),
            ("1.500000000s", 1_500_000),
        ] {
            assert_eq!(
                parse_duration(text),
                Some(Duration::from_micros(micros)),
                "{text}"
            );
        }
    }

    #[test]
    fn many_decimals_are_exact_if_together_they_are_whole_nanoseconds() {
        for (text, nanos) in [
            ("10.558458401615h", 38_010_450_245_814),
            ("0.00000000005m", 3),
            ("0.0001220703125h", 439_453_125),
            ("0.000000001s", 1),
        ] {
            assert_eq!(
                parse_duration(text),
                Some(Duration::from_nanos(nanos)),
                "{text}"
            );
        }
    }

    #[test]
    fn anything_else_is_rejected() {
        for text in [
            "",
            " ",
            "5",
            "5 s",
            " 5s",
            "5s ",
            "-5s",
            "+5s",
            "5S",
            "5d",
            "5sec",
            "s",
            ".s",
            ".5s",
            "5.s",
            "1.2.3s",
            "30s1m",
            "1s1s",
            "1ms1s",
            "1e3s",
            "\u{b5}s",
            "1\u{b5}s",
            "NaNs",
            "infs",
            "0x5s",
            "1_000ms",
            "99999999999999999999s",
            "18446744073709551615h",
            "0.0000000001s",
            "0.00000000001s",
            "0.0001us",
            "0.00000000001m",
            "0.0000000000000001h",
        ] {
            assert_eq!(parse_duration(text), None, "{text:?}");
        }
    }

    #[test]
    fn the_readable_form_reads_back() {
        for (micros, text) in [
            (0, "0s"),
            (90_000_000, "1m30s"),
            (1_500_000, "1s500ms"),
            (3_600_000_000, "1h"),
            (1, "1us"),
        ] {
            let duration = Duration::from_micros(micros);

            assert_eq!(Readable(duration).to_string(), text);
            assert_eq!(parse_duration(text), Some(duration));
        }
    }
}
