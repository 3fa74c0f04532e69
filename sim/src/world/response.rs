//! A request's body on its way to the upstream, and a response with a body on its way back.

use tidegate_core::{Instant, Outcome};

use super::at_proxy::number;
use super::call::{Attempt, AttemptPlace, HeldByProxy};
use super::clock::START;
use super::event::WorldEvent;
use super::reception::UpstreamReply;
use super::run::SimWorld;
use crate::arrivals::Sending;
use crate::contender::{Contender, RequestId};
use crate::scenario::LatencyUntil;

impl SimWorld<'_> {
    pub(super) fn uploaded_at_proxy(&mut self, id: usize) {
        let Some(attempt) = self.attempts.get(id).filter(|a| a.is_in_flight()) else {
            return;
        };
        let index = attempt.call;
        if let Some(call) = self.calls.get_mut(index)
            && let Some(Sending::Takes(time)) = call.arrival.upload
        {
            call.uploading += time;
        }
        self.tell(id, |contender, request, now| {
            contender.uploaded(request, now)
        });
        self.push_hop(WorldEvent::UploadedAtUpstream { attempt: id });
        self.begin_timeout(id);
    }

    pub(super) fn uploaded_at_upstream(&mut self, id: usize) {
        let Some(attempt) = self.attempts.get_mut(id) else {
            return;
        };
        attempt.is_complete = true;
        if attempt.place == AttemptPlace::Uploading {
            self.receive(id);
        }
    }

    /// The upstream sends the headers at once, with the work still to do.
    pub(super) fn send_headers_first(&mut self, id: usize) {
        let (at, due) = (self.after_pause(id), self.proxy_due(id));
        let due = self.push_hop_from(at, due, WorldEvent::HeadersAtProxy { attempt: id });
        if let Some(attempt) = self.attempts.get_mut(id) {
            attempt.headers_first = true;
            attempt.proxy_due = due;
        }
    }

    /// The work is done: a body follows, or the end of a delayed response.
    pub(super) fn begin_body(&mut self, id: usize) {
        let call = self.attempts.get(id).map(|attempt| attempt.call);
        let client = call.and_then(|call| self.client(call));
        let dawdles = client.is_some_and(|client| client.dawdles.is_some());
        let Some(attempt) = self.attempts.get_mut(id) else {
            return;
        };
        let holds_slot = attempt.body.is_some_and(|body| body.holds_slot);
        attempt.place = AttemptPlace::Sending { holds_slot };
        let (upstream, endpoint) = (attempt.upstream, attempt.endpoint);
        let (body, due) = (attempt.body, attempt.proxy_due);
        let begin = self.now + attempt.delay;
        let headers_first = attempt.headers_first;
        if !holds_slot {
            self.release(upstream, endpoint);
        }
        let Some(body) = body else {
            self.push(begin, WorldEvent::Sent { attempt: id });
            return;
        };
        let what = if headers_first {
            WorldEvent::FirstByteAtProxy { attempt: id }
        } else {
            WorldEvent::HeadersAtProxy { attempt: id }
        };
        let due = self.push_hop_from(begin, due, what);
        // A caller that reads slowly goes away before the end.
        if !dawdles {
            let end = self.progress(upstream, endpoint, begin, body.duration);
            self.push(end, WorldEvent::Sent { attempt: id });
        }
        if let Some(attempt) = self.attempts.get_mut(id) {
            attempt.proxy_due = due;
        }
    }

    /// The upstream sends headers, and nothing more while the story lasts.
    pub(super) fn fall_silent(&mut self, id: usize) {
        if let Some(attempt) = self.attempts.get_mut(id) {
            attempt.place = AttemptPlace::Sending { holds_slot: false };
        }
        self.send_headers_first(id);
        let end = START + self.scenario.duration;
        self.push(end.max(self.now), WorldEvent::Sent { attempt: id });
    }

    /// The upstream has sent the last byte.
    pub(super) fn sent(&mut self, id: usize) {
        let Some(attempt) = self.attempts.get_mut(id) else {
            return;
        };
        let AttemptPlace::Sending { holds_slot } = attempt.place else {
            return;
        };
        attempt.place = AttemptPlace::Nowhere;
        let (upstream, endpoint, due) = (attempt.upstream, attempt.endpoint, attempt.proxy_due);
        if holds_slot {
            self.release(upstream, endpoint);
        }
        self.disconnect(id);
        self.push_hop_from(self.now, due, WorldEvent::AnswerAtProxy { attempt: id });
    }

    pub(super) fn headers_at_proxy(&mut self, id: usize) {
        let is_waiting = |attempt: &&mut Attempt| attempt.at_proxy == HeldByProxy::Waiting;
        let Some(attempt) = self.attempts.get_mut(id).filter(is_waiting) else {
            return;
        };
        attempt.at_proxy = HeldByProxy::Answered;
        let headers_first = attempt.headers_first;
        self.tell(id, |contender, request, now| {
            contender.headers(request, Outcome::Success, now);
        });
        if !headers_first {
            self.tell(id, |contender, request, now| {
                contender.first_byte(request, now)
            });
        }
        let until = self.scenario.slo.until;
        if until == LatencyUntil::Headers || (until == LatencyUntil::FirstByte && !headers_first) {
            self.forward(id, WorldEvent::MomentAtCaller { attempt: id });
        }
    }

    pub(super) fn first_byte_at_proxy(&mut self, id: usize) {
        if self.attempts.get(id).is_some_and(Attempt::is_in_flight) {
            self.tell(id, |contender, request, now| {
                contender.first_byte(request, now)
            });
            if self.scenario.slo.until == LatencyUntil::FirstByte {
                self.forward(id, WorldEvent::MomentAtCaller { attempt: id });
            }
        }
    }

    /// Reports a complete response's headers and first byte to the contender before its end.
    pub(super) fn hear_the_rest(&mut self, id: usize) {
        let Some(attempt) = self.attempts.get_mut(id) else {
            return;
        };
        let (held, body, reply) = (attempt.at_proxy, attempt.body, attempt.reply);
        if held == HeldByProxy::Waiting && reply != UpstreamReply::Reset {
            let outcome = attempt.outcome();
            attempt.at_proxy = HeldByProxy::Answered;
            self.tell(id, |contender, request, now| {
                contender.headers(request, outcome, now);
            });
        } else if held == HeldByProxy::Answered && body.is_none() && reply == UpstreamReply::Ok {
            // Headers that were sent first, and a body in one piece.
            self.tell(id, |contender, request, now| {
                contender.first_byte(request, now)
            });
        }
    }

    /// Passes something on to the caller, after what went before it.
    pub(super) fn forward(&mut self, id: usize, what: WorldEvent) {
        let due = self.attempts.get(id).map(|attempt| attempt.caller_due);
        let due = self.push_hop_from(self.now, due.unwrap_or(self.now), what);
        if let Some(attempt) = self.attempts.get_mut(id) {
            attempt.caller_due = due;
        }
    }

    fn tell(&mut self, id: usize, what: impl FnOnce(&mut dyn Contender, RequestId, Instant)) {
        let call = self
            .attempts
            .get(id)
            .and_then(|attempt| self.calls.get(attempt.call));
        let proxy = call.and_then(|call| self.proxies.get_mut(call.proxy));
        if let Some(proxy) = proxy {
            what(proxy.contender.as_mut(), number(id), self.now);
        }
    }

    fn proxy_due(&self, id: usize) -> Instant {
        self.attempts
            .get(id)
            .map_or(self.now, |attempt| attempt.proxy_due)
    }
}
