//! What istiod's webhook has injected into a Pod for its agent to read.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, Pod};
use serde_json::Value;

/// The name of the injected container.
const SIDECAR: &str = "istio-proxy";

/// The injected settings that decide how the proxy runs.
#[derive(Debug, Clone, PartialEq)]
pub struct InjectedSidecar {
    /// `PROXY_CONFIG`: the mesh's defaults with the overrides of the Pod's annotation.
    pub proxy_config: Value,
    /// The Pod's annotations, which the container reads from a file.
    pub annotations: BTreeMap<String, String>,
}

impl InjectedSidecar {
    /// The settings of a Pod; `None` if nothing was injected.
    #[must_use]
    pub fn of(pod: &Pod) -> Option<Self> {
        let spec = pod.spec.as_ref()?;
        // If Kubernetes supports sidecars, they are among the init containers.
        let first = spec.init_containers.iter().flatten();
        let mut all = first.chain(&spec.containers);
        let sidecar = all.find(|container| container.name == SIDECAR)?;
        Some(Self {
            proxy_config: proxy_config(sidecar)?,
            annotations: pod.metadata.annotations.clone().unwrap_or_default(),
        })
    }
}

fn proxy_config(sidecar: &Container) -> Option<Value> {
    let mut variables = sidecar.env.iter().flatten();
    let config = variables.find(|variable| variable.name == "PROXY_CONFIG")?;
    serde_json::from_str(config.value.as_deref()?).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(spec: Value) -> Pod {
        serde_json::from_value(json!({"metadata": {"annotations": {"a": "b"}}, "spec": spec}))
            .unwrap()
    }

    #[test]
    fn a_sidecar_is_found_among_both_kinds_of_containers() {
        let sidecar = json!({
            "name": "istio-proxy", "env": [{"name": "PROXY_CONFIG", "value": "{\"concurrency\": 2}"}],
        });
        let other = json!({"name": "other"});
        let expected = InjectedSidecar {
            proxy_config: json!({"concurrency": 2}),
            annotations: BTreeMap::from([("a".to_owned(), "b".to_owned())]),
        };
        for spec in [
            json!({"containers": [other, sidecar]}),
            json!({"initContainers": [sidecar], "containers": [other]}),
        ] {
            assert_eq!(InjectedSidecar::of(&pod(spec)).as_ref(), Some(&expected));
        }
        assert_eq!(
            InjectedSidecar::of(&pod(json!({"containers": [other]}))),
            None
        );
    }
}
