//! A service with one place. While a request holds it, the answer to the next request shows what the proxy runs.
//!
//! With a limit of one, shedding does not depend on rates or luck. The status of the reply says which policy shed the
//! request.

use std::net::SocketAddr;

use serde_json::{Value, json};
use tidegate_meshbed::until;
use tidegate_testbed::client::{Call, CallError, CallReply, Caller};
use tidegate_testbed::upstream::{Script, Upstream};
use tokio::task::JoinHandle;

/// A request for this path is never answered.
pub(crate) const HELD: &str = "/held";

/// Settings of a policy that admits one request at a time and sheds the others with `status`.
pub(crate) fn one_at_a_time(status: u16) -> Value {
    json!({"limit": {"min": 1, "initial": 1, "max": 1}, "shed": {"status": status}})
}

/// An upstream that answers at once. It never answers requests for [`HELD`], which hold the place.
pub(crate) async fn upstream(name: &str) -> Upstream {
    let builder = Upstream::builder(name);
    let script = builder.script(|request| {
        Some(match request.path.as_str() {
            HELD => Script::Hang,
            _ => Script::status(200),
        })
    });
    script.start().await.unwrap()
}

/// The address for requests to a host. Each request has its own connection, because an older connection would still be
/// served as before a change of the listener.
#[derive(Clone)]
pub(crate) struct MeshDoor {
    caller: Caller,
    host: Option<String>,
}

/// A request under way, until it is dropped.
pub(crate) struct HeldRequests(Option<JoinHandle<()>>);

impl MeshDoor {
    /// The entry of a proxy with one service behind it.
    pub(crate) fn at(address: SocketAddr) -> Self {
        Self::by(Caller::http1(address))
    }

    /// The entry that a caller uses.
    pub(crate) const fn by(caller: Caller) -> Self {
        Self { caller, host: None }
    }

    /// The entry for requests to `host`.
    pub(crate) fn to(address: SocketAddr, host: &str) -> Self {
        Self {
            host: Some(host.to_owned()),
            ..Self::at(address)
        }
    }

    async fn call(&self, path: &str) -> Result<CallReply, CallError> {
        let call = match &self.host {
            Some(host) => Call::get(path).authority(host),
            None => Call::get(path),
        };
        self.caller.with_own_connections().call(&call).await
    }

    /// The status of the answer to a request; 0 if there is no answer.
    pub(crate) async fn status(&self) -> u16 {
        let reply = self.call("/").await;
        reply.map_or(0, |reply| reply.status)
    }

    /// Waits until requests are answered with `status`.
    #[track_caller]
    pub(crate) fn answers(&self, status: u16) -> impl Future<Output = ()> {
        let door = self.clone();
        until(
            &format!("requests are answered {status}"),
            async move || door.status().await == status,
        )
    }

    /// Takes the only place, and waits until the next request is answered with `status`. The request that holds the
    /// place may be older than the policy. The policy then does not count it, and another request takes the place.
    ///
    /// An answer may also be lost. So the next round asks again, and gives up the old request before it takes a place:
    /// the only place may be its own.
    pub(crate) async fn is_taken(&self, upstream: &Upstream, status: u16) -> HeldRequests {
        let mut held = HeldRequests::none();
        until(
            &format!("the place is taken, and others are answered {status}"),
            async || {
                if held.is_over() || self.status().await != status {
                    held = HeldRequests::none();
                    held = self.hold(upstream).await;
                }
                self.status().await == status
            },
        )
        .await;
        held
    }

    /// Sends a request that holds the place, and waits until `upstream` has it. A request that is shed, because the proxy
    /// still counts an earlier one, is sent again.
    pub(crate) async fn hold(&self, upstream: &Upstream) -> HeldRequests {
        let before = upstream.received_for(HELD);
        let mut held = HeldRequests::none();
        until("the place is taken", async || {
            if held.is_over() {
                held = self.send_held();
            }
            upstream.received_for(HELD) > before
        })
        .await;
        held
    }

    fn send_held(&self) -> HeldRequests {
        let door = self.clone();
        HeldRequests(Some(tokio::spawn(async move {
            let _ = door.call(HELD).await;
        })))
    }
}

impl HeldRequests {
    /// No held request, so that the place is free.
    pub(crate) const fn none() -> Self {
        Self(None)
    }

    /// Whether no request is under way: there was none, or it was answered.
    fn is_over(&self) -> bool {
        self.0.as_ref().is_none_or(JoinHandle::is_finished)
    }
}

impl Drop for HeldRequests {
    fn drop(&mut self) {
        if let Some(request) = &self.0 {
            request.abort();
        }
    }
}
