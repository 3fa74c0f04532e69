//! A registry that asks for a name and a password: an Envoy before one that does not.
//!
//! It lets pass what carries the right `Authorization` and answers everything else by 401, with a challenge whose realm
//! can be chosen: clients differ in how they handle it.

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

    /// What `docker login` keeps of it for a registry, and `kubectl create secret docker-registry` puts into a Secret.
    #[must_use]
    pub fn docker_config(&self, registry: SocketAddr) -> Value {
        let login =
            json!({"username": self.name, "password": self.password, "auth": self.encoded()});
        json!({"auths": {registry.to_string(): login}})
    }
}

/// A running gate; killed when dropped.
#[derive(Debug)]
pub struct LoginGate {
    #[expect(dead_code, reason = "it ends with us")]
    envoy: Envoy,
    address: SocketAddr,
}

impl LoginGate {
    /// Starts it before `registry`; only `login` is accepted. Challenges are for `realm`.
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

    /// Where it listens, without TLS: the registry's name to its clients.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// [`ImageRegistry::push`] through it, as somebody who has logged in there; `folder` keeps the login. Blocks until it is
    /// there.
    ///
    /// # Errors
    /// When that fails, with what the script said.
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
