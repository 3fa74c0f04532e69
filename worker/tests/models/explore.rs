//! Breadth-first search through all states of a model, up to its bounds.

use std::collections::{HashMap, VecDeque};
use std::fmt::{Debug, Display};

/// What can happen, and what must hold.
pub(crate) trait Model {
    /// A moment.
    type State;
    /// What can happen in it.
    type Action: Clone + Debug;

    /// Where it begins.
    fn first(&self) -> Self::State;
    /// What can happen now.
    fn actions(&self, state: &Self::State) -> Vec<Self::Action>;
    /// What then holds.
    fn step(&self, state: &Self::State, action: &Self::Action) -> Self::State;
    /// Equal for states that count as one.
    fn key(&self, state: &Self::State) -> u64;
    /// What is wrong.
    fn check(&self, state: &Self::State) -> Result<(), String>;
}

/// What was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Visited {
    pub(crate) states: usize,
    pub(crate) steps: usize,
    /// Actions on the longest of the shortest ways to a state.
    pub(crate) depth: usize,
}

impl Display for Visited {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            states,
            steps,
            depth,
        } = self;
        write!(out, "{states} states, {steps} steps, depth {depth}")
    }
}

/// A state that must not be, and the shortest way to it.
#[derive(Clone, Debug)]
pub(crate) struct Violation {
    pub(crate) what: String,
    pub(crate) way: Vec<String>,
}

impl Display for Violation {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(out, "{}", self.what)?;
        self.way
            .iter()
            .try_for_each(|step| writeln!(out, "  {step}"))
    }
}

/// Where a state was first met.
struct Met<A> {
    /// The state before, and what happened in it. Nothing for the first.
    from: Option<(usize, A)>,
    depth: usize,
}

/// Visits every state; the first that must not be ends the search. A model of more than `most` states is too large.
pub(crate) fn explore<M: Model>(model: &M, most: usize) -> Result<Visited, Violation> {
    let first = model.first();
    let mut known = HashMap::from([(model.key(&first), 0_usize)]);
    let mut met = vec![Met {
        from: None,
        depth: 0,
    }];
    let mut waiting = VecDeque::from([(0_usize, first)]);
    let mut steps = 0;
    while let Some((number, state)) = waiting.pop_front() {
        model.check(&state).map_err(|what| Violation {
            what,
            way: way_to(&met, number),
        })?;
        for action in model.actions(&state) {
            steps += 1;
            let next = model.step(&state, &action);
            let place = met.len();
            if *known.entry(model.key(&next)).or_insert(place) != place {
                continue;
            }
            met.push(Met {
                from: Some((number, action)),
                depth: met[number].depth + 1,
            });
            assert!(met.len() <= most, "more than {most} states");
            waiting.push_back((place, next));
        }
    }
    Ok(Visited {
        states: met.len(),
        steps,
        depth: met.iter().map(|met| met.depth).max().unwrap_or_default(),
    })
}

fn way_to<A: Debug>(met: &[Met<A>], mut number: usize) -> Vec<String> {
    let mut way = Vec::new();
    while let Some((from, action)) = &met[number].from {
        way.push(format!("{action:?}"));
        number = *from;
    }
    way.push("begin".to_owned());
    way.reverse();
    way
}
