//! Carries one conversation: requests in from the wire, pushes out to it.
//!
//! A stream owes its proxy at most one push at a time, so that two places to put responses are enough. A
//! proxy that answers pushes which it has not read finds them full and is disconnected.

use envoy_types::pb::envoy::config::core::v3::Node;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming};
use tracing::{debug, info, warn};

use super::Heard;
use super::node::proxy;
use super::service::Context;
use super::wire::{self, Dialect};
use crate::fleet::{Api, Arrival, Change, Fleet, Seat};
use crate::net::Share;

/// Responses that may wait for the proxy to read them.
pub(super) const OUTBOX: usize = 2;

/// The responses of one stream.
pub(super) type Responses<D> = ReceiverStream<Result<<D as Dialect>::Response, Status>>;

/// Begins to carry a conversation.
pub(super) fn carry<D: Dialect>(
    context: Context,
    arrival: Arrival,
    share: Share,
    inbound: Streaming<D::Request>,
) -> Responses<D> {
    let (outbox, responses) = mpsc::channel(OUTBOX);
    let tasks = context.tasks.clone();
    let conversation = Conversation::<D>::new(context, arrival, share, outbox);
    tasks.spawn(conversation.run(inbound));
    ReceiverStream::new(responses)
}

/// One stream; see the module.
pub(super) struct Conversation<D: Dialect> {
    context: Context,
    arrival: Arrival,
    subscription: D,
    // From the first request on, which says who the proxy is.
    seat: Option<Seat>,
    outbox: mpsc::Sender<Result<D::Response, Status>>,
    _share: Share,
}

impl<D: Dialect> Conversation<D> {
    pub(super) fn new(
        context: Context,
        arrival: Arrival,
        share: Share,
        outbox: mpsc::Sender<Result<D::Response, Status>>,
    ) -> Self {
        Self {
            context,
            arrival,
            subscription: D::default(),
            seat: None,
            outbox,
            _share: share,
        }
    }

    async fn run(mut self, mut inbound: Streaming<D::Request>) {
        let closing = self.context.closing.clone();
        let mut silence = std::pin::pin!(tokio::time::sleep(self.context.patience));
        let mut is_silent = true;
        let end = loop {
            let step = tokio::select! {
                request = inbound.message() => match request {
                    Ok(Some(request)) => {
                        is_silent = false;
                        self.hear(request)
                    }
                    Ok(None) => break None,
                    Err(status) => break Some(status),
                },
                () = silence.as_mut(), if is_silent => break Some(Status::deadline_exceeded("no request on the stream")),
                change = changed(self.seat.as_mut()) => match change {
                    Change::Assigned => Ok(()),
                    Change::Unknown => break Some(Status::unavailable("policies ask for more of the node: say it again")),
                },
                () = self.outbox.closed() => break None,
                () = closing.cancelled() => break Some(Status::unavailable("the service is shutting down")),
            };
            if let Err(status) = step.and_then(|()| self.push()) {
                break Some(status);
            }
        };
        if let Some(status) = end {
            debug!(peer = %self.arrival.peer, %status, "stream ended");
            // The proxy may be gone, or not reading.
            let _ = self.outbox.try_send(Err(status));
        }
    }

    /// Takes a request in. An error ends the stream.
    pub(super) fn hear(&mut self, mut request: D::Request) -> Result<(), Status> {
        let type_url = D::type_url(&request);
        let is_ours = type_url == wire::resource_type()
            || (type_url.is_empty() && self.arrival.api == Api::Ecds);
        if !is_ours {
            // An empty answer would tell the proxy to delete what it has of that type.
            debug!(peer = %self.arrival.peer, type_url, "not answered: not served here");
            return Ok(());
        }
        let node = D::node(&mut request);
        let seat = match &mut self.seat {
            Some(seat) => seat,
            None => self
                .seat
                .insert(sit(&self.context.fleet, &self.arrival, node)?),
        };
        let heard = self
            .subscription
            .hear_wire(request, &seat.desired())
            .map_err(|excess| Status::resource_exhausted(excess.to_string()))?;
        if let Heard::Refused(versions, refusal) = &heard {
            let names: Vec<&str> = versions.iter().map(|(name, _)| &**name).collect();
            warn!(
                peer = %self.arrival.peer, resources = ?names, code = refusal.code,
                message = refusal.message, "a proxy refused its configuration"
            );
        }
        let subscription = &self.subscription;
        seat.heard(
            &heard,
            |name| subscription.wants(name),
            |name| subscription.runs(name),
        );
        Ok(())
    }

    /// Sends what the proxy is to have and has not, if anything. An error ends the stream.
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
            .map_err(|_| Status::resource_exhausted("pushes are answered but not read"))
    }
}

async fn changed(seat: Option<&mut Seat>) -> Change {
    match seat {
        Some(seat) => seat.changed().await,
        None => std::future::pending().await,
    }
}

fn sit(fleet: &Fleet, arrival: &Arrival, node: Option<Node>) -> Result<Seat, Status> {
    let node = node.ok_or_else(|| Status::invalid_argument("the first request has no node"))?;
    let proxy = proxy(node)?;
    info!(
        peer = %arrival.peer, id = proxy.id, cluster = proxy.cluster, api = arrival.api.name(),
        dialect = arrival.dialect, "a proxy connected"
    );
    Ok(fleet.connect(proxy, arrival.clone()))
}
