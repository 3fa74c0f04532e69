//! Who may come in and who may write, as files say: certificates, lists of clients and the token. All of them are
//! read again while the service runs.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::ServeError;
use crate::metrics::Metrics;
use crate::net::{Followed, Look, Names, Tls, TlsFiles};
use crate::rest::Token;

/// The files; what is not given is not asked for.
#[derive(Debug, Clone, Default)]
pub struct Files {
    /// Certificates.
    pub tls: Option<TlsFiles>,
    /// The names of clients that may come in; without it all with a certificate.
    pub clients: Option<PathBuf>,
    /// The names of clients that may write; without it none.
    pub writers: Option<PathBuf>,
    /// The bearer token for writing.
    pub token: Option<PathBuf>,
}

/// What stands in the files; cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Guards {
    pub(super) tls: Option<Tls>,
    pub(super) clients: Option<Followed<Names>>,
    pub(super) writers: Option<Followed<Names>>,
    pub(super) token: Option<Followed<Token>>,
}

impl Guards {
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
                .map(|path| Followed::load(path, Names::parse_some))
                .transpose()?,
            writers: writers
                .map(|path| Followed::load(path, Names::parse))
                .transpose()?,
            token: token
                .map(|path| Followed::load(path, Token::parse))
                .transpose()?,
        })
    }

    /// Looks at the files on and on.
    pub(super) async fn follow(
        self,
        every: Duration,
        metrics: Arc<Metrics>,
        closing: CancellationToken,
    ) {
        let mut ticks = tokio::time::interval(every);
        loop {
            tokio::select! {
                () = closing.cancelled() => return,
                _ = ticks.tick() => {}
            }
            let (one, metrics) = (self.clone(), Arc::clone(&metrics));
            // A panic there is none of ours to pass on: the next look comes.
            let _ = tokio::task::spawn_blocking(move || one.look(&metrics)).await;
        }
    }

    /// Reads the files once more, and says how that went and when certificates expire. Blocks while it reads.
    pub(super) fn look(&self, metrics: &Metrics) {
        for (file, look) in self.reload() {
            metrics.reloaded(file, look);
        }
        if let Some(tls) = &self.tls {
            let expiry = tls.expiry();
            metrics.certificate("served", expiry.served);
            metrics.certificate("authority", expiry.authorities);
        }
    }

    /// What a look at each file came to, by its name in metrics.
    fn reload(&self) -> Vec<(&'static str, Look)> {
        let looks = [
            ("certificates", self.tls.as_ref().map(Tls::reload)),
            ("clients", self.clients.as_ref().map(Followed::reload)),
            ("writers", self.writers.as_ref().map(Followed::reload)),
            ("token", self.token.as_ref().map(Followed::reload)),
        ];
        let given = |(file, look): (_, Option<Look>)| Some((file, look?));
        looks.into_iter().filter_map(given).collect()
    }
}
