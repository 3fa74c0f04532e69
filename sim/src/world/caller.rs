//! What callers do: send, wait, give up, retry.

use std::time::Duration;

use super::call::{Attempt, Awaits, CallEnd};
use super::clock::START;
use super::event::WorldEvent;
use super::run::SimWorld;
use crate::record::Answer;
use crate::rng;

impl SimWorld<'_> {
    /// A caller sends an attempt.
    pub(super) fn send(&mut self, call: usize) {
        let workers = usize::try_from(self.scenario.workers).unwrap_or(usize::MAX);
        let (Some(client), Some(entry)) = (self.client(call), self.calls.get_mut(call)) else {
            return;
        };
        let worker = rng::index(&mut self.chance.placement, workers);
        let upstream = self.targets.get(entry.arrival.client).copied();
        if entry.end.is_some() {
            return;
        }
        entry.attempts += 1;
        let upstream = upstream.unwrap_or(usize::MAX);
        entry.under_way += 1;
        let patient_until = self.now + client.deadline;
        let patient_until = entry
            .until
            .map_or(patient_until, |until| until.min(patient_until));
        let attempt = self.attempts.insert(Attempt {
            patient_until,
            ..Attempt::new(call, entry.attempts, worker, upstream)
        });
        entry.latest = Some(attempt);
        self.push(patient_until.max(self.now), WorldEvent::GiveUp { attempt });
        let due = self.push_hop_from(self.now, self.now, WorldEvent::AtProxy { attempt });
        if let Some(attempt) = self.attempts.get_mut(attempt) {
            attempt.ask_due = due;
        }
    }

    pub(super) fn answer_at_caller(&mut self, id: usize) {
        let Some(attempt) = self.attempts.get_mut(id) else {
            return;
        };
        let (call, (answer, makes_sense)) = (attempt.call, attempt.answer());
        match std::mem::replace(&mut attempt.awaits, Awaits::Nothing) {
            Awaits::Moment => self.hear(call, answer, makes_sense),
            Awaits::End if answer == Answer::Ok => self.conclude(call, Answer::Ok),
            // A response that the caller has begun to read cannot be retried.
            Awaits::End => self.conclude(call, Answer::Broken),
            Awaits::Nothing => {}
        }
    }

    /// The moment that the objective names has come, and the response goes on.
    pub(super) fn moment_at_caller(&mut self, id: usize) {
        let Some(attempt) = self.attempts.get_mut(id) else {
            return;
        };
        let index = attempt.call;
        if attempt.awaits != Awaits::Moment {
            return;
        }
        attempt.awaits = Awaits::End;
        let latency = self.latency(index);
        let Some(call) = self.calls.get_mut(index) else {
            return;
        };
        call.moment = Some(latency);
        let client = self.scenario.client(call.arrival.client);
        let dawdles = client.and_then(|client| client.dawdles);
        if let Some(time) = call.arrival.reads_for.or(dawdles) {
            self.push_after(time, WorldEvent::ReadEnough { attempt: id });
        }
    }

    /// A caller closes a response before its end.
    pub(super) fn read_enough(&mut self, id: usize) {
        let Some(attempt) = self.attempts.get_mut(id) else {
            return;
        };
        if attempt.awaits == Awaits::End {
            attempt.awaits = Awaits::Nothing;
            let call = attempt.call;
            self.go_away(id);
            self.conclude(call, Answer::Ok);
        }
    }

    pub(super) fn give_up(&mut self, id: usize) {
        let Some(attempt) = self.attempts.get_mut(id) else {
            return;
        };
        if attempt.awaits == Awaits::Moment {
            attempt.awaits = Awaits::Nothing;
            let call = attempt.call;
            self.go_away(id);
            self.hear(call, Answer::GaveUp, true);
        }
    }

    /// A caller no longer waits for an attempt.
    pub(super) fn abandon(&mut self, id: usize) {
        let Some(attempt) = self.attempts.get_mut(id) else {
            return;
        };
        if std::mem::replace(&mut attempt.awaits, Awaits::Nothing) != Awaits::Nothing {
            self.go_away(id);
        }
    }

    /// A caller tells the proxy that it goes away, which does not overtake its request.
    fn go_away(&mut self, id: usize) {
        let due = self.attempts.get(id).map_or(self.now, |one| one.ask_due);
        self.push_hop_from(self.now, due, WorldEvent::CancelAtProxy { attempt: id });
    }

    /// A caller gets the result of an attempt: it retries, or the request ends.
    pub(super) fn hear(&mut self, id: usize, answer: Answer, makes_sense: bool) {
        let client = self.client(id);
        let retries = client.and_then(|client| client.retries);
        // A caller with endless retries goes on until the end of the story.
        let goes_on = client.is_some_and(|client| client.adversary.is_none()) || !self.is_over();
        let Some(call) = self.calls.get_mut(id) else {
            return;
        };
        let again = retries.filter(|retries| {
            goes_on
                && call.attempts <= retries.max
                && answer != Answer::Ok
                && (makes_sense || retries.stubborn)
        });
        if let Some(retries) = again {
            let pause = retries.pause(call.attempts, rng::unit(&mut self.chance.backoff));
            self.push_after(pause, WorldEvent::Again { call: id });
            return;
        }
        self.conclude(id, answer);
    }

    /// A caller's request ends.
    pub(super) fn conclude(&mut self, id: usize, answer: Answer) {
        let now = self.latency(id);
        let Some(call) = self.calls.get_mut(id) else {
            return;
        };
        let latency = call.moment.unwrap_or(now);
        if call.parent.is_none() {
            let objective = self.scenario.latency_at(call.arrival.at);
            let is_good = answer == Answer::Ok && latency <= objective;
            if is_good && let Some(proxy) = self.proxies.get_mut(call.proxy) {
                proxy.good += 1;
            }
            if let Some(tally) = &mut self.tally {
                tally.conclude(self.now, &answer, latency, is_good);
            }
        }
        let (member, is_answered) = (call.member, answer == Answer::Ok);
        call.end = Some(CallEnd { answer, latency });
        if let Some(member) = member {
            self.expect_after(member, is_answered);
        }
        self.open -= 1;
        self.called(id);
    }

    /// Time since a request was due, without that of its uploads.
    fn latency(&self, id: usize) -> Duration {
        let Some(call) = self.calls.get(id) else {
            return Duration::ZERO;
        };
        let since = self.now.saturating_since(START + call.arrival.at);
        since.saturating_sub(call.uploading)
    }
}
