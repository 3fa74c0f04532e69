//! Clusters that requests asked for lately, with the handles of their upstreams.
//!
//! Most requests ask for a cluster that others asked for a moment ago. A hash of its name, word by word, gives a place in a
//! small table; the name that the engine keeps for the handle there tells whether it is that cluster. So the table holds no
//! names, and a handle that has passed to another upstream is not taken for the one before.

use tidegate_core::{Engine, UpstreamId};

/// Twice as many places as there are upstreams in a large mesh; a power of two. A cluster has two: with one, and half as many,
/// a third of a thousand clusters took each other's place.
const PLACES: usize = 1 << PLACE_BITS;
const PLACE_BITS: u32 = 11;
/// 2^64 divided by the golden ratio: a multiplier that spreads bits upwards (Knuth, volume 3, section 6.4).
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// The table; see the module.
#[derive(Debug)]
pub(crate) struct RecentClusters {
    /// [`UpstreamId::OVERFLOW`], which belongs to no cluster, stands for none.
    handles: Box<[UpstreamId]>,
}

impl RecentClusters {
    /// None yet.
    pub(crate) fn new() -> Self {
        let handles = vec![UpstreamId::OVERFLOW; PLACES];
        Self {
            handles: handles.into(),
        }
    }

    /// The upstream of a cluster whose requests are not told apart by route, if it is known here.
    pub(crate) fn find(&self, engine: &Engine, cluster: &[u8]) -> Option<UpstreamId> {
        let [first, second] = places(cluster);
        self.at(first, engine, cluster)
            .or_else(|| self.at(second, engine, cluster))
    }

    fn at(&self, place: usize, engine: &Engine, cluster: &[u8]) -> Option<UpstreamId> {
        let handle = *self.handles.get(place)?;
        let key = engine.served_key(handle)?;
        let is_it = key.route.is_none() && key.cluster.as_bytes() == cluster;
        is_it.then_some(handle)
    }

    /// A look-up found this upstream for the cluster. One beyond the cap takes no other's place.
    pub(crate) fn remember(&mut self, cluster: &[u8], upstream: UpstreamId) {
        let both @ [first, _] = places(cluster);
        let is_free = |place: &usize| self.handles.get(*place) == Some(&UpstreamId::OVERFLOW);
        let chosen = both.into_iter().find(is_free);
        if upstream != UpstreamId::OVERFLOW
            && let Some(handle) = self.handles.get_mut(chosen.unwrap_or(first))
        {
            *handle = upstream;
        }
    }

    /// Another configuration is in force, in which clusters may be told apart in another way.
    pub(crate) fn forget(&mut self) {
        self.handles.fill(UpstreamId::OVERFLOW);
    }
}

/// The places of a cluster, by different bits of its hash.
fn places(cluster: &[u8]) -> [usize; 2] {
    let (words, rest) = cluster.as_chunks::<8>();
    // The last eight bytes at once; some of them are in the word before as well.
    let last = match cluster.last_chunk::<8>() {
        Some(last) => u64::from_le_bytes(*last),
        None => rest
            .iter()
            .fold(0, |word, byte| word << 8 | u64::from(*byte)),
    };
    let mix = |hash: u64, word: u64| (hash ^ word).wrapping_mul(SPREAD).rotate_left(PLACE_BITS);
    let mut hash = mix(cluster.len() as u64, last);
    for word in words {
        hash = mix(hash, u64::from_le_bytes(*word));
    }
    // Names that differ in one digit would have places that differ in few bits.
    let hash = (hash ^ hash >> 32).wrapping_mul(SPREAD) >> 32;
    // Fewer bits than a `usize` has.
    let place = |bits: u64| usize::try_from(bits % PLACES as u64).unwrap_or_default();
    [place(hash), place(hash >> PLACE_BITS)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::Instant;
    use tidegate_core::config::Config;

    fn engine(more: &str) -> Engine {
        let text = format!(r#"{{"slo":{{"latency":{{"quantile":0.99,"target":"300ms"}}}}{more}}}"#);
        Engine::of_many(
            Config::from_json(text.as_bytes()).unwrap(),
            Instant::ZERO,
            1,
        )
    }

    #[test]
    fn a_cluster_is_found_until_another_one_takes_its_place() {
        let (mut engine, mut recent) = (engine(""), RecentClusters::new());
        let names: Vec<String> = (0..3 * PLACES).map(|it| format!("service-{it}")).collect();
        for name in &names {
            assert_eq!(recent.find(&engine, name.as_bytes()), None);
            let id = engine.upstream(name, None, Instant::ZERO);
            recent.remember(name.as_bytes(), id);
            let found = recent.find(&engine, name.as_bytes());
            assert_eq!(found, (id != UpstreamId::OVERFLOW).then_some(id));
        }
        let found = names.iter().filter(|name| {
            let found = recent.find(&engine, name.as_bytes());
            found.is_some_and(|id| engine.key(id).cluster == **name)
        });
        let found = found.count();
        let most = usize::try_from(engine.config().max_upstreams()).unwrap();
        assert!((most / 2..=most).contains(&found), "{found}: spread");
        recent.forget();
        assert!(
            names
                .iter()
                .all(|name| recent.find(&engine, name.as_bytes()).is_none())
        );
    }

    #[test]
    fn nearly_all_clusters_of_a_large_mesh_are_found() {
        let (mut engine, mut recent) = (engine(""), RecentClusters::new());
        let names: Vec<String> = (0..1_000)
            .map(|it| format!("outbound|80||service-{it}"))
            .collect();
        for name in &names {
            let id = engine.upstream(name, None, Instant::ZERO);
            recent.remember(name.as_bytes(), id);
        }
        let found = names
            .iter()
            .filter(|name| recent.find(&engine, name.as_bytes()).is_some());
        assert!(found.count() > 900);
    }

    #[test]
    fn a_handle_that_passed_to_another_cluster_is_not_taken_for_the_one_before() {
        let (mut engine, mut recent) = (engine(r#","maxUpstreams":1"#), RecentClusters::new());
        let web = engine.upstream("web", None, Instant::ZERO);
        recent.remember(b"web", web);
        let later = Instant::from_nanos(500_000_000_000);
        assert_eq!(engine.upstream("shop", None, later), web);
        assert_eq!(recent.find(&engine, b"web"), None);
    }

    #[test]
    fn any_bytes_are_a_name() {
        let (engine, recent) = (engine(""), RecentClusters::new());
        for name in [&b""[..], b"\xff\xfe", &[0; 100], b"_overflow"] {
            assert_eq!(recent.find(&engine, name), None);
        }
    }
}
