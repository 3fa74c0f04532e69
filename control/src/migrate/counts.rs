//! Counts and latencies of hosts in a file.

use std::collections::BTreeMap;

use tidegate_advise::chain::qualified_host;
use tidegate_core::config::schema::MAX_RULES;
use tidegate_core::config::{Node, Section, parse_duration};

use super::known::HostCounts;
use crate::document::documents;

const HOST: &str = "a host with its namespace such as reviews.shop";
const COUNT: &str = "a whole number from 1 to 1000000";
const DURATION: &str = "a duration such as \"250ms\"";

/// Reads a list under `services`, each with `host` and any of `replicas`, `clients` and `latency`.
///
/// # Errors
///
/// All errors, one per line, with their places.
pub fn read_counts(source: &str, text: &[u8]) -> Result<BTreeMap<String, HostCounts>, String> {
    let (found, malformed) = documents(text);
    if let Some(error) = malformed {
        return Err(format!("{source}:{error}, expected a list under services"));
    }
    let mut all = BTreeMap::new();
    let mut problems = Vec::new();
    for document in &found {
        match Section::read_document(document.root(), services) {
            Ok(services) => all.extend(services),
            Err(errors) => problems.extend(
                errors
                    .iter()
                    .map(|error| format!("{source}:{}: {error}", document.locate(error.path()))),
            ),
        }
    }
    if problems.is_empty() {
        Ok(all)
    } else {
        Err(problems.join("\n"))
    }
}

fn services(s: &mut Section<'_>) -> Vec<(String, HostCounts)> {
    s.objects("services", MAX_RULES, |s| {
        let host = s.text("host", &HOST, |text| {
            text.contains('.').then(|| qualified_host(text, ""))
        });
        if host.is_none() && !s.has("host") {
            s.require("host", &HOST);
        }
        let counts = HostCounts {
            replicas: count(s, "replicas"),
            clients: count(s, "clients"),
            latency: s.text("latency", &DURATION, |text| {
                parse_duration(text).map(|_| text.to_owned())
            }),
        };
        (host.unwrap_or_default(), counts)
    })
}

fn count(s: &mut Section<'_>, key: &'static str) -> Option<u32> {
    s.value(key, &COUNT, |node| match node {
        Node::Whole(number) => u32::try_from(*number)
            .ok()
            .filter(|count| (1..=1_000_000).contains(count)),
        _ => None,
    })
}
