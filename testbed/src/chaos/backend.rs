//! An upstream in a separate process, and its ledger of answered requests.
//!
//! The process reads changes of its behavior from standard input, one JSON document a line. For each request whose answer it
//! hands to the connection it adds a line to the ledger: the number that the request carries, and the time. The ledger
//! outlives the process.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use tidegate_supervise::{Log, Process, Signal};

use super::clock::now_us;
use super::fault::UpstreamSide;
use crate::upstream::Upstream;
use tidegate_sim::profile::{Behaviour, Change, ServiceTime, UpstreamMode};

/// Header with the number of a request.
pub const NUMBER_HEADER: &str = "x-number";

/// Requests that an upstream works on at a time: several times what the load needs.
const SLOTS: u32 = 16;

/// How long it works on one.
const SERVICE: Duration = Duration::from_millis(25);

/// Path of the requests that take long, so that some are under way at any moment.
pub const LONG_PATH: &str = "/long";

/// How long an upstream works on one of those.
const LONG_SERVICE: Duration = Duration::from_millis(400);

/// A start that takes longer has failed.
const START_BOUND: Duration = Duration::from_secs(20);

/// Runs an upstream in this process until standard input ends.
///
/// # Errors
/// If the port is not available or the ledger cannot be written.
pub async fn serve(name: &str, port: u16, ledger: &Path) -> Result<()> {
    let ledger = OpenOptions::new().create(true).append(true).open(ledger);
    let ledger = ledger.context("open the ledger")?;
    let upstream = Upstream::builder(name)
        .behaviour(Behaviour {
            slots: SLOTS,
            service: ServiceTime::constant(SERVICE),
            paths: [(LONG_PATH.to_owned(), ServiceTime::constant(LONG_SERVICE))].into(),
            ..Behaviour::default()
        })
        .port(port)
        .witness(move |headers| {
            if let Some(number) = headers.get(NUMBER_HEADER).and_then(|it| it.to_str().ok()) {
                let line = format!("{number} {}\n", now_us());
                // One write a line. A lost line shows as an answer that no upstream gave.
                let _ = (&ledger).write_all(line.as_bytes());
            }
        })
        .start()
        .await
        .context("open the port")?;
    let changes = tokio::task::spawn_blocking(move || {
        for line in std::io::stdin().lock().lines() {
            let change: Change = serde_json::from_str(&line?)?;
            upstream.change(&change);
        }
        Ok(())
    });
    changes.await?
}

/// The process of an upstream; it is killed when this is dropped.
#[derive(Debug)]
pub struct Backend {
    side: UpstreamSide,
    port: u16,
    ledger: PathBuf,
    read_to: u64,
    process: Process,
}

impl Backend {
    /// Starts the upstream of `side` with its ledger in `folder`.
    ///
    /// # Errors
    /// When the process cannot be started or does not listen.
    pub async fn start(side: UpstreamSide, folder: &Path) -> Result<Self> {
        let port = free_port()?;
        let ledger = folder.join(format!("{}.ledger", side.name()));
        fs::write(&ledger, "").context("make the ledger")?;
        let process = spawn(side, port, &ledger).await?;
        Ok(Self {
            side,
            port,
            ledger,
            read_to: 0,
            process,
        })
    }

    /// Where it listens.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        ([127, 0, 0, 1], self.port).into()
    }

    /// Kills it.
    ///
    /// # Errors
    /// If it had ended already.
    pub fn kill(&mut self) -> Result<()> {
        self.process.alive()?;
        self.process.kill();
        Ok(())
    }

    /// Starts it again on the same port.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub async fn restart(&mut self) -> Result<()> {
        self.process = spawn(self.side, self.port, &self.ledger).await?;
        Ok(())
    }

    /// Suspends its process (SIGSTOP).
    ///
    /// # Errors
    /// When there is no such process.
    pub fn stop(&mut self) -> Result<()> {
        Ok(self.process.signal(Signal::STOP)?)
    }

    /// Resumes its process (SIGCONT).
    ///
    /// # Errors
    /// When there is no such process.
    pub fn go_on(&mut self) -> Result<()> {
        Ok(self.process.signal(Signal::CONT)?)
    }

    /// Changes its behavior.
    ///
    /// # Errors
    /// When it is gone.
    pub fn change(&mut self, change: &Change) -> Result<()> {
        let mut line = serde_json::to_string(change)?;
        line.push('\n');
        Ok(self.process.write(line.as_bytes())?)
    }

    /// Makes it serve again, and waits until it accepts connections.
    ///
    /// # Errors
    /// When it is gone, or does not listen.
    pub async fn serve_again(&mut self) -> Result<()> {
        self.change(&Change::mode(UpstreamMode::Serve))?;
        Ok(self.process.listens(self.addr(), START_BOUND).await?)
    }

    /// Multiplies its service times by this factor.
    ///
    /// # Errors
    /// As [`Self::change`].
    pub fn slow_down(&mut self, times: u32) -> Result<()> {
        self.change(&Change {
            service: Some(ServiceTime::constant(SERVICE * times)),
            ..Change::default()
        })
    }

    /// The requests answered since the last call: numbers, and times in microseconds.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn answered(&mut self) -> Result<BTreeMap<u64, u64>> {
        let mut file = File::open(&self.ledger).context("open the ledger")?;
        file.seek(SeekFrom::Start(self.read_to))?;
        let mut text = String::new();
        BufReader::new(file).read_to_string(&mut text)?;
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        self.read_to += u64::try_from(whole)?;
        Ok(parse(text.get(..whole).unwrap_or_default()))
    }
}

fn parse(text: &str) -> BTreeMap<u64, u64> {
    let entry = |line: &str| {
        let (number, time) = line.split_once(' ')?;
        Some((number.parse().ok()?, time.parse().ok()?))
    };
    text.lines().filter_map(entry).collect()
}

async fn spawn(side: UpstreamSide, port: u16, ledger: &Path) -> Result<Process> {
    let mut command = Command::new(std::env::current_exe()?);
    command
        .args(["upstream", side.name(), &port.to_string()])
        .arg(ledger);
    let name = format!("upstream {}", side.name());
    let mut process = Process::start_with_input(&name, command, Log::Unnamed)?;
    let address = ([127, 0, 0, 1], port).into();
    process.listens(address, START_BOUND).await?;
    Ok(process)
}

/// Ports for servers that may stop and restart: below the kernel's range for outgoing connections.
const PORTS: std::ops::Range<u16> = 20_000..32_000;

/// A port of 127.0.0.1 that is free now.
pub(super) fn free_port() -> Result<u16> {
    /// The largest number of ports that are tried.
    const TRIES: usize = 100;
    let drawn = (0..TRIES).map(|_| rand::random_range(PORTS));
    let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    drawn.into_iter().find(is_free).context("no free port")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ledger_is_read_by_number() {
        let answers = parse("3 100\n1 200\nrubbish\n");
        assert_eq!(answers, BTreeMap::from([(1, 200), (3, 100)]));
    }
}
