//! Which axes a story lies on.
//!
//! The labels follow from the story alone, so that any scenario has them.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::arrivals::rate_at;
use crate::oracle;
use crate::profile::{Behaviour, Change, HeaderTiming, UpstreamMode};
use crate::scenario::{AdversaryKind, ClientProfile, LatencyUntil, Scenario, TimedChange};

/// At less than this part of the capacity nothing is overloaded.
const CALM: f64 = 0.9;
/// The label of a story in which nothing is overloaded.
pub(super) const CALM_LABEL: &str = "nothing overloaded";
/// Every label, in the order of tables.
const LABELS: [&str; 29] = [
    CALM_LABEL,
    "overload",
    "cold start",
    "bursts",
    "retries",
    "outage",
    "hang",
    "slower",
    "fewer slots",
    "errors",
    "delays",
    "several proxies",
    "several endpoints",
    "bodies, free",
    "bodies, held",
    "early headers",
    "until first byte",
    "until end",
    "streams",
    "uploads",
    "stalled uploads",
    "pauses",
    "contention",
    "backlog",
    "quota",
    "crashing path",
    "slow class",
    "mix shift",
    "unreachable",
];

/// The label of a story with an adversary of any kind.
const ADVERSARIES: &str = "adversaries";

/// The label of a story with an adversary of this kind.
const fn adversary(kind: AdversaryKind) -> &'static str {
    match kind {
        AdversaryKind::OverQuota => "adversary: over quota",
        AdversaryKind::CrashingPath => "adversary: crashing path",
        AdversaryKind::ForgedAgent => "adversary: forged agent",
        AdversaryKind::StalledUpload => "adversary: stalled upload",
        AdversaryKind::SlowReader => "adversary: slow reader",
        AdversaryKind::BulkReset => "adversary: bulk reset",
        AdversaryKind::ShortDeadline => "adversary: short deadline",
        AdversaryKind::ForgedCriticality => "adversary: forged criticality",
        AdversaryKind::ForgedCohort => "adversary: forged cohort",
        AdversaryKind::Flood => "adversary: flood",
        AdversaryKind::EndlessRetries => "adversary: endless retries",
        AdversaryKind::LyingUpstream => "adversary: lying upstream",
    }
}

/// Every label there is, in the order of tables.
pub(super) fn labels() -> impl Iterator<Item = &'static str> {
    let kinds = AdversaryKind::ALL.into_iter().map(adversary);
    LABELS.into_iter().chain([ADVERSARIES]).chain(kinds)
}

