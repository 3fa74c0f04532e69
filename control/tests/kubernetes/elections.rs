//! Which replica leads, with a simulated clock.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use tidegate_control::kube::lease::{Election, LeaseRecord, LeaseWrite, Timing};

const TIMING: Timing = Timing {
    duration: Duration::from_secs(15),
};

/// The API server, with one lease.
#[derive(Clone, Debug, Default)]
struct ScriptedServer {
    lease: Option<LeaseRecord>,
    version: u64,
}

impl ScriptedServer {
    /// Accepts a write if the lease has not changed since it was read.
    fn write(&mut self, claim: &LeaseWrite, duration: Duration) -> Option<LeaseRecord> {
        let version = self
            .lease
            .as_ref()
            .map(|held| held.resource_version.clone());
        if version != claim.resource_version {
            return None;
        }
        self.version += 1;
        let held = LeaseRecord {
            holder: claim.holder.clone(),
            duration,
            transitions: claim.transitions,
            resource_version: self.version.to_string(),
        };
        self.lease = Some(held.clone());
        Some(held)
    }
}

fn replica(name: &str) -> Election {
    Election::new(name.to_owned(), TIMING)
}

/// Reads the lease once, and writes what follows from it.
fn step(election: &mut Election, server: &mut ScriptedServer, now: Instant) {
    if let Some(claim) = election.read(server.lease.clone(), now) {
        match server.write(&claim, TIMING.duration) {
            Some(held) => election.taken(held, now),
            None => election.failed(now),
        }
    }
}

fn leads(election: &Election, now: Instant) -> bool {
    election.leads_until().is_some_and(|until| now < until)
}

#[test]
fn the_first_replica_creates_the_lease_and_keeps_it() {
    let (mut server, mut one, mut two) =
        (ScriptedServer::default(), replica("one"), replica("two"));
    let mut now = Instant::now();

    for _ in 0..100 {
        step(&mut one, &mut server, now);
        step(&mut two, &mut server, now);
        assert!(leads(&one, now) && !leads(&two, now));
        now += TIMING.pause();
    }

    assert_eq!(server.lease.unwrap().transitions, 0);
}

#[test]
fn a_disconnected_leader_stops_before_another_begins() {
    let (mut server, mut one, mut two) =
        (ScriptedServer::default(), replica("one"), replica("two"));
    let start = Instant::now();
    step(&mut one, &mut server, start);
    step(&mut two, &mut server, start);

    let mut now = start;
    while !leads(&two, now) {
        now += Duration::from_secs(1);
        one.failed(now);
        step(&mut two, &mut server, now);
        assert!(!(leads(&one, now) && leads(&two, now)));
        assert!(
            now - start <= TIMING.duration,
            "the second replica leads as soon as the lease has expired"
        );
    }

    assert!(now - start >= TIMING.duration);
    assert_eq!(server.lease.as_ref().unwrap().transitions, 1);
    step(&mut one, &mut server, now);
    assert!(!leads(&one, now), "the first replica does not lead again");
}

#[test]
fn a_released_lease_is_taken_at_once() {
    let (mut server, mut one, mut two) =
        (ScriptedServer::default(), replica("one"), replica("two"));
    let now = Instant::now();
    step(&mut one, &mut server, now);
    step(&mut two, &mut server, now);

    let claim = one.stop().unwrap();
    assert_eq!(claim.holder, None);
    server.write(&claim, Duration::from_secs(1)).unwrap();
    step(&mut two, &mut server, now);

    assert!(leads(&two, now) && !leads(&one, now));
    assert_eq!(
        one.read(server.lease.clone(), now),
        None,
        "a stopped replica makes no claim"
    );
    assert_eq!(two.stop().map(|claim| claim.is_new), Some(true));
    assert_eq!(replica("three").stop(), None);
}

#[test]
fn the_server_accepts_one_of_two_concurrent_writes() {
    let (mut server, mut one, mut two) =
        (ScriptedServer::default(), replica("one"), replica("two"));
    let now = Instant::now();
    let first = one.read(None, now).unwrap();
    let second = two.read(None, now).unwrap();

    let held = server.write(&first, TIMING.duration).unwrap();
    one.taken(held, now);
    assert!(server.write(&second, TIMING.duration).is_none());
    two.failed(now);

    assert!(leads(&one, now) && !leads(&two, now));
}

#[test]
fn a_leader_stops_when_another_holds_the_lease() {
    let (mut server, mut one) = (ScriptedServer::default(), replica("one"));
    let now = Instant::now();
    step(&mut one, &mut server, now);
    let held = server.lease.as_mut().unwrap();
    held.holder = Some("two".to_owned());
    held.resource_version = "9".to_owned();

    step(&mut one, &mut server, now);

    assert!(!leads(&one, now));
}

proptest! {
    /// Each act has three parts: the time that passes in milliseconds, the replica that acts, and what happens. A
    /// replica fails to reach the server, or stops and starts again with the same name, or reads and writes the lease.
    #[test]
    fn at_most_one_replica_leads(acts in prop::collection::vec((0..6_000_u64, 0..3_usize, 0..8_u8), 1..300)) {
        let mut server = ScriptedServer::default();
        let names = ["one", "two", "three"];
        let mut replicas = names.map(replica);
        let mut now = Instant::now();
        for (pause, who, how) in acts {
            now += Duration::from_millis(pause);
            match how {
                0 => replicas[who].failed(now),
                1 => {
                    if let Some(claim) = replicas[who].stop() {
                        server.write(&claim, Duration::from_secs(1));
                    }
                    replicas[who] = replica(names[who]);
                }
                _ => step(&mut replicas[who], &mut server, now),
            }
            let leaders = replicas.iter().filter(|replica| leads(replica, now)).count();
            prop_assert!(leaders <= 1);
        }
    }
}
