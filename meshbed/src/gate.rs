//! A registry that requires a login: an Envoy in front of a registry without one.
//!
//! It passes requests with the right `Authorization` and answers all others with 401 and a challenge. Its realm can be
//! chosen, because clients differ in how they handle it.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use tidegate_testbed::envoy::{Envoy, EnvoyError};

use crate::cluster::ClusterError;
use crate::ports;
use crate::registry::{self, Image, ImageRegistry};

/// A name and a password.
#[derive(Debug, Clone, Copy)]
pub struct Login<'a> {
    /// The name.
    pub name: &'a str,
    /// The password.
    pub password: &'a str,
}

impl Login<'_> {
    fn encoded(&self) -> String {
        BASE64_STANDARD.encode(format!("{}:{}", self.name, self.password))
    }

    /// The form in which `docker login` stores it for a registry, and `kubectl create secret docker-registry` puts it into a
    /// Secret.
    #[must_use]
    pub fn docker_config(&self, registry: SocketAddr) -> Value {
        let login =
            json!({"username": self.name, "password": self.password, "auth": self.encoded()});
        json!({"auths": {registry.to_string(): login}})
    }
}

/// A running gate; dropping this kills it.
#[derive(Debug)]
pub struct LoginGate {
    #[expect(dead_code, reason = "dropping it ends the process")]
    envoy: Envoy,
    address: SocketAddr,
}

impl LoginGate {
    /// Starts it in front of `registry`; it accepts only `login`. Challenges name `realm`.
    ///
    /// # Errors
    /// When it does not become ready.
    pub async fn start(
        registry: &ImageRegistry,
        login: Login<'_>,
        realm: &str,
        folder: &Path,
    ) -> Result<Self, EnvoyError> {
        let address = SocketAddr::from(([127, 0, 0, 1], ports::free()));
        let document = bootstrap(address, registry.address(), login, realm);
        let builder = Envoy::builder().folder_in(folder).document(document);
        let envoy = builder.start().await?;
        Ok(Self { envoy, address })
    }

    /// The address on which it listens, without TLS: the registry's name to its clients.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// [`ImageRegistry::push`] through the gate, with `login`, which is kept in `folder`. Blocks until the image is there.
    ///
    /// # Errors
    /// If the push fails, with the script's output.
    pub fn push(&self, login: Login<'_>, folder: &Path) -> Result<Image, ClusterError> {
        let config = login.docker_config(self.address);
        fs::write(folder.join("config.json"), config.to_string())?;
        registry::push(self.address, &[("DOCKER_CONFIG", folder)])
    }
}

fn bootstrap(at: SocketAddr, registry: SocketAddr, login: Login<'_>, realm: &str) -> Value {
    let address = |address: SocketAddr| {
        json!({"socket_address": {
            "address": address.ip().to_string(), "port_value": address.port(),
        }})
    };
    let allowed = format!("Basic {}", login.encoded());
    let routes = json!([
        {
            "match": {"prefix": "/", "headers": [
                {"name": "authorization", "string_match": {"exact": allowed}},
            ]},
            "route": {"cluster": "registry"},
        },
        {
            "match": {"prefix": "/"},
            "direct_response": {"status": 401},
            "response_headers_to_add": [{"header": {
                "key": "www-authenticate", "value": format!("Basic realm=\"{realm}\""),
            }}],
        },
    ]);
    let manager = json!({
        "@type":
            "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "gate",
        "http_filters": [{
            "name": "envoy.filters.http.router",
            "typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"},
        }],
        "route_config": {"virtual_hosts": [{"name": "gate", "domains": ["*"], "routes": routes}]},
    });
    json!({
        "admin": {"address": address(([127, 0, 0, 1], 0).into())},
        "static_resources": {
            "listeners": [{
                "name": "gate", "address": address(at),
                "filter_chains": [{"filters": [{
                    "name": "envoy.filters.network.http_connection_manager", "typed_config": manager,
                }]}],
            }],
            "clusters": [{
                "name": "registry", "type": "STATIC", "connect_timeout": "1s",
                "load_assignment": {"cluster_name": "registry", "endpoints": [{"lb_endpoints": [
                    {"endpoint": {"address": address(registry)}},
                ]}]},
            }],
        },
    })
}
