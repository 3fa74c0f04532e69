//! How much memory many upstreams take.

use crate::counted;
use crate::fake::{CLUSTER, WORKER};
use crate::rig::{Filter, Hook};

const UPSTREAMS: u32 = 1_000;
const DOCUMENT: &str = r#"{"slo":{"latency":{"quantile":0.99,"target":"300ms"}}}"#;

/// One request through each of two workers, for each of these upstreams.
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
fn a_thousand_upstreams_of_two_workers_take_this_much_memory() {
    let clusters: Vec<&'static str> = (0..UPSTREAMS)
        .map(|index| &*format!("cluster-{index}").leak())
        .collect();
    let mut filter = Filter::with("memory", DOCUMENT);
    serve(&mut filter, &clusters[..1]);
    let (before, _) = counted::bytes();
    let mut all = 0;
    for part in clusters.chunks(250) {
        serve(&mut filter, part);
        std::thread::sleep(core::time::Duration::from_millis(1_000));
        all += part.len();
        let (bytes, most) = counted::bytes();
        let each = |bytes: isize| (bytes - before) / all.cast_signed();
        println!(
            "{all} upstreams: {} bytes each, at most {}",
            each(bytes),
            each(most)
        );
    }
}
