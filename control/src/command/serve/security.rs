//! The options that decide which clients may connect.

use std::path::PathBuf;

use clap::Args;
use tidegate_control::net::ServerTlsFiles;
use tidegate_control::serve::Files;

use super::needs;
use crate::command::CommandFailure;

/// Which clients may connect.
#[derive(Debug, Args)]
#[command(next_help_heading = "Security")]
pub(super) struct Security {
    /// Certificate of the control service (PEM), reloaded when it changes
    #[arg(long, value_name = "FILE", env = "TIDEGATE_TLS_CERT")]
    tls_cert: Option<PathBuf>,
    /// Private key of the certificate (PEM)
    #[arg(long, value_name = "FILE", env = "TIDEGATE_TLS_KEY")]
    tls_key: Option<PathBuf>,
    /// Certificate authorities (PEM) of clients; without it, clients need no certificate
    #[arg(long, value_name = "FILE", env = "TIDEGATE_TLS_CLIENT_CA")]
    tls_client_ca: Option<PathBuf>,
    /// File with the names of clients that may connect (SPIFFE ids or DNS names, one per line, * for any text), reloaded
    /// when it changes; without it, all clients with a certificate may connect
    #[arg(long, value_name = "FILE", env = "TIDEGATE_CLIENT_LIST")]
    client_list: Option<PathBuf>,
    /// File with the names of clients that may change policies, reloaded when it changes; without it, none may
    #[arg(long, value_name = "FILE", env = "TIDEGATE_WRITER_LIST")]
    writer_list: Option<PathBuf>,
    /// Allow plaintext on addresses that are not loopback
    #[arg(long, env = "TIDEGATE_ALLOW_PLAINTEXT")]
    pub(super) allow_plaintext: bool,
    /// File with the bearer token for changing policies, reloaded when it changes
    #[arg(long, value_name = "FILE", env = "TIDEGATE_TOKEN_FILE")]
    token_file: Option<PathBuf>,
}

impl Security {
    pub(super) fn files(self) -> Result<Files, CommandFailure> {
        if self.tls_cert.is_some() {
            needs(&self.tls_key, "tls-key", "tls-cert")?;
        }
        if self.tls_key.is_some() {
            needs(&self.tls_cert, "tls-cert", "tls-key")?;
        }
        if self.tls_client_ca.is_some() {
            needs(&self.tls_cert, "tls-cert", "tls-client-ca")?;
        }
        if self.client_list.is_some() {
            needs(&self.tls_client_ca, "tls-client-ca", "client-list")?;
        }
        if self.writer_list.is_some() {
            needs(&self.tls_client_ca, "tls-client-ca", "writer-list")?;
        }
        let files = self.tls_cert.zip(self.tls_key);
        Ok(Files {
            tls: files.map(|(certificate, key)| ServerTlsFiles {
                certificate,
                key,
                client_authorities: self.tls_client_ca,
            }),
            clients: self.client_list,
            writers: self.writer_list,
            token: self.token_file,
        })
    }
}
