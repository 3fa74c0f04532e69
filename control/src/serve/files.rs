//! The files that decide which clients may connect and write: certificates, lists of clients, and the token. All of
//! them are reloaded while the service runs.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::ServeError;
use crate::metrics::ControlMetrics;
use crate::net::{ClientNames, Followed, ReloadOutcome, ServerTlsFiles, Tls};
use crate::rest::Token;

/// The paths of the files; each is optional.
#[derive(Debug, Clone, Default)]
pub struct Files {
    /// Certificates.
    pub tls: Option<ServerTlsFiles>,
    /// The names of clients that may connect; without it, all clients with a certificate may.
    pub clients: Option<PathBuf>,
    /// The names of clients that may write; without it, none may by their certificate.
    pub writers: Option<PathBuf>,
    /// The bearer token for writing.
    pub token: Option<PathBuf>,
}

/// The contents of the files; cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct LoadedFiles {
    pub(super) tls: Option<Tls>,
    pub(super) clients: Option<Followed<ClientNames>>,
    pub(super) writers: Option<Followed<ClientNames>>,
    pub(super) token: Option<Followed<Token>>,
}

impl LoadedFiles {
    pub(super) fn load(files: &Files) -> Result<Self, ServeError> {
        let Files {
            tls,
            clients,
            writers,
            token,
        } = files;
        let clients = clients.as_deref();
        let writers = writers.as_deref();
        let token = token.as_deref();
        Ok(Self {
            tls: tls.clone().map(Tls::load).transpose()?,
            clients: clients
                .map(|path| Followed::load(path, ClientNames::parse_some))
                .transpose()?,
            writers: writers
                .map(|path| Followed::load(path, ClientNames::parse))
                .transpose()?,
            token: token
                .map(|path| Followed::load(path, Token::parse))
                .transpose()?,
        })
    }

    /// Reloads the files regularly until told to stop.
    pub(super) async fn follow(
        self,
        every: Duration,
        metrics: Arc<ControlMetrics>,
        closing: CancellationToken,
    ) {
        let mut ticks = tokio::time::interval(every);
        loop {
            tokio::select! {
                () = closing.cancelled() => return,
                _ = ticks.tick() => {}
            }
            let (one, metrics) = (self.clone(), Arc::clone(&metrics));
            // Ignore a panic: the next reload follows.
            let _ = tokio::task::spawn_blocking(move || one.reload(&metrics)).await;
        }
    }

    /// Reads the files again, and reports the results and when certificates expire. Blocks while it reads.
    pub(super) fn reload(&self, metrics: &ControlMetrics) {
        for (file, outcome) in self.outcomes() {
            metrics.reloaded(file, outcome);
        }
        if let Some(tls) = &self.tls {
            let expiry = tls.expiry();
            metrics.certificate("served", expiry.served);
            metrics.certificate("authority", expiry.authorities);
        }
    }

    /// The result of reloading each file, by its name in metrics.
    fn outcomes(&self) -> Vec<(&'static str, ReloadOutcome)> {
        let outcomes = [
            ("certificates", self.tls.as_ref().map(Tls::reload)),
            ("clients", self.clients.as_ref().map(Followed::reload)),
            ("writers", self.writers.as_ref().map(Followed::reload)),
            ("token", self.token.as_ref().map(Followed::reload)),
        ];
        let given = |(file, outcome): (_, Option<ReloadOutcome>)| Some((file, outcome?));
        outcomes.into_iter().filter_map(given).collect()
    }
}
