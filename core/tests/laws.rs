//! The control laws, each judged by what must happen in a world that it never sees as a whole.
//!
//! The scenarios are those by which the laws are chosen; the default upstream has 16 slots of 40 ms, so it carries 400
//! requests a second. Every law runs with three seeds and must hold in the median. The ranges leave a margin below
//! what the laws reach now, because a law that scores better in one scenario may score a little worse in another.

#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "seconds of a run and counts of its requests are small"
)]
#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test that panics fails"
)]

mod counters;
mod world;

use tidegate_core::config::Config;
use tidegate_core::{
    Decision, Engine, Event, Failure, Instant, Known, Outcome, Phase, TripReason, Unshared,
};
use world::{Behaviour, Bursts, Counting, Incident, Report, Service, Stage, World};

/// What the default upstream carries, requests a second.
const CAPACITY: f64 = 400.0;

fn steady(seconds: f64, load: f64) -> World {
    World {
        stages: vec![Stage::healthy(seconds, load * CAPACITY)],
        ..World::default()
    }
}

/// Eight healthy seconds at 0.7 of the capacity, ten of another kind, eight healthy ones.
fn spell(middle: Stage) -> World {
    let load = 0.7 * CAPACITY;
    World {
        stages: vec![
            Stage::healthy(8.0, load),
            Stage {
                until: 18.0,
                ..middle
            },
            Stage::healthy(26.0, load),
        ],
        ..World::default()
    }
}

fn behaving(behaviour: Behaviour) -> Stage {
    Stage {
        behaviour,
        ..Stage::healthy(0.0, 0.7 * CAPACITY)
    }
}

