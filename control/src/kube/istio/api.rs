//! Which of Istio's two APIs carries the filter.
//!
//! Istio 1.30 and later have `TrafficExtension`, earlier versions `WasmPlugin`;
//! newer versions still serve the old API and translate it. The API server
//! reports which of them it has. If it has both, the newer one is used, unless
//! the settings say otherwise: in the middle of an upgrade an API server may
//! have `TrafficExtension` before istiod supports it.

use kube::core::{ApiResource, GroupVersionKind};

/// API group of both.
pub const GROUP: &str = "extensions.istio.io";

/// Version of both.
pub const VERSION: &str = "v1alpha1";

/// One of the two APIs; the preferred one comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IstioApi {
    /// Istio 1.30 and later.
    TrafficExtension,
    /// Earlier versions of Istio.
    WasmPlugin,
}

impl IstioApi {
    /// Every value, the preferred one first.
    pub const ALL: [Self; 2] = [Self::TrafficExtension, Self::WasmPlugin];

    /// The value of `kind`.
    #[must_use]
    pub const fn kind(self) -> &'static str {
        match self {
            Self::TrafficExtension => "TrafficExtension",
            Self::WasmPlugin => "WasmPlugin",
        }
    }

    /// The plural name in the API's path.
    #[must_use]
    pub const fn plural(self) -> &'static str {
        match self {
            Self::TrafficExtension => "trafficextensions",
            Self::WasmPlugin => "wasmplugins",
        }
    }

    /// The resource for the client.
    #[must_use]
    pub fn resource(self) -> ApiResource {
        let kind = GroupVersionKind::gvk(GROUP, VERSION, self.kind());
        ApiResource::from_gvk_with_plural(&kind, self.plural())
    }
}

/// The choice in the settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ApiChoice {
    /// The API that the server has; the newer one if it has both.
    #[default]
    Auto,
    /// Only this one.
    Only(IstioApi),
}

/// The APIs that the API server has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServedApis {
    /// [`IstioApi::TrafficExtension`].
    pub traffic_extension: bool,
    /// [`IstioApi::WasmPlugin`].
    pub wasm_plugin: bool,
}

impl ServedApis {
    /// The APIs whose plural names are among `plurals`.
    pub fn among<'a>(plurals: impl IntoIterator<Item = &'a str>) -> Self {
        let mut served = Self::default();
        for plural in plurals {
            served.traffic_extension |= plural == IstioApi::TrafficExtension.plural();
            served.wasm_plugin |= plural == IstioApi::WasmPlugin.plural();
        }
        served
    }

    /// Whether the API server has `api`.
    #[must_use]
    pub const fn has(self, api: IstioApi) -> bool {
        match api {
            IstioApi::TrafficExtension => self.traffic_extension,
            IstioApi::WasmPlugin => self.wasm_plugin,
        }
    }

    /// The API to write.
    #[must_use]
    pub fn chosen(self, choice: ApiChoice) -> Option<IstioApi> {
        let is_allowed = |api: &IstioApi| match choice {
            ApiChoice::Auto => true,
            ApiChoice::Only(only) => only == *api,
        };
        IstioApi::ALL
            .into_iter()
            .filter(is_allowed)
            .find(|api| self.has(*api))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newer_api_is_written_unless_the_settings_name_the_other() {
        let both = ServedApis::among(["wasmplugins", "trafficextensions", "other"]);
        let old = ServedApis::among(["wasmplugins"]);
        let only = ApiChoice::Only(IstioApi::WasmPlugin);

        assert_eq!(
            both.chosen(ApiChoice::Auto),
            Some(IstioApi::TrafficExtension)
        );
        assert_eq!(both.chosen(only), Some(IstioApi::WasmPlugin));
        assert_eq!(old.chosen(ApiChoice::Auto), Some(IstioApi::WasmPlugin));
        assert_eq!(
            old.chosen(ApiChoice::Only(IstioApi::TrafficExtension)),
            None
        );
        assert_eq!(ServedApis::default().chosen(ApiChoice::Auto), None);
    }
}
