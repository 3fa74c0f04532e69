//! What can be wrong with an adversary that parses.

use std::time::Duration;

use super::{Adversary, AdversaryKind, Spells};
use crate::profile::check::status_fault;
use crate::scenario::conduct::{header_fault, is_header_value};
use crate::scenario::{CRITICALITIES, ClientProfile, Scenario};

/// More than this multiple of a capacity is a typing error; a run could not hold it either.
const MOST_X: f64 = 100.0;
/// Likewise, in requests a second.
const MOST_RPS: f64 = 100_000.0;
/// Shortest time between the beginnings of two spells.
const LEAST_EVERY: Duration = Duration::from_millis(10);

impl Adversary {
    /// Every fault as `path: what is wrong`.
    pub(in crate::scenario) fn faults(&self, path: &str, scenario: &Scenario) -> Vec<String> {
        let mut faults = self.faults_of_rate(scenario.duration);
        if scenario.upstream(&self.upstream).is_none() {
            faults.push(format!(
                "upstream: found {}, expected the name of an upstream",
                self.upstream
            ));
        }
        faults.extend(self.strangers());
        faults.extend(self.faults_of_parameters());
        faults.extend(self.fault_of_path(&scenario.clients));
        let here = |fault| format!("{path}.{fault}");
        faults.into_iter().map(here).collect()
    }

    fn faults_of_rate(&self, end: Duration) -> Vec<String> {
        let mut faults = Vec::new();
        let most = if self.x.is_some() { MOST_X } else { MOST_RPS };
        let key = if self.x.is_some() { "x" } else { "rps" };
        match (self.x, self.rps) {
            (Some(rate), None) | (None, Some(rate)) if rate > 0.0 && rate <= most => {}
            (Some(rate), None) | (None, Some(rate)) => faults.push(format!(
                "{key}: found {rate}, expected a number > 0 and <= {most}"
            )),
            (Some(_), Some(_)) => {
                faults.push("x: found x and rps, expected one of them".to_owned())
            }
            (None, None) => {
                faults.push("x: found neither x nor rps, expected one of them".to_owned())
            }
        }
        if self.start >= end {
            faults.push(format!(
                "start: found {:?}, expected < duration, which is {end:?}",
                self.start
            ));
        }
        if let Some(stop) = self.stop
            && (stop <= self.start || stop > end)
        {
            faults.push(format!(
                "stop: found {stop:?}, expected > start and <= duration, which are {:?} and {end:?}",
                self.start
            ));
        }
        if let Some(Spells { every, length }) = self.spells
            && (length.is_zero() || length >= every || every < LEAST_EVERY)
        {
            faults.push(format!(
                "spells: found {length:?} every {every:?}, expected 0 < length < every and every >= {LEAST_EVERY:?}"
            ));
        }
        faults
    }

    /// Parameters that its kind does not have.
    fn strangers(&self) -> Vec<String> {
        use AdversaryKind::{
            BulkReset, CrashingPath, EndlessRetries, Flood, ForgedAgent, ForgedCohort,
            ForgedCriticality, LyingUpstream, OverQuota, ShortDeadline, SlowReader, StalledUpload,
        };
        let parameters: [(&str, bool, &[AdversaryKind]); 11] = [
            (
                "path",
                self.path.is_some(),
                &[CrashingPath, SlowReader, LyingUpstream],
            ),
            ("status", self.status.is_some(), &[OverQuota, CrashingPath]),
            ("granted", self.granted.is_some(), &[OverQuota]),
            ("retry_after", self.retry_after.is_some(), &[OverQuota]),
            ("agent", self.agent.is_some(), &[ForgedAgent]),
            ("cohort", self.cohort.is_some(), &[ForgedCohort, Flood]),
            (
                "criticality",
                self.criticality.is_some(),
                &[ForgedCriticality],
            ),
            (
                "after",
                self.after.is_some(),
                &[
                    StalledUpload,
                    SlowReader,
                    BulkReset,
                    ShortDeadline,
                    LyingUpstream,
                ],
            ),
            ("cut", self.cut.is_some(), &[ShortDeadline]),
            ("backoff", self.backoff.is_some(), &[EndlessRetries]),
            ("lie", self.lie.is_some(), &[LyingUpstream]),
        ];
        let strange = parameters
            .into_iter()
            .filter(|(_, is_given, kinds)| *is_given && !kinds.contains(&self.kind));
        strange
            .map(|(key, _, kinds)| {
                let names: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
                format!(
                    "{key}: found with kind {}, expected only with {}",
                    self.kind,
                    names.join(", ")
                )
            })
            .collect()
    }

