//! Which caller sends a request, and through which proxy.

use tidegate_core::UpstreamKey;

use super::run::SimWorld;
use crate::rng;
use crate::scenario::{Callers, RequestSpread};

impl SimWorld<'_> {
    /// Decides which caller sends a request, and through which proxy.
    pub(super) fn place(&mut self, call: usize) {
        if let Some(member) = self.calls.get(call).and_then(|call| call.member) {
            self.place_member(call, member);
            return;
        }
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
        let drawn = match self.scenario.spread {
            RequestSpread::Random => rng::index(&mut self.chance.placement, count),
            RequestSpread::InTurn => {
                self.in_turn += 1;
                self.in_turn.checked_rem(count).unwrap_or(0)
            }
        };
        present.get(drawn).copied().unwrap_or(drawn)
    }

    /// Decides through which proxy a caller in a closed loop sends: always the same one, unless that is away.
    fn place_member(&mut self, call: usize, member: usize) {
        let own = member.checked_rem(self.proxies.len()).unwrap_or(0);
        let is_away = self.proxies.get(own).is_some_and(|proxy| proxy.is_away);
        let proxy = if is_away { self.any_proxy() } else { own };
        let named = self.client(call).and_then(|client| client.cohort.as_ref());
        let cohort = match named {
            Some(name) => UpstreamKey::hash(name, None),
            None if self.tells_cohorts() => {
                Callers::cohort_of(u32::try_from(member).unwrap_or(u32::MAX))
            }
            // Each request has a cohort of its own, as in the open loop.
            None => rand::Rng::random(&mut self.chance.placement),
        };
        if let Some(entry) = self.calls.get_mut(call) {
            entry.proxy = proxy;
            entry.cohort = cohort;
        }
    }

    fn tells_cohorts(&self) -> bool {
        let mut clients = self.scenario.clients.iter();
        clients.any(|client| client.cohort.is_some())
    }
}
