//! What must hold for a subscription under any order of requests, answers, reconnects and updates.
//!
//! The test simulates a proxy, with messages in transit in both directions, so that answers and updates cross in
//! every order. The versions of one resource count up, except that a policy may return to an older one, which the
//! step `Revert` does.

#![expect(clippy::unwrap_used, reason = "a test that panics fails")]

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use proptest::prelude::*;
use tidegate_control::xds::{
    DeltaPush, DeltaRequest, DeltaSubscription, Desired, Name, PushReply, Rejection, Resource,
    ResourceVersion, SotwPush, SotwRequest, SotwSubscription,
};

const NAMES: [&str; 3] = ["a", "b", "c"];

/// Versions divisible by this are bad: the proxy rejects every push that contains one.
const BAD: u32 = 5;

#[derive(Debug, Clone)]
enum Step {
    /// A policy changes one resource.
    Update(usize),
    /// A policy returns to its previous version.
    Revert(usize),
    /// The proxy reads a push and answers.
    Read,
    /// The service receives a request of the proxy.
    Receive,
    /// The proxy wants other resources.
    Want(BTreeSet<usize>),
    /// An answer to an old push.
    Late,
    /// The stream breaks and a new one begins.
    Reconnect,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0..NAMES.len()).prop_map(Step::Update),
        1 => (0..NAMES.len()).prop_map(Step::Revert),
        6 => Just(Step::Read),
        6 => Just(Step::Receive),
        2 => proptest::collection::btree_set(0..NAMES.len(), 1..=NAMES.len()).prop_map(Step::Want),
        1 => Just(Step::Late),
        1 => Just(Step::Reconnect),
    ];
    proptest::collection::vec(step, 0..120)
}

/// The version number of each resource that proxies should have.
#[derive(Debug, Default)]
struct WantedNumbers(BTreeMap<usize, u32>);

impl WantedNumbers {
    fn number(&self, index: usize) -> u32 {
        self.0.get(&index).copied().unwrap_or(1)
    }

    fn desired(&self) -> Desired {
        let resource = |(index, name): (usize, &&str)| Resource {
            name: Name::from(*name),
            version: version(name, self.number(index)),
            body: name.to_string().into(),
        };
        NAMES.iter().enumerate().map(resource).collect()
    }
}

/// A version depends on name and content.
fn version(name: &str, number: u32) -> ResourceVersion {
    ResourceVersion::new(&format!("{name}{number}"))
}

fn is_bad(version: &ResourceVersion) -> bool {
    let number: u32 = version.as_str().get(1..).unwrap().parse().unwrap();
    number.is_multiple_of(BAD)
}

fn named(wants: &BTreeSet<usize>) -> Vec<String> {
    let name = |index: &usize| NAMES.get(*index).unwrap().to_string();
    wants.iter().map(name).collect()
}

/// The common operations of both dialects, as messages on the wire.
trait TestedDialect: Default {
    type Request: Clone;
    type Push: Clone;

    fn receive(&mut self, request: &Self::Request, desired: &Desired) -> PushReply;
    fn push(&mut self, desired: &Desired) -> Option<Self::Push>;
    fn is_wanted(&self, name: &str) -> bool;
    fn nonce(push: &Self::Push) -> &str;
    /// The version that the proxy reports for this push after a reconnect.
    fn version(push: &Self::Push) -> &str;
    fn resources(push: &Self::Push) -> &[Resource];
    /// The first request of a stream.
    fn begin(proxy: &SimulatedProxy<Self>) -> Self::Request;
    /// The answer to a push.
    fn answer(
        proxy: &SimulatedProxy<Self>,
        push: &Self::Push,
        rejection: Option<Rejection>,
    ) -> Self::Request;
    /// A request for other resources.
    fn want(proxy: &SimulatedProxy<Self>, before: &BTreeSet<usize>) -> Self::Request;
}

/// A proxy and the wire to it.
struct SimulatedProxy<D: TestedDialect> {
    wants: BTreeSet<usize>,
    holds: BTreeMap<Name, ResourceVersion>,
    /// For state of the world: the version of the last push that it accepted, and the nonce of the last push that it saw.
    accepted: String,
    nonce: String,
    to_service: VecDeque<D::Request>,
    to_proxy: VecDeque<D::Push>,
    past: Option<D::Push>,
}

impl<D: TestedDialect> SimulatedProxy<D> {
    fn new() -> Self {
        Self {
            wants: BTreeSet::from([0]),
            holds: BTreeMap::new(),
            accepted: String::new(),
            nonce: String::new(),
            to_service: VecDeque::new(),
            to_proxy: VecDeque::new(),
            past: None,
        }
    }

    fn connect(&mut self) {
        self.to_service.clear();
        self.to_proxy.clear();
        self.nonce.clear();
        self.past = None;
        let begin = D::begin(self);
        self.to_service.push_back(begin);
    }

    fn wants(&self, name: &str) -> bool {
        let is_wanted = |index: &usize| NAMES.get(*index) == Some(&name);
        self.wants.iter().any(is_wanted)
    }

