//! Tidegate in the simulator: the engines of a proxy's workers, driven as the filter drives them.
//!
//! One engine for each worker and one that serves no requests and leads, as the plugin on Envoy's main thread
//! does. They exchange by the bytes of core's wire format, one of them at each tick: ten times a second each.
//! Counts in flight are shared, or not, as the scenario has it.

mod alone;
mod counters;
mod faults;
mod request;

use std::collections::BTreeMap;
use std::time::Duration;

use tidegate_core::config::Config;
use tidegate_core::{
    BreakerPhase, Counter, Decision, Directives, Engine, Event, Instant, Outcome, Permit, Slice,
    UpstreamId,
};

use crate::contender::{
    Admission, Ask, Contender, ContenderError, ContenderView, Done, Made, Note, RequestId,
};
use crate::decision::LimitDecision;
use crate::fault::ProxyFault;
use crate::kind::{ContenderKind, Make};
use crate::policy::policy;
use crate::scenario::{Counting, Scenario};
use crate::world;
pub(crate) use alone::AlonePolicy;
use counters::CountSet;
use request::Asking;

/// Tidegate as a contender.
pub const KIND: ContenderKind = ContenderKind {
    name: NAME,
    title: "Tidegate",
    make: Make::Published(make),
};

const NAME: &str = "tidegate";

/// Interval between two ticks of one engine, as in the filter.
const TICK: Duration = Duration::from_millis(100);

fn make(scenario: &Scenario, seed: u64) -> Made {
    let policy = policy(scenario);
    let config = Config::from_json(policy.to_string().as_bytes());
    let config = config.map_err(|error| ContenderError {
        contender: NAME,
        cause: error.to_string(),
    })?;
    Ok(Box::new(Tidegate::new(scenario, policy, config, seed)))
}

/// The phase of a breaker and the reason, if the event is about a breaker.
fn noted(event: Event) -> Option<(UpstreamId, BreakerPhase, &'static str)> {
    Some(match event {
        Event::Tripped { upstream, reason } => (upstream, BreakerPhase::Open, reason.as_str()),
        Event::Ramping { upstream } => (upstream, BreakerPhase::HalfOpen, "probe_succeeded"),
        Event::Reset { upstream } => (upstream, BreakerPhase::Closed, "ramp_done"),
        Event::LimitReason { .. } => return None,
    })
}

/// The state of one proxy.
struct Tidegate {
    /// What the user has written.
    policy: serde_json::Value,
    config: Config,
    /// What was pushed last.
    running: Config,
    names: Vec<String>,
    vms: Vec<SimVm>,
    leader: Option<usize>,
    /// The number of the next VM, unique in the proxy; it is also the seed of its random numbers.
    next_vm: u64,
    /// The VM that ticks next.
    turn: usize,
    gauges: CountSet,
    slices: BTreeMap<usize, Slice<'static>>,
    directives: Directives<'static>,
    learned: Directives<'static>,
    permits: BTreeMap<RequestId, HeldPermit>,
    notes: Vec<Note>,
    counting: Counting,
    /// No leader decides before this.
    led_from: Instant,
    /// Workers whose ticks are delayed, and until when.
    late: BTreeMap<usize, Instant>,
    /// By how much the proxy's clock has jumped.
    ahead: Duration,
    behind: Duration,
}

/// One worker's VM, or the main thread's.
struct SimVm {
    engine: Engine,
    /// By index in the scenario.
    upstreams: Vec<UpstreamId>,
}

/// An admitted request.
struct HeldPermit {
    worker: usize,
    permit: Permit,
}