/// The axes of a story, in the order of tables. An adversary's conduct counts on its own axis alone, except for its effects
/// on the service.
#[must_use]
pub fn of(story: &Scenario) -> Vec<&'static str> {
    let stages = || story.upstreams.iter().flat_map(|up| up.stages());
    let ever = |is: &dyn Fn(&Behaviour) -> bool| stages().any(|(_, now)| is(&now));
    let changes = || story.upstreams.iter().flat_map(|up| &up.timeline);
    let changed = |is: &dyn Fn(&Change) -> bool| {
        let mut changes = changes();
        changes.any(|TimedChange { change, .. }| is(change))
    };
    let honest = |client: &&ClientProfile| client.adversary.is_none();
    let any = |is: &dyn Fn(&ClientProfile) -> bool| story.clients.iter().filter(honest).any(is);
    let has_path = |path: &str| ever(&|now| now.paths.contains_key(path));
    let body = |is_held: bool| ever(&|now| now.body.is_some_and(|body| body.holds_slot == is_held));
    let is_calm = is_calm(story);
    let lies_on = [
        is_calm,
        !is_calm && busiest(story) >= CALM,
        any(&begins_over),
        any(&|client| client.bursts.is_some()),
        any(&|client| client.retries.is_some()),
        ever(&|now| {
            matches!(
                now.mode,
                UpstreamMode::Fail | UpstreamMode::Refuse | UpstreamMode::Reset
            )
        }),
        ever(&|now| now.mode == UpstreamMode::Hang),
        changed(&|change| change.service.is_some()),
        changed(&|change| change.slots.is_some() || change.endpoints.is_some()),
        ever(&|now| now.errors.is_some()),
        ever(&|now| now.delay.is_some()),
        story.proxies > 1,
        ever(&|now| now.endpoints > 1),
        body(false),
        body(true),
        ever(&|now| now.headers == HeaderTiming::AtOnce),
        story.slo.until == LatencyUntil::FirstByte,
        story.slo.until == LatencyUntil::End,
        any(&|client| client.reads_for.is_some()),
        any(&|client| client.upload.is_some()),
        any(&|client| client.upload.is_some_and(|upload| upload.stalled > 0.0)),
        ever(&|now| now.pauses.is_some()),
        ever(&|now| now.contention.is_some()),
        ever(&|now| now.connections.is_some()),
        any(&|client| client.quota.is_some()),
        ever(&|now| !now.failing.is_empty()),
        has_path("/slow"),
        has_path("/expensive"),
        oracle::is_unreachable(story),
    ];
    let kinds: BTreeSet<AdversaryKind> = story
        .clients
        .iter()
        .filter_map(|client| client.adversary)
        .collect();
    let labels = LABELS.into_iter().zip(lies_on);
    let labels = labels.filter(|(_, lies_on)| *lies_on);
    labels
        .map(|(label, _)| label)
        .chain((!kinds.is_empty()).then_some(ADVERSARIES))
        .chain(kinds.into_iter().map(adversary))
        .collect()
}

/// Whether a client sends at least what the service can serve from the first request on.
fn begins_over(client: &ClientProfile) -> bool {
    let first = client.load.first();
    first.is_some_and(|point| point.x.is_some_and(|x| x >= 1.0))
}

/// Whether everything is up all the time and nothing is ever overloaded. A service with contention can always
/// become overloaded: by chance it may serve less than arrives.
fn is_calm(story: &Scenario) -> bool {
    let mut stages = story.upstreams.iter().flat_map(|up| up.stages());
    let is_safe = |now: &Behaviour| now.mode.is_up() && now.contention.is_none();
    stages.all(|(_, now)| is_safe(&now)) && busiest(story) < CALM
}

/// The greatest load of an upstream over its capacity at that time. Stories of a sweep have no closed loops, whose load is not known.
#[must_use]
pub fn busiest(story: &Scenario) -> f64 {
    let mut most: f64 = 0.0;
    for upstream in &story.upstreams {
        let of_it = |client: &&ClientProfile| client.upstream == upstream.name;
        let clients: Vec<&ClientProfile> = story.clients.iter().filter(of_it).collect();
        let stages = upstream.stages();
        let points = clients.iter().flat_map(|client| &client.load);
        let times = points
            .map(|point| point.at)
            .chain(stages.iter().map(|(at, _)| *at));
        for at in times.filter(|at| *at < story.duration) {
            let next = stages.partition_point(|(from, _)| *from <= at);
            let now = next.checked_sub(1).and_then(|index| stages.get(index));
            if let Some((_, now)) = now {
                let load = clients.iter().map(|client| part(story, client, now, at));
                most = most.max(load.sum());
            }
        }
    }
    most
}

