//! Names of upstreams, one copy for all workers of a plugin. One mutex, taken by the first request to an upstream in each worker.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tidegate_core::{KeySource, UpstreamKey};

/// With so many names, those that nobody has any more are removed; then with twice as many as are left, but not with fewer.
const FIRST_SWEEP: usize = 2_048;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct SharedKeys(Mutex<KeysByHash>);

#[derive(Debug)]
struct KeysByHash {
    by_hash: BTreeMap<u64, Arc<UpstreamKey>>,
    sweep_at: usize,
}

impl Default for KeysByHash {
    fn default() -> Self {
        Self {
            by_hash: BTreeMap::new(),
            sweep_at: FIRST_SWEEP,
        }
    }
}

impl KeySource for SharedKeys {
    fn key(&self, cluster: &str, route: Option<&str>) -> Arc<UpstreamKey> {
        // Nothing in it can be half done.
        let mut keys = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let hash = UpstreamKey::hash(cluster, route);
        let known = keys.by_hash.get(&hash);
        if let Some(key) = known
            && key.cluster == cluster
            && key.route.as_deref() == route
        {
            return Arc::clone(key);
        }
        if keys.by_hash.len() >= keys.sweep_at {
            keys.by_hash.retain(|_, key| Arc::strong_count(key) > 1);
            keys.sweep_at = keys.by_hash.len().saturating_mul(2).max(FIRST_SWEEP);
        }
        let key = UpstreamKey::new(cluster, route);
        keys.by_hash.insert(hash, Arc::clone(&key));
        key
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_copy_for_as_long_as_somebody_has_it() {
        let keys = SharedKeys::default();
        let web = keys.key("web", None);
        assert!(Arc::ptr_eq(&web, &keys.key("web", None)));
        assert!(!Arc::ptr_eq(&web, &keys.key("web", Some("route"))));
        for number in 0..10_000 {
            keys.key(&number.to_string(), None);
        }
        assert!(keys.0.lock().unwrap().by_hash.len() <= FIRST_SWEEP);
        assert!(Arc::ptr_eq(&web, &keys.key("web", None)));
    }
}
