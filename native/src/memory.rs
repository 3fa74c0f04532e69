//! How much memory many upstreams take.

use std::process::Command;
use std::thread;
use std::time::Duration;

use crate::counted;
use crate::fake::{CLUSTER, WORKER};
use crate::rig::{Filter, Hook};

const UPSTREAMS: isize = 1_000;
/// Bytes of one upstream with two workers, without those of Envoy. `docs/native.md` says which part needs how many. Latencies are real here, and take room
/// from the lowest to the highest: a busy machine showed 15 bytes more than a quiet one.
const MOST_BYTES: isize = 4_250;
const DOCUMENT: &str = r#"{"slo":{"latency":{"quantile":0.99,"target":"300ms"}}}"#;
/// A round of the ticker. Where this many change nothing, all upstreams are at rest; it takes a second or two.
const ROUND: Duration = Duration::from_millis(100);
const CALM_ROUNDS: u32 = 10;
const MOST_ROUNDS: u32 = 200;

/// One request through each of two workers, for each of these clusters.
fn serve(filter: &mut Filter, clusters: &[&'static str]) {
    for worker in 0..2 {
        WORKER.set(worker);
        for cluster in clusters {
            CLUSTER.set(cluster);
            for hook in [
                Hook::New,
                Hook::RequestHeaders(true),
                Hook::ResponseHeaders(true),
                Hook::StreamComplete,
                Hook::Destroy,
            ] {
                filter.play(0, &hook);
            }
        }
    }
}

#[test]
fn an_upstream_takes_no_more_memory_than_its_parts_need() {
    let result = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "memory::thousand_upstreams"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&result.stdout);
    assert!(result.status.success(), "{said}");
    assert!(said.contains("1 passed"), "{said}");
}

#[test]
#[ignore = "run by an_upstream_takes_no_more_memory_than_its_parts_need in a process of its own"]
fn thousand_upstreams() {
    let names = (0..=UPSTREAMS).map(|index| format!("outbound|80||service-{index:04}.svc"));
    let clusters: Vec<&'static str> = names.map(|name| &*name.leak()).collect();
    let (first, others) = clusters.split_at(1);
    let mut filter = Filter::with("memory", DOCUMENT);
    serve(&mut filter, first);
    let before = settled();
    serve(&mut filter, others);
    let each = (settled() - before) / UPSTREAMS;
    println!("{each} bytes for each upstream");
    assert!(each <= MOST_BYTES, "{each} bytes");
    assert!(each > MOST_BYTES / 2, "{each} bytes: are all counted?");
}

/// The bytes allocated, once no more of them come or go.
fn settled() -> isize {
    let (mut bytes, mut calm) = (counted::bytes(), 0);
    for _ in 0..MOST_ROUNDS {
        thread::sleep(ROUND);
        let now = counted::bytes();
        calm = if now == bytes { calm + 1 } else { 0 };
        if calm == CALM_ROUNDS {
            return now;
        }
        bytes = now;
    }
    panic!(
        "the last round changed {bytes} to {} bytes",
        counted::bytes()
    );
}
