//! What the oracle gets out of upstreams of known capacity.

use std::time::Duration;

use super::*;
use crate::arrivals::schedule;
use crate::number;

fn scenario(load: &str, upstream: &str) -> Scenario {
    let text = format!(
        "name='t'\ntitle='t'\nprose='p'\nseed=3\nduration='20s'\n[[clients]]\nload={load}\n[[upstreams]]\nname='main'\n{upstream}"
    );
    Scenario::parse(&text, "test").unwrap()
}

fn good_per_second(scenario: &Scenario, from: u64, to: u64) -> f64 {
    let arrivals = schedule(scenario);
    let verdicts = judge(scenario, &arrivals);
    let window = Duration::from_secs(from)..Duration::from_secs(to);
    let good: f64 = arrivals
        .iter()
        .zip(&verdicts)
        .filter(|(a, _)| window.contains(&a.at))
        .map(|(_, v)| v.good)
        .sum();
    good / f64::from(u32::try_from(to - from).unwrap())
}

#[test]
fn admits_everything_below_capacity() {
    let s = scenario("[{at='0s', x=0.7}]", "");
    assert!(
        judge(&s, &schedule(&s))
            .iter()
            .all(|verdict| verdict.admitted)
    );
}

#[test]
fn gets_the_capacity_out_of_an_overload() {
    let s = scenario("[{at='0s', x=5.0}]", "");
    let good = good_per_second(&s, 1, 20);
    assert!(
        (399.0..=401.0).contains(&good),
        "capacity is 400 a second, found {good}"
    );
}

#[test]
fn follows_a_capacity_that_halves() {
    let s = scenario("[{at='0s', x=2.0}]", "timeline=[{at='10s', slots=8}]");
    let good = good_per_second(&s, 11, 20);
    assert!((199.0..=201.0).contains(&good), "{good}");
}

#[test]
fn gets_nothing_out_of_a_dead_upstream() {
    let s = scenario(
        "[{at='0s', x=0.7}]",
        "timeline=[{at='5s', mode='fail'}, {at='10s', mode='serve'}]",
    );
    assert!(good_per_second(&s, 5, 10) < 1e-9);
    assert!(good_per_second(&s, 10, 20) > 260.0);
}

/// Before, the first objective was that of the whole story.
#[test]
fn has_the_objective_that_was_in_force_when_a_request_arrived() {
    let push = |latency: &str| {
        let s = scenario(
            "[{at='0s', x=0.5}]",
            &format!(
                "behaviour={{service={{kind='constant', mean='40ms'}}, delay={{share=0.2, by='100ms'}}}}\n\
                 [[incidents]]\nat='10s'\nkind='push-objective'\nlatency='{latency}'"
            ),
        );
        [good_per_second(&s, 0, 10), good_per_second(&s, 10, 20)]
    };
    let [before, after] = push("100ms");
    let [same, short] = push("30ms");

    assert!(
        (after / before - 0.8).abs() < 0.05,
        "a fifth is late then: {before} {after}"
    );
    assert!((same - before).abs() < 1e-9);
    assert!(
        (short / before - 1.0).abs() < 0.05,
        "no answer can be in time, so each one counts: {short}"
    );
}

#[test]
fn is_hit_by_errors_that_do_not_depend_on_load() {
    let s = scenario(
        "[{at='0s', x=0.5}]",
        "behaviour={errors={share=0.3}, delay={share=0.2, by='500ms'}}",
    );
    let share = good_per_second(&s, 0, 20) / 200.0;
    assert!(
        (share - 0.56).abs() < 0.03,
        "0.7 x 0.8 of 200 a second, found {share}"
    );
}

/// Good answers a second in the last 15 of 20 s at twice the capacity, over that capacity.
fn share_of_capacity(slo: &str, behaviour: &str) -> f64 {
    let s = scenario(
        "[{at='0s', x=2.0}]",
        &format!("[upstreams.behaviour]\n{behaviour}\n[slo]\n{slo}"),
    );
    good_per_second(&s, 5, 20) / s.capacity_for(&s.clients[0])
}

