//! The options that say who may come in.

use std::fs;
use std::path::PathBuf;

use clap::Args;
use tidegate_control::net::{Allowed, TlsFiles};
use tidegate_control::rest::Token;

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
    /// Names (SPIFFE ids or DNS names, * for any text) of clients that may come in; none given: all
    #[arg(
        long = "allow-client",
        value_name = "NAME",
        env = "TIDEGATE_ALLOW_CLIENT",
        value_delimiter = ','
    )]
    allow_clients: Vec<String>,
    /// Serve plaintext on addresses that others can reach
    #[arg(long, env = "TIDEGATE_ALLOW_PLAINTEXT")]
    pub(super) allow_plaintext: bool,
    /// File with the bearer token for changing policies
    #[arg(long, value_name = "FILE", env = "TIDEGATE_TOKEN_FILE")]
    token_file: Option<PathBuf>,
}

impl Security {
    pub(super) fn read(&self) -> Result<(Option<TlsFiles>, Allowed, Option<Token>), Failure> {
        if self.tls_cert.is_some() {
            needs(&self.tls_key, "tls-key", "tls-cert")?;
        }
        if self.tls_key.is_some() {
            needs(&self.tls_cert, "tls-cert", "tls-key")?;
        }
        if self.tls_client_ca.is_some() {
            needs(&self.tls_cert, "tls-cert", "tls-client-ca")?;
        }
        if !self.allow_clients.is_empty() {
            needs(&self.tls_client_ca, "tls-client-ca", "allow-client")?;
        }
        let files = self.tls_cert.clone().zip(self.tls_key.clone());
        let tls = files.map(|(certificate, key)| TlsFiles {
            certificate,
            key,
            client_authorities: self.tls_client_ca.clone(),
        });
        let allowed = Allowed::parse(&self.allow_clients).map_err(|name| {
            Failure(format!(
                "--allow-client: found {name:?}, expected a name with at most a few *"
            ))
        })?;
        let token = self.token_file.as_ref().map(|path| {
            let text = fs::read_to_string(path)
                .map_err(|error| Failure(format!("{}: {error}", path.display())))?;
            Token::new(&text).ok_or_else(|| {
                Failure(format!(
                    "{}: expected a token of 16 bytes or more",
                    path.display()
                ))
            })
        });
        Ok((tls, allowed, token.transpose()?))
    }
}