    fn faults_of_parameters(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let status = self
            .status
            .and_then(|status| status_fault("status", status));
        faults.extend(status);
        if let Some(granted) = self.granted.filter(|rps| !rps.is_finite() || *rps <= 0.0) {
            faults.push(format!("granted: found {granted}, expected a number > 0"));
        }
        let times = [("after", self.after), ("backoff", self.backoff)];
        for (key, _) in times
            .iter()
            .filter(|(_, time)| *time == Some(Duration::ZERO))
        {
            faults.push(format!("{key}: found 0, expected > 0"));
        }
        faults.extend(header_fault("agent", self.agent.as_deref()));
        faults.extend(header_fault("cohort", self.cohort.as_deref()));
        // As the filter reads it.
        let is_class = |text: &str| {
            let mut classes = CRITICALITIES.into_iter();
            classes.any(|class| class.eq_ignore_ascii_case(text.trim_ascii()))
        };
        let class = self.criticality.as_ref();
        if let Some(class) = class.filter(|class| !is_class(class)) {
            faults.push(format!(
                "criticality: found {class:?}, expected critical_plus, critical, sheddable_plus or sheddable"
            ));
        }
        faults.extend(
            self.lie
                .and_then(|lie| lie.fault())
                .map(|fault| format!("lie.{fault}")),
        );
        faults
    }

