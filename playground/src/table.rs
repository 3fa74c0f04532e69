//! All settings of a custom story.

use tidegate_sim::scenario::AdversaryKind;

use crate::field::{Field, FieldKind};
use crate::load::LoadUnit;

/// The settings in the order of the page.
#[must_use]
pub fn all() -> Vec<Field> {
    let adversaries = std::iter::once(("none", "nobody"));
    let kinds = AdversaryKind::ALL.iter();
    let adversaries = adversaries.chain(kinds.map(|kind| (kind.name(), words(*kind))));
    vec![
        number(
            "Load",
            "len",
            "Length of the run",
            "s",
            [10.0, 120.0, 1.0, 60.0],
        ),
        choice(
            "Load",
            "unit",
            "The load is drawn in",
            vec![
                (LoadUnit::Capacity.name(), "multiples of the capacity"),
                (LoadUnit::Rate.name(), "requests a second"),
            ],
        ),
        number(
            "Load",
            "scale",
            "All of the load times",
            "×",
            [0.1, 5.0, 0.1, 1.0],
        ),
        number(
            "Service",
            "slots",
            "Requests it serves at once",
            "slots",
            [1.0, 64.0, 1.0, 16.0],
        ),
        number(
            "Service",
            "service",
            "Time it takes for one, on average",
            "ms",
            [2.0, 1_000.0, 1.0, 40.0],
        ),
        number(
            "Service",
            "spread",
            "Spread of that time (sigma of a log-normal law)",
            "",
            [0.0, 1.5, 0.1, 0.5],
        ),
        number(
            "Service",
            "body",
            "Time to send a response's body (0: no body)",
            "ms",
            [0.0, 5_000.0, 10.0, 0.0],
        ),
        choice(
            "Service",
            "holds",
            "While the body is sent, the slot is",
            vec![("no", "free"), ("yes", "taken")],
        ),
        number(
            "Service",
            "endpoints",
            "Endpoints that are alike",
            "",
            [1.0, 8.0, 1.0, 1.0],
        ),
        number(
            "Callers",
            "deadline",
            "A caller gives up after",
            "ms",
            [50.0, 10_000.0, 50.0, 1_000.0],
        ),
        number(
            "Callers",
            "retries",
            "Retries after a failure, at most",
            "",
            [0.0, 5.0, 1.0, 0.0],
        ),
        choice(
            "Callers",
            "stubborn",
            "Where the answer says not to retry",
            vec![("no", "they stop"), ("yes", "they retry anyway")],
        ),
        number(
            "Callers",
            "batch",
            "Share of the requests that is batch work (sheddable)",
            "%",
            [0.0, 100.0, 5.0, 0.0],
        ),
        number(
            "What goes wrong",
            "errors",
            "Requests that fail whatever the load",
            "%",
            [0.0, 90.0, 1.0, 0.0],
        ),
        choice(
            "What goes wrong",
            "incident",
            "For a time, the service",
            vec![
                ("none", "works as always"),
                ("slow", "takes three times as long"),
                ("half", "has half of its slots"),
                ("fail", "answers 500 at once"),
                ("hang", "never answers"),
                ("refuse", "refuses connections"),
            ],
        ),
        number(
            "What goes wrong",
            "from",
            "From",
            "s",
            [0.0, 115.0, 1.0, 20.0],
        ),
        number(
            "What goes wrong",
            "lasts",
            "For",
            "s",
            [1.0, 60.0, 1.0, 10.0],
        ),
        choice(
            "What goes wrong",
            "adversary",
            "An adversary",
            adversaries.collect(),
        ),
        number(
            "What goes wrong",
            "harm",
            "It sends, in multiples of the capacity",
            "×",
            [0.1, 5.0, 0.1, 1.0],
        ),
        number(
            "Proxies",
            "proxies",
            "Proxies in front of the service",
            "",
            [1.0, 12.0, 1.0, 1.0],
        ),
        number(
            "Proxies",
            "workers",
            "Workers of each",
            "",
            [1.0, 8.0, 1.0, 2.0],
        ),
        choice(
            "Objective",
            "quantile",
            "Share of the answers that must be in time",
            vec![
                ("0.99", "99 %"),
                ("0.95", "95 %"),
                ("0.9", "90 %"),
                ("0.5", "50 %"),
            ],
        ),
    ]
}

fn number(
    group: &'static str,
    key: &'static str,
    label: &'static str,
    unit: &'static str,
    [min, max, step, start]: [f64; 4],
) -> Field {
    let kind = FieldKind::Number {
        min,
        max,
        step,
        start,
    };
    Field {
        key,
        group,
        label,
        unit,
        kind,
    }
}

fn choice(
    group: &'static str,
    key: &'static str,
    label: &'static str,
    options: Vec<(&'static str, &'static str)>,
) -> Field {
    Field {
        key,
        group,
        label,
        unit: "",
        kind: FieldKind::Choice { options },
    }
}

const fn words(kind: AdversaryKind) -> &'static str {
    match kind {
        AdversaryKind::OverQuota => "sends more than its quota",
        AdversaryKind::CrashingPath => "asks for a path that always fails",
        AdversaryKind::ForgedAgent => "claims to be a health checker",
        AdversaryKind::StalledUpload => "begins uploads that never end",
        AdversaryKind::SlowReader => "reads bodies as slowly as it can",
        AdversaryKind::BulkReset => "cancels what it has just sent",
        AdversaryKind::ShortDeadline => "waits for a few milliseconds only",
        AdversaryKind::ForgedCriticality => "claims to be more important than all others",
        AdversaryKind::ForgedCohort => "has chosen a cohort that is served first",
        AdversaryKind::Flood => "floods, under a cohort of its own",
        AdversaryKind::EndlessRetries => "retries at once and without end",
        AdversaryKind::LyingUpstream => "gets the service to lie: come back in a year",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::FieldValue;

    #[test]
    fn every_value_where_a_link_says_nothing_is_a_valid_one() {
        for field in all() {
            let start = field.start();
            assert_eq!(field.parse(&start.text()), Ok(start), "{}", field.key);
        }
    }

    #[test]
    fn what_is_out_of_range_is_refused_with_the_range() {
        let fields = all();
        let slots = fields.iter().find(|field| field.key == "slots").unwrap();
        assert_eq!(slots.parse("8"), Ok(FieldValue::Number(8.0)));
        for wrong in ["0", "65", "1.5", "many", "NaN"] {
            let fault = slots.parse(wrong).unwrap_err();
            assert!(fault.ends_with("a whole number from 1 to 64"), "{fault}");
        }
        let incident = fields.iter().find(|field| field.key == "incident").unwrap();
        assert!(incident.parse("explode").is_err());
    }
}
