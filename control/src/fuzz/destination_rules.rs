//! `DestinationRule`s that become policies.

use super::pieces;
use super::policies::check_problems;
use crate::document::documents;
use crate::migrate::{FixedNumbers, LimitedProxies, MigrationOptions, MigrationSources, migrate};
use crate::policy::{Gathered, gather};

const PIECES: [&str; 40] = [
    "---\napiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {name: a, namespace: shop}\nspec:\n  host: a\n",
    "---\n{apiVersion: networking.istio.io/v1beta1, kind: DestinationRule, metadata: {name: b}, spec: {host: b.c, ",
    "---\napiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {name: a}\nspec:\n  host: '*.Example.com'\n",
    "  trafficPolicy:\n    connectionPool: {tcp: {maxConnections: 100}}\n",
    "  trafficPolicy:\n    connectionPool:\n      http: {http1MaxPendingRequests: 1, http2MaxRequests: 2, maxRetries: 3}\n",
    "    outlierDetection: {consecutive5xxErrors: 5, interval: 1s, baseEjectionTime: 30s}\n",
    "    outlierDetection: {maxEjectionPercent: 100, consecutiveGatewayErrors: 0}\n",
    "    portLevelSettings:\n    - port: {number: 80}\n      connectionPool: {tcp: {maxConnections: 1}}\n",
    "trafficPolicy: {connectionPool: {tcp: {maxConnections: 7, connectTimeout: 1s}}}, ",
    "trafficPolicy: {outlierDetection: {interval: ",
    "  subsets:\n  - name: v1\n    trafficPolicy: {connectionPool: {http: {http2MaxRequests: 9}}}\n",
    "subsets: [{name: v2, trafficPolicy: {portLevelSettings: [{port: {number: 81}, outlierDetection: {}}]}}], ",
    "  workloadSelector: {matchLabels: {app: web}}\n",
    "workloadSelector: {matchLabels: {a/b: c}}, ",
    "apiVersion: networking.istio.io/v1\n",
    "kind: DestinationRule\n",
    "metadata: {name: x}\n",
    "spec: ",
    "host: ",
    "loadBalancer: {simple: RANDOM}, ",
    "4294967296",
    "18446744073709551615",
    "2147483647",
    "-1",
    "0",
    "10000h",
    "1ms",
    "null",
    "\n",
    "\n  ",
    "\n    ",
    "- ",
    ": ",
    "{",
    "}",
    "[",
    "]",
    ", ",
    "}}",
    "'",
];

#[test]
fn rules_become_valid_policies_or_problems() {
    bolero::check!(name = "destination_rules")
        .with_iterations(3_000)
        .for_each(|bytes: &[u8]| {
            let Some(([clients, replicas, waypoints], rest)) = bytes.split_first_chunk::<3>()
            else {
                return;
            };
            // A number that is 0 is not known.
            let known = |number: u8| Some(u32::from(number)).filter(|count| *count > 0);
            let waypoints = *waypoints % 4;
            let fixed = FixedNumbers {
                replicas: known(*replicas),
                clients: known(*clients),
                waypoints: known(waypoints / 2),
                latency: Some("1s".to_owned()),
            };
            let proxies = if waypoints % 2 == 0 {
                LimitedProxies::Sidecars
            } else {
                LimitedProxies::Waypoint
            };
            check(&pieces::text(rest, &PIECES), proxies, fixed);
        });
}

fn check(text: &[u8], proxies: LimitedProxies, fixed: FixedNumbers) {
    let options = MigrationOptions {
        proxies,
        waypoint: "waypoint".to_owned(),
        namespace: "default".to_owned(),
        fixed,
    };
    let migration = migrate([("rules", text)], &options, &MigrationSources::default());
    let problems = Gathered {
        problems: migration.problems.clone(),
        ..Gathered::default()
    };
    check_problems(&problems);
    let (rules, malformed) = documents(text);
    assert!(malformed.is_none() || !migration.problems.is_empty());
    assert!(migration.notes.len() <= rules.len());
    assert!(
        migration
            .notes
            .iter()
            .all(|note| note.starts_with("rules:"))
    );
    let made = gather([("made", migration.policies.as_bytes())]);
    assert_eq!(made.problems, [], "{}", migration.policies);
    // Every rule is a note, a problem, or in a policy.
    let carried = rules.len() - migration.notes.len();
    assert!(made.policies.len() <= carried);
    assert!(carried == 0 || !migration.problems.is_empty() || !made.policies.is_empty());
}
