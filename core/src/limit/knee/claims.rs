//! Whether to believe that a service has become slower than is harmless.
//!
//! A cut after which throughput is lost says that there was no queue. Where a few proxies share an upstream it says so too
//! when another of them takes the places: none is one of many, none is alone, and no figure of its own tells which. Who
//! believes it takes the queue for the service, holds more, and makes the others believe the same; nothing ever leads
//! back. So what would raise the baseline beyond what is harmless must be said again and again: a sum of claims less
//! denials, as in Page's CUSUM (see [`crate::breaker`]).
//!
//! ```text
//! none --claim--> pending, the limit stays --BELIEVED claims more than denials--> believed, none
//!   ^------------------denials----'
//! ```

use crate::ablation::{Mechanism, is_off};

/// So many claims more than denials. In a fleet most cuts deny it, so that three are rare.
const BELIEVED: u32 = 3;

/// Claims that nobody denied yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Claims(u32);

impl Claims {
    pub(super) const NONE: Self = Self(0);

    /// A cut says that there was no queue and that answers take `mean` seconds by themselves. True when that is to be
    /// believed: at once where it is not more than `harmless` seconds.
    pub(super) fn claim(&mut self, mean: f64, harmless: f64) -> bool {
        self.0 = self.0.saturating_add(1);
        let is_believed = mean <= harmless || self.0 >= BELIEVED || is_off(Mechanism::Claims);
        if is_believed {
            *self = Self::NONE;
        }
        is_believed
    }

    /// A cut says that there was one.
    pub(super) const fn deny(&mut self) {
        self.0 = self.0.saturating_sub(1);
    }

    /// Whether some wait to be believed or denied. Until then nobody knows what the limit should go down to.
    pub(super) const fn are_pending(self) -> bool {
        self.0 > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HARMLESS: f64 = 0.15;

    #[test]
    fn what_does_no_harm_is_believed_at_once_and_what_may_when_it_is_said_three_times() {
        let mut claims = Claims::NONE;
        assert!(claims.claim(0.1, HARMLESS));
        assert!(!claims.are_pending());
        assert!(!claims.claim(0.2, HARMLESS) && !claims.claim(0.2, HARMLESS));
        assert!(claims.are_pending());
        assert!(claims.claim(0.2, HARMLESS));
        assert!(!claims.are_pending());
    }

    #[test]
    fn denials_take_claims_back() {
        let mut claims = Claims::NONE;
        for _ in 0..100 {
            assert!(!claims.claim(0.2, HARMLESS) && !claims.claim(0.2, HARMLESS));
            claims.deny();
            claims.deny();
            claims.deny();
        }
        assert!(!claims.are_pending());
    }
}
