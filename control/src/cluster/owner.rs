//! The workload of a pod, named as Istio's metrics name it.
//!
//! A pod of a Deployment belongs to a ReplicaSet whose name ends with a hash, and a pod of a CronJob to a Job whose name
//! ends with a time. Istio's injector leaves out both suffixes, and so does this module.
//!
//! Source: `GetDeployMetaFromPod` in <https://github.com/istio/istio/blob/master/pkg/kube/util.go>.

use k8s_openapi::api::core::v1::Pod;

/// The labels with the hash of a template, with the kind of the workload: a Deployment, or a Rollout of Argo.
const HASHES: [(&str, &str); 2] = [
    ("pod-template-hash", "Deployment"),
    ("rollouts-pod-template-hash", "Rollout"),
];

/// Kind and name of a pod's workload.
pub(super) fn workload(pod: &Pod) -> (String, String) {
    let own = || {
        (
            "Pod".to_owned(),
            pod.metadata.name.clone().unwrap_or_default(),
        )
    };
    let owners = pod.metadata.owner_references.as_deref().unwrap_or_default();
    let owner = owners.iter().find(|owner| owner.controller == Some(true));
    let Some(owner) = owner else {
        return own();
    };
    let found = match owner.kind.as_str() {
        "ReplicaSet" => HASHES.into_iter().find_map(|(label, kind)| {
            let hash = pod.metadata.labels.as_ref()?.get(label)?;
            let name = owner.name.strip_suffix(hash.as_str())?.strip_suffix('-')?;
            Some((kind.to_owned(), name.to_owned()))
        }),
        "Job" => owner
            .name
            .rsplit_once('-')
            .filter(|(_, time)| (8..=11).contains(&time.len()))
            .filter(|(_, time)| time.bytes().all(|b| b.is_ascii_digit()))
            .map(|(name, _)| ("CronJob".to_owned(), name.to_owned())),
        _ => None,
    };
    found.unwrap_or_else(|| (owner.kind.clone(), owner.name.clone()))
}
