//! Envoy's admin interface.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use serde_json::Value;

use super::Metrics;
use crate::client::{Call, CallError, Caller};

/// Why a request to the admin interface failed.
#[derive(Debug, thiserror::Error)]
pub enum AdminError {
    /// No answer.
    #[error("GET {path}")]
    Call {
        /// The path.
        path: String,
        /// The cause.
        source: CallError,
    },
    /// An answer other than 200.
    #[error("GET {path}: found status {status}, expected 200")]
    Status {
        /// The path.
        path: String,
        /// The status.
        status: u16,
    },
    /// The answer is not JSON.
    #[error("GET {path}: the answer is no JSON")]
    Json {
        /// The path.
        path: String,
        /// The cause.
        source: serde_json::Error,
    },
}

/// Client of one Envoy's admin interface.
#[derive(Debug, Clone)]
pub struct Admin {
    addr: SocketAddr,
    caller: Caller,
}

impl Admin {
    /// A client of the interface at `addr`.
    #[must_use]
    pub fn new(addr: SocketAddr) -> Self {
        Self {
            addr,
            caller: Caller::http1(addr),
        }
    }

    /// Its address.
    #[must_use]
    pub const fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The text at `path`, for example `/clusters` or `/stats/prometheus`.
    ///
    /// # Errors
    /// When there is no answer, or one other than 200.
    pub async fn text(&self, path: &str) -> Result<String, AdminError> {
        let reply =
            self.caller
                .call(&Call::get(path))
                .await
                .map_err(|source| AdminError::Call {
                    path: path.to_owned(),
                    source,
                })?;
        if reply.status == 200 {
            Ok(String::from_utf8_lossy(&reply.body).into_owned())
        } else {
            Err(AdminError::Status {
                path: path.to_owned(),
                status: reply.status,
            })
        }
    }

    /// The JSON document at `path`, for example `/memory`.
    ///
    /// # Errors
    /// As [`Self::text`], or when the answer is not JSON.
    pub async fn json(&self, path: &str) -> Result<Value, AdminError> {
        let text = self.text(path).await?;
        serde_json::from_str(&text).map_err(|source| AdminError::Json {
            path: path.to_owned(),
            source,
        })
    }

    /// Counters and gauges whose name matches the regular expression `filter`.
    ///
    /// # Errors
    /// As [`Self::text`].
    pub async fn stats(&self, filter: &str) -> Result<BTreeMap<String, u64>, AdminError> {
        let text = self
            .text(&format!("/stats?filter={}", encode(filter)))
            .await?;
        let number = |line: &str| {
            let (name, value) = line.rsplit_once(": ")?;
            Some((name.to_owned(), value.parse().ok()?))
        };
        Ok(text.lines().filter_map(number).collect())
    }

    /// The plugin's metrics at this moment.
    ///
    /// # Errors
    /// As [`Self::text`].
    pub async fn tidegate(&self) -> Result<Metrics, AdminError> {
        Ok(Metrics::parse(&self.stats("tidegate_").await?))
    }

    pub(super) async fn is_ready(&self) -> bool {
        self.text("/ready").await.is_ok()
    }

    /// The address of the first listener, once it listens.
    pub(super) async fn listener(&self) -> Result<Option<SocketAddr>, AdminError> {
        Ok(self.listeners().await?.into_iter().next())
    }

    /// Envoy's addresses, in the order of its listeners.
    ///
    /// # Errors
    /// As [`Self::json`].
    pub async fn listeners(&self) -> Result<Vec<SocketAddr>, AdminError> {
        let document = self.json("/listeners?format=json").await?;
        let listeners = document.get("listener_statuses").and_then(Value::as_array);
        let address = |listener: &Value| {
            let address = listener.pointer("/local_address/socket_address")?;
            let ip = address.get("address")?.as_str()?.parse().ok()?;
            let port = u16::try_from(address.get("port_value")?.as_u64()?).ok()?;
            (port != 0).then(|| SocketAddr::new(ip, port))
        };
        Ok(listeners
            .into_iter()
            .flatten()
            .filter_map(address)
            .collect())
    }
}

/// Percent-encodes every byte that a query does not plainly allow.
fn encode(text: &str) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.~*".contains(byte);
    text.bytes()
        .map(|byte| {
            if plain(&byte) {
                char::from(byte).to_string()
            } else {
                format!("%{byte:02X}")
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn query_is_encoded() {
        assert_eq!(encode("a;b=c|d"), "a%3Bb%3Dc%7Cd");
    }
}
