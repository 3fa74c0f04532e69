//! Durations, of which every timeout in a document is one.

use std::time::Duration;

use tidegate_core::config::{Readable, parse_duration};

use crate::pieces;

const PIECES: [&str; 12] = [
    "h",
    "m",
    "s",
    "ms",
    "us",
    "0.5",
    "1",
    "18446744073709551615",
    "0.000000001",
    "584",
    ".",
    "h59m59s999ms999us",
];

#[test]
fn what_is_read_is_exact_and_what_is_written_reads_back() {
    bolero::check!(name = "durations")
        .with_iterations(20_000)
        .for_each(|bytes: &[u8]| {
            if let Some((number, _)) = bytes.split_first_chunk::<8>() {
                let whole = Duration::from_micros(u64::from_le_bytes(*number) / 1_000);
                assert_eq!(parse_duration(&Readable(whole).to_string()), Some(whole));
            }
            let text = pieces::text(bytes, &PIECES);
            let Ok(text) = str::from_utf8(&text) else {
                return;
            };
            assert_eq!(
                parse_duration(text).map(|read| read.as_nanos()),
                by_definition(text),
                "{text:?}"
            );
        });
}

/// The sum of its parts in nanoseconds, counted in 128 bits and in steps of 10^-18 of a unit.
fn by_definition(text: &str) -> Option<u128> {
    const UNITS: [(&str, u128); 5] = [
        ("h", 3_600_000_000_000),
        ("m", 60_000_000_000),
        ("s", 1_000_000_000),
        ("ms", 1_000_000),
        ("us", 1_000),
    ];
    let mut sum = 0_u128;
    let (mut rest, mut next_unit) = (text, 0);
    loop {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, after) = rest.split_at(digits);
        let letters = after
            .find(|c: char| !c.is_ascii_lowercase())
            .unwrap_or(after.len());
        let (unit, after) = after.split_at(letters);
        let place = UNITS
            .iter()
            .position(|(name, _)| *name == unit)
            .filter(|place| *place >= next_unit)?;
        next_unit = place + 1;
        sum = sum.checked_add(part(number, UNITS[place].1)?)?;
        rest = after;
        if rest.is_empty() {
            return (sum <= u128::from(u64::MAX)).then_some(sum);
        }
    }
}

fn part(number: &str, nanos: u128) -> Option<u128> {
    let (whole, fraction) = match number.split_once('.') {
        Some((_, "")) => return None,
        Some(parts) => parts,
        None => (number, ""),
    };
    let is_number = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || !is_number(whole) || !is_number(fraction) {
        return None;
    }
    // Beyond 18 digits behind the point only zeros can be exact.
    let fraction = fraction.trim_end_matches('0');
    if fraction.len() > 18 {
        return None;
    }
    let scale = 10_u128.pow(u32::try_from(fraction.len()).ok()?);
    let behind = if fraction.is_empty() {
        0
    } else {
        fraction.parse::<u128>().ok()?
    };
    let whole = whole.trim_start_matches('0');
    let whole = if whole.is_empty() {
        0
    } else {
        u128::from(whole.parse::<u64>().ok()?)
    };
    let product = behind.checked_mul(nanos)?;
    product
        .is_multiple_of(scale)
        .then(|| whole.checked_mul(nanos)?.checked_add(product / scale))?
}
