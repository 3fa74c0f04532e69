//! The load: a closed loop over kept-alive connections.
//!
//! Every connection always has a request under way; the answers are read in turn, each followed by the next request. With one
//! thread and no timer, the load generator costs the machine as little as possible, and the number of requests is exact.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use super::http::{RawConnection, RawRequest};
use super::{CostError, interrupt};

/// Number of answers by status.
pub type AnswersByStatus = BTreeMap<u16, u64>;

/// A closed loop.
#[derive(Debug)]
pub struct Loop {
    connections: Vec<RawConnection>,
}

impl Loop {
    /// Opens `connections` connections to `peer`.
    ///
    /// # Errors
    /// When the port is closed.
    pub fn open(peer: SocketAddr, connections: usize) -> Result<Self, CostError> {
        let connections = (0..connections).map(|_| RawConnection::open(peer));
        Ok(Self {
            connections: connections.collect::<Result<_, _>>()?,
        })
    }

    /// Sends `request` `total` times and waits for every answer.
    ///
    /// # Errors
    /// When a connection breaks or an answer does not come.
    pub fn run(&mut self, request: &RawRequest, total: u64) -> Result<AnswersByStatus, CostError> {
        let mut answers = AnswersByStatus::new();
        let (mut sent, mut received) = (0, 0);
        for connection in &mut self.connections {
            if sent < total {
                connection.send(request)?;
                sent += 1;
            }
        }
        while received < total {
            for connection in &mut self.connections {
                if received == total {
                    break;
                }
                *answers.entry(connection.receive()?.status).or_default() += 1;
                received += 1;
                interrupt::check()?;
                if sent < total {
                    connection.send(request)?;
                    sent += 1;
                }
            }
        }
        Ok(answers)
    }

    /// Sends each of `requests` once over every connection.
    ///
    /// # Errors
    /// When a connection breaks or an answer does not come.
    pub fn run_each(&mut self, requests: &[RawRequest]) -> Result<AnswersByStatus, CostError> {
        let mut answers = AnswersByStatus::new();
        for request in requests {
            interrupt::check()?;
            for connection in &mut self.connections {
                connection.send(request)?;
            }
            for connection in &mut self.connections {
                *answers.entry(connection.receive()?.status).or_default() += 1;
            }
        }
        Ok(answers)
    }
}
