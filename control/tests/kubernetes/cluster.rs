//! A simulated cluster. It carries out each plan at once, as an API server would.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use kube::core::DynamicObject;
use serde_json::{Value, json};
use tidegate_control::kube::KubeSettings;
use tidegate_control::kube::clock::ClockReading;
use tidegate_control::kube::istio::{ApiChoice, IstioApi, ServedApis};
use tidegate_control::kube::istio::{DesiredObject, ObjectKey};
use tidegate_control::kube::lease::Timing;
use tidegate_control::kube::plan::{ObjectWrite, WritePlan, plan};
use tidegate_control::kube::settings::{
    ClusterAccess, Extension, FailStrategy, FilterPhase, LeaseSettings, ModuleVersions, Scope,
};
use tidegate_control::kube::view::ClusterView;
use tidegate_control::kube::view::ObservedObject;
use tidegate_control::policy::PolicyName;
use tidegate_control::resource::BreakerPolicyStatus;

pub(crate) const BOTH: ServedApis = ServedApis {
    traffic_extension: true,
    wasm_plugin: true,
};
pub(crate) const OLD: ServedApis = ServedApis {
    traffic_extension: false,
    wasm_plugin: true,
};
pub(crate) const NONE: ServedApis = ServedApis {
    traffic_extension: false,
    wasm_plugin: false,
};

/// Ordinary settings.
pub(crate) fn settings() -> KubeSettings {
    KubeSettings {
        access: ClusterAccess::Inferred,
        scope: Scope::Cluster,
        api: ApiChoice::Auto,
        extension: Extension {
            url: "oci://registry.example/tidegate:1".to_owned(),
            sha256: Some("0a".repeat(32)),
            pull_secret: None,
            fail_strategy: FailStrategy::Open,
            phase: FilterPhase::Unspecified,
            priority: 0,
            versions: ModuleVersions::default(),
        },
        lease: LeaseSettings {
            name: "tidegate".to_owned(),
            namespace: Some("tidegate-system".to_owned()),
            identity: "one".to_owned(),
            timing: Timing::default(),
        },
        proxies: ["shop".to_owned()].into_iter().collect(),
        manager: "tidegate".to_owned(),
        recheck: Duration::from_secs(30),
    }
}

pub(crate) const WEB: &str = r#"{"selector":{"matchLabels":{"app":"web"}}}"#;
pub(crate) const WEB_V2: &str = r#"{"selector":{"matchLabels":{"app":"web","version":"v2"}}}"#;
pub(crate) const NAMESPACE: &str = r#"{"targetRefs":[{"kind":"Namespace","name":"shop"}]}"#;
pub(crate) const GATEWAY: &str =
    r#"{"targetRefs":[{"group":"gateway.networking.k8s.io","kind":"Gateway","name":"waypoint"}]}"#;
pub(crate) const TWO: &str = r#"{"targetRefs":[{"kind":"Service","name":"reviews"},{"group":"gateway.networking.k8s.io","kind":"Gateway","name":"waypoint"}]}"#;
pub(crate) const PROXIES: &str = r#"{"proxies":[{"id":"*"}]}"#;

/// A policy in namespace `shop` with these targets.
pub(crate) fn policy(name: &str, targets: &str) -> Value {
    let mut spec: Value = serde_json::from_str(targets).unwrap();
    spec["slo"] = json!({"latency": {"quantile": 0.99, "target": "250ms"}});
    json!({
        "apiVersion": "tidegate.dev/v1alpha1",
        "kind": "BreakerPolicy",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": spec,
    })
}

/// The cluster, and the service's view of it.
#[derive(Clone)]
pub(crate) struct PlannedCluster {
    pub(crate) settings: KubeSettings,
    pub(crate) view: ClusterView,
    pub(crate) now: ClockReading,
    /// Istio's objects in the cluster.
    pub(crate) objects: BTreeMap<ObjectKey, Value>,
    policies: BTreeMap<String, Value>,
    version: u64,
}

impl PlannedCluster {
    pub(crate) fn new(served: ServedApis) -> Self {
        let mut view = ClusterView::default();
        view.discover(served);
        view.see_all_policies(&[]);
        for api in IstioApi::ALL {
            if served.has(api) {
                view.see_all_objects(&[], api);
            }
        }
        Self {
            settings: settings(),
            view,
            now: ClockReading {
                instant: Instant::now(),
                wall: Timestamp::UNIX_EPOCH,
            },
            objects: BTreeMap::new(),
            policies: BTreeMap::new(),
            version: 0,
        }
    }

    fn next(&mut self) -> String {
        self.version += 1;
        self.version.to_string()
    }

    /// Applies a policy as a user. A new name creates a policy, and a known name changes it.
    pub(crate) fn put(&mut self, mut policy: Value) {
        let name = policy["metadata"]["name"].as_str().unwrap().to_owned();
        let version = self.next();
        let before = self.policies.get(&name);
        let meta = match before {
            Some(before) => {
                let is_new = before["spec"] != policy["spec"];
                policy["status"] = before["status"].clone();
                let generation = before["metadata"]["generation"].as_i64().unwrap();
                (
                    before["metadata"]["uid"].clone(),
                    before["metadata"]["creationTimestamp"].clone(),
                    generation + i64::from(is_new),
                )
            }
            None => {
                let second = 1_700_000_000 + i64::try_from(self.version).unwrap();
                let created = Timestamp::from_second(second).unwrap().to_string();
                (json!(format!("uid-{name}-{version}")), json!(created), 1)
            }
        };
        policy["metadata"]["uid"] = meta.0;
        policy["metadata"]["creationTimestamp"] = meta.1;
        policy["metadata"]["generation"] = json!(meta.2);
        policy["metadata"]["resourceVersion"] = json!(version);
        self.view.see_policy(&dynamic(&policy));
        self.policies.insert(name, policy);
    }

