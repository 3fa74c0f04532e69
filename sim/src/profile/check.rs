//! What can be wrong with bodies, pauses, contention, connections and failing paths.

use super::{Behaviour, Connections, Contention, Pauses};

/// Statuses of a failure.
const FAILURES: std::ops::RangeInclusive<u16> = 400..=599;

impl Behaviour {
    /// Every fault as `field: what is wrong`.
    pub(crate) fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let body = self.body.iter().map(|body| ("body".to_owned(), body));
        let bodies = self.bodies.iter();
        let bodies = bodies.map(|(path, body)| (format!("bodies.{path:?}"), body));
        for (key, body) in body.chain(bodies) {
            if let Some(fault) = body.duration.fault() {
                faults.push(format!("{key}.duration: {fault}"));
            }
        }
        for (path, status) in &self.failing {
            faults.extend(status_fault(&format!("failing.{path:?}"), *status));
        }
        for (path, lie) in &self.lies {
            let fault = lie.fault();
            faults.extend(fault.map(|fault| format!("lies.{path:?}.{fault}")));
        }
        if let Some(Pauses { every, length, .. }) = self.pauses
            && length >= every
        {
            faults.push(format!(
                "pauses.length: found {length:?}, expected < pauses.every, which is {every:?}"
            ));
        }
        if let Some(Contention { above, slope }) = self.contention {
            if above == 0 {
                faults.push("contention.above: found 0, expected > 0".to_owned());
            }
            if !slope.is_finite() || slope < 0.0 {
                faults.push(format!(
                    "contention.slope: found {slope}, expected a number >= 0"
                ));
            }
        }
        if let Some(Connections { max: 0, .. }) = self.connections {
            faults.push("connections.max: found 0, expected > 0 (use mode to refuse)".to_owned());
        }
        faults
    }
}

/// What is wrong with the status of a failure, if anything.
pub(crate) fn status_fault(key: &str, status: u16) -> Option<String> {
    (!FAILURES.contains(&status))
        .then(|| format!("{key}: found {status}, expected the status of a failure, 400..=599"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::profile::{Body, Lie, ServiceTime};

    #[test]
    fn every_fault_is_told_with_its_field_and_what_was_expected() {
        let nothing = Body {
            duration: ServiceTime::constant(Duration::ZERO),
            holds_slot: true,
            bytes: 0,
        };
        let behaviour = Behaviour {
            body: Some(nothing),
            bodies: [("/a".to_owned(), nothing)].into(),
            failing: [("/b".to_owned(), 200)].into(),
            lies: [("/c".to_owned(), Lie::HugeHeaders { bytes: 0 })].into(),
            pauses: Some(Pauses {
                every: Duration::from_secs(1),
                length: Duration::from_secs(1),
                together: false,
            }),
            contention: Some(Contention {
                above: 0,
                slope: f64::NAN,
            }),
            connections: Some(Connections { max: 0, backlog: 0 }),
            ..Behaviour::default()
        };
        let faults = behaviour.faults();
        let expected = [
            "body.duration: the mean",
            "bodies.\"/a\".duration: the mean",
            "failing.\"/b\": found 200, expected",
            "lies.\"/c\".bytes: found 0, expected",
            "pauses.length: found 1s, expected <",
            "contention.above: found 0, expected",
            "contention.slope: found NaN, expected",
            "connections.max: found 0, expected",
        ];
        assert_eq!(faults.len(), expected.len(), "{faults:?}");
        for (fault, expected) in faults.iter().zip(expected) {
            assert!(fault.starts_with(expected), "{fault}");
        }
        assert_eq!(Behaviour::default().faults(), Vec::<String>::new());
    }
}