#[test]
fn a_body_that_holds_nothing_costs_nothing() {
    let body = "body={duration={kind='constant', mean='1s'}}";
    let share = share_of_capacity("", body);
    assert!((share - 1.0).abs() < 0.01, "{share}");
    // Measured to the end, every answer takes a second longer than the objective, so any answer counts.
    let share = share_of_capacity("until='end'\nlatency='5s'", body);
    assert!((share - 1.0).abs() < 0.01, "{share}");
}

#[test]
fn held_slots_are_free_or_taken() {
    let held = |slots: u32| {
        let slots = format!(
            "slots={slots}\nservice={{kind='constant', mean='40ms'}}\n\
             body={{duration={{kind='constant', mean='1s'}}, holds_slot=true}}"
        );
        share_of_capacity("latency='50ms'", &slots)
    };
    // By Erlang's loss formula 0.77 of two slots at 2 x, and 0.985 of 64.
    let (two, many) = (held(2), held(64));
    assert!((0.7..0.85).contains(&two), "{two}");
    assert!((0.96..1.01).contains(&many), "{many}");
}

#[test]
fn contended_slots_are_used_as_far_as_they_serve_the_most() {
    let share = share_of_capacity("", "slots=64\ncontention={above=16, slope=0.3}");
    assert!((share - 1.0).abs() < 0.01, "{share}");
    let s = scenario(
        "[{at='0s', x=2.0}]",
        "behaviour={slots=64, contention={above=16, slope=0.3}}",
    );
    let good = good_per_second(&s, 5, 20);
    assert!((good - 400.0).abs() < 4.0, "{good}");
}

#[test]
fn connections_bound_what_bodies_can_be_under_way() {
    let share = share_of_capacity(
        "",
        "connections={max=104, backlog=8}\nbody={duration={kind='constant', mean='1s'}}",
    );
    assert!((share - 1.0).abs() < 0.02, "{share}");
}

#[test]
fn no_more_wait_than_an_endpoint_accepts() {
    // With an objective of ten seconds a line of ten seconds could be good, if there were room for it.
    let good = |connections: &str| {
        let s = scenario(
            "[{at='0s', x=3.0}]",
            &format!("[upstreams.behaviour]\n{connections}\n[slo]\nlatency='10s'"),
        );
        good_per_second(&s, 0, 5) * 5.0
    };
    let (all, bounded) = (good(""), good("connections={max=32, backlog=100}"));
    // 400 a second for 5 s, and the line.
    assert!((all - 5_900.0).abs() < 200.0, "{all}");
    assert!((bounded - 2_132.0).abs() < 20.0, "{bounded}");
}

#[test]
fn what_a_pause_makes_late_is_not_good() {
    // In the last 500 ms of each 2 s nothing is answered: requests that arrive 300 to 40 ms before their end are late.
    let s = scenario(
        "[{at='0s', x=0.1}]",
        "behaviour={service={kind='constant', mean='40ms'}, pauses={every='2s', length='500ms'}}",
    );
    let arrivals = schedule(&s);
    let verdicts = judge(&s, &arrivals);
    for (arrival, verdict) in arrivals.iter().zip(&verdicts) {
        let phase = arrival.at.as_millis() % 2_000;
        // Leave out 10 ms around the edges.
        if (1_470..1_730).contains(&phase) {
            assert!(verdict.good < 1e-9, "{phase}");
        } else if !(1_450..=1_750).contains(&phase) {
            assert!(verdict.good > 0.999, "{phase}");
        }
    }
}

