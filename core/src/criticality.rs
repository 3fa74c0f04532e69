//! How much a request matters.
//!
//! Under overload something must be refused; criticality says what goes
//! first. The four classes and their meaning are those of "Handling Overload"
//! in Site Reliability Engineering (Beyer et al., 2016). They travel in a
//! request header, so a class keeps its meaning over several hops.

use std::fmt;

/// How much a request matters. `Ord`: the greater is kept longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Criticality {
    /// Frequent partial and occasional full unavailability is expected.
    Sheddable,
    /// Partial unavailability is expected: batch work that retries.
    SheddablePlus,
    /// User-visible impact if it fails; the default for production requests.
    Critical,
    /// Serious user-visible impact if it fails.
    CriticalPlus,
}

impl Criticality {
    /// Every class, the first to be shed first.
    pub const ALL: [Self; 4] = [
        Self::Sheddable,
        Self::SheddablePlus,
        Self::Critical,
        Self::CriticalPlus,
    ];

    /// The class as written in configuration, headers and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sheddable => "sheddable",
            Self::SheddablePlus => "sheddable_plus",
            Self::Critical => "critical",
            Self::CriticalPlus => "critical_plus",
        }
    }

    /// Position in [`Self::ALL`], `0..4`: 0 is shed first.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The class that a header value names: blanks around it and the case of
    /// ASCII letters do not count. `None` for any other text, so that a
    /// misspelt header falls back to the rules and the default.
    #[must_use]
    pub fn from_header(value: &str) -> Option<Self> {
        let value = value.trim_ascii();
        Self::ALL
            .into_iter()
            .find(|class| value.eq_ignore_ascii_case(class.name()))
    }
}

impl fmt::Display for Criticality {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_ordered_from_the_first_shed_to_the_last() {
        let mut sorted = Criticality::ALL;
        sorted.sort();

        assert_eq!(sorted, Criticality::ALL);
        for (position, class) in Criticality::ALL.into_iter().enumerate() {
            assert_eq!(class.index(), position);
        }
    }

    #[test]
    fn every_name_reads_back() {
        for class in Criticality::ALL {
            assert_eq!(Criticality::from_header(class.name()), Some(class));
        }
    }

    #[test]
    fn header_values_are_trimmed_and_case_blind() {
        assert_eq!(
            Criticality::from_header(" Critical_PLUS\t"),
            Some(Criticality::CriticalPlus)
        );
        assert_eq!(Criticality::from_header("critical-plus"), None);
        assert_eq!(Criticality::from_header(""), None);
    }
}
