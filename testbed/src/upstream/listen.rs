//! The port of an upstream: accepts, refuses, closes.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::connections::{ConnectionLimit, Ticket};
use super::handler::{Door, Service};

/// Pause before another attempt to bind a port that is in use for a moment.
const BIND_PAUSE: Duration = Duration::from_millis(10);

pub(super) async fn listen(
    service: Arc<Service>,
    port: u16,
) -> io::Result<(SocketAddr, JoinHandle<()>)> {
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    let addr = listener.local_addr()?;
    Ok((addr, tokio::spawn(keep_port(listener, addr, service))))
}

/// Serves while the door is open; while it refuses, the port is closed.
async fn keep_port(first: TcpListener, addr: SocketAddr, service: Arc<Service>) {
    let mut door = service.door();
    let mut listener = Some(first);
    loop {
        let state = *door.borrow_and_update();
        match state {
            Door::Gone => return,
            Door::Refusing => {
                listener = None;
                if door.changed().await.is_err() {
                    return;
                }
            }
            // Beyond the limit connections are refused, because the backlog is full.
            Door::Open if service.gate().is_some_and(|gate| !gate.has_room()) => {
                listener = None;
                tokio::select! {
                    () = room(&service) => {}
                    changed = door.changed() => if changed.is_err() { return },
                }
            }
            Door::Open => match &listener {
                None => match TcpListener::bind(addr).await {
                    Ok(bound) => listener = Some(bound),
                    Err(_) => sleep(BIND_PAUSE).await,
                },
                Some(open) => tokio::select! {
                    accepted = open.accept() => if let Ok((stream, _)) = accepted {
                        let ticket = service.gate().and_then(ConnectionLimit::ticket);
                        tokio::spawn(serve(stream, Arc::clone(&service), ticket));
                    },
                    changed = door.changed() => if changed.is_err() { return },
                },
            },
        }
    }
}

async fn room(service: &Service) {
    if let Some(gate) = service.gate() {
        gate.room().await;
    }
}

/// Serves one connection until it ends or the door is no longer open.
async fn serve(stream: TcpStream, service: Arc<Service>, ticket: Option<Ticket>) {
    let mut door = service.door();
    tokio::select! {
        () = converse(stream, service, ticket) => {}
        _ = door.wait_for(|state| *state != Door::Open) => {}
    }
}

async fn converse(stream: TcpStream, service: Arc<Service>, ticket: Option<Ticket>) {
    let seat = match ticket {
        Some(ticket) => ticket.seat().await,
        None => None,
    };
    // Without it small answers would wait for acknowledgments; a dead socket fails below.
    let _ = stream.set_nodelay(true);
    let mut builder = auto::Builder::new(TokioExecutor::new());
    // A seat is for one request.
    builder.http1().keep_alive(seat.is_none());
    let handle = service_fn(move |request| {
        let (service, seat) = (Arc::clone(&service), seat.clone());
        async move { service.handle(request, seat.as_ref()).await }
    });
    let connection = builder.serve_connection_with_upgrades(TokioIo::new(stream), handle);
    // Callers that go away, and resets on purpose, end a connection with an error.
    let _ = connection.await;
}
