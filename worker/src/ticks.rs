//! Which ticks count, and the time.

use core::time::Duration;

use tidegate_core::Instant;

/// If the newest root context has not ticked for this long, a tick of any other counts.
const SILENCE: Duration = Duration::from_millis(250);

/// The ticks of one plugin. A root context that has been replaced still ticks until Envoy drops it: it is not listened
/// to, unless the newest has fallen silent (it was dropped, and an older one lives on).
#[derive(Clone, Copy, Debug)]
pub struct Ticks {
    /// The root context whose ticks count: that of the newest configuration.
    root: u32,
    last: Instant,
    now: Instant,
}

impl Ticks {
    /// Those of this root context from now on.
    #[must_use]
    pub const fn new(root: u32, now: Instant) -> Self {
        Self {
            root,
            last: now,
            now,
        }
    }

    /// The ticks of another root context count from now on.
    pub const fn listen_to(&mut self, root: u32) {
        self.root = root;
    }

    /// The time that was read. When it could not be read, time stands still.
    pub fn now(&mut self, read: Option<Instant>) -> Instant {
        self.now = read.unwrap_or(self.now);
        self.now
    }

    /// The time that was read last.
    #[must_use]
    pub const fn latest(&self) -> Instant {
        self.now
    }

    /// Whether a tick of this root context counts; if so it becomes the last one.
    pub fn take(&mut self, root: u32, now: Instant) -> bool {
        let counts = root == self.root || now.saturating_since(self.last) >= SILENCE;
        if counts {
            self.last = now;
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn an_older_root_context_counts_when_the_newest_is_silent() {
        let mut ticks = Ticks::new(1, at(0));
        assert!(ticks.take(1, at(100)));
        ticks.listen_to(2);
        assert!(!ticks.take(1, at(200)));
        assert!(ticks.take(2, at(200)));
        assert!(!ticks.take(1, at(449)));
        assert!(ticks.take(1, at(450)));
        assert!(
            !ticks.take(1, at(550)),
            "now it is the last one that ticked"
        );
    }

    #[test]
    fn time_stands_still_when_it_cannot_be_read() {
        let mut ticks = Ticks::new(1, at(5));
        assert_eq!(ticks.now(None), at(5));
        assert_eq!(ticks.now(Some(at(7))), at(7));
        assert_eq!(ticks.now(None), at(7));
    }
}
