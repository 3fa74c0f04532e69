//! Checks how callers send and read.

use std::time::Duration;

use super::{ClientProfile, LatencyUntil};
use crate::profile::check::status_fault;

impl ClientProfile {
    /// Every fault of how its requests come about, as `field: what is wrong`.
    pub(super) fn faults_of_loop(&self) -> Vec<String> {
        let Some(closed) = &self.closed_loop else {
            return if self.load.is_empty() {
                vec![
                    "load: found nothing, expected at least one point, or a closed_loop".to_owned(),
                ]
            } else {
                Vec::new()
            };
        };
        let faults = closed.faults().into_iter();
        let mut faults: Vec<String> = faults.map(|fault| format!("closed_loop.{fault}")).collect();
        if !self.load.is_empty() {
            faults.push(format!(
                "load: found {} points, expected none beside closed_loop",
                self.load.len()
            ));
        }
        if self.bursts.is_some() {
            faults.push("bursts: found some, expected none beside closed_loop".to_owned());
        }
        faults
    }

    /// Every fault of upload, reading and quota as `field: what is wrong`.
    pub(super) fn faults_of_conduct(&self, until: LatencyUntil) -> Vec<String> {
        let mut faults = Vec::new();
        if let Some(upload) = &self.upload {
            if let Some(fault) = upload.duration.fault() {
                faults.push(format!("upload.duration: {fault}"));
            }
            if !(0.0..=1.0).contains(&upload.stalled) {
                faults.push(format!(
                    "upload.stalled: found {}, expected a number in 0..=1",
                    upload.stalled
                ));
            }
        }
        if let Some(reads_for) = &self.reads_for {
            if let Some(fault) = reads_for.fault() {
                faults.push(format!("reads_for: {fault}"));
            }
            if until == LatencyUntil::End {
                faults.push(
                    "reads_for: found a time, expected none where slo.until is end".to_owned(),
                );
            }
        }
        if let Some(quota) = &self.quota {
            if !quota.rps.is_finite() || quota.rps <= 0.0 {
                faults.push(format!(
                    "quota.rps: found {}, expected a number > 0",
                    quota.rps
                ));
            }
            faults.extend(status_fault("quota.status", quota.status));
        }
        let times = [("timeout", self.timeout), ("dawdles", self.dawdles)];
        for (key, _) in times
            .iter()
            .filter(|(_, time)| *time == Some(Duration::ZERO))
        {
            faults.push(format!("{key}: found 0, expected > 0"));
        }
        faults.extend(header_fault("agent", self.agent.as_deref()));
        faults.extend(header_fault("cohort", self.cohort.as_deref()));
        faults
    }
}

/// Longest text of a header, in bytes.
const MOST_TEXT: usize = 128;

/// What is wrong with a text that is used unchanged in a header, if anything.
pub(super) fn header_fault(key: &str, text: Option<&str>) -> Option<String> {
    let text = text.filter(|text| !is_header_value(text))?;
    Some(format!(
        "{key}: found {text:?}, expected 1 to {MOST_TEXT} visible ASCII characters"
    ))
}

pub(super) fn is_header_value(text: &str) -> bool {
    (1..=MOST_TEXT).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use crate::scenario::{LatencyUntil, Scenario};

    fn parse(rest: &str) -> Result<Scenario, String> {
        let head = "name='t'\ntitle='t'\nprose='p'\nseed=1\nduration='9s'\n";
        let text = format!("{head}{rest}");
        Scenario::parse(&text, "test").map_err(|error| error.to_string())
    }

    #[test]
    fn callers_upload_read_for_a_while_and_have_a_quota() {
        let scenario = parse(
            "slo={until='first-byte'}\n[[clients]]\nload=[{at='0s', x=0.5}]\n\
             upload={duration={kind='constant', mean='2s'}, stalled=0.1}\n\
             reads_for={kind='constant', mean='20s'}\nquota={rps=5.0}",
        )
        .unwrap();
        assert_eq!(scenario.slo.until, LatencyUntil::FirstByte);
        assert_eq!(
            scenario.clients[0].quota.map(|quota| quota.status),
            Some(429)
        );
        assert!(scenario.only_simulated().is_empty());
    }

    #[test]
    fn every_fault_is_told_with_its_path_and_what_was_expected() {
        let error = parse(
            "slo={until='end'}\n[[clients]]\nload=[{at='0s', x=0.5}]\n\
             upload={duration={kind='constant', mean='0s'}, stalled=1.5}\n\
             reads_for={kind='constant', mean='1s'}\nquota={rps=0.0, status=200}\n\
             timeout='0s'\ndawdles='0s'\nagent=''\ncohort='a b'",
        )
        .unwrap_err();
        for expected in [
            "clients[0].upload.duration: the mean",
            "clients[0].upload.stalled: found 1.5, expected",
            "clients[0].reads_for: found a time, expected none",
            "clients[0].quota.rps: found 0, expected",
            "clients[0].quota.status: found 200, expected",
            "clients[0].timeout: found 0, expected",
            "clients[0].dawdles: found 0, expected",
            "clients[0].agent: found \"\", expected",
            "clients[0].cohort: found \"a b\", expected",
        ] {
            assert!(error.contains(expected), "{expected} is missing in {error}");
        }
    }

    #[test]
    fn unknown_words_are_rejected() {
        for wrong in [
            "slo={until='headrs'}\n[[clients]]\nload=[]",
            "[[clients]]\nload=[]\nupload={duration={kind='constant', mean='1s'}, stals=1}",
            "[[clients]]\nload=[]\nquota={rps=1.0, why=1}",
            "[[clients]]\nload=[]\n[[upstreams]]\nname='main'\nbehaviour={headers='early'}",
            "[[clients]]\nload=[]\n[[upstreams]]\nname='main'\n\
             behaviour={body={duration={kind='constant', mean='1s'}, hold_slot=true}}",
        ] {
            let error = parse(wrong).unwrap_err();
            assert!(error.starts_with("parse"), "{error}");
        }
    }

    #[test]
    fn a_timeline_changes_bodies_pauses_contention_and_failing_paths() {
        let scenario = parse(
            "[[clients]]\nload=[{at='0s', x=0.5}]\n[[upstreams]]\nname='main'\n\
             timeline=[{at='1s', failing={'/x'=500}, contention={above=8, slope=0.3}, \
             pauses={every='2s', length='250ms'}, \
             body={duration={kind='constant', mean='1s'}, holds_slot=true}}, {at='2s', failing={}}]",
        )
        .unwrap();
        let stages = scenario.upstreams[0].stages();
        let [first, second, third] = &stages[..] else {
            panic!("{stages:?}");
        };
        assert!(first.1.failing.is_empty() && first.1.body.is_none());
        assert_eq!(second.1.failing.get("/x"), Some(&500));
        assert!(third.1.failing.is_empty());
        assert!(third.1.pauses.is_some() && third.1.contention.is_some() && third.1.body.is_some());
        assert!(scenario.only_simulated().is_empty());
    }
}
