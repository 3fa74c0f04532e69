//! A copy of Bookinfo: `productpage` calls `details` and `reviews`, `reviews` calls `ratings`, each behind its Envoy.
//!
//! `details` and `ratings` are the testbed's upstreams. `productpage` and `reviews` have few slots, and hold one for as long
//! as their own calls last, like a server with a pool of threads. As in Bookinfo, a page without reviews, or reviews without
//! stars, are better than none: a call that fails at once costs the caller nothing. A call that *hangs* holds the caller's
//! slot until its timeout; this is how a failure of the last service becomes one of the first.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tidegate_sim::profile::{Behaviour, ServiceTime};
use tidegate_sim::scenario::Scenario;
use tidegate_testbed::client::Caller;
use tidegate_testbed::envoy::Envoy;
use tidegate_testbed::upstream::Upstream;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use super::{Ports, TopologyError, alive, proxy};
use crate::contender::Protection;
use crate::matrix::Wire;

/// Requests that a service works on at the same time.
const SLOTS: usize = 16;
/// Time that a page or a list of reviews takes, without its own calls.
const WORK: Duration = Duration::from_millis(5);
/// Service time of `details`.
const DETAILS: Duration = Duration::from_millis(10);
/// Timeout of `reviews` for `ratings`, as in Bookinfo.
const STARS_WITHIN: Duration = Duration::from_millis(2_500);
/// Timeout of `productpage` for each of its calls, as in Bookinfo.
const PARTS_WITHIN: Duration = Duration::from_secs(3);

/// The four services and their Envoys; dropping this ends all.
#[derive(Debug)]
pub struct Bookinfo {
    ratings: Upstream,
    _details: Upstream,
    _pages: [BookinfoServer; 2],
    proxies: Vec<Envoy>,
    entry: SocketAddr,
}

/// A service that calls others.
#[derive(Debug)]
struct BookinfoServer {
    addr: SocketAddr,
    accepting: JoinHandle<()>,
}

/// The behavior of a service that calls others.
#[derive(Debug)]
struct BookinfoPage {
    slots: Semaphore,
    calls: Vec<Caller>,
    within: Duration,
}

impl Bookinfo {
    /// Starts everything; the scenario's upstream is `ratings`.
    ///
    /// # Errors
    /// When a service or an Envoy does not start.
    pub async fn start(
        contender: &Protection,
        scenario: &Scenario,
        ports: Ports,
    ) -> Result<Self, TopologyError> {
        let behaviour = scenario
            .upstreams
            .first()
            .map(|profile| profile.behaviour.clone());
        let ratings = upstream("ratings", behaviour.unwrap_or_default()).await?;
        let service = ServiceTime::constant(DETAILS);
        let details = upstream(
            "details",
            Behaviour {
                service,
                ..Behaviour::default()
            },
        )
        .await?;
        let mut proxies: Vec<Envoy> = Vec::new();
        for (name, addr) in [("ratings", ratings.addr()), ("details", details.addr())] {
            proxies.push(behind(contender, scenario, (name, addr), (&proxies, ports)).await?);
        }
        let addrs: Vec<SocketAddr> = proxies.iter().map(Envoy::addr).collect();
        let reviews = BookinfoServer::start("reviews", addrs.iter().take(1), STARS_WITHIN).await?;
        let before_reviews = behind(
            contender,
            scenario,
            ("reviews", reviews.addr),
            (&proxies, ports),
        )
        .await?;
        let parts = [before_reviews.addr()];
        proxies.push(before_reviews);
        let parts = addrs.iter().skip(1).chain(&parts);
        let page = BookinfoServer::start("productpage", parts, PARTS_WITHIN).await?;
        let front = behind(
            contender,
            scenario,
            ("productpage", page.addr),
            (&proxies, ports),
        )
        .await?;
        let entry = front.addr();
        proxies.push(front);
        Ok(Self {
            ratings,
            _details: details,
            _pages: [reviews, page],
            proxies,
            entry,
        })
    }

    /// The address from which callers get a page.
    #[must_use]
    pub const fn entry(&self) -> SocketAddr {
        self.entry
    }

    /// The last service, which fails.
    #[must_use]
    pub const fn ratings(&self) -> &Upstream {
        &self.ratings
    }

    /// All four Envoys; the last is the one in front of `productpage`.
    #[must_use]
    pub fn proxies(&self) -> &[Envoy] {
        &self.proxies
    }

    /// Fails if one of the Envoys has ended.
    ///
    /// # Errors
    /// See [`TopologyError::Ended`].
    pub fn check(&mut self) -> Result<(), TopologyError> {
        alive(&mut self.proxies)
    }
}

async fn upstream(name: &str, behaviour: Behaviour) -> Result<Upstream, TopologyError> {
    let started = Upstream::builder(name).behaviour(behaviour).start().await;
    started.map_err(|source| TopologyError::Service {
        name: name.to_owned(),
        source,
    })
}

/// An Envoy in front of a service, on the next free port of the range.
async fn behind(
    contender: &Protection,
    scenario: &Scenario,
    service: (&str, SocketAddr),
    (others, ports): (&[Envoy], Ports),
) -> Result<Envoy, TopologyError> {
    let index = u16::try_from(others.len()).unwrap_or(u16::MAX);
    let (name, addr) = service;
    let listener = (ports.port(index)?, Wire::Fast, None);
    proxy::start(contender, scenario, (name, &[addr]), listener).await
}

impl BookinfoServer {
    async fn start<'a>(
        name: &str,
        calls: impl Iterator<Item = &'a SocketAddr>,
        within: Duration,
    ) -> Result<Self, TopologyError> {
        let service = |source| TopologyError::Service {
            name: name.to_owned(),
            source,
        };
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.map_err(service)?;
        let addr = listener.local_addr().map_err(service)?;
        let page = Arc::new(BookinfoPage {
            slots: Semaphore::new(SLOTS),
            calls: calls.map(|addr| Caller::http1(*addr)).collect(),
            within,
        });
        Ok(Self {
            addr,
            accepting: tokio::spawn(accept(listener, page)),
        })
    }
}

impl Drop for BookinfoServer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, page: Arc<BookinfoPage>) {
    // Errors of a connection concern only its client; the tasks end with the runtime or their connection.
    while let Ok((stream, _)) = listener.accept().await {
        let page = Arc::clone(&page);
        tokio::spawn(async move {
            let answer = service_fn(move |request: Request<Incoming>| {
                let page = Arc::clone(&page);
                async move {
                    drop(request);
                    // A separate task, because the work is done even if the caller goes away.
                    let made = tokio::spawn(async move { page.make().await }).await;
                    let body = made.unwrap_or("failed\n");
                    Ok::<_, Infallible>(Response::new(Full::new(Bytes::from_static(
                        body.as_bytes(),
                    ))))
                }
            });
            let server = auto::Builder::new(TokioExecutor::new());
            let _ = server.serve_connection(TokioIo::new(stream), answer).await;
        });
    }
}

impl BookinfoPage {
    /// Makes a page of the parts that are available.
    async fn make(&self) -> &'static str {
        let _slot = self.slots.acquire().await;
        tokio::time::sleep(WORK).await;
        let mut is_whole = true;
        for part in &self.calls {
            let answer = tokio::time::timeout(self.within, part.get("/")).await;
            is_whole &= matches!(answer, Ok(Ok(reply)) if reply.status == 200);
        }
        if is_whole { "whole\n" } else { "in part\n" }
    }
}
