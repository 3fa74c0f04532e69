//! Malicious callers and services, beside well-behaved ones that must be served.
//!
//! Each upstream has its own callers and one adversary (`sim/README.md` lists the kinds). Several cases share an Envoy,
//! because each upstream has its own state. The assertions must hold on any machine: no breaker opens, the adversary does its
//! work, the others are served, nothing stays in flight. The forged agent is in [`super::exempt`].

use std::time::Duration;

use serde_json::json;
use tidegate_sim::number::ratio;
use tidegate_sim::policy::COHORT_HEADER;
use tidegate_sim::record::{Answer, Record};
use tidegate_testbed::envoy::Plugin;

use crate::play::{Play, parse};
use crate::stage::ensure;
use crate::turn;

/// A state of the breaker as the gauge shows it.
const CLOSED: u64 = 0;
/// From this time on the filter knows a limit that is reached.
const WARM: Duration = Duration::from_secs(5);
/// Least share of the oracle's good answers that the others must get.
const SERVED: f64 = 0.85;

/// An upstream, its callers' rate, and its adversary.
struct Case {
    name: &'static str,
    upstream: &'static str,
    load: &'static str,
    adversary: &'static str,
}

impl Case {
    /// Its part of a scenario, as number `place`. The adversary comes once normal behavior is known, and not together with
    /// the others.
    fn toml(&self, place: usize) -> String {
        let Self {
            name,
            upstream,
            load,
            adversary,
        } = self;
        let start = 3_000 + 200 * place;
        format!(
            "[[upstreams]]\nname='{name}'\n{upstream}\n\
             [[clients]]\nupstream='{name}'\nload=[{load}]\n\
             [[adversaries]]\nupstream='{name}'\nstart='{start}ms'\n{adversary}\n"
        )
    }
}

/// A scenario with all cases.
fn together(head: &str, cases: &[Case]) -> String {
    let cases = cases.iter().enumerate();
    let cases = cases
        .map(|(place, case)| case.toml(place))
        .collect::<String>();
    format!("{head}\n{cases}")
}

/// The number of these records, and the share of them that got such an answer.
fn share<'a>(
    records: impl IntoIterator<Item = &'a Record>,
    is: impl Fn(&Answer) -> bool,
) -> (u64, f64) {
    let (mut all, mut found) = (0, 0);
    for record in records {
        all += 1;
        found += u64::from(is(&record.answer));
    }
    (all, ratio(found, all))
}

/// More slots than are ever used.
const ROOMY: &str = "behaviour={slots=64, service={kind='constant', mean='20ms'}}";
/// The same with longer service: 1.5 requests of the others are in flight, so that a limit of one would be noticed.
const LONG: &str = "behaviour={slots=64, service={kind='constant', mean='150ms'}}";
/// The others, and a pause before the adversary comes: even on a busy machine a longer silence is unusual.
const PAUSING: &str = "{at='0s', rps=10.0}, {at='1s', rps=0.0}, {at='2500ms', rps=10.0}";

/// An upstream with room for all, and the answer that its adversary gets.
struct Harmless {
    case: Case,
    gets: Answer,
}

/// The upstream, its adversary by name and parameters, and the answer that the adversary gets.
const fn harmless(
    upstream: &'static str,
    (name, adversary): (&'static str, &'static str),
    gets: Answer,
) -> Harmless {
    let case = Case {
        name,
        upstream,
        load: PAUSING,
        adversary,
    };
    Harmless { case, gets }
}

