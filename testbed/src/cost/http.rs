//! A kept-alive HTTP/1.1 connection with as little machinery as can be.
//!
//! The load comes from the same machine as the measured process, so that its own cost
//! matters: one blocking socket, one buffer, no runtime. It reads only answers whose
//! length is told in `content-length`, which is what Envoy's own replies carry; others are
//! an error.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use super::CostError;

/// An answer that takes longer means that something hangs; a slow counter stays far below.
const ANSWER_BOUND: Duration = Duration::from_secs(60);

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// The body.
    pub body: Vec<u8>,
}

/// A connection that is used for one request after the other.
#[derive(Debug)]
pub struct Connection {
    peer: SocketAddr,
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Connection {
    /// Connects to `peer`.
    ///
    /// # Errors
    /// When nobody listens there.
    pub fn open(peer: SocketAddr) -> Result<Self, CostError> {
        let connect = || {
            let stream = TcpStream::connect(peer)?;
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(ANSWER_BOUND))?;
            Ok(stream)
        };
        let stream = connect().map_err(|source| CostError::Call { peer, source })?;
        Ok(Self {
            peer,
            stream,
            buffer: Vec::new(),
        })
    }

    /// Sends a request; [`Self::receive`] gets its answer.
    ///
    /// # Errors
    /// When the connection is gone.
    pub fn send(&mut self, request: &Request) -> Result<(), CostError> {
        self.stream
            .write_all(&request.0)
            .map_err(|source| self.failed(source))
    }

    /// Waits for the answer to the request that was sent.
    ///
    /// # Errors
    /// When the connection is gone, the answer takes a minute, or it has no `content-length`.
    pub fn receive(&mut self) -> Result<Answer, CostError> {
        self.buffer.clear();
        loop {
            match parse(&self.buffer) {
                Ok(Some(answer)) => return Ok(answer),
                Ok(None) => {}
                Err(problem) => return Err(self.failed(io::Error::other(problem))),
            }
            let mut chunk = [0; 16 * 1_024];
            match self.stream.read(&mut chunk) {
                Ok(0) => return Err(self.failed(io::ErrorKind::UnexpectedEof.into())),
                Ok(read) => self
                    .buffer
                    .extend_from_slice(chunk.get(..read).unwrap_or_default()),
                Err(source) => return Err(self.failed(source)),
            }
        }
    }

    const fn failed(&self, source: io::Error) -> CostError {
        CostError::Call {
            peer: self.peer,
            source,
        }
    }
}

/// A GET request, ready to be sent many times.
#[derive(Debug, Clone)]
pub struct Request(Vec<u8>);

impl Request {
    /// A GET for `path`, with the headers that an ordinary client sends, and `headers`.
    #[must_use]
    pub fn get(path: &str, headers: &[(&str, &str)]) -> Self {
        let mut text = format!(
            "GET {path} HTTP/1.1\r\nhost: cost.test\r\nuser-agent: tidegate-cost/1\r\naccept: */*\r\n"
        );
        for (name, value) in headers {
            text.push_str(name);
            text.push_str(": ");
            text.push_str(value);
            text.push_str("\r\n");
        }
        text.push_str("\r\n");
        Self(text.into_bytes())
    }
}

const END_OF_HEAD: &[u8] = b"\r\n\r\n";

/// The answer in `bytes`, or `None` when it is not all there.
fn parse(bytes: &[u8]) -> Result<Option<Answer>, &'static str> {
    let head = bytes
        .windows(END_OF_HEAD.len())
        .position(|window| window == END_OF_HEAD);
    let Some((head, rest)) = head.and_then(|end| bytes.split_at_checked(end)) else {
        return Ok(None);
    };
    let head = std::str::from_utf8(head).map_err(|_| "the head is no text")?;
    let mut lines = head.split("\r\n");
    let status = lines.next().and_then(|line| line.split(' ').nth(1));
    let status = status
        .and_then(|status| status.parse().ok())
        .ok_or("no status line")?;
    let length = lines.find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length")
            .then(|| value.trim().parse::<usize>().ok())
    });
    let length = length.flatten().ok_or("no content-length")?;
    let body = rest
        .get(END_OF_HEAD.len()..)
        .and_then(|body| body.get(..length));
    Ok(body.map(|body| Answer {
        status,
        body: body.to_vec(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answer_is_whole_with_its_last_byte() {
        let bytes = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 2\r\n\r\nno";
        for cut in 0..bytes.len() {
            assert_eq!(parse(&bytes[..cut]), Ok(None));
        }
        let whole = Answer {
            status: 503,
            body: b"no".to_vec(),
        };
        assert_eq!(parse(bytes), Ok(Some(whole)));
    }

    #[test]
    fn answer_of_unknown_length_is_refused() {
        let bytes = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
        assert_eq!(parse(bytes), Err("no content-length"));
    }
}