impl Tidegate {
    fn new(scenario: &Scenario, policy: serde_json::Value, config: Config, seed: u64) -> Self {
        let workers = usize::try_from(scenario.workers).unwrap_or(usize::MAX);
        let profiles = scenario.upstreams.iter();
        let mut this = Self {
            policy,
            running: config.clone(),
            config,
            names: profiles.map(|profile| profile.name.clone()).collect(),
            vms: Vec::new(),
            leader: Some(workers),
            next_vm: seed,
            turn: 0,
            gauges: CountSet::new(scenario.counting),
            slices: BTreeMap::new(),
            directives: Directives::default(),
            learned: Directives::default(),
            permits: BTreeMap::new(),
            notes: Vec::new(),
            counting: scenario.counting,
            led_from: world::START,
            late: BTreeMap::new(),
            ahead: Duration::ZERO,
            behind: Duration::ZERO,
        };
        for _ in 0..=workers {
            let vm = this.fresh_vm(world::START);
            this.vms.push(vm);
        }
        this
    }

    /// What the proxy's clock says.
    fn clock(&self, now: Instant) -> Instant {
        now + self.ahead - self.behind
    }

    /// A VM that starts from learned state.
    fn fresh_vm(&mut self, now: Instant) -> SimVm {
        let mut engine = Engine::of_many(self.running.clone(), now, self.next_vm);
        self.next_vm = self.next_vm.wrapping_add(1);
        engine.adopt(&self.learned, now);
        let names = self.names.iter();
        let upstreams = names.map(|name| engine.upstream(name, None, now)).collect();
        SimVm { engine, upstreams }
    }

    /// Applies a function to the permit of a request, unless the VM that held it has crashed.
    fn with_permit(
        &mut self,
        request: RequestId,
        what: impl FnOnce(&mut Engine, &mut Permit, &mut CountSet),
    ) {
        if let Some(HeldPermit { worker, permit }) = self.permits.get_mut(&request)
            && let Some(vm) = self.vms.get_mut(*worker)
        {
            what(&mut vm.engine, permit, self.gauges.of(*worker));
        }
    }

    fn note(&mut self, event: Event, now: Instant) {
        let Some((id, breaker, reason)) = noted(event) else {
            return;
        };
        let mut ids = self.vms.iter().flat_map(|vm| &vm.upstreams);
        if let Some(position) = ids.position(|upstream| *upstream == id) {
            self.notes.push(Note {
                at: now,
                upstream: position % self.names.len().max(1),
                breaker,
                reason,
            });
        }
    }
}

impl Contender for Tidegate {
    fn admit(&mut self, ask: &Ask<'_>, now: Instant) -> Admission {
        let now = self.clock(now);
        let Some(vm) = self.vms.get_mut(ask.worker) else {
            return Admission::Admit;
        };
        let Some(upstream) = vm.upstreams.get(ask.upstream).copied() else {
            return Admission::Admit;
        };
        let mut request = Asking {
            ask,
            config: &self.running,
        };
        vm.engine.set_endpoints(upstream, ask.endpoints);
        let decision = vm
            .engine
            .admit(upstream, &mut request, self.gauges.of(ask.worker), now);
        match decision {
            Decision::Admit(permit) => {
                let worker = ask.worker;
                self.permits
                    .insert(ask.request, HeldPermit { worker, permit });
                Admission::Admit
            }
            // The reply tells callers not to retry: the service is overloaded, not one endpoint.
            Decision::Shed(shed) => Admission::Shed {
                reason: shed.reason.as_str(),
                is_final: true,
            },
        }
    }

    fn uploaded(&mut self, request: RequestId, now: Instant) {
        let now = self.clock(now);
        self.with_permit(request, |engine, permit, gauges| {
            engine.start(permit, gauges, now);
        });
    }

    fn headers(&mut self, request: RequestId, outcome: Outcome, now: Instant) {
        let now = self.clock(now);
        self.with_permit(request, |engine, permit, gauges| {
            engine.respond(permit, outcome, gauges, now);
        });
    }

    fn first_byte(&mut self, request: RequestId, now: Instant) {
        let now = self.clock(now);
        self.with_permit(request, |engine, permit, gauges| {
            engine.first_byte(permit, gauges, now);
        });
    }

    fn complete(&mut self, done: &Done, now: Instant) {
        let now = self.clock(now);
        // The VM of this request has crashed.
        let Some(HeldPermit { worker, permit }) = self.permits.remove(&done.request) else {
            return;
        };
        if let Some(vm) = self.vms.get_mut(worker) {
            vm.engine
                .complete(permit, done.outcome, self.gauges.of(worker), now);
        }
    }

