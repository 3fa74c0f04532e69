//! Reads timeouts and retries of Istio's `VirtualService`. All other keys are ignored.

use std::time::Duration;

use tidegate_advise::chain::{RouteTerms, SettingOrigin, qualified_host};
use tidegate_core::config::schema::{MAX_ENTRIES, MAX_RULES};
use tidegate_core::config::{ConfigErrors, Node, Section, parse_duration};

/// Kind of the documents.
pub(super) const KIND: &str = "VirtualService";
/// The gateway name that means all sidecars.
const MESH: &str = "mesh";

const DURATION: &str = "a duration such as \"5s\"";
const NUMBER: &str = "a whole number of at least 0";
const NAME: &str = "a text";

/// The settings of each destination. `namespace` is the default; `place` is the position of the document.
pub(super) fn routes(
    root: &Node,
    namespace: &str,
    place: &str,
) -> Result<Vec<RouteTerms>, ConfigErrors> {
    Section::read_document(root, |s| {
        s.allow_unknown();
        let (name, own) = s.object("metadata", |s| {
            s.allow_unknown();
            (text(s, "name"), text(s, "namespace"))
        });
        let namespace = own.unwrap_or_else(|| namespace.to_owned());
        let origin = SettingOrigin {
            object: format!("{KIND} {namespace}/{}", name.unwrap_or_default()),
            place: place.to_owned(),
        };
        s.object("spec", |s| {
            s.allow_unknown();
            let gateways = s.texts("gateways", MAX_ENTRIES, NAME, |text| Some(text.to_owned()));
            // Without a list, the routes apply to all sidecars.
            let is_for_gateways =
                gateways.is_some_and(|names| !names.iter().any(|name| name == MESH));
            let routes = s.objects("http", MAX_RULES, |s| {
                s.allow_unknown();
                let (timeout, (retries, per_try)) = (duration(s, "timeout"), tries(s));
                destinations(s)
                    .into_iter()
                    .map(|host| RouteTerms {
                        origin: origin.clone(),
                        host: qualified_host(&host, &namespace),
                        is_for_gateways,
                        timeout,
                        retries,
                        per_try,
                    })
                    .collect::<Vec<_>>()
            });
            routes.into_iter().flatten().collect()
        })
    })
}

/// The number of retries, and the timeout of each try.
fn tries(s: &mut Section<'_>) -> (u32, Option<Duration>) {
    s.object("retries", |s| {
        s.allow_unknown();
        let attempts = s.value("attempts", &NUMBER, |node| match node {
            Node::Whole(number) => u32::try_from(*number).ok(),
            _ => None,
        });
        (attempts.unwrap_or_default(), duration(s, "perTryTimeout"))
    })
}

/// The hosts that a route leads to, each once.
fn destinations(s: &mut Section<'_>) -> Vec<String> {
    let hosts = s.objects("route", MAX_RULES, |s| {
        s.allow_unknown();
        s.object("destination", |s| {
            s.allow_unknown();
            text(s, "host")
        })
    });
    let mut hosts: Vec<String> = hosts.into_iter().flatten().collect();
    hosts.sort();
    hosts.dedup();
    hosts
}

/// A duration; 0 means none.
fn duration(s: &mut Section<'_>, key: &'static str) -> Option<Duration> {
    s.text(key, &DURATION, parse_duration)
        .filter(|time| !time.is_zero())
}

fn text(s: &mut Section<'_>, key: &'static str) -> Option<String> {
    s.text(key, &NAME, |text| Some(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::documents;

    fn read(text: &str) -> Result<Vec<RouteTerms>, ConfigErrors> {
        let (found, malformed) = documents(text.as_bytes());
        assert_eq!(malformed, None);
        routes(found[0].root(), "default", "a.yaml:1:1")
    }

    #[test]
    fn each_destination_has_the_settings_of_its_route() {
        let found = read(
            "kind: VirtualService\nmetadata: {name: cart, namespace: shop}\nspec:\n  hosts: [cart]\n  http:\n  - timeout: 5s\n    retries: {attempts: 3, perTryTimeout: 2s}\n    route:\n    - destination: {host: cart, subset: v1}\n    - destination: {host: cart, subset: v2}\n    - destination: {host: old.legacy.svc.cluster.local}\n  - timeout: 0s\n    route: [{destination: {host: cart}}]\n",
        )
        .unwrap();

        let shown: Vec<_> = found
            .iter()
            .map(|route| {
                (
                    route.host.as_str(),
                    route.timeout,
                    route.retries,
                    route.per_try,
                )
            })
            .collect();
        let time = |seconds| Some(Duration::from_secs(seconds));
        assert_eq!(
            shown,
            [
                ("cart.shop", time(5), 3, time(2)),
                ("old.legacy", time(5), 3, time(2)),
                ("cart.shop", None, 0, None)
            ]
        );
        assert_eq!(found[0].origin.object, "VirtualService shop/cart");
        assert!(!found[0].is_for_gateways);
    }

    #[test]
    fn only_gateways_without_mesh_are_for_gateways() {
        for (gateways, expected) in [("[public]", true), ("[public, mesh]", false)] {
            let found = read(&format!(
                "metadata: {{name: a}}\nspec:\n  gateways: {gateways}\n  http: [{{route: [{{destination: {{host: a}}}}]}}]\n"
            ));
            assert_eq!(found.unwrap()[0].is_for_gateways, expected);
        }
    }

    #[test]
    fn what_is_wrong_is_named_with_its_path() {
        let errors = read(
            "metadata: {name: a}\nspec:\n  http:\n  - timeout: soon\n    retries: {attempts: -1}\n",
        )
        .unwrap_err();

        assert_eq!(
            errors.to_string(),
            "spec.http[0].timeout: found \"soon\", expected a duration such as \"5s\"\nspec.http[0].retries.attempts: found -1, expected a whole number of at least 0"
        );
    }
}