    fn read(&mut self) {
        let Some(push) = self.to_proxy.pop_front() else {
            return;
        };
        D::nonce(&push).clone_into(&mut self.nonce);
        let is_rejected = D::resources(&push).iter().any(|r| is_bad(&r.version));
        if !is_rejected {
            for resource in D::resources(&push) {
                if self.wants(&resource.name) {
                    let entry = (resource.name.clone(), resource.version.clone());
                    self.holds.extend([entry]);
                }
            }
            // The service may have made the push before it knew which resources were dropped. The version of the push
            // would then claim those as well.
            let holds = self.holds.iter();
            let held = ResourceVersion::of_set(holds.map(|(name, version)| (&**name, version)));
            self.accepted = held
                .filter(|held| held.as_str() == D::version(&push))
                .map(|held| held.to_string())
                .unwrap_or_default();
        }
        let rejection = is_rejected.then(|| Rejection::new(13, "bad"));
        let answer = D::answer(self, &push, rejection);
        self.to_service.push_back(answer);
        self.past = Some(push);
    }

    fn want(&mut self, wants: &BTreeSet<usize>) {
        let before = std::mem::replace(&mut self.wants, wants.clone());
        let held = std::mem::take(&mut self.holds);
        self.holds = held.into_iter().filter(|(n, _)| self.wants(n)).collect();
        // A version of the whole set would claim the resources that were just dropped.
        self.accepted.clear();
        let request = D::want(self, &before);
        self.to_service.push_back(request);
    }
}

/// One stream as the service sees it, checked at every push.
struct Stream<D: TestedDialect> {
    subscription: D,
    under_way: Option<D::Push>,
    /// The versions that the proxy accepted, and those that it rejected alone.
    acknowledged: BTreeMap<Name, ResourceVersion>,
    rejected: BTreeMap<Name, ResourceVersion>,
    pushes: usize,
}

impl<D: TestedDialect> Stream<D> {
    fn new() -> Self {
        Self {
            subscription: D::default(),
            under_way: None,
            acknowledged: BTreeMap::new(),
            rejected: BTreeMap::new(),
            pushes: 0,
        }
    }

    fn receive(&mut self, proxy: &mut SimulatedProxy<D>, desired: &Desired) {
        let Some(request) = proxy.to_service.pop_front() else {
            return;
        };
        match self.subscription.receive(&request, desired) {
            PushReply::Accepted(versions) => {
                self.under_way = None;
                for (name, version) in versions {
                    // After another version was accepted, a rejected version may be pushed once more.
                    self.rejected.remove(&name);
                    self.acknowledged.extend(version.map(|v| (name, v)));
                }
            }
            PushReply::Rejected(versions, _) => {
                let push = self.under_way.take().unwrap();
                if let ([_], [(name, Some(version))]) = (D::resources(&push), &*versions) {
                    self.rejected.insert(name.clone(), version.clone());
                }
            }
            PushReply::None | PushReply::Stale => {}
        }
        // A resource that the proxy no longer wants may be pushed again.
        let subscription = &self.subscription;
        for versions in [&mut self.acknowledged, &mut self.rejected] {
            versions.retain(|name, _| subscription.is_wanted(name));
        }
    }

    fn push(&mut self, proxy: &mut SimulatedProxy<D>, desired: &Desired) {
        let Some(push) = self.subscription.push(desired) else {
            return;
        };
        assert!(self.under_way.is_none(), "two pushes under way at once");
        for resource in D::resources(&push) {
            let newest = desired.resource(&resource.name).unwrap();
            assert_eq!(resource, newest, "not the newest version");
            let (name, version) = (&resource.name, &resource.version);
            assert_ne!(self.acknowledged.get(name), Some(version), "accepted");
            assert_ne!(self.rejected.get(name), Some(version), "rejected");
        }
        self.pushes += 1;
        self.under_way = Some(push.clone());
        proxy.to_proxy.push_back(push);
    }
}

fn play<D: TestedDialect>(steps: Vec<Step>) {
    let mut world = WantedNumbers::default();
    let mut proxy = SimulatedProxy::<D>::new();
    let mut stream = Stream::<D>::new();
    proxy.connect();
    for step in steps {
        match step {
            Step::Update(index) => _ = world.0.insert(index, world.number(index) + 1),
            Step::Revert(index) => {
                _ = world.0.insert(index, (world.number(index) - 1).max(1));
            }
            Step::Read => proxy.read(),
            Step::Receive => stream.receive(&mut proxy, &world.desired()),
            Step::Want(wants) => proxy.want(&wants),
            Step::Late => {
                if let Some(push) = proxy.past.clone() {
                    let late = D::answer(&proxy, &push, Some(Rejection::new(13, "late")));
                    proxy.to_service.push_back(late);
                }
            }
            Step::Reconnect => {
                proxy.connect();
                stream = Stream::new();
            }
        }
        stream.push(&mut proxy, &world.desired());
    }
    settle(&mut proxy, &mut stream, &world.desired());
}

