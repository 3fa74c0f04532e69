//! Values of headers and attributes that say how a request went, and how much it matters.

use core::time::Duration;

use bolero::TypeGenerator;
use tidegate_core::classify::{
    Author, FirstLook, Length, ResponseFlags, answered_by, cut_short, first_look, grpc_answer,
    http_answer, parse_grpc_status, parse_pushback, parse_retry_after, parse_status,
};
use tidegate_core::config::OverloadConfig;
use tidegate_core::{Criticality, Outcome};

use crate::pieces;

const DAY: Duration = Duration::from_secs(86_400);

const PIECES: [&str; 20] = [
    "0",
    "8",
    "14",
    "100",
    "101",
    "200",
    "429",
    "503",
    "999",
    "65536",
    "86401",
    "4294967296",
    "18446744073709551616",
    "+",
    "-1",
    "\r",
    " ",
    "critical_plus",
    "SHEDDABLE",
    "Wed, 21 Oct 2026 07:28:00 GMT",
];
const DETAILS: [&str; 8] = [
    "via_upstream",
    "upstream_reset_before_response_started",
    "upstream_reset_after_response_started",
    "{overflow}",
    "{connection_failure}",
    "response_timeout",
    "upstream_per_try_timeout",
    "",
];

#[derive(Debug, TypeGenerator)]
struct Said {
    value: Vec<u8>,
    details: Vec<u8>,
    status: u16,
    grpc_status: u32,
    flags: Option<u64>,
    wait: Option<u64>,
}

#[test]
fn values_mean_what_their_definition_says() {
    bolero::check!(name = "header_values")
        .with_type::<Said>()
        .with_iterations(20_000)
        .for_each(|said: &Said| {
            let value = pieces::text(&said.value, &PIECES);
            let number = number(&value);
            let wait = |unit: u64| {
                number.map(|count| Duration::from_nanos(count.min(1 << 30) * unit).min(DAY))
            };
            assert_eq!(
                parse_status(&value).map(u64::from),
                number.filter(|n| (100..=999).contains(n))
            );
            assert_eq!(
                parse_grpc_status(&value).map(u64::from),
                number.filter(|n| u32::try_from(*n).is_ok())
            );
            assert_eq!(parse_retry_after(&value), wait(1_000_000_000));
            assert_eq!(parse_pushback(&value), wait(1_000_000));
            check_class(&value);
            check_verdicts(said);
        });
}

/// Digits, with blanks around them and a plus before them or not.
fn number(value: &[u8]) -> Option<u64> {
    let digits = value.trim_ascii();
    let digits = digits.strip_prefix(b"+").unwrap_or(digits);
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |sum, digit| {
        let digit = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
        sum.checked_mul(10)?.checked_add(digit)
    })
}

fn check_class(value: &[u8]) {
    let Ok(text) = str::from_utf8(value) else {
        return;
    };
    let class = Criticality::from_header(text);
    let named = text.trim_ascii().to_ascii_lowercase();
    assert_eq!(
        class.map(Criticality::name),
        Criticality::ALL
            .map(Criticality::name)
            .into_iter()
            .find(|n| *n == named)
    );
}

fn check_verdicts(said: &Said) {
    let wait = said.wait.map(Duration::from_millis);
    let signals = OverloadConfig::default();
    for length in [Length::HeadersOnly, Length::More] {
        if let FirstLook::Settled(outcome) = first_look(said.status, length, || {
            signals.has_status_with_retry_after(said.status)
        }) {
            assert_eq!(
                outcome,
                http_answer(said.status, None, &signals),
                "both looks agree on {}",
                said.status
            );
            assert!(
                !matches!(outcome, Outcome::Failure(_) | Outcome::Overload { .. }),
                "nothing is blamed without a reason"
            );
        }
    }
    let details = pieces::text(&said.details, &DETAILS);
    let author = answered_by(&String::from_utf8_lossy(&details));
    if details.is_empty() || details.starts_with(b"via_upstream") {
        assert_eq!(author, Author::Upstream);
    } else {
        let Author::Proxy(outcome) = author else {
            panic!("{details:?} is not the upstream's");
        };
        assert!(matches!(outcome, Outcome::Failure(_) | Outcome::Ignored));
    }
    let verdicts = [
        None,
        Some(http_answer(said.status, wait, &signals)),
        Some(grpc_answer(said.grpc_status, wait, &signals)),
    ];
    for verdict in verdicts {
        let outcome = cut_short(verdict, said.flags.map(ResponseFlags));
        assert_ne!(outcome, Outcome::Success, "what broke off is no success");
        if let Some(Outcome::Failure(_) | Outcome::Overload { .. }) = verdict {
            assert_eq!(
                Some(outcome),
                verdict,
                "what was said against the upstream stands"
            );
        }
    }
}