const HARMLESS: [Harmless; 10] = [
    harmless(
        LONG,
        ("quota", "kind='over_quota'\nrps=20.0\ngranted=2.0"),
        Answer::Failed(429),
    ),
    harmless(
        ROOMY,
        (
            "crash",
            "kind='crashing_path'\nrps=200.0\nspells={every='2s', length='150ms'}",
        ),
        Answer::Failed(500),
    ),
    harmless(
        ROOMY,
        ("uploads", "kind='stalled_upload'\nrps=12.0\nafter='2500ms'"),
        Answer::GaveUp,
    ),
    harmless(
        ROOMY,
        ("downloads", "kind='slow_reader'\nrps=10.0\nafter='2500ms'"),
        Answer::Ok,
    ),
    harmless(
        ROOMY,
        (
            "resets",
            "kind='bulk_reset'\nrps=200.0\nspells={every='2s', length='150ms'}\nafter='5ms'",
        ),
        Answer::GaveUp,
    ),
    harmless(
        ROOMY,
        (
            "deadlines",
            "kind='short_deadline'\nrps=200.0\nspells={every='2s', length='150ms'}\nafter='5ms'",
        ),
        Answer::GaveUp,
    ),
    harmless(
        ROOMY,
        (
            "timeouts",
            "kind='short_deadline'\nrps=200.0\nspells={every='2s', length='150ms'}\nafter='5ms'\ncut='header'",
        ),
        Answer::Failed(504),
    ),
    harmless(
        LONG,
        ("year", "kind='lying_upstream'\nrps=20.0"),
        Answer::Failed(503),
    ),
    harmless(
        ROOMY,
        (
            "silence",
            "kind='lying_upstream'\nrps=10.0\nafter='2500ms'\nlie={kind='silence'}",
        ),
        Answer::Ok,
    ),
    harmless(
        ROOMY,
        (
            "headers",
            "kind='lying_upstream'\nrps=200.0\nspells={every='2s', length='150ms'}\nlie={kind='huge-headers'}",
        ),
        Answer::Failed(502),
    ),
];

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a scored run: make test-scores"]
async fn below_capacity_no_adversary_harms_the_others() {
    let cases = HARMLESS.map(|harmless| harmless.case);
    let story = together(
        "duration='8s'\nwarmup='2500ms'\nslo={latency='600ms'}",
        &cases,
    );
    let play = Play::new(turn::alone().await, &story).await;
    let (figures, records) = play.run_recorded().await;
    let mut faults = Vec::new();
    for Harmless { case, gets } in HARMLESS {
        let name = case.name;
        let its = records.iter().filter(|one| play.is_adversary(one, name));
        let (all, got) = share(its, |answer| *answer == gets);
        // Some are within a quota.
        if all < 8 || got < 0.5 {
            faults.push(format!("{name}: {got:.2} of {all} got {gets:?}"));
        }
        if play.stage.opened(name).await > 0 {
            faults.push(format!("{name}: the breaker opened"));
        }
        let score = figures.score_by_upstream[name];
        if score < SERVED {
            faults.push(format!("{name}: the others score {score:.2}"));
        }
    }
    ensure!(play.stage, faults.is_empty(), "{faults:#?}");
    play.stage.until_sum("in_flight", "", 0).await;
    play.stage.until_sum("streams", "", 0).await;
}

/// Capacity: 25 requests a second.
const NARROW: &str = "behaviour={slots=8, service={kind='constant', mean='320ms'}}";

/// Names whose plain hash is in the lowest hundredth: if callers were served in the order of that hash, these would always
/// be.
fn low_cohorts() -> Vec<String> {
    let names = (0..).map(|number| format!("caller-{number}"));
    let is_low = |name: &String| fnv(name) < u32::MAX / 100;
    names.filter(is_low).take(64).collect()
}