fn median(reports: &[Report], value: impl Fn(&Report) -> f64) -> f64 {
    let mut values: Vec<f64> = reports.iter().map(value).collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Runs, checks that nothing leaked, and that the median score is at least `least`.
fn scored(world: &World, least: f64) -> Vec<Report> {
    let reports = world.run_all();
    for report in &reports {
        assert_eq!((report.leaked, report.miscounted), (0, 0), "in flight");
    }
    let score = median(&reports, |report| report.score);
    println!("score {score:.3}, at least {least}");
    assert!(score >= least, "score {score:.3}, expected {least}");
    reports
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let world = steady(5.0, 2.0);
    assert_eq!(world.run(), world.run());
}

#[test]
fn steady_load_below_capacity_sheds_nothing() {
    for report in scored(&steady(20.0, 0.7), 0.99) {
        assert_eq!(report.shed(), 0);
        assert_eq!(report.events, []);
    }
}

#[test]
fn overload_keeps_goodput_and_latency() {
    for load in [2.0, 5.0, 10.0] {
        let reports = scored(&steady(20.0, load), 0.94);
        let p99 = median(&reports, |report| report.p99(2.0, 20.0));
        assert!(p99 <= 0.3, "{load} x: p99 {p99}");
        assert!(reports.iter().all(|report| report.events.is_empty()));
    }
}

#[test]
fn a_step_settles_both_ways() {
    let world = spell(Stage::healthy(0.0, 3.0 * CAPACITY));
    let reports = scored(&world, 0.96);
    let settled = median(&reports, |report| report.goodput(10.0, 18.0));
    assert!(settled >= 0.92 * CAPACITY, "{settled}");
    let after = median(&reports, |report| report.good_share(19.5, 26.0));
    assert!(after >= 0.995, "{after}");
}

#[test]
fn a_capacity_that_halves_is_followed_there_and_back() {
    let world = spell(Stage {
        slots: 8,
        ..Stage::healthy(0.0, 0.8 * CAPACITY)
    });
    let reports = scored(&world, 0.95);
    assert!(reports.iter().all(|report| report.events.is_empty()));
}

#[test]
fn an_outage_opens_probes_and_recovers() {
    let reports = scored(&spell(behaving(Behaviour::Fail)), 0.92);
    for report in &reports {
        assert!(report.trips().next().is_some_and(|first| first < 8.4));
        let before_open = Report::sum(&report.received, 8.0, 8.5);
        assert!(
            before_open <= 50,
            "{before_open} requests until it was open"
        );
        let probes = Report::sum(&report.received, 8.5, 18.0);
        assert!(probes <= 15, "{probes} probes in ten seconds");
    }
    let recovered = median(&reports, |report| report.good_share(20.0, 26.0));
    assert!(recovered >= 0.98, "{recovered}");
}

#[test]
fn a_hang_opens_and_recovers() {
    let reports = scored(&spell(behaving(Behaviour::Hang)), 0.90);
    for report in &reports {
        assert!(report.trips().next().is_some_and(|first| first < 9.0));
        let probes = Report::sum(&report.received, 9.0, 18.0);
        assert!(probes <= 20, "{probes} probes in nine seconds");
    }
    let recovered = median(&reports, |report| report.good_share(20.5, 26.0));
    assert!(recovered >= 0.98, "{recovered}");
}

#[test]
fn a_hang_whose_callers_are_patient_recovers_too() {
    let world = World {
        deadline: 15.0,
        ..spell(behaving(Behaviour::Hang))
    };
    let reports = world.run_all();
    let recovered = median(&reports, |report| report.good_share(20.5, 26.0));
    assert!(recovered >= 0.95, "{recovered}");
}

#[test]
fn a_brownout_is_not_made_worse() {
    let world = spell(behaving(Behaviour::Brownout {
        errors: 0.3,
        delayed: 0.2,
    }));
    for report in scored(&world, 0.97) {
        assert_eq!(report.events, [], "below the trip ratio");
    }
}

#[test]
fn errors_that_load_causes_lower_the_limit_and_trip_nothing() {
    let world = World {
        queue: 16,
        ..steady(20.0, 3.0)
    };
    let reports = scored(&world, 0.94);
    for report in &reports {
        assert_eq!(report.events, []);
        assert!(report.limit(10.0) <= 40, "{}", report.limit(10.0));
    }
}

#[test]
fn a_retry_storm_ends_with_its_cause() {
    let world = World {
        stages: vec![
            Stage::healthy(8.0, 0.7 * CAPACITY),
            Stage::healthy(13.0, 2.5 * CAPACITY),
            Stage::healthy(26.0, 0.7 * CAPACITY),
        ],
        retries: 3,
        ..World::default()
    };
    let reports = scored(&world, 0.95);
    let after = median(&reports, |report| report.good_share(15.0, 26.0));
    assert!(after >= 0.99, "{after}");
    for report in &reports {
        let shed = |reason| report.sheds.get(reason).copied().unwrap_or_default();
        assert!(shed("retry") > 0, "{:?}", report.sheds);
    }
}

#[test]
fn critical_requests_survive_five_times_the_capacity() {
    let overload_of = |stages, begins: f64| {
        let world = World {
            critical_share: 0.1,
            stages,
            ..World::default()
        };
        let reports = scored(&world, 0.92);
        let success = median(&reports, |report| {
            f64::from(report.critical_good) / f64::from(report.critical_offered)
        });
        assert!(success >= 0.99, "{success}");
        // The first moments cost some: who asks for how much is not known before.
        let is_late = |now: &&f64| **now > begins + 2.0;
        let shed = median(&reports, |report| {
            report.critical_shed.iter().filter(is_late).count() as f64
        });
        assert!(shed <= 0.002 * 200.0 * (18.0 - begins), "{shed} shed");
    };
    let overload = Stage::healthy(20.0, 5.0 * CAPACITY);
    overload_of(vec![Stage::healthy(4.0, 0.7 * CAPACITY), overload], 4.0);
    overload_of(vec![overload], 0.0);
}

#[test]
fn short_bursts_are_served() {
    let mean = 0.65 * CAPACITY;
    let world = World {
        bursts: Some(Bursts {
            period: 0.5,
            length: 0.05,
            factor: 6.0 * CAPACITY / mean,
        }),
        ..steady(20.0, 0.65)
    };
    let reports = scored(&world, 0.94);
    let shed = median(&reports, |report| {
        f64::from(report.shed()) / f64::from(Report::sum(&report.offered, 0.0, 20.0))
    });
    assert!(shed <= 0.05, "{shed}");
}

#[test]
fn two_speeds_are_no_queue() {
    let world = World {
        service: Service {
            mean: 0.01,
            sigma: 0.5,
            slow_share: 0.1,
            slow_mean: 0.12,
        },
        stages: vec![Stage::healthy(20.0, 0.9 * 16.0 / 0.021)],
        ..World::default()
    };
    for report in scored(&world, 0.97) {
        assert_eq!(report.events, []);
    }
}

#[test]
fn a_trickle_with_errors_never_trips() {
    let world = World {
        stages: vec![Stage {
            until: 60.0,
            rate: 8.0,
            ..behaving(Behaviour::Brownout {
                errors: 0.1,
                delayed: 0.0,
            })
        }],
        ..World::default()
    };
    for report in scored(&world, 0.95) {
        assert_eq!(report.events, []);
        assert_eq!(report.shed(), 0);
    }
}

#[test]
fn any_number_of_workers_behaves_the_same() {
    let score = |workers| {
        let world = World {
            workers,
            ..steady(20.0, 3.0)
        };
        median(&scored(&world, 0.93), |report| report.score)
    };
    let scores = [1, 2, 4, 8].map(score);
    let (least, most) = (
        scores.into_iter().fold(f64::MAX, f64::min),
        scores.into_iter().fold(0.0, f64::max),
    );
    assert!(most - least <= 0.05, "{scores:?}");
}

#[test]
fn endpoints_scale_the_limit_at_once() {
    let world = World {
        stages: vec![
            Stage {
                slots: 4,
                endpoints: 1,
                ..Stage::healthy(10.0, 0.6 * CAPACITY)
            },
            Stage {
                slots: 16,
                endpoints: 4,
                ..Stage::healthy(20.0, 0.9 * CAPACITY)
            },
        ],
        ..World::default()
    };
    for report in world.run_all() {
        let (before, after) = (report.limit(9.9), report.limit(10.25));
        assert!(after >= 3 * before, "{before} to {after}");
        let good = report.good_share(10.5, 20.0);
        assert!(good >= 0.97, "{good}");
    }
}

#[test]
fn a_crashed_worker_goes_on_with_what_was_learned() {
    let world = World {
        incidents: vec![(10.0, Incident::Crash { worker: 0 })],
        workers: 4,
        ..steady(20.0, 3.0)
    };
    let reports = scored(&world, 0.92);
    let around = |report: &Report, from| report.goodput(from, from + 2.0);
    let change = median(&reports, |report| {
        around(report, 10.2) / around(report, 7.0)
    });
    assert!((0.9..1.1).contains(&change), "{change}");
}

#[test]
fn a_crash_in_an_outage_leaves_the_breaker_as_it_is() {
    let world = World {
        incidents: (0..10)
            .map(|i| {
                (
                    8.6 + f64::from(i),
                    Incident::Crash {
                        worker: i as usize % 2,
                    },
                )
            })
            .collect(),
        ..spell(behaving(Behaviour::Fail))
    };
    let reports = scored(&world, 0.90);
    for report in &reports {
        let probes = Report::sum(&report.received, 8.6, 18.0);
        assert!(probes <= 20, "{probes} probes");
    }
    let recovered = median(&reports, |report| report.good_share(20.5, 26.0));
    assert!(recovered >= 0.98, "{recovered}");
}

#[test]
fn a_change_of_leaders_goes_unnoticed() {
    let world = World {
        incidents: vec![(10.0, Incident::LeaderChanged)],
        ..steady(20.0, 3.0)
    };
    let reports = scored(&world, 0.93);
    let limits = median(&reports, |report| {
        f64::from(report.limit(10.3)) / f64::from(report.limit(9.9))
    });
    assert!((0.6..1.7).contains(&limits), "{limits}");
    let after = median(&reports, |report| report.goodput(10.2, 13.0));
    assert!(after >= 0.9 * CAPACITY, "{after}");
}

#[test]
fn a_change_of_leaders_trips_nothing_where_load_causes_errors() {
    let world = World {
        queue: 16,
        incidents: vec![(10.0, Incident::LeaderChanged)],
        ..steady(20.0, 3.0)
    };
    let reports = scored(&world, 0.92);
    for report in &reports {
        assert_eq!(report.events, []);
    }
    let after = median(&reports, |report| report.goodput(10.2, 13.0));
    assert!(after >= 0.85 * CAPACITY, "{after}");
}

#[test]
fn workers_without_a_leader_keep_the_limit_they_have() {
    let world = World {
        incidents: vec![(10.0, Incident::LeaderLost)],
        ..steady(20.0, 3.0)
    };
    let reports = scored(&world, 0.90);
    let after = median(&reports, |report| report.goodput(11.0, 20.0));
    assert!(after >= 0.85 * CAPACITY, "{after}");
}

#[test]
fn workers_without_a_leader_still_stop_calling_a_dead_upstream() {
    let world = World {
        incidents: vec![(7.0, Incident::LeaderLost)],
        ..spell(behaving(Behaviour::Fail))
    };
    for report in world.run_all() {
        let received = Report::sum(&report.received, 9.0, 18.0);
        let offered = Report::sum(&report.offered, 9.0, 18.0);
        println!("{received} of {offered}");
        assert!(received * 5 < offered, "{received} of {offered}");
    }
}

#[test]
fn workers_that_cannot_count_together_keep_to_their_share() {
    for workers in [1, 4] {
        let world = World {
            counting: Counting::Unshared,
            workers,
            ..steady(20.0, 3.0)
        };
        let reports = scored(&world, 0.88);
        let p99 = median(&reports, |report| report.p99(2.0, 20.0));
        assert!(p99 <= 0.3, "{workers} workers: p99 {p99}");
    }
}

#[test]
fn workers_that_cannot_count_together_recover_from_an_outage() {
    let world = World {
        counting: Counting::Unshared,
        ..spell(behaving(Behaviour::Fail))
    };
    let reports = scored(&world, 0.90);
    let recovered = median(&reports, |report| report.good_share(20.5, 26.0));
    assert!(recovered >= 0.98, "{recovered}");
}

/// One engine, two upstreams: one dies, the other must not notice.
#[test]
fn one_dead_upstream_leaves_another_untouched() {
    let config = Config::from_json(World::default().config.as_bytes()).unwrap();
    let at = |millis: u64| Instant::from_nanos((millis + 1_000) * 1_000_000);
    let mut engine = Engine::new(config, at(0), 7);
    let (healthy, dead) = (
        engine.upstream("healthy", None, at(0)),
        engine.upstream("dead", None, at(0)),
    );
    let mut under_way = Vec::new();
    let (mut shed_of_dead, mut events) = (0, Vec::new());
    for millis in 0..10_000 {
        let now = at(millis);
        let is_due = |(due, _, _): &(u64, _, _)| *due <= millis;
        for (_, permit, outcome) in under_way.extract_if(.., |entry| is_due(entry)) {
            engine.complete(permit, outcome, &mut Unshared, now);
        }
        if millis % 5 == 0 {
            for upstream in [healthy, dead] {
                let fails = upstream == dead && millis >= 3_000;
                match engine.admit(upstream, &mut Known::default(), &mut Unshared, now) {
                    Decision::Admit(permit) if fails => {
                        let outcome = Outcome::Failure(Failure::Connection);
                        under_way.push((millis + 1, permit, outcome));
                    }
                    Decision::Admit(permit) => {
                        under_way.push((millis + 20 + millis % 17, permit, Outcome::Success));
                    }
                    Decision::Shed(shed) => {
                        assert_eq!(upstream, dead, "{shed:?}");
                        shed_of_dead += 1;
                    }
                }
            }
        }
        if millis % 100 == 0 {
            events.extend(engine.tick(&mut Unshared, now));
        }
    }
    let tripped = Event::Tripped {
        upstream: dead,
        reason: TripReason::ConsecutiveFailures,
    };
    assert_eq!(events.first(), Some(&tripped));
    assert!(shed_of_dead > 1_300, "{shed_of_dead} of 1,400");
    let snapshot = engine.snapshot(at(10_000));
    assert_eq!(snapshot.upstreams[healthy.index()].breaker, Phase::Closed);
    assert_ne!(snapshot.upstreams[dead.index()].breaker, Phase::Closed);
}
