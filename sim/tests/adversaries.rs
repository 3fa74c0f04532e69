//! Each kind of adversary does its harm, and is not scored.

#![expect(clippy::unwrap_used, reason = "a test that panics fails")]

use std::cell::RefCell;
use std::time::Duration;

use tidegate_core::{Failure, Instant, Outcome, UpstreamKey};
use tidegate_sim::contender::{Admission, Ask, Contender, ContenderView, Done, Made};
use tidegate_sim::kind::{ContenderKind, Make};
use tidegate_sim::record::{Answer, Record};
use tidegate_sim::roster;
use tidegate_sim::run::Run;
use tidegate_sim::scenario::Scenario;
use tidegate_sim::world::play;

/// A quarter of a minute of honest load beside an adversary, and what is special about the service.
fn scenario(load: &str, adversary: &str, behaviour: &str) -> Scenario {
    let adversary = if adversary.is_empty() {
        String::new()
    } else {
        format!("[[adversaries]]\n{adversary}\n")
    };
    let text = format!(
        "name='t'\ntitle='t'\nprose='p'\nseed=11\nduration='15s'\nwarmup='1s'\n\
         [[clients]]\nload=[{{at='0s', {load}}}]\n{adversary}\
         [[upstreams]]\nname='main'\n{behaviour}"
    );
    Scenario::parse(&text, "test").unwrap()
}

fn named(name: &str) -> ContenderKind {
    let all = roster::all();
    *all.iter().find(|kind| kind.name == name).unwrap()
}

fn unprotected(load: &str, adversary: &str, behaviour: &str) -> Run {
    play(&scenario(load, adversary, behaviour), &named("none")).unwrap()
}

fn guarded(load: &str, adversary: &str, behaviour: &str) -> Run {
    play(&scenario(load, adversary, behaviour), &named("tidegate")).unwrap()
}

/// The adversary's requests; it is the second client.
fn its(run: &Run) -> Vec<&Record> {
    let its = run.records.iter().filter(|one| one.arrival.client == 1);
    its.collect()
}

/// The share of records with an answer of some kind.
fn share(records: &[&Record], is: impl Fn(&Answer) -> bool) -> f64 {
    let found = records.iter().filter(|one| is(&one.answer)).count();
    count(found) / count(records.len())
}

fn count(number: usize) -> f64 {
    f64::from(u32::try_from(number).unwrap())
}

thread_local! {
    /// What the watching contender of this test has seen: outcomes of those whose path is not `/`.
    static SEEN: RefCell<Vec<(Outcome, bool)>> = const { RefCell::new(Vec::new()) };
}

/// Admits by a rule, and records outcomes.
struct Watch {
    admits: fn(&Ask<'_>) -> bool,
    others: Vec<u64>,
}

impl Contender for Watch {
    fn admit(&mut self, ask: &Ask<'_>, _now: Instant) -> Admission {
        if ask.path != "/" || ask.agent.is_some() {
            self.others.push(ask.request);
        }
        if (self.admits)(ask) {
            Admission::Admit
        } else {
            Admission::shed("watch")
        }
    }

    fn complete(&mut self, done: &Done, _now: Instant) {
        if self.others.contains(&done.request) {
            SEEN.with_borrow_mut(|seen| seen.push((done.outcome, done.is_answered)));
        }
    }