/// The low half of 64-bit FNV-1a, which anyone can compute.
fn fnv(text: &str) -> u32 {
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let [a, b, c, d, ..] = hash.to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a scored run: make test-scores"]
async fn forged_headers_and_floods_give_no_priority_under_overload() {
    let upstream = |name, load, adversary| Case {
        name,
        upstream: NARROW,
        load,
        adversary,
    };
    let many = "{at='0s', rps=50.0}";
    let cases = [
        upstream("ranks", many, "kind='forged_criticality'\nrps=12.0"),
        upstream("cohorts", many, "kind='forged_cohort'\nrps=0.2"),
        upstream("flood", "{at='0s', rps=12.0}", "kind='flood'\nrps=50.0"),
    ];
    let more = low_cohorts().into_iter().map(|cohort| {
        format!("[[adversaries]]\nupstream='cohorts'\nkind='forged_cohort'\nrps=0.2\ncohort='{cohort}'\n")
    });
    let more = more.collect::<String>();
    let head = "duration='12s'\nwarmup='5s'\nslo={latency='900ms'}";
    let scenario = parse(&format!("{}{more}", together(head, &cases)));
    // No criticality header is configured, so none is read.
    let config = json!({
        "slo": {"latency": {"quantile": 0.99, "target": "900ms"}},
        "criticality": {"cohortHeader": COHORT_HEADER},
    });
    let plugin = Plugin::tidegate(&config);
    let play = Play::with(turn::alone().await, scenario, plugin, |envoy| envoy).await;
    let (figures, records) = play.run_recorded().await;
    let mut faults = Vec::new();
    for name in ["ranks", "cohorts"] {
        let its = |one: &&Record| one.arrival.at > WARM && play.is_adversary(one, name);
        let (all, served) = share(records.iter().filter(its), |answer| *answer == Answer::Ok);
        // Two of five requests can be served.
        if served > 0.65 {
            faults.push(format!("{name}: {served:.2} of its {all} were served"));
        }
    }
    for name in ["ranks", "cohorts", "flood"] {
        if play.stage.opened(name).await > 0 {
            faults.push(format!("{name}: the breaker opened"));
        }
        let score = figures.score_by_upstream[name];
        // In some runs the flood's cohort is among those served. Without protection no request is served in time.
        if score < 0.2 {
            faults.push(format!("{name}: the others score {score:.2}"));
        }
    }
    ensure!(play.stage, faults.is_empty(), "{faults:#?}");
    play.stage.until_sum("in_flight", "", 0).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a scored run: make test-scores"]
async fn in_an_outage_no_adversary_keeps_the_breaker_shut_or_open() {
    let upstream = |name, timeline, adversary| Case {
        name,
        upstream: timeline,
        load: "{at='0s', rps=15.0}",
        adversary,
    };
    // Their lies continue while all other requests fail.
    let failing = "timeline=[{at='4s', failing={'/'=500}}, {at='6s', failing={}}]";
    let cases = [
        upstream(
            "retries",
            "timeline=[{at='4s', mode='fail'}, {at='6s', mode='serve'}]",
            "kind='endless_retries'\nrps=8.0\nbackoff='100ms'",
        ),
        upstream("quota", failing, "kind='over_quota'\nrps=15.0\ngranted=1.0"),
        upstream("year", failing, "kind='lying_upstream'\nrps=15.0"),
    ];
    let story = together("duration='10s'\nwarmup='1s'\nslo={latency='400ms'}", &cases);
    let play = Play::new(turn::alone().await, &story).await;
    let (figures, records) = play.run_recorded().await;
    let of_retries = records
        .iter()
        .filter(|one| play.is_adversary(one, "retries"));
    let attempts: u32 = of_retries.map(|one| one.attempts).sum();
    let down = figures.reached.received_while_down;
    ensure!(
        play.stage,
        attempts > 120 && down < 60,
        "{down} of {attempts} attempts reached the dead upstream"
    );
    for case in &cases {
        let name = case.name;
        let opened = play.stage.opened(name).await;
        ensure!(play.stage, opened > 0, "{name}: the breaker never opened");
        // Answers at the time of the trip must not keep the breaker open for a minute.
        play.stage.until_sum("breaker_state", name, CLOSED).await;
        let score = figures.score_by_upstream[name];
        // Probes, one a second, detect the end of the outage.
        ensure!(play.stage, score > 0.5, "{name}: {score:.2} {figures:#?}");
    }
    play.stage.until_sum("in_flight", "", 0).await;
}
