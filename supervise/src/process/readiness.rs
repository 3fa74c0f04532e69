//! Waits, with a bound, until a process is ready.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use super::{POLL, Process, ProcessError};

impl Process {
    /// Polls `look` until it returns something. A call that is still under way at the end of `bound` is canceled.
    ///
    /// # Errors
    /// If the process ends, or `look` returns nothing within `bound`.
    pub async fn ready<T>(
        &mut self,
        bound: Duration,
        mut look: impl AsyncFnMut() -> Option<T>,
    ) -> Result<T, ProcessError> {
        let since = Instant::now();
        loop {
            let left = bound.saturating_sub(since.elapsed());
            if let Ok(Some(found)) = timeout(left, look()).await {
                return Ok(found);
            }
            self.still_starting(since, bound)?;
            sleep(POLL).await;
        }
    }

    /// Waits until it accepts connections at `address`.
    ///
    /// # Errors
    /// When it ends, or does not listen within `bound`.
    pub async fn listens(
        &mut self,
        address: SocketAddr,
        bound: Duration,
    ) -> Result<(), ProcessError> {
        self.ready(bound, async || TcpStream::connect(address).await.ok())
            .await
            .map(drop)
    }

    /// Waits for a line of its output for which `find` returns something. Each line is passed to `find` once.
    ///
    /// # Errors
    /// When it ends, or there is no such line within `bound`.
    pub async fn line<T>(
        &mut self,
        bound: Duration,
        find: impl Fn(&str) -> Option<T>,
    ) -> Result<T, ProcessError> {
        let since = Instant::now();
        let mut read = 0;
        loop {
            let lines = self.output.lines_after(&mut read);
            if let Some(found) = lines.lines().find_map(&find) {
                return Ok(found);
            }
            self.still_starting(since, bound)?;
            sleep(POLL).await;
        }
    }

    /// Fails if it has ended, or if more than `bound` has passed `since` its start: for a caller with its own loop.
    ///
    /// # Errors
    /// See above.
    pub fn still_starting(&mut self, since: Instant, bound: Duration) -> Result<(), ProcessError> {
        self.alive()?;
        if since.elapsed() < bound {
            return Ok(());
        }
        Err(ProcessError::NotReady {
            name: self.name.clone(),
            waited: bound,
            log: self.log_tail(),
        })
    }
}
