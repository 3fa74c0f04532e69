//! The set of disabled mechanisms, one for each thread.

use core::cell::Cell;

use super::Mechanism;

std::thread_local! {
    static OFF: Cell<Mechanisms> = const { Cell::new(Mechanisms::NONE) };
    static ASKED: Cell<Mechanisms> = const { Cell::new(Mechanisms::NONE) };
}

/// A set of mechanisms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mechanisms(u128);

impl Mechanisms {
    /// The empty set.
    pub const NONE: Self = Self(0);

    /// Whether it contains this one.
    #[must_use]
    pub const fn contains(self, mechanism: Mechanism) -> bool {
        self.0 & Self::bit(mechanism) != 0
    }

    /// The set with one more.
    #[must_use]
    pub const fn with(self, mechanism: Mechanism) -> Self {
        Self(self.0 | Self::bit(mechanism))
    }

    const fn bit(mechanism: Mechanism) -> u128 {
        1 << mechanism as u32
    }
}

/// Turns everything on again when `play` panics too: a test that fails must not change the next one on its thread.
struct Reset;

impl Drop for Reset {
    fn drop(&mut self) {
        OFF.set(Mechanisms::NONE);
    }
}

/// Calls `play` with these mechanisms turned off on this thread. Answers with its result and with the mechanisms that it
/// asked about.
pub fn play_without<T>(off: Mechanisms, play: impl FnOnce() -> T) -> (T, Mechanisms) {
    OFF.set(off);
    ASKED.set(Mechanisms::NONE);
    let _reset = Reset;
    let result = play();
    (result, ASKED.get())
}

/// Whether a mechanism is turned off on this thread.
pub(crate) fn is_off(mechanism: Mechanism) -> bool {
    ASKED.set(ASKED.get().with(mechanism));
    OFF.get().contains(mechanism)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALONE: Mechanisms = Mechanisms::NONE.with(Mechanism::Hold);

    #[test]
    fn a_mechanism_is_off_on_this_thread_and_during_the_run_alone() {
        let (answers, asked) = play_without(ALONE, || {
            let elsewhere = std::thread::spawn(|| is_off(Mechanism::Hold)).join();
            (
                is_off(Mechanism::Hold),
                is_off(Mechanism::Votes),
                elsewhere.unwrap(),
            )
        });
        assert_eq!(answers, (true, false, false));
        assert_eq!(asked, ALONE.with(Mechanism::Votes));
        assert!(!is_off(Mechanism::Hold));
    }

    #[test]
    fn each_run_begins_with_nothing_asked() {
        let (_, asked) = play_without(ALONE, || is_off(Mechanism::Hold));
        assert_eq!(asked, ALONE);
        let ((), asked) = play_without(ALONE, || ());
        assert_eq!(asked, Mechanisms::NONE);
    }

    #[test]
    fn every_mechanism_has_a_bit_of_its_own() {
        let all = Mechanism::ALL.iter().fold(Mechanisms::NONE, |set, one| {
            assert!(!set.contains(*one), "{one:?}");
            set.with(*one)
        });
        assert!(Mechanism::ALL.iter().all(|one| all.contains(*one)));
    }
}
