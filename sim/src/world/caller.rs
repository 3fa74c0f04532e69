//! What callers do: send, wait, lose patience, try again.

use super::call::{Attempt, End};
use super::queue::What;
use super::run::{START, World};
use crate::record::Answer;
use crate::rng;

impl World<'_> {
    /// A caller sends an attempt.
    pub(super) fn send(&mut self, call: usize) {
        let (Some(client), Some(arrival)) = (self.client(call), self.arrivals.get(call)) else {
            return;
        };
        let upstream = self.targets.get(arrival.client).copied();
        let workers = usize::try_from(self.scenario.workers).unwrap_or(usize::MAX);
        let worker = rng::index(&mut self.chance.placement, workers);
        let Some(entry) = self.calls.get_mut(call) else {
            return;
        };
        entry.attempts += 1;
        let upstream = upstream.unwrap_or(usize::MAX);
        let attempt = self.attempts.len();
        self.attempts
            .push(Attempt::new(call, entry.attempts, worker, upstream));
        self.push_after(client.deadline, What::GiveUp { attempt });
        self.push_hop(What::AtProxy { attempt });
    }

    pub(super) fn answer_at_caller(&mut self, id: usize) {
        let Some(attempt) = self.attempts.get_mut(id) else {
            return;
        };
        if std::mem::take(&mut attempt.is_awaited) {
            let (call, (answer, makes_sense)) = (attempt.call, attempt.answer());
            self.hear(call, answer, makes_sense);
        }
    }

    pub(super) fn give_up(&mut self, id: usize) {
        let Some(attempt) = self.attempts.get_mut(id) else {
            return;
        };
        if std::mem::take(&mut attempt.is_awaited) {
            let call = attempt.call;
            self.push_hop(What::CancelAtProxy { attempt: id });
            self.hear(call, Answer::GaveUp, true);
        }
    }

    /// A caller hears what became of an attempt: it tries again, or that was it.
    pub(super) fn hear(&mut self, id: usize, answer: Answer, makes_sense: bool) {
        let retries = self.client(id).and_then(|client| client.retries);
        let (Some(call), Some(arrival)) = (self.calls.get_mut(id), self.arrivals.get(id)) else {
            return;
        };
        let again = retries.filter(|retries| {
            call.attempts <= retries.max
                && answer != Answer::Ok
                && (makes_sense || retries.stubborn)
        });
        if let Some(retries) = again {
            let pause = retries.pause(call.attempts, rng::unit(&mut self.chance.backoff));
            self.push_after(pause, What::Again { call: id });
            return;
        }
        let latency = self.now.saturating_since(START + arrival.at);
        if answer == Answer::Ok
            && latency <= self.scenario.slo.latency
            && let Some(proxy) = self.proxies.get_mut(call.proxy)
        {
            proxy.good += 1;
        }
        call.end = Some(End { answer, latency });
        self.open -= 1;
    }
}
