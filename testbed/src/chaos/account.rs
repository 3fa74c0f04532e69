//! What happened to each request: callers' records compared with the upstreams' ledgers.
//!
//! A request that the upstream answered must have reached its caller. Two kinds are excepted, and counted separately:
//!
//! - **late** answers: the request had ended for its caller before the upstream answered it (Envoy's route timeout, or the
//!   caller gave up), so that no caller waited;
//! - **cut** answers: the fault may cost this request ([`InjectedFault::may_harm`]), which overlapped with the fault.
//!
//! A request may end neither answered nor shed under the condition of cut answers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::fault::{Harm, InjectedFault};
use super::load::{CallRecord, End};

/// All that is known of the requests between two rests, at which the load pauses.
#[derive(Debug, Clone, Copy)]
pub struct RequestEvidence<'a> {
    /// What callers saw.
    pub records: &'a [CallRecord],
    /// When upstreams answered, in microseconds, by number of the request.
    pub answers: &'a BTreeMap<u64, u64>,
    /// The fault, and when it began and was undone, in microseconds; `None` for an undisturbed stretch.
    pub fault: Option<(InjectedFault, (u64, u64))>,
}

/// What happened to the requests.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// Requests that were sent.
    pub sent: u64,
    /// Answers of an upstream that reached their callers.
    pub answered: u64,
    /// Requests that were shed.
    pub shed: u64,
    /// Requests that the fault cost: neither answered nor shed.
    pub harmed: u64,
    /// Requests whose callers got no answer: the connection ended, or they gave up.
    pub unheard: u64,
    /// Answers to requests that their callers had abandoned.
    pub late: u64,
    /// Answers that the fault cut off.
    pub cut: u64,
    /// Answers that should have reached their callers, and did not.
    pub lost: Vec<String>,
    /// Ends that nothing explains.
    pub unexpected: Vec<String>,
    /// Answers that reached a caller and that no upstream gave.
    pub phantoms: Vec<String>,
}

impl Account {
    /// Accounts for all requests of `evidence`.
    #[must_use]
    pub fn of(evidence: RequestEvidence<'_>) -> Self {
        let mut account = Self::default();
        for record in evidence.records {
            account.add(record, evidence);
        }
        account
    }

    fn add(&mut self, record: &CallRecord, evidence: RequestEvidence<'_>) {
        let answer = evidence.answers.get(&record.number);
        let may_cost = evidence.may_cost(record);
        self.sent += 1;
        match &record.end {
            End::Answered => {
                self.answered += 1;
                if answer.is_none() {
                    self.phantoms.push(describe(record));
                }
                return;
            }
            End::Shed => self.shed += 1,
            End::Failed(..) | End::Broken | End::GaveUp => {
                if may_cost {
                    self.harmed += 1;
                } else {
                    self.unexpected.push(describe(record));
                }
            }
        }
        self.unheard += u64::from(matches!(record.end, End::Broken | End::GaveUp));
        match answer {
            None => {}
            Some(at) if *at > record.ended_us => self.late += 1,
            Some(_) if may_cost && record.end != End::Shed => self.cut += 1,
            Some(_) => self.lost.push(describe(record)),
        }
    }
}

impl RequestEvidence<'_> {
    /// Whether the fault may cost this request.
    fn may_cost(&self, record: &CallRecord) -> bool {
        let Some((fault, (begun, undone))) = &self.fault else {
            return false;
        };
        let touches = record.sent_us <= *undone && record.ended_us >= *begun;
        let fits = fault.kind.harm() != Harm::Connections || record.end == End::Broken;
        touches && fits && fault.may_harm(record.side)
    }
}