    fn tick_every(&self) -> Option<Duration> {
        let engines = u32::try_from(self.vms.len()).unwrap_or(u32::MAX).max(1);
        Some(TICK / engines)
    }

    fn tick(&mut self, world_now: Instant) {
        let now = self.clock(world_now);
        let worker = self.turn % self.vms.len().max(1);
        self.turn = self.turn.wrapping_add(1);
        if self
            .late
            .get(&worker)
            .is_some_and(|until| world_now < *until)
        {
            return;
        }
        let Some(SimVm { engine, .. }) = self.vms.get_mut(worker) else {
            return;
        };
        engine.tick(self.gauges.of(worker), now);
        let slice = Slice::decode(engine.slice(now).encode());
        debug_assert!(slice.is_ok(), "what an engine writes, an engine reads");
        self.slices.extend(slice.ok().map(|slice| (worker, slice)));
        let mut events = Vec::new();
        if self.leader == Some(worker) && world_now >= self.led_from {
            let slices: Vec<Slice<'_>> = self.slices.values().cloned().collect();
            if let Some((directives, happened)) =
                engine.decide(&slices, self.gauges.of(worker), now)
            {
                let directives = Directives::decode(directives.encode());
                debug_assert!(directives.is_ok(), "what an engine writes, an engine reads");
                self.directives = directives.unwrap_or_default();
                self.learned = engine.learned(now);
                events = happened;
            }
        }
        engine.adopt(&self.directives, now);
        for event in events {
            self.note(event, world_now);
        }
    }

    fn inject(&mut self, fault: ProxyFault, now: Instant) {
        self.suffer(fault, now);
    }

    fn view(&self, upstream: usize, now: Instant) -> ContenderView {
        let now = self.clock(now);
        let views = self.vms.iter().filter_map(|vm| {
            let id = vm.upstreams.get(upstream)?;
            vm.engine.views(now).find(|view| view.id == *id)
        });
        // The last limit counts: that of the main thread's engine, which follows the leader at once.
        views.fold(ContenderView::default(), |sum, view| ContenderView {
            limit: Some(f64::from(view.limit)),
            breaker: sum.breaker.max(Some(view.breaker)),
        })
    }

    fn decision(&self, upstream: usize, world_now: Instant) -> Option<LimitDecision> {
        let now = self.clock(world_now);
        let is_led = self.leader.is_some() && world_now >= self.led_from;
        // What the leader has decided. Without one, the last worker still follows what was decided last.
        let leader = self.leader.or_else(|| self.vms.len().checked_sub(1))?;
        let SimVm { engine, upstreams } = self.vms.get(leader)?;
        let id = *upstreams.get(upstream)?;
        // Events are not enough: a leader emits none for the law of its first round.
        let snapshot = engine.snapshot(now);
        let view = snapshot.upstreams.into_iter().find(|view| view.id == id)?;
        let known = view.learned.limit;
        Some(LimitDecision {
            limit: view.limit,
            // Before the first decision nothing is known.
            reason: is_led.then(|| view.limit_reason.unwrap_or_default()),
            capacity: known.capacity.get(),
            floor_s: known.floor.mean.get(),
            ceiling: known.ceiling.map(|ceiling| ceiling.limit.get()),
        })
    }

    fn in_flight(&self, upstream: usize) -> Option<u64> {
        let id = self.vms.first()?.upstreams.get(upstream)?;
        let own: u64 = self
            .vms
            .iter()
            .filter_map(|vm| {
                let snapshot = vm.engine.snapshot(world::START);
                let upstream = snapshot.upstreams.into_iter().find(|view| view.id == *id)?;
                Some(u64::from(upstream.in_flight + upstream.uploading) + u64::from(upstream.open))
            })
            .sum();
        // Both must return to 0.
        Some(own.max(self.gauges.read(*id, Counter::InFlight).unwrap_or(0)))
    }

    fn take_notes(&mut self) -> Vec<Note> {
        std::mem::take(&mut self.notes)
    }
}
