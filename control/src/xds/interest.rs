//! Which resources a proxy has requested.
//!
//! There are three ways to request: by name; `*` for all resources; and the legacy way to request all, a first
//! request without names. The legacy way ends with the first name that is given: from then on, an empty list means
//! no resources (the rules of the xDS protocol for wildcard subscriptions).
//!
//! A proxy may request names that do not exist. They are remembered, because they may exist later; therefore their
//! number and length are bounded.

use std::collections::BTreeSet;

use super::resource::Name;

/// The name that means all resources.
const ALL: &str = "*";

/// Most names that one proxy may request: a proxy has a handful of filters.
pub const MAX_NAMES: usize = 128;

/// Longest name, in bytes.
pub const MAX_NAME_BYTES: usize = 256;

/// A request beyond the bounds; the stream is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Excess {
    /// Too many names.
    #[error("more than {MAX_NAMES} resources requested on one stream")]
    Names,
    /// A name that is too long.
    #[error("a resource name of {0} bytes, expected at most {MAX_NAME_BYTES}")]
    NameLength(usize),
}

/// The requested resources; see the module.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Interest {
    names: BTreeSet<Name>,
    everything: bool,
    // Whether a name was ever given: after that, an empty list means no resources.
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

    /// The interest after a request that lists all names.
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

    /// Adds names.
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

    /// Removes names.
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
    fn an_empty_list_means_all_until_a_name_was_given() {
        let first = Interest::default().listed(&[]).unwrap();
        assert!(first.covers("a"));

        let named = first.listed(&names(&["b"])).unwrap();
        assert!(named.covers("b") && !named.covers("a"));

        let none = named.listed(&[]).unwrap();
        assert!(!none.covers("a") && !none.covers("b"));
    }

    #[test]
    fn a_star_requests_all_resources_next_to_names() {
        let interest = Interest::default().listed(&names(&["*", "b"])).unwrap();
        assert!(interest.covers("a") && interest.covers("b"));

        let without = interest.listed(&names(&["b"])).unwrap();
        assert!(!without.covers("a") && without.covers("b"));
    }

    #[test]
    fn too_many_or_too_long_names_are_rejected() {
        let many: Vec<String> = (0..=MAX_NAMES).map(|i| i.to_string()).collect();
        assert_eq!(Interest::default().listed(&many), Err(Excess::Names));
        assert!(Interest::default().listed(&many[1..]).is_ok());

        let long = [String::from("x").repeat(MAX_NAME_BYTES + 1)];
        let rejected = Interest::default().listed(&long);
        assert_eq!(rejected, Err(Excess::NameLength(MAX_NAME_BYTES + 1)));
    }
}
