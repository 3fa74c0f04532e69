//! A server that closes in the middle of an answer.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// Promises a hundred bytes, sends three, and closes.
const HALF_AN_ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhal";

/// Serves until dropped.
pub(crate) struct BreaksOff {
    addr: SocketAddr,
    task: JoinHandle<()>,
}

impl BreaksOff {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let addr = listener.local_addr().unwrap();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer(stream));
            }
        });
        Self { addr, task }
    }

    pub(crate) const fn addr(&self) -> SocketAddr {
        self.addr
    }
}

impl Drop for BreaksOff {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn answer(mut stream: TcpStream) {
    let mut request = [0; 4_096];
    // A request of a test fits into one read; a caller that is gone needs no answer.
    let _ = stream.read(&mut request).await;
    let _ = stream.write_all(HALF_AN_ANSWER).await;
}
