//! The counts of a tally by name.

/// One growing count. The order is part of the wire format; sums stand last, because they have more bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Count {
    /// Requests that asked for admission.
    Arrivals,
    /// Requests admitted.
    Admitted,
    /// Successful answers.
    Successes,
    /// Failures.
    Failures,
    /// Overload signals.
    Overloads,
    /// Successes that turned out to be failures after their headers.
    Retracted,
    /// Answers that were no failures and whose latency was measured, client errors among them.
    Answers,
    /// Outcomes that say nothing.
    Ignored,
    /// Callers that went away.
    Cancelled,
    /// Outcomes of requests admitted before the breaker's last transition.
    Stale,
    /// Answers, or waits of callers that gave up, beyond the SLO's latency target.
    Slow,
    /// Probes admitted.
    ProbesSent,
    /// Probes answered well.
    ProbeSuccesses,
    /// Probes that failed.
    ProbeFailures,
    /// Requests of health checkers, admitted despite a refusal.
    Exempt,
    /// Requests admitted only because the cap on the share shed was reached.
    Spared,
    /// Answers that were no failures, to requests admitted before the breaker's last transition.
    StaleAnswers,
    /// Sum of in-flight over time, request-microseconds.
    InFlightMicros,
    /// Sum of the latencies of `Answers`, microseconds.
    LatencyMicros,
    /// Sum of the times in flight of requests without an answer among `Answers`, microseconds: failures, and callers that left.
    UnansweredMicros,
    /// Sum of the times in flight of requests that were taken out of the count because later ones overtook them, or because their
    /// bodies go on, microseconds.
    UnmeasuredMicros,
    /// Sum of the waits for `StaleAnswers`, microseconds.
    StaleMicros,
    /// Sum of the load at admission of successful requests.
    SuccessLoad,
    /// Sum of the load at admission of failed requests and overload signals.
    FailureLoad,
    /// Sum of the squares of `FailureLoad`'s terms.
    FailureLoadSquares,
    /// Sum of the squares of `SuccessLoad`'s terms.
    SuccessLoadSquares,
}
