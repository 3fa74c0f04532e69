//! What is to be written, decided from what is known.
//!
//! Pure: the same world gives the same plan, on every replica and after every
//! restart, and a world in which nothing is amiss gives an empty one. First
//! come the objects of Istio; the status of a policy waits until its objects
//! are written, so that it does not tell of a state between two writes.
//!
//! Edges: a policy that turned unsound keeps its objects, as its last sound
//! form stays in force. Objects of the API that is not in use go only when
//! those that replace them are there. A write that was refused is not tried
//! again before its time, unless the object or what is wanted has changed.

mod standing;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use jiff::Timestamp;

use super::account::account;
use super::condition::Transition;
use super::extension::{ObjectKey, Wanted, wanted};
use super::flavour::Flavour;
use super::held::Held;
use super::outlook::{Outlook, Standing};
use super::refusal::Subject;
use super::settings::Settings;
use super::world::World;
use crate::policy::{Contest, Extent, Policies, PolicyName, contests};
use crate::resource::BreakerPolicyStatus;

/// In the place of the hash of what is wanted: nothing is.
pub const REMOVAL: &str = "removal";

/// What is to be written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// Objects of Istio.
    pub writes: Vec<Write>,
    /// Status of policies.
    pub statuses: Vec<StatusWrite>,
    /// When something is to be tried again that was refused.
    pub retry_at: Option<Instant>,
}

/// A change of one of Istio's objects.
#[derive(Clone, Debug, PartialEq)]
pub enum Write {
    /// Make it so.
    Apply(Wanted),
    /// Remove it, if it is still the one that was seen.
    Delete {
        /// Which.
        key: ObjectKey,
        /// The one that was seen.
        uid: String,
    },
}

/// A new status of a policy.
#[derive(Clone, Debug, PartialEq)]
pub struct StatusWrite {
    /// Which policy.
    pub name: PolicyName,
    /// The one that was seen.
    pub uid: String,
    /// All of it.
    pub status: BreakerPolicyStatus,
    /// What becomes Events.
    pub transitions: Vec<Transition>,
}

/// A moment, as two clocks tell it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// What waits are measured by.
    pub instant: Instant,
    /// What people are told.
    pub wall: Timestamp,
}

/// What is to be written in this world.
#[must_use]
pub fn plan(world: &World, settings: &Settings, now: Moment) -> Plan {
    let Some(served) = world.served() else {
        return Plan::default();
    };
    let mut planner = Planner {
        world,
        settings,
        now,
        flavour: served.chosen(settings.api),
        living: world.policies.values().map(|h| h.uid.as_str()).collect(),
        claimed: BTreeSet::new(),
        outlooks: BTreeMap::new(),
        plan: Plan::default(),
    };
    planner.apply();
    planner.remove();
    planner.tell();
    planner.plan
}

struct Planner<'a> {
    world: &'a World,
    settings: &'a Settings,
    now: Moment,
    flavour: Option<Flavour>,
    /// The policies that there are, by their uid.
    living: BTreeSet<&'a str>,
    /// Every object that some policy wants.
    claimed: BTreeSet<ObjectKey>,
    /// By the uid of the policy.
    outlooks: BTreeMap<&'a str, (&'a Held, Outlook)>,
    plan: Plan,
}

impl Planner<'_> {
    /// What ought to be there.
    fn apply(&mut self) {
        let world = self.world;
        let sound: Policies = {
            let mut sound = Policies::default();
            for policy in world
                .policies
                .values()
                .filter_map(|held| held.sound.as_ref())
            {
                sound.insert_shared(Arc::clone(policy));
            }
            sound
        };
        let mut lost: BTreeMap<PolicyName, Vec<Contest>> = BTreeMap::new();
        for contest in contests(&sound) {
            lost.entry(contest.loser.clone()).or_default().push(contest);
        }
        let mut policies: Vec<&Held> = world.policies.values().collect();
        // Of two that want an object of one name the elder has it.
        policies.sort_by(|a, b| {
            let age = |held: &&Held| held.sound.as_ref().and_then(|p| p.created());
            (age(a).is_none(), age(a), &a.name).cmp(&(age(b).is_none(), age(b), &b.name))
        });
        for held in policies {
            let contests = lost.remove(&held.name).unwrap_or_default();
            let outlook = self.outlook(held, contests);
            self.outlooks.insert(&held.uid, (held, outlook));
        }
    }

    fn outlook(&mut self, held: &Held, contests: Vec<Contest>) -> Outlook {
        let proxies = &self.settings.proxies;
        let is_barred = held
            .sound
            .as_ref()
            .is_some_and(|policy| proxies.bar(policy));
        let mut outlook = Outlook {
            flavour: self.flavour,
            barred: is_barred.then(|| held.barred(proxies)),
            ..Outlook::default()
        };
        if let (Some(flavour), Some(policy)) = (self.flavour, &held.sound) {
            let whole = |contest: &&Contest| contest.extent == Extent::Whole;
            let lost = contests.iter().filter(whole);
            let lost: BTreeSet<String> = lost.map(|contest| contest.target.clone()).collect();
            let extension = &self.settings.extension;
            for wanted in wanted(policy, held.owner(), &lost, extension, flavour) {
                let key = wanted.key.clone();
                let standing = if self.claimed.insert(key.clone()) {
                    self.standing(held, &wanted)
                } else {
                    Standing::Foreign
                };
                if standing == Standing::Due {
                    outlook.is_due = true;
                    self.plan.writes.push(Write::Apply(wanted));
                }
                outlook.objects.push((key, standing));
            }
        }
        outlook.contests = contests;
        outlook
    }

    /// What ought not to be there any more, of what is ours.
    fn remove(&mut self) {
        let world = self.world;
        for (key, seen) in &world.objects {
            for owner in &seen.owners {
                if let Some((_, outlook)) = self.outlooks.get_mut(owner.as_str()) {
                    outlook.has_objects = true;
                }
            }
            let is_ours = seen.is_labelled && !seen.owners.is_empty();
            let is_claimed = self.claimed.contains(key) && !self.is_left_over(seen);
            if !is_ours || seen.is_leaving || is_claimed || self.is_needed(key, seen) {
                continue;
            }
            if self.due(key, REMOVAL, Some(seen)) != Standing::Due {
                continue;
            }
            for (held, outlook) in self.outlooks.values_mut() {
                let is_wanted = outlook.objects.iter().any(|(wanted, _)| wanted == key);
                outlook.is_due |= is_wanted || seen.belongs_to(&held.uid);
            }
            self.plan.writes.push(Write::Delete {
                key: key.clone(),
                uid: seen.uid.clone(),
            });
        }
    }

    /// The status of those of which nothing is to be written.
    fn tell(&mut self) {
        let outlooks = std::mem::take(&mut self.outlooks);
        for (held, outlook) in outlooks.into_values() {
            let account = account(held, &outlook);
            let news = account.status(held.generation, &held.status, self.now.wall);
            let Some((status, transitions)) = news.filter(|_| !outlook.is_due) else {
                continue;
            };
            let subject = Subject::Status(held.name.clone());
            let refusal = self.world.refusals.get(&subject);
            if let Some(refusal) = refusal.filter(|refusal| refusal.retry_at > self.now.instant) {
                self.wait_until(refusal.retry_at);
                continue;
            }
            self.plan.statuses.push(StatusWrite {
                name: held.name.clone(),
                uid: held.uid.clone(),
                status,
                transitions,
            });
        }
    }
}
