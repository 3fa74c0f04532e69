//! Which caller sends a request, and through which proxy.

use tidegate_core::UpstreamKey;

use super::run::SimWorld;
use crate::rng;
use crate::scenario::Callers;

impl SimWorld<'_> {
    /// Decides which caller sends a request, and through which proxy.
    pub(super) fn place(&mut self, call: usize) {
        let named = self.client(call).and_then(|client| client.cohort.as_ref());
        let (caller, proxy, cohort) = match self.scenario.callers {
            Some(callers) => {
                let caller = callers.draw(&mut self.chance.placement);
                let proxy = callers.proxy_of(caller, self.proxies.len());
                let is_away = self.proxies.get(proxy).is_some_and(|proxy| proxy.is_away);
                let proxy = if is_away { self.any_proxy() } else { proxy };
                (caller, proxy, Callers::cohort_of(caller))
            }
            None => {
                let proxy = self.any_proxy();
                let cohort = rand::Rng::random(&mut self.chance.placement);
                (0, proxy, cohort)
            }
        };
        if let Some(entry) = self.calls.get_mut(call) {
            entry.proxy = proxy;
            entry.caller = usize::try_from(caller).unwrap_or(usize::MAX);
            entry.cohort = named.map_or(cohort, |name| UpstreamKey::hash(name, None));
        }
    }

    /// One of the proxies that are present, or any if none is present.
    fn any_proxy(&mut self) -> usize {
        let proxies = self.proxies.iter().enumerate();
        let present = proxies.filter(|(_, proxy)| !proxy.is_away);
        let present: Vec<usize> = present.map(|(index, _)| index).collect();
        let count = if present.is_empty() {
            self.proxies.len()
        } else {
            present.len()
        };
        let drawn = rng::index(&mut self.chance.placement, count);
        present.get(drawn).copied().unwrap_or(drawn)
    }
}
