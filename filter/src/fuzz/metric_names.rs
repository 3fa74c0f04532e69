//! Names of metrics, whatever upstreams and plugins are called.

use tidegate_core::UpstreamKey;

use tidegate_worker::metrics::name::{Naming, upstream_labels};
use tidegate_worker::metrics::table::{IN_FLIGHT, SHED};

/// The longest value of a label, and what is around three of them in a name.
const MAX_VALUE: usize = 200;
const AROUND: usize = 160;

#[test]
fn labels_stay_apart_whatever_is_in_them() {
    bolero::check!(name = "metric_names")
        .with_type::<(String, Option<String>, String, String)>()
        .with_iterations(5_000)
        .for_each(|(cluster, route, plugin, repeated)| {
            let long = repeated.repeat(40);
            for cluster in [cluster, &long] {
                check(cluster, route.as_deref(), plugin);
            }
        });
}

fn check(cluster: &str, route: Option<&str>, plugin: &str) {
    let key = UpstreamKey {
        cluster: cluster.to_owned(),
        route: route.map(str::to_owned),
    };
    let naming = Naming::of_plugin(plugin);
    let name = naming.name(&SHED, &upstream_labels(&key), Some("limit"));
    assert!(!name.contains(['\0', '\n']));
    assert!(name.len() <= 3 * MAX_VALUE + AROUND, "{}", name.len());
    let mut parts = name.split(";.;");
    let mut expect = |label: &str, value: &str| {
        let part = parts.next().unwrap_or_default();
        let (found, shown) = part.split_once("=.=").unwrap();
        assert_eq!(found, format!("tidegate_{label}"));
        if value.len() <= MAX_VALUE {
            assert_eq!(shown, value.replace([';', '\0', '\n'], "_"));
        } else {
            assert!(shown.ends_with(&format!("~{:016x}", UpstreamKey::hash(value, None))));
        }
    };
    expect("upstream", cluster);
    if let Some(route) = route {
        expect("route", route);
    }
    expect("reason", "limit");
    if !plugin.is_empty() && plugin != "tidegate" {
        expect("plugin", plugin);
    }
    assert_eq!(parts.next(), Some("tidegate_requests_shed_total"));
    assert_eq!(parts.next(), None);
    let gauge = naming.name(&IN_FLIGHT, &upstream_labels(&key), None);
    assert!(gauge.ends_with(";.;tidegate_in_flight"));
}
