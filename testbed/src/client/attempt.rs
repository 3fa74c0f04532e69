//! One attempt of a caller: it sends, waits for the moment that counts, and reads on.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::headers::{
    ATTEMPT_HEADER, CLIENT_HEADER, CRITICALITY_HEADER, ORIGIN_HEADER, SHED_DETAILS, TIMEOUT_HEADER,
};
use super::{Call, CallError, CallReply, Caller, OpenExchange};
use tidegate_sim::arrivals::{Arrival, Sending};
use tidegate_sim::policy::{COHORT_HEADER, DEADLINE_HEADER};
use tidegate_sim::record::Answer;
use tidegate_sim::scenario::{ClientProfile, LatencyUntil};

/// A caller's request, and how the caller behaves.
#[derive(Debug)]
pub(super) struct CallPlan {
    pub(super) caller: Caller,
    pub(super) client: ClientProfile,
    pub(super) arrival: Arrival,
    /// The moment at which latency and deadline end.
    pub(super) until: LatencyUntil,
    /// The cohort that the caller states, if callers do.
    pub(super) cohort: Option<String>,
    /// The number of the caller's request that caused this one, if services call services.
    pub(super) origin: Option<u64>,
    /// No response is read beyond this instant.
    pub(super) read_until: Instant,
    /// End of the time in which requests are due.
    pub(super) end: Instant,
}

/// A dawdling caller reads the next piece of a body after this time.
const DAWDLE: Duration = Duration::from_millis(500);

/// Reads a piece, then pauses; false at the end.
async fn dawdle(exchange: &mut OpenExchange) -> Result<bool, CallError> {
    let is_more = exchange.chunk().await?.is_some();
    sleep(DAWDLE).await;
    Ok(is_more)
}

/// How an attempt ended.
#[derive(Debug)]
pub(super) struct AttemptEnd {
    pub(super) answer: Answer,
    /// Whether the caller would try again.
    pub(super) makes_sense_again: bool,
    /// The moment that counts, or the end if it did not come.
    pub(super) moment: Instant,
    /// Duration of the upload, if it ended.
    pub(super) uploading: Duration,
    /// Whether the answer says that a service is overloaded.
    pub(super) is_overload: bool,
}

/// An attempt after the moment that counts.
enum Heard {
    /// A response 200 that can be read on.
    Good(OpenExchange),
    /// A response 200 that is complete.
    Complete,
    Bad(CallReply),
}

impl CallPlan {
    /// Makes attempt `number`, from 1.
    pub(super) async fn attempt(&self, number: u32) -> AttemptEnd {
        let begun = Instant::now();
        let heard = timeout(self.client.deadline, self.hear(number)).await;
        let moment = Instant::now();
        let is_overload = match &heard {
            Ok(Ok(Heard::Bad(reply))) => is_shed(reply) || reply.header("retry-after").is_some(),
            _ => false,
        };
        let (answer, makes_sense_again) = match heard {
            Err(_) => (Answer::GaveUp, true),
            Ok(Err(_)) => (Answer::Broken, true),
            Ok(Ok(Heard::Complete)) => (Answer::Ok, false),
            // A response that has begun to arrive is not requested again.
            Ok(Ok(Heard::Good(exchange))) => (self.read_on(exchange, moment).await, false),
            Ok(Ok(Heard::Bad(reply))) => self.judge(&reply),
        };
        let uploading = match self.arrival.upload {
            Some(Sending::Takes(time)) if begun + time <= moment => time,
            _ => Duration::ZERO,
        };
        AttemptEnd {
            answer,
            makes_sense_again,
            moment,
            uploading,
            is_overload,
        }
    }

    /// Sends the request and waits for the moment that counts.
    async fn hear(&self, number: u32) -> Result<Heard, CallError> {
        let mut exchange = self.caller.start(&self.call(number)).await?;
        if exchange.status() != 200 {
            return Ok(Heard::Bad(exchange.finish().await?));
        }
        match self.until {
            LatencyUntil::Headers => Ok(Heard::Good(exchange)),
            LatencyUntil::FirstByte => {
                exchange.chunk().await?;
                Ok(Heard::Good(exchange))
            }
            LatencyUntil::End if self.client.dawdles.is_some() => {
                while dawdle(&mut exchange).await? {}
                Ok(Heard::Complete)
            }
            LatencyUntil::End => {
                exchange.drain().await?;
                Ok(Heard::Complete)
            }
        }
    }

    /// Reads a response to its end, or until the caller has enough of it.
    async fn read_on(&self, mut exchange: OpenExchange, moment: Instant) -> Answer {
        let enough = self.arrival.reads_for.or(self.client.dawdles);
        let enough = enough.map(|time| moment + time);
        let until = enough.map_or(self.read_until, |enough| enough.min(self.read_until));
        let dawdles = self.client.dawdles.is_some();
        let read = async move {
            if dawdles {
                while dawdle(&mut exchange).await? {}
                Ok(())
            } else {
                exchange.drain().await
            }
        };
        match timeout_at(until, read).await {
            Ok(Err(_)) => Answer::Broken,
            Ok(Ok(())) | Err(_) => Answer::Ok,
        }
    }

    fn call(&self, number: u32) -> Call {
        let (client, arrival) = (&self.client, &self.arrival);
        let mut call = match arrival.upload {
            Some(sending) => Call::upload(&arrival.path, sending),
            None => Call::get(&arrival.path),
        };
        call = call.authority(&client.upstream);
        if let Some(criticality) = &arrival.criticality {
            call = call.header(CRITICALITY_HEADER, criticality);
        }
        if client.quota.is_some() {
            call = call.header(CLIENT_HEADER, &arrival.client.to_string());
        }
        if let Some(agent) = &client.agent {
            call = call.header("user-agent", agent);
        }
        if let Some(cohort) = &self.cohort {
            call = call.header(COHORT_HEADER, cohort);
        }
        if let Some(origin) = self.origin {
            call = call.header(ORIGIN_HEADER, &origin.to_string());
        }
        if client.tells_deadline {
            let millis = client.deadline.as_millis();
            call = call.header(DEADLINE_HEADER, &millis.to_string());
        }
        if let Some(time) = client.timeout {
            let millis = time.as_millis().max(1);
            call = call.header(TIMEOUT_HEADER, &millis.to_string());
        }
        let is_told = client.retries.is_none_or(|retries| !retries.untold);
        if number > 1 && is_told {
            call = call.header(ATTEMPT_HEADER, &number.to_string());
        }
        call
    }

    /// Classifies a reply other than 200, and decides whether another attempt makes sense.
    fn judge(&self, reply: &CallReply) -> (Answer, bool) {
        let is_stubborn = self.client.retries.is_some_and(|retries| retries.stubborn);
        // Callers behind an Envoy do not retry a reply that says that the whole service is overloaded.
        let is_final = reply.header("x-envoy-ratelimited").is_some();
        let answer = match reply.details().filter(|_| is_shed(reply)) {
            Some(details) => Answer::Shed(details.to_owned()),
            None => Answer::Failed(reply.status),
        };
        (answer, is_stubborn || !is_final)
    }
}

/// Whether a proxy refused the request to shed load.
fn is_shed(reply: &CallReply) -> bool {
    let is_known = |details| {
        SHED_DETAILS
            .iter()
            .any(|start| str::starts_with(details, start))
    };
    reply.details().is_some_and(is_known)
}