    /// Deletes a policy as a user. The simulation has no garbage collection.
    pub(crate) fn remove(&mut self, name: &str) {
        let policy = self.policies.remove(name).unwrap();
        self.view.forget_policy(&dynamic(&policy));
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.policies.contains_key(name)
    }

    /// Sets the APIs of Istio that the server has. Objects of other APIs are removed.
    pub(crate) fn serve(&mut self, served: ServedApis) {
        self.objects.retain(|key, _| served.has(key.api));
        self.view.discover(served);
        self.list(served);
    }

    fn list(&mut self, served: ServedApis) {
        for api in IstioApi::ALL.into_iter().filter(|f| served.has(*f)) {
            let objects = self.objects.iter().filter(|(key, _)| key.api == api);
            let objects: Vec<DynamicObject> = objects.map(|(_, object)| dynamic(object)).collect();
            self.view.see_all_objects(&objects, api);
        }
    }

    /// Restarts the service. It then knows only what the server has.
    pub(crate) fn restart(&mut self) {
        let served = self.view.discovered.unwrap();
        self.view = ClusterView::default();
        self.view.discover(served);
        let policies: Vec<DynamicObject> = self.policies.values().map(dynamic).collect();
        self.view.see_all_policies(&policies);
        self.list(served);
    }

    pub(crate) fn plan(&self) -> WritePlan {
        plan(&self.view, &self.settings, self.now)
    }

    /// Carries out plans until there is nothing to do. Returns how many objects and statuses were written.
    pub(crate) fn settle(&mut self) -> (usize, usize) {
        let (mut objects, mut statuses) = (0, 0);
        for _ in 0..10 {
            let plan = self.plan();
            if plan.writes.is_empty() && plan.statuses.is_empty() {
                return (objects, statuses);
            }
            objects += plan.writes.len();
            statuses += plan.statuses.len();
            self.carry_out(plan);
        }
        panic!("the plans do not converge: {:?}", self.plan());
    }

    pub(crate) fn carry_out(&mut self, plan: WritePlan) {
        for write in plan.writes {
            match write {
                ObjectWrite::Apply(wanted) => self.apply(wanted),
                ObjectWrite::Delete { key, uid } => {
                    let object = self.objects.remove(&key).unwrap();
                    assert_eq!(object["metadata"]["uid"], json!(uid));
                    self.view.removed(&key);
                }
            }
        }
        for write in plan.statuses {
            let version = self.next();
            let policy = self.policies.get_mut(write.name.name()).unwrap();
            assert_eq!(policy["metadata"]["uid"], json!(write.uid));
            policy["metadata"]["resourceVersion"] = json!(version);
            policy["status"] = serde_json::to_value(&write.status).unwrap();
            let policy = dynamic(policy);
            self.view.status_written(&write.name, &policy);
        }
    }

    /// Server-side apply without a conflict: fields of other owners stay.
    fn apply(&mut self, wanted: DesiredObject) {
        let version = self.next();
        let DesiredObject { key, body, hash } = wanted;
        let mut object = self
            .objects
            .remove(&key)
            .unwrap_or_else(|| json!({"metadata": {"uid": format!("uid-object-{version}")}}));
        merge(&mut object, &body);
        object["metadata"]["resourceVersion"] = json!(version);
        let seen = ObservedObject::of(&dynamic(&object));
        self.objects.insert(key.clone(), object);
        self.view.applied(key, hash, seen);
    }

    /// Changes an object, or creates it, as another client.
    pub(crate) fn meddle(&mut self, key: &ObjectKey, change: impl FnOnce(&mut Value)) {
        let version = self.next();
        let mut object = self.objects.remove(key).unwrap_or_else(|| {
            json!({"metadata": {"name": key.name, "namespace": key.namespace, "uid": format!("uid-foreign-{version}")}})
        });
        change(&mut object);
        object["metadata"]["resourceVersion"] = json!(version);
        self.view.see_object(&dynamic(&object), key.api);
        self.objects.insert(key.clone(), object);
    }

    /// Deletes an object, as another client.
    pub(crate) fn lose(&mut self, key: &ObjectKey) {
        let object = self.objects.remove(key).unwrap();
        self.view.forget_object(&dynamic(&object), key.api);
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.objects.keys().map(ToString::to_string).collect()
    }

    pub(crate) fn status(&self, name: &str) -> BreakerPolicyStatus {
        let name = PolicyName::new(Some("shop".to_owned()), name.to_owned());
        self.view.policies[&name].status.clone()
    }

    /// A condition, such as `True Accepted` or `False Invalid`.
    pub(crate) fn condition(&self, name: &str, kind: &str) -> String {
        let status = self.status(name);
        let condition = status.conditions.iter().find(|c| c.type_ == kind).unwrap();
        format!("{} {}", condition.status, condition.reason)
    }

    pub(crate) fn message(&self, name: &str, kind: &str) -> String {
        let status = self.status(name);
        let condition = status.conditions.iter().find(|c| c.type_ == kind);
        condition.unwrap().message.clone()
    }
}

pub(crate) fn key(api: IstioApi, name: &str) -> ObjectKey {
    ObjectKey {
        namespace: "shop".to_owned(),
        name: name.to_owned(),
        api,
    }
}

pub(crate) fn dynamic(value: &Value) -> DynamicObject {
    serde_json::from_value(value.clone()).unwrap()
}

pub(crate) fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, from) in from {
                if from.is_null() {
                    into.remove(key);
                    continue;
                }
                merge(into.entry(key.clone()).or_insert(Value::Null), from);
            }
        }
        (into, from) => *into = from.clone(),
    }
}
