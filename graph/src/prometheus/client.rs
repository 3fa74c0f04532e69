//! A blocking client of Prometheus' HTTP API.
//!
//! It follows no redirects, because credentials must not go to another server, and most redirects lead to a login. It reads
//! no proxy from the environment. Answers are bounded, in bytes and in time.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::value::RawValue;
use ureq::http::Uri;
use ureq::{Agent, Error};

use super::answer::shortened;
use super::error::{AskError, SettingsError};
use super::tls;

/// Answers queries.
pub trait AskPrometheus {
    /// The answer to an instant query at `time`, in seconds since 1970: unchanged JSON of at most `max_bytes`.
    ///
    /// # Errors
    ///
    /// If there is no answer, or it is not JSON. An error that Prometheus itself reports is an answer.
    fn ask(&self, promql: &str, time: u64, max_bytes: u64) -> Result<String, AskError>;
}

/// The client's credentials for Prometheus.
#[derive(Clone, Default, PartialEq, Eq)]
pub enum Credentials {
    /// No credentials.
    #[default]
    None,
    /// A bearer token.
    Token(String),
    /// A user name and a password.
    Basic {
        /// The name.
        user: String,
        /// The password.
        password: String,
    },
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "None",
            Self::Token(_) => "Token(..)",
            Self::Basic { .. } => "Basic(..)",
        })
    }
}

/// The address of Prometheus, and how to connect.
#[derive(Clone, Debug)]
pub struct ClientSettings {
    /// The URL, with a path prefix if there is one.
    pub url: String,
    /// Its credentials for Prometheus.
    pub credentials: Credentials,
    /// Certificate authorities (PEM) instead of those of the system.
    pub authorities: Option<PathBuf>,
    /// Client certificate and its key (PEM).
    pub identity: Option<(PathBuf, PathBuf)>,
    /// Longest time for the answer to one query.
    pub timeout: Duration,
}

/// A client of one Prometheus.
#[derive(Debug)]
pub struct PrometheusClient {
    agent: Agent,
    url: String,
    /// Whether the connection to another machine is unencrypted.
    is_clear: bool,
    authorization: Option<String>,
    timeout: Duration,
}

impl PrometheusClient {
    /// A client with these settings. It connects at the first query.
    ///
    /// # Errors
    ///
    /// If the URL, a certificate file or the credentials cannot be used.
    pub fn new(settings: &ClientSettings) -> Result<Self, SettingsError> {
        let (url, is_clear) = checked(&settings.url)?;
        let identity = settings.identity.as_ref();
        let tls = tls::configuration(
            settings.authorities.as_deref(),
            identity.map(|(certificate, key)| (certificate.as_path(), key.as_path())),
        )?;
        let agent = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .proxy(None)
            .timeout_global(Some(settings.timeout))
            .tls_config(tls)
            .user_agent(concat!("tidegate/", env!("CARGO_PKG_VERSION")))
            .build()
            .new_agent();
        Ok(Self {
            agent,
            url,
            is_clear,
            authorization: authorization(&settings.credentials)?,
            timeout: settings.timeout,
        })
    }

    /// Whether credentials would go over a connection that others can read.
    #[must_use]
    pub const fn sends_credentials_in_clear(&self) -> bool {
        self.authorization.is_some() && self.is_clear
    }

    fn failure(&self, error: Error, max_bytes: u64) -> AskError {
        let url = self.url.clone();
        if let Some(fault) = tls::fault(&error) {
            return AskError::Tls {
                url,
                reason: shortened(&fault.to_string()),
                expected: tls::expected(fault),
            };
        }
        match error {
            Error::Timeout(_) => AskError::Timeout {
                url,
                timeout: self.timeout,
            },
            Error::BodyExceedsLimit(_) => AskError::TooLarge {
                url,
                limit: max_bytes,
            },
            other => AskError::Unreachable {
                url,
                reason: shortened(&other.to_string()),
            },
        }
    }
}

impl AskPrometheus for PrometheusClient {
    fn ask(&self, promql: &str, time: u64, max_bytes: u64) -> Result<String, AskError> {
        let mut request = self
            .agent
            .get(format!("{}/api/v1/query", self.url))
            .query("query", promql)
            .query("time", time.to_string())
            .query("timeout", format!("{}ms", self.timeout.as_millis()))
            .header("accept", "application/json");
        if let Some(authorization) = &self.authorization {
            request = request.header("authorization", authorization);
        }
        let mut answer = request
            .call()
            .map_err(|error| self.failure(error, max_bytes))?;
        let status = answer.status().as_u16();
        if matches!(status, 401 | 403) {
            return Err(AskError::Denied {
                url: self.url.clone(),
                status,
            });
        }
        let body = answer
            .body_mut()
            .with_config()
            .limit(max_bytes)
            .read_to_vec();
        let body = body.map_err(|error| self.failure(error, max_bytes))?;
        let body = String::from_utf8(body).map_err(|error| error.into_bytes());
        match body {
            // Prometheus also answers errors with JSON; its redirects have no JSON.
            Ok(text) if serde_json::from_str::<&RawValue>(&text).is_ok() => Ok(text),
            other => Err(AskError::NotJson {
                url: self.url.clone(),
                status,
                found: shortened(
                    &other.unwrap_or_else(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
                ),
            }),
        }
    }
}

/// The URL without a slash at its end, and whether it leads over http to another machine.
fn checked(url: &str) -> Result<(String, bool), SettingsError> {
    let uri: Uri = url
        .parse()
        .map_err(|_| SettingsError::Url("it is no URL"))?;
    if !matches!(uri.scheme_str(), Some("http" | "https")) {
        return Err(SettingsError::Url("its scheme is neither http nor https"));
    }
    match uri.authority() {
        None => return Err(SettingsError::Url("it has no host")),
        Some(authority) if authority.as_str().contains('@') => {
            return Err(SettingsError::Url(
                "it contains a user, which is given by options",
            ));
        }
        Some(_) => {}
    }
    if uri.query().is_some() {
        return Err(SettingsError::Url("it has a query"));
    }
    // The parser drops a fragment, and the path of a query would become part of it.
    if url.contains('#') {
        return Err(SettingsError::Url("it has a fragment"));
    }
    let is_local = matches!(uri.host(), Some("127.0.0.1" | "localhost" | "[::1]"));
    let is_clear = uri.scheme_str() == Some("http") && !is_local;
    Ok((url.trim_end_matches('/').to_owned(), is_clear))
}

/// The value of the header `authorization`.
fn authorization(credentials: &Credentials) -> Result<Option<String>, SettingsError> {
    let value = match credentials {
        Credentials::None => return Ok(None),
        Credentials::Token(token) => format!("Bearer {token}"),
        Credentials::Basic { user, password } => {
            if user.contains(|c: char| c.is_control() || c == ':') {
                return Err(SettingsError::Credentials);
            }
            format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))
        }
    };
    if value.chars().any(char::is_control) {
        return Err(SettingsError::Credentials);
    }
    Ok(Some(value))
}
