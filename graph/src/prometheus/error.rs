//! Errors of the connection to Prometheus.

use std::path::PathBuf;
use std::time::Duration;

use thiserror::Error;

/// Why a query has no answer.
#[derive(Debug, Error)]
pub enum AskError {
    /// There is no connection.
    #[error("{url}: {reason}: is Prometheus up, and is this its address?")]
    Unreachable {
        /// The server.
        url: String,
        /// The network's error.
        reason: String,
    },
    /// There is a connection, but one side does not accept the other.
    #[error("{url}: TLS: {reason}: expected {expected}")]
    Tls {
        /// The server.
        url: String,
        /// What is wrong.
        reason: String,
        /// What was expected.
        expected: &'static str,
    },
    /// The answer took too long.
    #[error("{url}: no answer within {timeout:?}: a longer timeout or a shorter window may help")]
    Timeout {
        /// The server.
        url: String,
        /// How long the client waited.
        timeout: Duration,
    },
    /// 401 or 403.
    #[error(
        "{url}: status {status}: expected other credentials (a token, a name with a password, or a client certificate)"
    )]
    Denied {
        /// The server.
        url: String,
        /// 401 or 403.
        status: u16,
    },
    /// The answer is a page, not JSON: a login, or a proxy's error.
    #[error(
        "{url}: status {status}: found {found:?}, expected JSON of Prometheus' API: is this Prometheus' address, with its path prefix?"
    )]
    NotJson {
        /// The server.
        url: String,
        /// The status.
        status: u16,
        /// How the body begins.
        found: String,
    },
    /// The answer is larger than accepted.
    #[error("{url}: the answer is larger than {limit} bytes")]
    TooLarge {
        /// The server.
        url: String,
        /// Most bytes accepted.
        limit: u64,
    },
}

/// Why a client could not be created.
#[derive(Debug, Error)]
pub enum SettingsError {
    /// The URL cannot be used. It is not shown, because it may contain a password.
    #[error("the URL of Prometheus: {0}, expected one such as http://127.0.0.1:9090")]
    Url(&'static str),
    /// A file cannot be used.
    #[error("{path}: {reason}", path = .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it, and what was expected.
        reason: String,
    },
    /// The credentials cannot be put into a header.
    #[error("the credentials contain control characters, expected one line of text")]
    Credentials,
}