#[test]
fn failing_paths_quotas_and_stalled_uploads_are_worth_nothing_and_cost_nothing() {
    let text = "name='t'\ntitle='t'\nprose='p'\nseed=3\nduration='20s'\n\
        [[clients]]\nload=[{at='0s', x=0.9}]\n\
        [[clients]]\nload=[{at='0s', x=2.0}]\npaths={'/crash'=1.0}\n\
        [[clients]]\nload=[{at='0s', x=2.0}]\nquota={rps=4.0}\n\
        [[clients]]\nload=[{at='0s', x=2.0}]\nupload={duration={kind='constant', mean='1s'}, stalled=1.0}\n\
        [[upstreams]]\nname='main'\nbehaviour={failing={'/crash'=500}}";
    let s = Scenario::parse(text, "test").unwrap();
    let arrivals = schedule(&s);
    let verdicts = judge(&s, &arrivals);
    let of = |client: usize| {
        let pairs = arrivals.iter().zip(&verdicts);
        let of_it = pairs.filter(move |(arrival, _)| arrival.client == client);
        of_it.map(|(_, verdict)| *verdict)
    };
    assert!(of(0).all(|verdict| verdict.admitted && verdict.good > 0.99));
    assert!(of(1).chain(of(3)).all(|verdict| verdict.is_worthless));
    let granted = of(2).filter(|verdict| !verdict.is_worthless).count();
    // 4 at the start, and 4 a second.
    assert!((82..=84).contains(&granted), "{granted}");
}

#[test]
fn an_upload_is_the_callers_own_time() {
    let s = scenario(
        "[{at='0s', x=0.5}]\ndeadline='4s'\nupload={duration={kind='constant', mean='3s'}}",
        "",
    );
    let good: f64 = judge(&s, &schedule(&s))
        .iter()
        .map(|verdict| verdict.good)
        .sum();
    let share = good / number::float_len(schedule(&s).len());
    assert!(share > 0.999, "{share}");
    // The deadline counts from the first byte.
    let s = scenario(
        "[{at='0s', x=0.5}]\ndeadline='2s'\nupload={duration={kind='constant', mean='3s'}}",
        "",
    );
    assert!(
        judge(&s, &schedule(&s))
            .iter()
            .all(|verdict| verdict.is_worthless)
    );
}

#[test]
fn where_the_objective_is_out_of_reach_any_answer_counts() {
    let slow = "behaviour={service={kind='constant', mean='400ms'}}";
    let s = scenario("[{at='0s', x=0.7}]", slow);
    let verdicts = judge(&s, &schedule(&s));
    assert!(
        verdicts
            .iter()
            .all(|verdict| verdict.any_answer && verdict.good > 0.999)
    );
    let s = scenario("[{at='0s', x=2.0}]", slow);
    let good = good_per_second(&s, 5, 20);
    assert!(
        (good - 40.0).abs() < 2.0,
        "16 slots of 400 ms, found {good}"
    );
    // The objective applies if it can be met in at least one stage.
    let s = scenario(
        "[{at='0s', x=0.7}]",
        &format!("{slow}\ntimeline=[{{at='10s', service={{kind='constant', mean='40ms'}}}}]"),
    );
    assert!(
        judge(&s, &schedule(&s))
            .iter()
            .all(|verdict| !verdict.any_answer)
    );
}

#[test]
fn a_stream_that_breaks_off_is_worth_nothing() {
    let s = scenario(
        "[{at='0s', x=0.5}]",
        "behaviour={body={duration={kind='constant', mean='2s'}}}\n\
         timeline=[{at='10s', mode='refuse'}, {at='11s', mode='serve'}]",
    );
    assert!(good_per_second(&s, 8, 10) < 4.0);
    assert!(good_per_second(&s, 5, 7) > 150.0);
}

#[test]
fn a_class_that_is_always_late_is_not_told_apart() {
    // Half of the requests take 10 times as long, and longer than their callers wait.
    let s = scenario(
        "[{at='0s', x=3.0}]\npaths={'/'=0.5, '/slow'=0.5}",
        "behaviour={service={kind='constant', mean='40ms'}, paths={'/slow'={kind='constant', mean='1100ms'}}}",
    );
    let good = good_per_second(&s, 2, 20);
    // 16 slots, and 570 ms for each on average; one in two is good.
    assert!((good - 14.0).abs() < 1.5, "{good}");
}
