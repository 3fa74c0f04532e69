//! A minimal kept-alive HTTP/1.1 connection.
//!
//! The load comes from the same machine as the measured process, so its own cost matters: one blocking socket, one buffer, no
//! runtime. A kept-alive connection accepts only answers with a `content-length`, which Envoy's own replies have; others are
//! an error. The admin interface sends chunked answers, which [`ask_once`] reads.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use super::CostError;

/// An answer that takes longer means that something hangs; even a slow counter stays far below.
const ANSWER_BOUND: Duration = Duration::from_secs(60);

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawAnswer {
    /// HTTP status.
    pub status: u16,
    /// The body.
    pub body: Vec<u8>,
}

/// A connection that is used for successive requests.
#[derive(Debug)]
pub struct RawConnection {
    peer: SocketAddr,
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl RawConnection {
    /// Connects to `peer`.
    ///
    /// # Errors
    /// When the port is closed.
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

    /// Sends a request; [`Self::receive`] returns its answer.
    ///
    /// # Errors
    /// When the connection is gone.
    pub fn send(&mut self, request: &RawRequest) -> Result<(), CostError> {
        self.stream
            .write_all(&request.0)
            .map_err(|source| self.failed(source))
    }

    /// Waits for the answer to the last request.
    ///
    /// # Errors
    /// If the connection is gone, the answer takes longer than a minute, or it has no `content-length`.
    pub fn receive(&mut self) -> Result<RawAnswer, CostError> {
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
pub struct RawRequest(Vec<u8>);

impl RawRequest {
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

/// Requests `path` from `peer` over a new connection.
///
/// # Errors
/// When the port is closed, or the answer is not HTTP.
pub fn ask_once(peer: SocketAddr, path: &str) -> Result<RawAnswer, CostError> {
    let mut connection = RawConnection::open(peer)?;
    let request = format!("GET {path} HTTP/1.1\r\nhost: cost.test\r\nconnection: close\r\n\r\n");
    connection.send(&RawRequest(request.into_bytes()))?;
    let mut bytes = Vec::new();
    let read = connection.stream.read_to_end(&mut bytes);
    read.map_err(|source| connection.failed(source))?;
    match split(&bytes) {
        Ok(Some((head, body))) => Ok(RawAnswer {
            status: head.status,
            body: if head.chunked {
                unchunked(body)
            } else {
                body.to_vec()
            },
        }),
        Ok(None) => Err(connection.failed(io::ErrorKind::UnexpectedEof.into())),
        Err(problem) => Err(connection.failed(io::Error::other(problem))),
    }
}

const END_OF_HEAD: &[u8] = b"\r\n\r\n";

/// The head of an answer.
struct ResponseHead {
    status: u16,
    length: Option<usize>,
    chunked: bool,
}

/// The head and all bytes after it; `None` while the head is incomplete.
fn split(bytes: &[u8]) -> Result<Option<(ResponseHead, &[u8])>, &'static str> {
    let end = bytes
        .windows(END_OF_HEAD.len())
        .position(|window| window == END_OF_HEAD);
    let Some((head, rest)) = end.and_then(|end| bytes.split_at_checked(end)) else {
        return Ok(None);
    };
    let head = std::str::from_utf8(head).map_err(|_| "the head is no text")?;
    let mut lines = head.split("\r\n");
    let status = lines.next().and_then(|line| line.split(' ').nth(1));
    let status = status
        .and_then(|status| status.parse().ok())
        .ok_or("no status line")?;
    let (mut length, mut chunked) = (None, false);
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        let value = value.trim();
        if name.eq_ignore_ascii_case("content-length") {
            length = value.parse().ok();
        }
        chunked |= name.eq_ignore_ascii_case("transfer-encoding") && value == "chunked";
    }
    let head = ResponseHead {
        status,
        length,
        chunked,
    };
    Ok(Some((
        head,
        rest.get(END_OF_HEAD.len()..).unwrap_or_default(),
    )))
}

/// The content of a chunked body, up to its end or the first malformed chunk.
fn unchunked(mut body: &[u8]) -> Vec<u8> {
    let mut content = Vec::new();
    while let Some(line) = body.windows(2).position(|window| window == b"\r\n") {
        let (size, rest) = body.split_at(line);
        let size = std::str::from_utf8(size)
            .ok()
            .and_then(|size| usize::from_str_radix(size, 16).ok());
        let chunk = size.and_then(|size| rest.get(2..)?.split_at_checked(size));
        let Some((chunk, rest)) = chunk.filter(|(chunk, _)| !chunk.is_empty()) else {
            break;
        };
        content.extend_from_slice(chunk);
        body = rest.get(2..).unwrap_or_default();
    }
    content
}

/// The answer in `bytes`; `None` while it is incomplete.
fn parse(bytes: &[u8]) -> Result<Option<RawAnswer>, &'static str> {
    let Some((head, rest)) = split(bytes)? else {
        return Ok(None);
    };
    let length = head.length.ok_or("no content-length")?;
    Ok(rest.get(..length).map(|body| RawAnswer {
        status: head.status,
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
        let whole = RawAnswer {
            status: 503,
            body: b"no".to_vec(),
        };
        assert_eq!(parse(bytes), Ok(Some(whole)));
    }

    #[test]
    fn chunks_are_put_together() {
        assert_eq!(
            unchunked(b"2\r\nab\r\na\r\n0123456789\r\n0\r\n\r\n"),
            b"ab0123456789"
        );
        assert_eq!(unchunked(b"no size\r\n"), b"");
    }

    #[test]
    fn answer_of_unknown_length_is_rejected() {
        let bytes = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
        assert_eq!(parse(bytes), Err("no content-length"));
    }
}
