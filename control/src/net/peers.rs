//! How much one peer may hold at once, so that it cannot take what is there for all.
//!
//! A peer is an address; of IPv6 a network of 64 bits, because a host has all of those. Proxies behind one
//! translated address are one peer.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};

/// Counts what peers hold; cheap to clone.
#[derive(Debug, Clone)]
pub struct Peers {
    most: usize,
    held: Arc<Mutex<HashMap<IpAddr, usize>>>,
}

/// What a peer holds; given back when dropped.
#[must_use]
#[derive(Debug)]
pub struct Share {
    peer: IpAddr,
    held: Arc<Mutex<HashMap<IpAddr, usize>>>,
}

impl Peers {
    /// Each peer may hold so many.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self {
            most,
            held: Arc::default(),
        }
    }

    /// One more for the peer with this address; `None`: it holds all that it may.
    pub fn take(&self, addr: IpAddr) -> Option<Share> {
        let peer = network(addr);
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let count = held.get(&peer).copied().unwrap_or_default();
        if count >= self.most {
            return None;
        }
        held.insert(peer, count.saturating_add(1));
        Some(Share {
            peer,
            held: Arc::clone(&self.held),
        })
    }
}

impl Drop for Share {
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
    /// The bits of a network that a provider gives to one host at least.
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
    fn a_peer_holds_no_more_than_its_share_and_others_have_theirs() {
        let peers = Peers::new(2);
        let (first, _second) = (peers.take(addr("10.0.0.1")), peers.take(addr("10.0.0.1")));
        assert!(peers.take(addr("10.0.0.1")).is_none());
        assert!(peers.take(addr("10.0.0.2")).is_some());

        drop(first);

        assert!(peers.take(addr("10.0.0.1")).is_some());
    }

    #[test]
    fn one_host_is_one_peer_whatever_address_it_comes_by() {
        let peers = Peers::new(1);
        let _held = [
            peers.take(addr("2001:db8::1")),
            peers.take(addr("10.0.0.1")),
        ];

        assert!(peers.take(addr("2001:db8::ffff:2")).is_none());
        assert!(peers.take(addr("2001:db8:0:1::1")).is_some());
        assert!(
            peers.take(addr("::ffff:10.0.0.1")).is_none(),
            "the same, as IPv6 writes it"
        );
    }

    #[test]
    fn nothing_is_kept_of_who_holds_nothing() {
        let peers = Peers::new(1);
        drop(peers.take(addr("10.0.0.1")));
        assert!(peers.held.lock().unwrap().is_empty());
    }
}
