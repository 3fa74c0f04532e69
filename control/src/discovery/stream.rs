//! One conversation with a proxy: receives its requests and sends pushes.
//!
//! At most one push is pending on a stream, so an outbox for two responses is enough. A proxy that answers pushes
//! without reading them fills the outbox and is disconnected.

use std::time::Duration;

use envoy_types::pb::envoy::config::core::v3::Node;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::{Status, Streaming};
use tracing::{debug, info, warn};

use super::node::proxy;
use super::wire::{self, Dialect};
use crate::fleet::{AssignmentChange, DiscoveryApi, ProxyFleet, StreamOrigin, StreamSeat};
use crate::net::PeerShare;
use crate::xds::PushReply;

/// Most responses that wait for the proxy to read them.
pub(super) const OUTBOX: usize = 2;

/// The responses of one stream.
pub(super) type Responses<D> = ReceiverStream<Result<<D as Dialect>::Response, Status>>;

/// What a stream needs.
#[derive(Debug, Clone)]
pub(super) struct StreamContext {
    pub(super) fleet: ProxyFleet,
    /// How long the stream may stay open without its first request.
    pub(super) patience: Duration,
    /// Ends the stream when canceled.
    pub(super) closing: CancellationToken,
}

/// A conversation, still to be run, and the responses that it will send.
pub(super) fn open<D: Dialect>(
    context: StreamContext,
    origin: StreamOrigin,
    share: PeerShare,
) -> (Conversation<D>, Responses<D>) {
    let (outbox, responses) = mpsc::channel(OUTBOX);
    let conversation = Conversation::new(context, origin, share, outbox);
    (conversation, ReceiverStream::new(responses))
}

/// One stream; see the module.
pub(super) struct Conversation<D: Dialect> {
    context: StreamContext,
    origin: StreamOrigin,
    subscription: D,
    // Set by the first request, which identifies the proxy.
    seat: Option<StreamSeat>,
    outbox: mpsc::Sender<Result<D::Response, Status>>,
    _share: PeerShare,
}

impl<D: Dialect> Conversation<D> {
    pub(super) fn new(
        context: StreamContext,
        origin: StreamOrigin,
        share: PeerShare,
        outbox: mpsc::Sender<Result<D::Response, Status>>,
    ) -> Self {
        Self {
            context,
            origin,
            subscription: D::default(),
            seat: None,
            outbox,
            _share: share,
        }
    }

    /// Runs the conversation until it ends.
    pub(super) async fn run(mut self, mut inbound: Streaming<D::Request>) {
        let closing = self.context.closing.clone();
        let mut silence = std::pin::pin!(tokio::time::sleep(self.context.patience));
        let mut is_silent = true;
        let end = loop {
            let step = tokio::select! {
                request = inbound.message() => match request {
                    Ok(Some(request)) => {
                        is_silent = false;
                        self.receive(request)
                    }
                    Ok(None) => break None,
                    Err(status) => break Some(status),
                },
                () = silence.as_mut(), if is_silent => break Some(Status::deadline_exceeded("no request on the stream")),
                change = changed(self.seat.as_mut()) => match change {
                    AssignmentChange::Assigned => Ok(()),
                    AssignmentChange::Unknown => break Some(Status::unavailable("policies need more metadata of the node: send it again")),
                },
                () = self.outbox.closed() => break None,
                () = closing.cancelled() => break Some(Status::unavailable("the control service is shutting down")),
            };
            if let Err(status) = step.and_then(|()| self.push()) {
                break Some(status);
            }
        };
        if let Some(status) = end {
            debug!(peer = %self.origin.peer, %status, "stream ended");
            // The proxy may be gone, or may not read.
            let _ = self.outbox.try_send(Err(status));
        }
    }

    /// Processes a request. An error ends the stream.
    pub(super) fn receive(&mut self, mut request: D::Request) -> Result<(), Status> {
        let type_url = D::type_url(&request);
        let is_ours = type_url == wire::resource_type()
            || (type_url.is_empty() && self.origin.api == DiscoveryApi::Ecds);
        if !is_ours {
            // An empty answer would tell the proxy to delete its resources of that type.
            debug!(peer = %self.origin.peer, type_url, "not answered: this resource type is not served");
            return Ok(());
        }
        let node = D::node(&mut request);
        let seat = match &mut self.seat {
            Some(seat) => seat,
            None => self
                .seat
                .insert(register(&self.context.fleet, &self.origin, node)?),
        };
        let reply = self
            .subscription
            .receive_wire(request, &seat.desired())
            .map_err(|excess| Status::resource_exhausted(excess.to_string()))?;
        if let PushReply::Rejected(versions, rejection) = &reply {
            let names: Vec<&str> = versions.iter().map(|(name, _)| &**name).collect();
            warn!(
                peer = %self.origin.peer, resources = ?names, code = rejection.code,
                message = rejection.message, "a proxy rejected its configuration"
            );
        }
        let subscription = &self.subscription;
        seat.record(
            &reply,
            |name| subscription.wants(name),
            |name| subscription.runs(name),
        );
        Ok(())
    }

    /// Sends the resources that the proxy should have and does not have yet. An error ends the stream.
    pub(super) fn push(&mut self) -> Result<(), Status> {
        let Some(seat) = &mut self.seat else {
            return Ok(());
        };
        let Some((response, contents)) = self.subscription.push_wire(&seat.desired()) else {
            return Ok(());
        };
        seat.pushed(contents.into_iter().map(|(name, _)| name));
        self.outbox
            .try_send(Ok(response))
            .map_err(|_| Status::resource_exhausted("pushes are answered without being read"))
    }
}

async fn changed(seat: Option<&mut StreamSeat>) -> AssignmentChange {
    match seat {
        Some(seat) => seat.changed().await,
        None => std::future::pending().await,
    }
}

fn register(
    fleet: &ProxyFleet,
    origin: &StreamOrigin,
    node: Option<Node>,
) -> Result<StreamSeat, Status> {
    let node = node.ok_or_else(|| Status::invalid_argument("the first request has no node"))?;
    let proxy = proxy(node)?;
    info!(
        peer = %origin.peer, id = proxy.id, cluster = proxy.cluster, api = origin.api.name(),
        dialect = origin.dialect, "a proxy connected"
    );
    Ok(StreamSeat::take(fleet, proxy, origin.clone()))
}
