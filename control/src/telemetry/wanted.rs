//! Whether the environment variables of OpenTelemetry ask for traces.

/// The environment asks for something that is not supported.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name}: found {found:?}, expected {expected}")]
pub struct Unusable {
    name: &'static str,
    found: String,
    expected: &'static str,
}

/// Whether to send traces. `variable` returns the value of a variable that is set and not empty.
pub(super) fn is_wanted(
    endpoint: Option<&str>,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<bool, Unusable> {
    if variable("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
        return Ok(false);
    }
    let exporter = "OTEL_TRACES_EXPORTER";
    let is_asked_for = match variable(exporter).as_deref() {
        Some("none") => return Ok(false),
        Some("otlp") => true,
        Some(other) => return Err(unusable(exporter, other, "otlp or none")),
        None => false,
    };
    let names = [
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
        "OTEL_EXPORTER_OTLP_ENDPOINT",
    ];
    let has_endpoint = endpoint.is_some() || names.iter().any(|name| variable(name).is_some());
    if !is_asked_for && !has_endpoint {
        return Ok(false);
    }
    for name in [
        "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
        "OTEL_EXPORTER_OTLP_PROTOCOL",
    ] {
        match variable(name).as_deref() {
            None | Some("grpc") => {}
            Some(other) => return Err(unusable(name, other, "grpc")),
        }
    }
    Ok(true)
}

fn unusable(name: &'static str, found: &str, expected: &'static str) -> Unusable {
    Unusable {
        name,
        found: found.to_owned(),
        expected,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(endpoint: Option<&str>, set: &[(&str, &str)]) -> Result<bool, String> {
        let variable = |name: &str| {
            let value = set.iter().find(|(known, _)| *known == name);
            value.map(|(_, value)| (*value).to_owned())
        };
        is_wanted(endpoint, variable).map_err(|error| error.to_string())
    }

    #[test]
    fn traces_are_wanted_if_a_collector_is_named() {
        let url = "http://collector:4317";
        let (disabled, exporter) = ("OTEL_SDK_DISABLED", "OTEL_TRACES_EXPORTER");
        for (endpoint, set, expected) in [
            (None, &[][..], false),
            (Some(url), &[][..], true),
            (None, &[("OTEL_EXPORTER_OTLP_ENDPOINT", url)][..], true),
            (
                None,
                &[("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", url)][..],
                true,
            ),
            (None, &[(exporter, "otlp")][..], true),
            (Some(url), &[(exporter, "none")][..], false),
            (Some(url), &[(disabled, "TRUE")][..], false),
            (
                Some(url),
                &[("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")][..],
                true,
            ),
        ] {
            assert_eq!(found(endpoint, set), Ok(expected), "{endpoint:?} {set:?}");
        }
    }

    #[test]
    fn an_unsupported_value_is_rejected_with_what_is_supported() {
        for (set, said) in [
            (
                ("OTEL_TRACES_EXPORTER", "zipkin"),
                "OTEL_TRACES_EXPORTER: found \"zipkin\", expected otlp or none",
            ),
            (
                ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"),
                "OTEL_EXPORTER_OTLP_PROTOCOL: found \"http/protobuf\", expected grpc",
            ),
        ] {
            let url = Some("http://collector:4317");
            assert_eq!(found(url, &[set]), Err(said.to_owned()));
        }
    }
}
