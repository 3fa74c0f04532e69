//! The body of a request that is sent slowly.

use bytes::Bytes;
use tokio::time::Instant;

use crate::pace::{self, AnyBody, Writer};
use tidegate_sim::arrivals::Sending;

/// A piece of a body. Its content does not matter.
const PIECE: Bytes = Bytes::from_static(b"data\n");

/// A body whose duration begins now.
pub(super) fn body(sending: Sending) -> AnyBody {
    let (writer, body) = pace::body();
    tokio::spawn(write(sending, writer, Instant::now()));
    body
}

async fn write(sending: Sending, writer: Writer, begun: Instant) {
    match sending {
        Sending::Takes(duration) => {
            for due in pace::pieces(duration) {
                if !writer.wait_until(begun + due).await || !writer.send(PIECE).await {
                    return;
                }
            }
        }
        Sending::Stalls => {
            if writer.send(PIECE).await {
                writer.gone().await;
            }
        }
    }
}
