//! Which resources a proxy has asked for.
//!
//! Three ways to ask: by name; `*`, for all there are; and the old way of asking for all, which is a first
//! request without any name. The old way ends with the first name that is given: from then on, no name
//! means nothing (the xDS protocol's rules for wildcard subscriptions).
//!
//! A proxy may ask for names that do not exist. They are remembered, because they may exist later; therefore
//! their number and length are bounded.

use std::collections::BTreeSet;

use super::Name;

/// The name that stands for all resources.
const ALL: &str = "*";

/// Names that one proxy may ask for: a proxy has a handful of filters.
pub const MAX_NAMES: usize = 128;

/// Bytes in a name.
pub const MAX_NAME_BYTES: usize = 256;

/// What a proxy may not ask for; its stream is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Excess {
    /// Too many names.
    #[error("more than {MAX_NAMES} resources asked for on one stream")]
    Names,
    /// A name that is too long.
    #[error("a resource name of {0} bytes, expected at most {MAX_NAME_BYTES}")]
    NameLength(usize),
}

/// What is asked for; see the module.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Interest {
    names: BTreeSet<Name>,
    everything: bool,
    // Whether a name was ever given: after that, no name means nothing.
    has_named: bool,
}

impl Interest {
    pub(super) fn covers(&self, name: &str) -> bool {
        self.everything || self.names.contains(name)
    }

    pub(super) const fn is_everything(&self) -> bool {
        self.everything
    }

    /// The names given one by one.
    pub(super) fn names(&self) -> impl Iterator<Item = &Name> {
        self.names.iter()
    }

    /// What a request that lists all names asks for.
    pub(super) fn listed(&self, names: &[String]) -> Result<Self, Excess> {
        let has_named = self.has_named || !names.is_empty();
        let mut next = Self {
            names: BTreeSet::new(),
            everything: !has_named,
            has_named,
        };
        next.add(names)?;
        Ok(next)
    }

    /// Asks for more.
    pub(super) fn add(&mut self, names: &[String]) -> Result<(), Excess> {
        for name in names {
            if name.len() > MAX_NAME_BYTES {
                return Err(Excess::NameLength(name.len()));
            }
            if name == ALL {
                self.everything = true;
            } else if self.names.len() >= MAX_NAMES && !self.names.contains(name.as_str()) {
                return Err(Excess::Names);
            } else {
                self.names.insert(name.as_str().into());
            }
        }
        Ok(())
    }

    /// Asks no longer.
    pub(super) fn remove(&mut self, names: &[String]) {
        for name in names {
            if name == ALL {
                self.everything = false;
            } else {
                self.names.remove(name.as_str());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn no_name_means_all_until_a_name_was_given() {
        let first = Interest::default().listed(&[]).unwrap();
        assert!(first.covers("a"));

        let named = first.listed(&names(&["b"])).unwrap();
        assert!(named.covers("b") && !named.covers("a"));

        let none = named.listed(&[]).unwrap();
        assert!(!none.covers("a") && !none.covers("b"));
    }

    #[test]
    fn a_star_asks_for_all_beside_names() {
        let interest = Interest::default().listed(&names(&["*", "b"])).unwrap();
        assert!(interest.covers("a") && interest.covers("b"));

        let without = interest.listed(&names(&["b"])).unwrap();
        assert!(!without.covers("a") && without.covers("b"));
    }

    #[test]
    fn names_without_bound_are_refused() {
        let many: Vec<String> = (0..=MAX_NAMES).map(|i| i.to_string()).collect();
        assert_eq!(Interest::default().listed(&many), Err(Excess::Names));
        assert!(Interest::default().listed(&many[1..]).is_ok());

        let long = [String::from("x").repeat(MAX_NAME_BYTES + 1)];
        let refused = Interest::default().listed(&long);
        assert_eq!(refused, Err(Excess::NameLength(MAX_NAME_BYTES + 1)));
    }
}