    /// Reports a path that honest clients request as well: the upstream treats all requests for a path the same.
    fn fault_of_path(&self, clients: &[ClientProfile]) -> Option<String> {
        let path = self.own_path()?;
        if !path.starts_with('/') || !is_header_value(&path) {
            return Some(format!(
                "path: found {path:?}, expected a path that begins with /"
            ));
        }
        let is_of = |client: &ClientProfile| {
            let plain = client.paths.is_empty() && path == "/";
            client.upstream == self.upstream && (plain || client.paths.contains_key(&path))
        };
        clients.iter().any(is_of).then(|| {
            format!("path: found {path}, expected a path that no client of the upstream asks for")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(adversary: &str) -> Result<Scenario, String> {
        let text = format!(
            "name='t'\ntitle='t'\nprose='p'\nseed=1\nduration='9s'\n\
             [[clients]]\nload=[{{at='0s', x=0.5}}]\npaths={{'/'=0.5, '/shop'=0.5}}\n[[adversaries]]\n{adversary}"
        );
        Scenario::parse(&text, "test").map_err(|error| error.to_string())
    }

    #[test]
    fn every_kind_is_known_by_its_name_and_becomes_a_client() {
        for kind in AdversaryKind::ALL {
            let scenario = parse(&format!("kind='{kind}'\nx=0.25")).unwrap();
            assert_eq!(scenario.adversary(0), None);
            assert_eq!(scenario.adversary(1), Some(kind));
            assert!(scenario.adversaries.is_empty());
        }
    }

    #[test]
    fn an_unknown_kind_is_rejected_with_those_there_are() {
        let error = parse("kind='over_quoted'\nx=1.0").unwrap_err();
        for expected in ["over_quoted", "line 10", "`over_quota`", "`lying_upstream`"] {
            assert!(error.contains(expected), "{expected} is missing in {error}");
        }
    }

    #[test]
    fn every_fault_is_told_with_its_path_and_what_was_expected() {
        let cases = [
            ("kind='flood'", "x: found neither x nor rps, expected one"),
            (
                "kind='flood'\nx=1.0\nrps=5.0",
                "x: found x and rps, expected one",
            ),
            ("kind='flood'\nx=-1.0", "x: found -1, expected a number > 0"),
            ("kind='flood'\nx=nan", "x: found NaN, expected a number > 0"),
            (
                "kind='flood'\nx=101.0",
                "x: found 101, expected a number > 0 and <= 100",
            ),
            (
                "kind='flood'\nrps=0.0",
                "rps: found 0, expected a number > 0",
            ),
            (
                "kind='flood'\nx=1.0\nupstream='b'",
                "upstream: found b, expected",
            ),
            (
                "kind='flood'\nx=1.0\nstart='9s'",
                "start: found 9s, expected < duration",
            ),
            (
                "kind='flood'\nx=1.0\nstart='5s'\nstop='5s'",
                "stop: found 5s, expected > start",
            ),
            (
                "kind='flood'\nx=1.0\nspells={every='1s', length='1s'}",
                "spells: found 1s every 1s, expected",
            ),
            (
                "kind='flood'\nx=1.0\npath='/a'",
                "path: found with kind flood, expected only with crashing_path",
            ),
            (
                "kind='flood'\nx=1.0\ncohort=' '",
                "cohort: found \" \", expected 1 to 128",
            ),
            (
                "kind='over_quota'\nx=1.0\ngranted=0.0",
                "granted: found 0, expected",
            ),
            (
                "kind='over_quota'\nx=1.0\nstatus=200",
                "status: found 200, expected",
            ),
            (
                "kind='crashing_path'\nx=1.0\npath='crash'",
                "path: found \"crash\", expected",
            ),
            (
                "kind='crashing_path'\nx=1.0\npath='/shop'",
                "path: found /shop, expected a path that no client",
            ),
            (
                "kind='bulk_reset'\nx=1.0\nafter='0s'",
                "after: found 0, expected > 0",
            ),
            (
                "kind='forged_criticality'\nx=1.0\ncriticality='very'",
                "criticality: found \"very\", expected",
            ),
            (
                "kind='lying_upstream'\nx=1.0\nlie={kind='huge-headers', bytes=0}",
                "lie.bytes: found 0, expected",
            ),
        ];
        for (adversary, expected) in cases {
            let error = parse(adversary).unwrap_err();
            let expected = format!("adversaries[0].{expected}");
            assert!(
                error.contains(&expected),
                "{expected} is missing in {error}"
            );
        }
    }

    #[test]
    fn unknown_words_are_rejected() {
        for wrong in [
            "kind='flood'\nx=1.0\nrate=2.0",
            "kind='short_deadline'\nx=1.0\ncut='headr'",
            "kind='flood'\nx=1.0\nspells={every='1s', length='1ms', x=1.0}",
        ] {
            let error = parse(wrong).unwrap_err();
            assert!(error.starts_with("parse"), "{error}");
        }
    }

    #[test]
    fn a_cast_scenario_reads_back_from_its_file() {
        for kind in AdversaryKind::ALL {
            let scenario = parse(&format!("kind='{kind}'\nx=0.25\nstart='1s'\nstop='4s'")).unwrap();
            let text = scenario.text().unwrap();
            assert_eq!(Scenario::parse(&text, "test").unwrap(), scenario, "{text}");
        }
    }

    #[test]
    fn spells_lie_between_start_and_stop() {
        let scenario = parse(
            "kind='flood'\nrps=8.0\nstart='1s'\nstop='5500ms'\nspells={every='2s', length='1s'}",
        )
        .unwrap();
        let load = &scenario.clients[1].load;
        let found: Vec<(u128, Option<f64>)> = load
            .iter()
            .map(|point| (point.at.as_millis(), point.rps))
            .collect();
        let expected = [
            (1_000, 8.0),
            (2_000, 0.0),
            (3_000, 8.0),
            (4_000, 0.0),
            (5_000, 8.0),
            (5_500, 0.0),
        ];
        assert_eq!(found, expected.map(|(at, rps)| (at, Some(rps))));
    }
}
