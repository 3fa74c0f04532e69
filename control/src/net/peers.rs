//! Bounds how much one peer may hold at once, so that it cannot exhaust what all peers share.
//!
//! A peer is an IPv4 address or a 64-bit network of IPv6, because one host can use all addresses of such a network.
//! Proxies behind one translated address count as one peer.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};

/// Counts what peers hold; cheap to clone.
#[derive(Debug, Clone)]
pub struct Peers {
    most: usize,
    held: Arc<Mutex<HashMap<IpAddr, usize>>>,
}

/// One unit that a peer holds; returned when dropped.
#[must_use]
#[derive(Debug)]
pub struct PeerShare {
    peer: IpAddr,
    held: Arc<Mutex<HashMap<IpAddr, usize>>>,
}

impl Peers {
    /// Each peer may hold at most `most` units.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self {
            most,
            held: Arc::default(),
        }
    }

    /// One more unit for the peer with this address; `None`: it already holds as many as it may.
    pub fn take(&self, addr: IpAddr) -> Option<PeerShare> {
        let peer = network(addr);
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let count = held.get(&peer).copied().unwrap_or_default();
        if count >= self.most {
            return None;
        }
        held.insert(peer, count.saturating_add(1));
        Some(PeerShare {
            peer,
            held: Arc::clone(&self.held),
        })
    }
}

impl Drop for PeerShare {
    fn drop(&mut self) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let left = held
            .get(&self.peer)
            .map_or(0, |count| count.saturating_sub(1));
        if left == 0 {
            held.remove(&self.peer);
        } else {
            held.insert(self.peer, left);
        }
    }
}

fn network(addr: IpAddr) -> IpAddr {
    /// The bits of the smallest network that providers assign to one host.
    const NETWORK: u128 = !(u64::MAX as u128);
    match addr.to_canonical() {
        IpAddr::V6(addr) => Ipv6Addr::from_bits(addr.to_bits() & NETWORK).into(),
        v4 @ IpAddr::V4(_) => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addr(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_peer_holds_at_most_its_share_and_other_peers_keep_theirs() {
        let peers = Peers::new(2);
        let (first, _second) = (peers.take(addr("10.0.0.1")), peers.take(addr("10.0.0.1")));
        assert!(peers.take(addr("10.0.0.1")).is_none());
        assert!(peers.take(addr("10.0.0.2")).is_some());

        drop(first);

        assert!(peers.take(addr("10.0.0.1")).is_some());
    }

    #[test]
    fn one_host_is_one_peer_with_all_its_addresses() {
        let peers = Peers::new(1);
        let _held = [
            peers.take(addr("2001:db8::1")),
            peers.take(addr("10.0.0.1")),
        ];

        assert!(peers.take(addr("2001:db8::ffff:2")).is_none());
        assert!(peers.take(addr("2001:db8:0:1::1")).is_some());
        assert!(
            peers.take(addr("::ffff:10.0.0.1")).is_none(),
            "the same address, written as IPv6"
        );
    }

    #[test]
    fn a_peer_that_holds_nothing_is_forgotten() {
        let peers = Peers::new(1);
        drop(peers.take(addr("10.0.0.1")));
        assert!(peers.held.lock().unwrap().is_empty());
    }
}