fn describe(record: &CallRecord) -> String {
    let took = record.ended_us.saturating_sub(record.sent_us) / 1_000;
    let CallRecord {
        number, side, end, ..
    } = record;
    format!(
        "request {number} to {}: {end:?} after {took} ms",
        side.name()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chaos::fault::{FaultKind, UpstreamSide};

    const WINDOW: (u64, u64) = (1_000, 2_000);

    fn record(side: UpstreamSide, times: (u64, u64), end: End) -> CallRecord {
        CallRecord {
            number: 1,
            side,
            sent_us: times.0,
            ended_us: times.1,
            end,
        }
    }

    fn account(kind: FaultKind, record: CallRecord, answered_at: Option<u64>) -> Account {
        let fault = InjectedFault {
            kind,
            side: UpstreamSide::Alpha,
            lasts_ms: 1,
            seed: 0,
        };
        let answers: BTreeMap<u64, u64> = answered_at.map(|at| (1, at)).into_iter().collect();
        Account::of(RequestEvidence {
            records: &[record],
            answers: &answers,
            fault: Some((fault, WINDOW)),
        })
    }

    #[test]
    fn an_answer_that_arrived_is_neither_lost_nor_harmed() {
        let got = account(
            FaultKind::Pushes,
            record(UpstreamSide::Alpha, (1_100, 1_200), End::Answered),
            Some(1_150),
        );
        assert_eq!((got.sent, got.answered, got.harmed), (1, 1, 0));
        assert!(got.lost.is_empty() && got.unexpected.is_empty() && got.phantoms.is_empty());
    }

    #[test]
    fn an_answer_that_did_not_arrive_is_lost_where_the_fault_may_cost_nothing() {
        let broken = record(UpstreamSide::Alpha, (1_100, 1_200), End::Broken);
        let got = account(FaultKind::Pushes, broken.clone(), Some(1_150));
        assert_eq!((got.lost.len(), got.unexpected.len()), (1, 1));
        let got = account(FaultKind::UpstreamKilled, broken, Some(1_150));
        assert_eq!((got.lost.len(), got.cut, got.harmed), (0, 1, 1));
    }

    #[test]
    fn the_other_upstream_and_the_time_after_are_not_excused() {
        let failed = || End::Failed(503, String::new());
        let other = record(UpstreamSide::Beta, (1_100, 1_200), failed());
        assert_eq!(
            account(FaultKind::UpstreamKilled, other, None)
                .unexpected
                .len(),
            1
        );
        let later = record(UpstreamSide::Alpha, (2_001, 2_200), failed());
        assert_eq!(
            account(FaultKind::UpstreamKilled, later, None)
                .unexpected
                .len(),
            1
        );
    }

    #[test]
    fn nobody_waited_for_a_late_answer() {
        let gave_up = record(UpstreamSide::Alpha, (1_100, 1_200), End::GaveUp);
        let got = account(FaultKind::UpstreamHung, gave_up, Some(1_201));
        assert_eq!((got.late, got.cut, got.unheard), (1, 0, 1));
    }

    #[test]
    fn a_shed_request_that_was_answered_too_is_lost_whatever_the_fault() {
        let shed = record(UpstreamSide::Alpha, (1_100, 1_200), End::Shed);
        let got = account(FaultKind::VmCrashAll, shed, Some(1_150));
        assert_eq!((got.shed, got.lost.len()), (1, 1));
    }

    #[test]
    fn a_restart_may_cost_connections_but_no_request_that_got_an_answer() {
        let failed = record(
            UpstreamSide::Beta,
            (1_100, 1_200),
            End::Failed(503, String::new()),
        );
        assert_eq!(
            account(FaultKind::HotRestart, failed, None)
                .unexpected
                .len(),
            1
        );
        let broken = record(UpstreamSide::Beta, (1_100, 1_200), End::Broken);
        assert_eq!(account(FaultKind::HotRestart, broken, None).harmed, 1);
    }

    #[test]
    fn an_answer_that_no_upstream_gave_is_a_phantom() {
        let answered = record(UpstreamSide::Alpha, (1, 2), End::Answered);
        assert_eq!(account(FaultKind::Pushes, answered, None).phantoms.len(), 1);
    }
}
