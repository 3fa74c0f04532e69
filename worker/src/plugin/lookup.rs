//! Finds the state for the request under way.

use std::borrow::Cow;

use tidegate_core::{Engine, Instant, Lookup, UpstreamId};

use super::PluginObject;
use crate::api::{Host, attribute};
use crate::destinations::Destinations;
use crate::faults::Fault;
use crate::proxy::Proxy;
use crate::upstreams::{StateKind, Upstreams};

impl<H: Host> PluginObject<H> {
    /// The state for the request under way, with its counts ready for use, and the time; `None`: the request passes by.
    pub(crate) fn find(&mut self) -> Option<(StateKind, UpstreamId, Instant)> {
        let Self {
            proxy,
            engine,
            upstreams,
            recent,
            destinations,
            coordination,
            ticks,
            ..
        } = self;
        let read = proxy.host.cluster(|cluster| {
            coordination.serve();
            let now = ticks.now(proxy.now());
            let route = read_route(engine, proxy);
            let known = match route {
                None => recent.find(engine, cluster),
                Some(_) => None,
            };
            if let Some(id) = known {
                introduce((engine, upstreams, proxy), id, now);
                return Some((StateKind::Upstream, id, now));
            }
            let name = String::from_utf8_lossy(cluster);
            match engine.look_up(&name, route.as_deref(), now) {
                Lookup::Upstream(id) => {
                    recent.remember(cluster, id);
                    introduce((engine, upstreams, proxy), id, now);
                    Some((StateKind::Upstream, id, now))
                }
                Lookup::ByAuthority => {
                    let new = || Box::new(Destinations::beside(engine, upstreams, now));
                    let destinations = destinations.get_or_insert_with(new);
                    let id = destinations.find((&name, route.as_deref()), proxy, now)?;
                    Some((StateKind::Destination, id, now))
                }
                Lookup::Nothing => None,
            }
        });
        proxy.check(Fault::Read, read)??
    }
}

/// The route's name of the request under way, if the configuration needs it.
fn read_route<'a, H: Host>(engine: &Engine, proxy: &'a Proxy<H>) -> Option<Cow<'a, str>> {
    if !engine.config().needs_route() {
        return None;
    }
    let read = proxy.host.attribute(attribute::ROUTE);
    let route = proxy.check(Fault::Read, read)?;
    Some(match route.unwrap_or_default() {
        Cow::Borrowed(bytes) => String::from_utf8_lossy(bytes),
        Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
    })
}

/// Makes the counts of the upstream of the request under way ready for use, and reads the number of its endpoints if it is
/// time to.
fn introduce<H: Host>(
    (engine, upstreams, proxy): (&mut Engine, &mut Upstreams, &Proxy<H>),
    id: UpstreamId,
    now: Instant,
) {
    let entry = upstreams.introduce(engine, id, proxy);
    if entry.is_some_and(|entry| !entry.take_endpoints_due(now)) {
        return;
    }
    let read = proxy.host.endpoints();
    if let Some(endpoints) = proxy.check(Fault::Read, read).flatten() {
        let endpoints = u32::try_from(endpoints).unwrap_or(u32::MAX);
        engine.set_endpoints(id, endpoints);
    }
}