/// The share of the capacity that one client takes at some time; with bursts, at least the share within a burst.
fn part(story: &Scenario, client: &ClientProfile, now: &Behaviour, at: Duration) -> f64 {
    let fails = |path: &String| now.failing.contains_key(path) || now.lies.contains_key(path);
    if !client.paths.is_empty() && client.paths.keys().all(fails) {
        return 0.0;
    }
    let capacity = story.capacity_for(client);
    let plain = ClientProfile {
        bursts: None,
        ..client.clone()
    };
    let burst = client.bursts.map_or(0.0, |bursts| bursts.x * capacity);
    let rate = rate_at(&plain, capacity, at).max(burst);
    let granted = client.quota.map_or(f64::INFINITY, |quota| quota.rps);
    let ends = 1.0 - client.upload.map_or(0.0, |upload| upload.stalled);
    rate.min(granted) * ends / client.capacity_of(now)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario(rest: &str) -> Scenario {
        let head = "name='t'\ntitle='t'\nprose='p'\nseed=1\nduration='60s'\n";
        Scenario::parse(&format!("{head}{rest}"), "test").unwrap()
    }

    fn load(rest: &str) -> f64 {
        busiest(&scenario(rest))
    }

    #[test]
    fn load_is_that_of_all_clients_in_the_worst_stage() {
        let two = "[[clients]]\nload=[{at='0s', x=0.3}, {at='10s', x=0.5}]\n\
            [[clients]]\nload=[{at='0s', x=0.1}]";
        assert!((load(two) - 0.6).abs() < 1e-9);
        let halved = format!("{two}\n[[upstreams]]\nname='main'\ntimeline=[{{at='20s', slots=8}}]");
        assert!((load(&halved) - 1.2).abs() < 1e-9);
    }

    #[test]
    fn bursts_count_in_full_and_what_is_worth_nothing_does_not() {
        let bursts =
            "[[clients]]\nload=[{at='0s', x=0.3}]\nbursts={every='1s', length='50ms', x=3.0}";
        assert!((load(bursts) - 3.0).abs() < 1e-9);
        let worthless = "[[clients]]\nload=[{at='0s', x=0.3}]\n\
            [[clients]]\nload=[{at='0s', x=5.0}]\npaths={'/crash'=1.0}\n\
            [[clients]]\nload=[{at='0s', x=5.0}]\nquota={rps=40.0}\n\
            [[upstreams]]\nname='main'\nbehaviour={failing={'/crash'=500}}";
        assert!((load(worthless) - 0.4).abs() < 1e-9);
    }

    #[test]
    fn a_story_says_which_axes_it_lies_on() {
        let plain = "[[clients]]\nload=[{at='0s', x=0.3}]";
        assert_eq!(of(&scenario(plain)), [CALM_LABEL]);
        let much = "proxies=3\nslo={until='first-byte'}\n[[clients]]\nload=[{at='0s', x=1.5}]\n\
            [[upstreams]]\nname='main'\n[upstreams.behaviour]\nheaders='at-once'\n\
            body={duration={kind='constant', mean='1s'}}\npauses={every='2s', length='100ms'}";
        assert_eq!(
            of(&scenario(much)),
            [
                "overload",
                "cold start",
                "several proxies",
                "bodies, free",
                "early headers",
                "until first byte",
                "pauses"
            ]
        );
        let slow = "slo={latency='10ms'}\n[[clients]]\nload=[{at='0s', x=0.3}]\n\
            [[upstreams]]\nname='main'\nbehaviour={service={kind='constant', mean='40ms'}}";
        assert_eq!(of(&scenario(slow)), [CALM_LABEL, "unreachable"]);
    }

    #[test]
    fn an_adversary_is_on_its_own_axis_and_on_that_of_all() {
        let text = "[[clients]]\nload=[{at='0s', x=0.3}]\n\
            [[adversaries]]\nx=0.1\nkind='stalled_upload'\n[[adversaries]]\nx=0.1\nkind='over_quota'";
        let found = of(&scenario(text));
        let expected = [
            CALM_LABEL,
            "adversaries",
            "adversary: over quota",
            "adversary: stalled upload",
        ];
        assert_eq!(found, expected);
        assert!(
            expected
                .iter()
                .all(|label| labels().any(|one| one == *label))
        );
        let flooded = "[[clients]]\nload=[{at='0s', x=0.3}]\n[[adversaries]]\nx=2.0\nkind='flood'";
        assert!(of(&scenario(flooded)).contains(&"overload"));
    }
}
