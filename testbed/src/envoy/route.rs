//! Routes in Envoy's configuration.

use serde_json::{Value, json};

/// Which requests go to which cluster.
#[derive(Debug, Clone)]
pub struct Route {
    prefix: String,
    header: Option<(String, String)>,
    to: RouteTarget,
    name: Option<String>,
}

#[derive(Debug, Clone)]
enum RouteTarget {
    Cluster(String),
    Header(String),
}

impl Route {
    /// Requests whose path begins with `prefix`.
    #[must_use]
    pub fn prefix(prefix: &str) -> Self {
        Self {
            prefix: prefix.to_owned(),
            header: None,
            to: RouteTarget::Cluster(String::new()),
            name: None,
        }
    }

    /// Requests to this authority (`Host`).
    #[must_use]
    pub fn host(host: &str) -> Self {
        Self::header(":authority", host)
    }

    /// Requests whose header `name` is `value`.
    #[must_use]
    pub fn header(name: &str, value: &str) -> Self {
        Self {
            header: Some((name.to_owned(), value.to_owned())),
            ..Self::prefix("/")
        }
    }

    /// All requests, to the cluster named in their header `name`: thousands of names with one route.
    #[must_use]
    pub fn cluster_header(name: &str) -> Self {
        Self {
            to: RouteTarget::Header(name.to_owned()),
            ..Self::prefix("/")
        }
    }

    /// The cluster that gets them.
    #[must_use]
    pub fn to(mut self, cluster: &str) -> Self {
        self.to = RouteTarget::Cluster(cluster.to_owned());
        self
    }

    /// A name for the route (`xds.route_name`).
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    pub(super) fn json(&self, timeout: &str) -> Value {
        let headers: Vec<Value> = self
            .header
            .iter()
            .map(|(name, value)| json!({"name": name, "string_match": {"exact": value}}))
            .collect();
        let mut action = json!({
            "timeout": timeout,
            "upgrade_configs": [{"upgrade_type": "websocket"}],
        });
        let (key, value) = match &self.to {
            RouteTarget::Cluster(name) => ("cluster", name),
            RouteTarget::Header(name) => ("cluster_header", name),
        };
        if let Some(action) = action.as_object_mut() {
            action.insert(key.to_owned(), json!(value));
        }
        json!({
            "name": self.name.clone().unwrap_or_default(),
            "match": {"prefix": self.prefix, "headers": headers},
            "route": action,
        })
    }
}