    fn view(&self, _upstream: usize, _now: Instant) -> ContenderView {
        ContenderView::default()
    }
}

/// A contender that admits what `admits` says.
fn watch(make: fn(&Scenario, u64) -> Made) -> ContenderKind {
    ContenderKind {
        name: "watch",
        title: "watch",
        make: Make::Published(make),
    }
}

fn watched(admits: fn(&Ask<'_>) -> bool) -> Made {
    Ok(Box::new(Watch {
        admits,
        others: Vec::new(),
    }))
}

/// What proxies learn of the adversary's requests, without protection.
fn outcomes(adversary: &str) -> (Run, Vec<(Outcome, bool)>) {
    SEEN.take();
    let all = watch(|_, _| watched(|_| true));
    let run = play(&scenario("x=0.25", adversary, ""), &all).unwrap();
    (run, SEEN.take())
}

/// As a filter that serves cohorts from the low end of a hash that anyone can compute.
fn low_cohorts(_: &Scenario, _: u64) -> Made {
    watched(|ask| {
        let own = format!("{:016x}", ask.cohort);
        let hash = UpstreamKey::hash(ask.caller.unwrap_or(&own), None);
        let [a, b, c, d, ..] = hash.to_le_bytes();
        u32::from_le_bytes([a, b, c, d]) < u32::MAX / 1_000_000
    })
}

#[test]
fn an_adversary_counts_for_nobody() {
    let plain = unprotected("x=0.25", "", "");
    let beside = unprotected("x=0.25", "kind='crashing_path'\nx=0.5", "");
    assert_eq!(beside.figures.offered, plain.figures.offered);
    assert_eq!(beside.figures.failed, 0);
    assert!(beside.figures.score > 0.999, "{}", beside.figures.score);
    assert!(beside.figures.reached.received > 2 * plain.figures.reached.received);
}

#[test]
fn over_quota_it_is_refused_and_told_to_stay_away() {
    let adversary = "kind='over_quota'\nx=0.5\ngranted=40.0";
    let run = unprotected("x=0.25", adversary, "");
    let refused = share(&its(&run), |answer| *answer == Answer::Failed(429));
    // Of 200 a second 40 are granted.
    assert!((refused - 0.8).abs() < 0.03, "{refused}");
    assert!(run.figures.score > 0.999, "the others lose nothing");
}

#[test]
fn a_crashing_path_fails_always_and_at_once_and_no_other_does() {
    let (run, seen) = outcomes("kind='crashing_path'\nx=0.5");
    let failed = share(&its(&run), |answer| *answer == Answer::Failed(500));
    assert!((failed - 1.0).abs() < 1e-9, "{failed}");
    assert!(
        its(&run)
            .iter()
            .all(|one| one.latency < Duration::from_millis(1))
    );
    assert_eq!(run.figures.failed, 0);
    let failure = |(outcome, _): &(Outcome, bool)| *outcome == Outcome::Failure(Failure::Status);
    assert!(seen.len() > 2_000 && seen.iter().all(failure));
}

#[test]
fn a_forged_agent_passes_where_others_are_shed() {
    let shed = |adversary: &str| {
        let run = guarded("x=3.0", adversary, "");
        share(&its(&run), |answer| matches!(answer, Answer::Shed(_)))
    };
    let forged = shed("kind='forged_agent'\nrps=1.0");
    let plain = shed("kind='forged_agent'\nrps=1.0\nagent='curl/8'");
    assert!(forged < 0.05 && plain > 0.4, "{forged} {plain}");
}

#[test]
fn stalled_uploads_are_never_served_and_take_connections() {
    let adversary = "kind='stalled_upload'\nrps=20.0";
    let run = unprotected("x=0.25", adversary, "");
    let gave_up = share(&its(&run), |answer| *answer == Answer::GaveUp);
    assert!((gave_up - 1.0).abs() < 1e-9, "{gave_up}");
    assert!(run.figures.score > 0.999 && run.most_in_flight > 250);
    // 64 connections are taken after three seconds.
    let few = unprotected(
        "x=0.25",
        adversary,
        "behaviour={connections={max=64, backlog=0}}",
    );
    assert!(
        few.figures.good < run.figures.good / 3,
        "{}",
        few.figures.good
    );
}

#[test]
fn a_slow_reader_takes_its_part_of_the_slots() {
    let good = |adversary: &str| unprotected("x=0.7", adversary, "").figures.good;
    let (alone, beside) = (good(""), good("kind='slow_reader'\nx=1.0"));
    assert!(beside * 3 < alone, "{alone} {beside}");
    let run = unprotected("x=0.1", "kind='slow_reader'\nx=0.25\nafter='5s'", "");
    // A quarter of the slots is 4 of 16, for some 5 s each.
    let busy: Vec<u64> = run
        .samples
        .iter()
        .skip(60)
        .map(|one| one.in_service)
        .collect();
    let mean = count(usize::try_from(busy.iter().sum::<u64>()).unwrap()) / count(busy.len());
    assert!((3.0..9.0).contains(&mean), "{mean}");
}

#[test]
fn bulk_resets_are_work_for_nobody_where_the_service_finishes_it() {
    let resets = "kind='bulk_reset'\nx=1.0";
    let finished = unprotected("x=0.7", resets, "");
    let gave_up = share(&its(&finished), |answer| *answer == Answer::GaveUp);
    assert!(gave_up > 0.999, "{gave_up}");
    let skipped = unprotected("x=0.7", resets, "behaviour={abandoned='skip'}");
    let good = [finished.figures.good, skipped.figures.good];
    assert!(good[0] * 5 < good[1], "{good:?}");
}

#[test]
fn a_reset_does_not_overtake_its_request() {
    let run = unprotected(
        "x=0.1",
        "kind='bulk_reset'\nrps=2000.0\nafter='1us'",
        "behaviour={abandoned='skip'}",
    );
    let last = run.samples.iter().map(|one| one.in_flight.unwrap());
    assert!(
        last.max().unwrap() < 20,
        "cancelled requests are not served"
    );
}

#[test]
fn short_deadlines_are_kept_by_the_caller_or_by_the_proxy() {
    let run = unprotected("x=0.25", "kind='short_deadline'\nx=0.25", "");
    let gave_up = |one: &&Record| one.answer == Answer::GaveUp;
    let latency = Duration::from_millis(5);
    assert!(
        its(&run)
            .iter()
            .filter(|one| gave_up(one))
            .all(|one| one.latency == latency)
    );
    assert!(share(&its(&run), |answer| *answer == Answer::GaveUp) > 0.99);
    let cut = "kind='short_deadline'\nx=0.25\nafter='8ms'\ncut='header'";
    let run = unprotected("x=0.25", cut, "");
    let timed_out = |one: &&&Record| one.answer == Answer::Failed(504);
    let its = its(&run);
    assert!(its.iter().filter(timed_out).count() * 100 > its.len() * 95);
    let near = Duration::from_millis(8)..Duration::from_millis(9);
    assert!(
        its.iter()
            .filter(timed_out)
            .all(|one| near.contains(&one.latency))
    );
    assert!(run.figures.score > 0.999, "the others lose nothing");
}

#[test]
fn a_forged_criticality_goes_before_the_others() {
    let run = guarded("x=2.0", "kind='forged_criticality'\nx=0.5", "");
    let honest: Vec<&Record> = run
        .records
        .iter()
        .filter(|one| one.arrival.client == 0)
        .collect();
    let ok = |answer: &Answer| *answer == Answer::Ok;
    let (forged, others) = (share(&its(&run), ok), share(&honest, ok));
    assert!(forged > 0.9 && others < 0.4, "{forged} {others}");
}

#[test]
fn a_forged_cohort_is_served_first_by_whoever_serves_by_the_plain_hash() {
    for (kind, is_served) in [("forged_cohort", true), ("flood", false)] {
        let adversary = format!("kind='{kind}'\nx=0.5");
        let run = play(&scenario("x=0.25", &adversary, ""), &watch(low_cohorts)).unwrap();
        let served = share(&its(&run), |answer| *answer == Answer::Ok);
        let expected = if is_served { 1.0 } else { 0.0 };
        assert!((served - expected).abs() < 0.01, "{kind} {served}");
        assert!(run.figures.good < 3, "one caller in a million is as low");
    }
}

#[test]
fn a_flood_leaves_nothing_without_protection_and_a_fair_share_to_the_oracle() {
    let run = unprotected("x=0.5", "kind='flood'\nx=2.0", "");
    assert!(run.figures.score < 0.05, "{}", run.figures.score);
    // A fifth of 400 a second, of which the law of service times makes one in a hundred late, for 14 s.
    let fair = 400.0 * 0.2 * 14.0;
    let found = run.figures.oracle_good / fair;
    assert!((0.93..1.05).contains(&found), "{found}");
}

#[test]
fn endless_retries_go_on_until_there_is_an_answer_and_are_not_told() {
    let down = "timeline=[{at='5s', mode='fail'}, {at='8s', mode='serve'}]";
    let run = unprotected("x=0.1", "kind='endless_retries'\nx=0.1", down);
    let its = its(&run);
    assert!((share(&its, |answer| *answer == Answer::Ok) - 1.0).abs() < 1e-9);
    let most = its.iter().map(|one| one.attempts).max().unwrap();
    // One each 10 ms for three seconds.
    assert!((250..=300).contains(&most), "{most}");
    let first_only = watch(|_, _| watched(|ask| ask.attempt == 1));
    let guarded = scenario("x=0.1", "kind='endless_retries'\nx=0.1", down);
    let run = play(&guarded, &first_only).unwrap();
    let shed: u32 = run.records.iter().map(|one| one.sheds).sum();
    assert_eq!(shed, 0, "each says that it is the first");
}

#[test]
fn endless_retries_end_with_the_story() {
    let run = unprotected(
        "x=0.1",
        "kind='endless_retries'\nrps=5.0",
        "behaviour={mode='fail'}",
    );
    let most = its(&run).iter().map(|one| one.attempts).max().unwrap();
    assert!(
        (1_000..=1_500).contains(&most),
        "15 s of one each 10 ms: {most}"
    );
}

#[test]
fn a_lying_upstream_asks_for_a_year() {
    let (run, seen) = outcomes("kind='lying_upstream'\nx=0.25");
    assert!(share(&its(&run), |answer| *answer == Answer::Failed(503)) > 0.999);
    let year = Some(Duration::from_secs(31_536_000));
    let lie = (Outcome::Overload { retry_after: year }, true);
    assert!(seen.len() > 1_000 && seen.iter().all(|one| *one == lie));
}

#[test]
fn a_lying_upstream_falls_silent_after_its_headers() {
    let (run, seen) = outcomes("kind='lying_upstream'\nx=0.25\nafter='4s'\nlie={kind='silence'}");
    // 100 a second for 4 s.
    assert!(
        (350..470).contains(&run.most_in_flight),
        "{}",
        run.most_in_flight
    );
    let of_most = seen
        .iter()
        .filter(|one| **one == (Outcome::Cancelled, true));
    assert!(
        of_most.count() * 10 > seen.len() * 6,
        "the others see the end of the story"
    );
    assert!(run.figures.score > 0.999);
}

#[test]
fn a_lying_upstream_sends_more_headers_than_a_proxy_takes() {
    let (run, seen) = outcomes("kind='lying_upstream'\nx=0.25\nlie={kind='huge-headers'}");
    assert!(share(&its(&run), |answer| *answer == Answer::Failed(503)) > 0.999);
    let broken = Outcome::Failure(Failure::Connection);
    assert!(seen.len() > 1_000 && seen.iter().all(|(outcome, _)| *outcome == broken));
}
