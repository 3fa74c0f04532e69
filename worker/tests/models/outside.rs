//! Taking lives for one must lose nothing: what others can see of the VMs is the same without.
//!
//! Lives are compared by what `Debug` prints of them. A field that it leaves out, and that decides what a VM does, shows here.

use std::cell::RefCell;
use std::collections::HashSet;

use crate::explore::{Model, explore};
use crate::workers::{Action, Moment, Workers};

/// A model, and what could be seen in its states.
struct Outside<'a> {
    model: &'a Workers,
    seen: RefCell<HashSet<u64>>,
}

impl Model for Outside<'_> {
    type State = Moment;
    type Action = Action;

    fn first(&self) -> Moment {
        self.model.first()
    }

    fn actions(&self, moment: &Moment) -> Vec<Action> {
        self.model.actions(moment)
    }

    fn step(&self, moment: &Moment, action: &Action) -> Moment {
        self.model.step(moment, action)
    }

    fn key(&self, moment: &Moment) -> u64 {
        self.model.key(moment)
    }

    fn check(&self, moment: &Moment) -> Result<(), String> {
        self.seen.borrow_mut().insert(self.model.outside(moment));
        Ok(())
    }
}

/// What can be seen in the states of a model, with lives treated as one or not; and how many states there are.
pub(crate) fn seen(mut model: Workers, merges: bool, most: usize) -> (HashSet<u64>, usize) {
    model.merges = merges;
    let outside = Outside {
        model: &model,
        seen: RefCell::default(),
    };
    let visited = explore(&outside, most).expect("nothing is checked");
    (outside.seen.into_inner(), visited.states)
}
