//! The commands of docs/incident.md, read from the page.

use http::Request;
use kube::Client;
use regex::Regex;
use serde_json::Value;

const PAGE: &str = include_str!("../../../docs/incident.md");
/// The annotation that turns all policies off.
pub(crate) const SWITCH: &str = "tidegate.dev/disabled";

/// A `kubectl patch` of the page.
pub(crate) struct PageCommand {
    resource: String,
    object: String,
    kind: String,
    patch: String,
}

impl PageCommand {
    /// The commands for a resource, in the order of the page.
    pub(crate) fn all_for(resource: &str) -> Vec<Self> {
        let form =
            Regex::new(r"(?m)^kubectl -n shop patch (\S+) (\S+) --type (merge|json) -p '([^']+)'")
                .unwrap();
        let all = form.captures_iter(PAGE).map(|found| Self {
            resource: found[1].to_owned(),
            object: found[2].to_owned(),
            kind: found[3].to_owned(),
            patch: found[4].to_owned(),
        });
        all.filter(|command| command.resource == resource).collect()
    }

    /// Sends the command to a namespace. The page names `shop`.
    pub(crate) async fn send(&self, admin: &Client, namespace: &str) {
        let collection = match self.resource.as_str() {
            "breakerpolicy" => ("tidegate.dev", "breakerpolicies"),
            "trafficextension" => ("extensions.istio.io", "trafficextensions"),
            "wasmplugin" => ("extensions.istio.io", "wasmplugins"),
            other => panic!("the page patches {other}, which this test does not know"),
        };
        let url = format!(
            "/apis/{}/v1alpha1/namespaces/{namespace}/{}/{}?fieldManager=kubectl-patch",
            collection.0, collection.1, self.object
        );
        let request = Request::patch(url)
            .header(
                "content-type",
                format!("application/{}-patch+json", self.kind),
            )
            .body(self.patch.clone().into_bytes());
        admin
            .request::<Value>(request.unwrap())
            .await
            .unwrap_or_else(|error| panic!("{}: {error}", self.patch));
    }
}

/// The annotations that the page sets or removes, in its order. A removed annotation has no value.
pub(crate) fn annotations() -> Vec<Option<String>> {
    let form = Regex::new(
        r"(?m)^kubectl -n tidegate-system annotate lease tidegate tidegate\.dev/disabled(?:='([^']+)'|-)",
    );
    let form = form.unwrap();
    let values = form.captures_iter(PAGE);
    values
        .map(|found| found.get(1).map(|value| value.as_str().to_owned()))
        .collect()
}

/// What the page asks the admin interface of one proxy, with `curl` and through `pilot-agent`.
pub(crate) fn stats_queries() -> Vec<String> {
    let form = Regex::new(
        r"(?m)^(?:curl -s '127\.0\.0\.1:9901/|kubectl .* pilot-agent request GET ')(stats\?[^']+)'$",
    );
    let form = form.unwrap();
    form.captures_iter(PAGE)
        .map(|found| format!("/{}", &found[1]))
        .collect()
}

/// The words of the page's `helm upgrade` after the chart and without the namespace.
pub(crate) fn upgrade_options() -> Vec<String> {
    let form =
        Regex::new(r#"(?m)^helm upgrade tidegate "\$CHART" --namespace tidegate-system (.+)$"#);
    let found = form.unwrap().captures(PAGE).unwrap();
    found[1].split_whitespace().map(str::to_owned).collect()
}

/// The arguments of the page's `tidegate` commands that switch all policies, in its order.
pub(crate) fn switches() -> Vec<Vec<String>> {
    let form = Regex::new(r"(?m)^tidegate ((?:disable|enable) --all[^#\n]*)").unwrap();
    let word = Regex::new(r"'([^']*)'|(\S+)").unwrap();
    let all = form.captures_iter(PAGE).map(|found| {
        let words = word.captures_iter(found.get(1).unwrap().as_str());
        let words = words.map(|word| {
            word.get(1)
                .or_else(|| word.get(2))
                .unwrap()
                .as_str()
                .to_owned()
        });
        words.collect()
    });
    all.collect()
}
