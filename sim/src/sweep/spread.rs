//! How many proxies, workers and endpoints a story has.

use serde::{Deserialize, Serialize};

use super::rounded;
use super::uniform::Uniform;

/// How many proxies and endpoints stories have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Proxies {
    /// One of each.
    #[default]
    One,
    /// Drawn: 1, 2, 3, 6 or 20 proxies, and 1, 2 or 8 endpoints; of [`super::Axes::All`] 1 to 20 and 1 to 8.
    Some,
}

/// The proxies in front of a service, and its endpoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ProxySpread {
    pub(super) proxies: u32,
    /// Of each proxy.
    pub(super) workers: u32,
    pub(super) endpoints: u32,
}

impl ProxySpread {
    /// Draws everything in either case, so that later draws are the same.
    pub(super) fn drawn(uniform: &mut Uniform, proxies: Proxies) -> Self {
        let drawn = Self {
            proxies: uniform.one_of(1, &[2, 3, 6, 20]),
            workers: uniform.one_of(1, &[2, 2, 4]),
            endpoints: uniform.one_of(1, &[1, 2, 8]),
        };
        match proxies {
            Proxies::One => Self {
                proxies: 1,
                endpoints: 1,
                ..drawn
            },
            Proxies::Some => drawn,
        }
    }

    /// The same with any number of proxies and endpoints.
    pub(super) fn of_all_axes(self, uniform: &mut Uniform, proxies: Proxies) -> Self {
        let drawn = [20.5, 8.5].map(|most| rounded::count(uniform.scale(0.5, most)).max(1));
        match (proxies, drawn) {
            (Proxies::One, _) => self,
            (Proxies::Some, [proxies, endpoints]) => Self {
                proxies,
                endpoints,
                ..self
            },
        }
    }

    /// The proxies in front of the service, in a few words.
    pub(super) fn words(self) -> String {
        let workers = match self.workers {
            1 => "1 worker".to_owned(),
            count => format!("{count} workers"),
        };
        match self.proxies {
            1 => workers,
            count => format!("{count} proxies of {workers}"),
        }
    }
}