/// Once nothing changes any more, the proxy gets the newest version of every resource that it accepts, in few pushes.
fn settle<D: TestedDialect>(
    proxy: &mut SimulatedProxy<D>,
    stream: &mut Stream<D>,
    desired: &Desired,
) {
    let before = stream.pushes;
    while !(proxy.to_service.is_empty() && proxy.to_proxy.is_empty()) {
        proxy.read();
        stream.receive(proxy, desired);
        stream.push(proxy, desired);
    }
    // The answer to the push under way, one push of all, one push of each resource alone, and the same again for what
    // was requested meanwhile.
    let most = 4 * (NAMES.len() + 2);
    assert!(stream.pushes - before <= most, "it does not converge");
    for name in NAMES.iter().filter(|name| proxy.wants(name)) {
        let newest = &desired.resource(name).unwrap().version;
        if !is_bad(newest) {
            assert_eq!(proxy.holds.get(*name), Some(newest), "{name}");
        }
    }
}

impl TestedDialect for SotwSubscription {
    type Request = SotwRequest;
    type Push = SotwPush;

    fn receive(&mut self, request: &SotwRequest, desired: &Desired) -> PushReply {
        Self::receive(self, request, desired).unwrap()
    }

    fn push(&mut self, desired: &Desired) -> Option<SotwPush> {
        Self::push(self, desired)
    }

    fn is_wanted(&self, name: &str) -> bool {
        Self::is_wanted(self, name)
    }

    fn nonce(push: &SotwPush) -> &str {
        &push.nonce
    }

    fn version(push: &SotwPush) -> &str {
        push.version.as_str()
    }

    fn resources(push: &SotwPush) -> &[Resource] {
        &push.resources
    }

    fn begin(proxy: &SimulatedProxy<Self>) -> SotwRequest {
        SotwRequest {
            version: proxy.accepted.clone(),
            names: named(&proxy.wants),
            ..SotwRequest::default()
        }
    }

    fn answer(
        proxy: &SimulatedProxy<Self>,
        push: &SotwPush,
        rejection: Option<Rejection>,
    ) -> SotwRequest {
        SotwRequest {
            nonce: push.nonce.clone(),
            rejection,
            ..Self::begin(proxy)
        }
    }

    fn want(proxy: &SimulatedProxy<Self>, _: &BTreeSet<usize>) -> SotwRequest {
        SotwRequest {
            nonce: proxy.nonce.clone(),
            ..Self::begin(proxy)
        }
    }
}

impl TestedDialect for DeltaSubscription {
    type Request = DeltaRequest;
    type Push = DeltaPush;

    fn receive(&mut self, request: &DeltaRequest, _: &Desired) -> PushReply {
        Self::receive(self, request).unwrap()
    }

    fn push(&mut self, desired: &Desired) -> Option<DeltaPush> {
        Self::push(self, desired)
    }

    fn is_wanted(&self, name: &str) -> bool {
        Self::is_wanted(self, name)
    }

    fn nonce(push: &DeltaPush) -> &str {
        &push.nonce
    }

    fn version(_: &DeltaPush) -> &str {
        ""
    }

    fn resources(push: &DeltaPush) -> &[Resource] {
        &push.resources
    }

    fn begin(proxy: &SimulatedProxy<Self>) -> DeltaRequest {
        let versions = proxy.holds.iter();
        DeltaRequest {
            subscribe: named(&proxy.wants),
            initial_versions: versions
                .map(|(n, v)| (n.to_string(), v.to_string()))
                .collect(),
            ..DeltaRequest::default()
        }
    }

    fn answer(
        _: &SimulatedProxy<Self>,
        push: &DeltaPush,
        rejection: Option<Rejection>,
    ) -> DeltaRequest {
        DeltaRequest {
            nonce: push.nonce.clone(),
            rejection,
            ..DeltaRequest::default()
        }
    }

    fn want(proxy: &SimulatedProxy<Self>, before: &BTreeSet<usize>) -> DeltaRequest {
        DeltaRequest {
            subscribe: named(&proxy.wants.difference(before).copied().collect()),
            unsubscribe: named(&before.difference(&proxy.wants).copied().collect()),
            ..DeltaRequest::default()
        }
    }
}

/// The properties below found this: a proxy continued to report a version that claimed a dropped resource.
#[test]
fn a_resource_dropped_and_wanted_again_across_streams_is_pushed_again() {
    use Step::{Read, Receive, Reconnect, Update, Want};
    let want = |names: &[usize]| Want(names.iter().copied().collect());
    let mut steps = vec![
        want(&[0, 1]),
        Receive,
        Read,
        Receive,
        Receive,
        Read,
        Receive,
    ];
    steps.extend([want(&[1]), want(&[0, 1]), Update(1), Read, Reconnect]);
    play::<SotwSubscription>(steps.clone());
    play::<DeltaSubscription>(steps);
}

proptest! {
    #[test]
    fn state_of_the_world_converges_to_the_newest_versions(steps in steps()) {
        play::<SotwSubscription>(steps);
    }

    #[test]
    fn incremental_converges_to_the_newest_versions(steps in steps()) {
        play::<DeltaSubscription>(steps);
    }
}
