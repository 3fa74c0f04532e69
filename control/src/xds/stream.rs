//! Carries one conversation: requests in from the wire, pushes out to it.
//!
//! A stream owes its proxy at most one push at a time, so that two places to put responses are enough. A
//! proxy that answers pushes which it has not read finds them full and is disconnected.

use envoy_types::pb::envoy::config::core::v3::Node;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tonic::{Status, Streaming};
use tracing::{debug, info, warn};

use super::Heard;
use super::wire::{self, Dialect};
use crate::fleet::{Api, Arrival, Fleet, Seat};

/// Responses that may wait for the proxy to read them.
const OUTBOX: usize = 2;

/// Longest id of a proxy, in bytes.
const MAX_ID_BYTES: usize = 256;

/// What every stream needs.
#[derive(Debug, Clone)]
pub(super) struct Context {
    pub(super) fleet: Fleet,
    pub(super) closing: CancellationToken,
    pub(super) tasks: TaskTracker,
}

/// The responses of one stream.
pub(super) type Responses<D> = ReceiverStream<Result<<D as Dialect>::Response, Status>>;

/// Begins to carry a conversation.
pub(super) fn carry<D: Dialect>(
    context: Context,
    api: Api,
    peer: String,
    inbound: Streaming<D::Request>,
) -> Responses<D> {
    let (outbox, responses) = mpsc::channel(OUTBOX);
    let arrival = Arrival {
        api,
        dialect: D::NAME,
        peer,
    };
    let tasks = context.tasks.clone();
    let conversation = Conversation::<D> {
        context,
        arrival,
        subscription: D::default(),
        seat: None,
        outbox,
    };
    tasks.spawn(conversation.run(inbound));
    ReceiverStream::new(responses)
}

struct Conversation<D: Dialect> {
    context: Context,
    arrival: Arrival,
    subscription: D,
    // From the first request on, which says who the proxy is.
    seat: Option<Seat>,
    outbox: mpsc::Sender<Result<D::Response, Status>>,
}

impl<D: Dialect> Conversation<D> {
    async fn run(mut self, mut inbound: Streaming<D::Request>) {
        let closing = self.context.closing.clone();
        let end = loop {
            let step = tokio::select! {
                request = inbound.message() => match request {
                    Ok(Some(request)) => self.hear(request),
                    Ok(None) => break None,
                    Err(status) => break Some(status),
                },
                () = changed(self.seat.as_mut()) => Ok(()),
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

    fn hear(&mut self, mut request: D::Request) -> Result<(), Status> {
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

    fn push(&mut self) -> Result<(), Status> {
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

async fn changed(seat: Option<&mut Seat>) {
    match seat {
        Some(seat) => seat.changed().await,
        None => std::future::pending().await,
    }
}

fn sit(fleet: &Fleet, arrival: &Arrival, node: Option<Node>) -> Result<Seat, Status> {
    let node = node.ok_or_else(|| Status::invalid_argument("the first request has no node"))?;
    if node.id.is_empty() || node.id.len() > MAX_ID_BYTES {
        let found = node.id.len();
        let expected = format!("expected 1 to {MAX_ID_BYTES} bytes");
        return Err(Status::invalid_argument(format!(
            "node.id: found {found} bytes, {expected}"
        )));
    }
    info!(
        peer = %arrival.peer, id = node.id, cluster = node.cluster, api = arrival.api.name(),
        dialect = arrival.dialect, "a proxy connected"
    );
    Ok(fleet.connect(wire::proxy(node), arrival.clone()))
}
