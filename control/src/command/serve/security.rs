//! The options that say who may come in.

use std::path::PathBuf;

use clap::Args;
use tidegate_control::net::ServerTlsFiles;
use tidegate_control::serve::Files;

use super::needs;
use crate::command::Failure;

/// Who may come in.
#[derive(Debug, Args)]
#[command(next_help_heading = "Security")]
pub(super) struct Security {
    /// Certificate of the service (PEM), read again when it changes
    #[arg(long, value_name = "FILE", env = "TIDEGATE_TLS_CERT")]
    tls_cert: Option<PathBuf>,
    /// Its private key (PEM)
    #[arg(long, value_name = "FILE", env = "TIDEGATE_TLS_KEY")]
    tls_key: Option<PathBuf>,
    /// Authorities (PEM) whose clients may come in; without it clients show no certificate
    #[arg(long, value_name = "FILE", env = "TIDEGATE_TLS_CLIENT_CA")]
    tls_client_ca: Option<PathBuf>,
    /// File with the names of clients that may come in (SPIFFE ids or DNS names, one a line, * for any text), read
    /// again when it changes; without it all with a certificate may
    #[arg(long, value_name = "FILE", env = "TIDEGATE_CLIENT_LIST")]
    client_list: Option<PathBuf>,
    /// File with the names of clients that may change policies, read again when it changes; without it none may
    #[arg(long, value_name = "FILE", env = "TIDEGATE_WRITER_LIST")]
    writer_list: Option<PathBuf>,
    /// Serve plaintext on addresses that others can reach
    #[arg(long, env = "TIDEGATE_ALLOW_PLAINTEXT")]
    pub(super) allow_plaintext: bool,
    /// File with the bearer token for changing policies, read again when it changes
    #[arg(long, value_name = "FILE", env = "TIDEGATE_TOKEN_FILE")]
    token_file: Option<PathBuf>,
}

impl Security {
    pub(super) fn files(self) -> Result<Files, Failure> {
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
