//! Where a caller says how long it still waits.
//!
//! Envoy tells an upstream in `x-envoy-expected-rq-timeout-ms`, gRPC clients in `grpc-timeout`. Only trusted callers may send
//! these headers: a caller that names a short time has its own requests shed.

use std::time::Duration;

use super::criticality::header_name;
use super::duration::parse_duration;
use super::reader::Section;
use super::schema;

/// The header with a unit of its own: the protocol of gRPC over HTTP/2, "Timeout".
const GRPC_TIMEOUT: &str = "grpc-timeout";
/// Most digits in `grpc-timeout`, by the same text.
const GRPC_DIGITS: usize = 8;

/// The headers in which callers say how long they wait.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeadlineConfig {
    /// In lower case, and in the order in which they are read.
    headers: Vec<Box<str>>,
}

impl DeadlineConfig {
    /// Whether deadlines are not read.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.headers.is_empty()
    }

    /// The time left of a request, by the first of the headers that names one. `value_of` reads a header.
    pub fn time_left<T: AsRef<str>>(
        &self,
        mut value_of: impl FnMut(&str) -> Option<T>,
    ) -> Option<Duration> {
        self.headers
            .iter()
            .find_map(|name| time_left(name, value_of(name)?.as_ref()))
    }

    pub(super) fn read(s: &mut Section<'_>) -> Self {
        let headers = s.texts(
            "headers",
            schema::MAX_ENTRIES,
            schema::HEADER_EXPECTED,
            header_name,
        );
        Self {
            headers: headers.unwrap_or_default(),
        }
    }
}

/// The time that a header names. `grpc-timeout` has the format of gRPC, such as `250m`; any other header whole milliseconds,
/// or a duration such as `250ms`. `None` for other values, and for 0, which means "no timeout" to Envoy.
fn time_left(header: &str, value: &str) -> Option<Duration> {
    let value = value.trim_ascii();
    let left = if header == GRPC_TIMEOUT {
        grpc_timeout(value)
    } else {
        let millis = value.parse().ok().map(Duration::from_millis);
        millis.or_else(|| parse_duration(value))
    };
    left.filter(|left| !left.is_zero())
}

fn grpc_timeout(value: &str) -> Option<Duration> {
    let unit = value.chars().last()?;
    let digits = value.strip_suffix(unit)?;
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number || digits.len() > GRPC_DIGITS {
        return None;
    }
    let number: u64 = digits.parse().ok()?;
    Some(match unit {
        'H' => Duration::from_secs(number.saturating_mul(3_600)),
        'M' => Duration::from_secs(number.saturating_mul(60)),
        'S' => Duration::from_secs(number),
        'm' => Duration::from_millis(number),
        'u' => Duration::from_micros(number),
        'n' => Duration::from_nanos(number),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_names_a_time_in_its_format() {
        let envoy = "x-envoy-expected-rq-timeout-ms";
        for (header, value, expected_ms) in [
            (envoy, "250", Some(250)),
            (envoy, " 250 ", Some(250)),
            (envoy, "0", None),
            (envoy, "-1", None),
            (envoy, "99999999999999999999999", None),
            (envoy, "soon", None),
            (envoy, "", None),
            ("x-wait", "1500ms", Some(1_500)),
            ("x-wait", "2s", Some(2_000)),
            (GRPC_TIMEOUT, "250m", Some(250)),
            (GRPC_TIMEOUT, "2S", Some(2_000)),
            (GRPC_TIMEOUT, "1M", Some(60_000)),
            (GRPC_TIMEOUT, "99999999H", Some(359_999_996_400_000)),
            (GRPC_TIMEOUT, "5000u", Some(5)),
            (GRPC_TIMEOUT, "3000000n", Some(3)),
            (GRPC_TIMEOUT, "0m", None),
            (GRPC_TIMEOUT, "123456789m", None),
            (GRPC_TIMEOUT, "250", None),
            (GRPC_TIMEOUT, "m", None),
            (GRPC_TIMEOUT, "+5m", None),
            (GRPC_TIMEOUT, "5\u{20ac}", None),
        ] {
            let expected = expected_ms.map(Duration::from_millis);
            assert_eq!(time_left(header, value), expected, "{header}: {value:?}");
        }
    }

    #[test]
    fn the_first_header_that_names_a_time_counts() {
        let config = DeadlineConfig {
            headers: vec!["x-a".into(), "x-b".into(), "x-c".into()],
        };
        let left = config.time_left(|name| match name {
            "x-a" => Some("never".to_owned()),
            "x-b" => None,
            _ => Some("70".to_owned()),
        });
        assert_eq!(left, Some(Duration::from_millis(70)));
        assert_eq!(config.time_left(|_| None::<String>), None);
    }
}
