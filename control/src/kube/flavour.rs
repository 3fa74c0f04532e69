//! Which of Istio's two APIs carries the filter.
//!
//! Istio 1.30 and later have `TrafficExtension`, those before `WasmPlugin`;
//! newer ones still serve the old one and translate it. The API server says
//! which it has. Where both are served the newer one is used, unless the
//! settings say otherwise: an API server may know of `TrafficExtension` before
//! the istiod beside it does, in the middle of an upgrade.

use kube::core::{ApiResource, GroupVersionKind};

/// API group of both.
pub const GROUP: &str = "extensions.istio.io";

/// Version of both.
pub const VERSION: &str = "v1alpha1";

/// One of the two; the one that is preferred comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Flavour {
    /// Istio 1.30 and later.
    TrafficExtension,
    /// Istio before.
    WasmPlugin,
}

impl Flavour {
    /// Every value, the preferred one first.
    pub const ALL: [Self; 2] = [Self::TrafficExtension, Self::WasmPlugin];

    /// As in `kind`.
    #[must_use]
    pub const fn kind(self) -> &'static str {
        match self {
            Self::TrafficExtension => "TrafficExtension",
            Self::WasmPlugin => "WasmPlugin",
        }
    }

    /// As in the API's path.
    #[must_use]
    pub const fn plural(self) -> &'static str {
        match self {
            Self::TrafficExtension => "trafficextensions",
            Self::WasmPlugin => "wasmplugins",
        }
    }

    /// How the client finds it.
    #[must_use]
    pub fn resource(self) -> ApiResource {
        let kind = GroupVersionKind::gvk(GROUP, VERSION, self.kind());
        ApiResource::from_gvk_with_plural(&kind, self.plural())
    }
}

/// Which of them the settings allow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ApiChoice {
    /// Whichever the API server has; of two the newer.
    #[default]
    Auto,
    /// This one only.
    Only(Flavour),
}

/// Which of them the API server has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// [`Flavour::TrafficExtension`].
    pub traffic_extension: bool,
    /// [`Flavour::WasmPlugin`].
    pub wasm_plugin: bool,
}

impl Served {
    /// Those whose plural names are among `plurals`.
    pub fn among<'a>(plurals: impl IntoIterator<Item = &'a str>) -> Self {
        let mut served = Self::default();
        for plural in plurals {
            served.traffic_extension |= plural == Flavour::TrafficExtension.plural();
            served.wasm_plugin |= plural == Flavour::WasmPlugin.plural();
        }
        served
    }

    /// Whether it has this one.
    #[must_use]
    pub const fn has(self, flavour: Flavour) -> bool {
        match flavour {
            Flavour::TrafficExtension => self.traffic_extension,
            Flavour::WasmPlugin => self.wasm_plugin,
        }
    }

    /// The one to write.
    #[must_use]
    pub fn chosen(self, choice: ApiChoice) -> Option<Flavour> {
        let is_allowed = |flavour: &Flavour| match choice {
            ApiChoice::Auto => true,
            ApiChoice::Only(only) => only == *flavour,
        };
        Flavour::ALL
            .into_iter()
            .filter(is_allowed)
            .find(|flavour| self.has(*flavour))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_the_newer_is_written_unless_told_otherwise() {
        let both = Served::among(["wasmplugins", "trafficextensions", "other"]);
        let old = Served::among(["wasmplugins"]);
        let only = ApiChoice::Only(Flavour::WasmPlugin);

        assert_eq!(
            both.chosen(ApiChoice::Auto),
            Some(Flavour::TrafficExtension)
        );
        assert_eq!(both.chosen(only), Some(Flavour::WasmPlugin));
        assert_eq!(old.chosen(ApiChoice::Auto), Some(Flavour::WasmPlugin));
        assert_eq!(old.chosen(ApiChoice::Only(Flavour::TrafficExtension)), None);
        assert_eq!(Served::default().chosen(ApiChoice::Auto), None);
    }
}
