//! Says in a metric what runs: the module's version, the configuration in force, and its mode.
//!
//! The values are labels of a gauge, so each combination is a series of its own, and Envoy never forgets one. The leader
//! sets the series of what runs to 1, and those of what ran before to 0. It finds these in shared data, whichever VM and
//! whichever version of the module made them. All versions read that, so its form must stay: one name of a series in each
//! line.

use std::sync::Arc;

use tidegate_core::config::Config;

use super::description::{Metric, without_help};
use super::name::push_label;
use super::table;
use crate::api::{Expect, Host, MetricKind};
use crate::faults::Fault;
use crate::proxy::Proxy;

const INFO: Metric = without_help(table::INFO);
/// The module's version. A release names its commit too: `ci/release.sh` sets `TIDEGATE_VERSION=0.1.0+1a2b3c4`.
const VERSION: &str = match option_env!("TIDEGATE_VERSION") {
    Some(version) => version,
    None => env!("CARGO_PKG_VERSION"),
};
/// Beyond this many bytes of names, some hundred series, there is one more.
const MAX_BYTES: usize = 12_000;
/// What ends a name; it cannot stand in one.
const END: u8 = b'\n';
/// What further configurations are called.
const OTHER: &str = "_other";

/// What one plugin of one VM says of itself.
#[derive(Debug)]
pub struct Info {
    /// Where shared data has the names of all series.
    key: String,
    /// Of the configuration in force; `None` before the first one.
    digest: Option<u64>,
    is_recorded: bool,
}

impl Info {
    /// Nothing has been said yet.
    #[must_use]
    pub const fn new(key: String) -> Self {
        Self {
            key,
            digest: None,
            is_recorded: false,
        }
    }

    /// A configuration with this digest is in force.
    pub const fn name_config(&mut self, digest: u64) {
        self.digest = Some(digest);
        self.is_recorded = false;
    }

    /// This worker leads from now on: another one may have said something else meanwhile.
    pub const fn take_over(&mut self) {
        self.is_recorded = false;
    }

    /// Leads: says what runs, if that is new.
    pub fn record<H: Host>(&mut self, config: &Config, proxy: &Proxy<H>) {
        let Some(digest) = self.digest else {
            return;
        };
        if core::mem::replace(&mut self.is_recorded, true) {
            return;
        }
        let read = proxy.host.shared(&self.key);
        let read = proxy.check(Fault::SharedData, read).flatten();
        let known = read.map(|value| value.bytes).unwrap_or_default();
        let mut known = Arc::unwrap_or_clone(known);
        let mut name = series(proxy, &format!("{digest:016x}"), config);
        let mut is_known = tell(proxy, &known, &name);
        if !is_known && known.len() > MAX_BYTES {
            name = series(proxy, OTHER, config);
            is_known = tell(proxy, &known, &name);
        }
        if !is_known {
            let place = known.len();
            known.extend_from_slice(name.as_bytes());
            known.push(END);
            tell(proxy, known.get(place..).unwrap_or_default(), &name);
            let written = proxy.host.set_shared(&self.key, &known, Expect::Anything);
            proxy.check(Fault::SharedData, written);
        }
    }
}

/// Sets the series in `known` to whether they are the one that runs, and returns whether that is among them.
fn tell<H: Host>(proxy: &Proxy<H>, known: &[u8], name: &str) -> bool {
    let mut is_known = false;
    for line in known.split(|byte| *byte == END) {
        let Ok(line) = core::str::from_utf8(line) else {
            continue;
        };
        let runs = line == name;
        is_known |= runs;
        let defined = match line {
            "" => continue,
            line => proxy.host.define_metric(MetricKind::Gauge, line),
        };
        if let Some(id) = proxy.check(Fault::Metric, defined) {
            proxy.record(id, u64::from(runs));
        }
    }
    is_known
}

/// The name of the series for this module with a configuration.
fn series<H>(proxy: &Proxy<H>, digest: &str, config: &Config) -> String {
    let mode = if config.enabled() {
        config.default_policy().mode().name()
    } else {
        "disabled"
    };
    let mut labels = String::new();
    push_label(&mut labels, "version", VERSION);
    push_label(&mut labels, "config", digest);
    proxy.naming.name(&INFO, &labels, Some(mode))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::FakeHost;

    fn config(more: &str) -> Config {
        let text = format!(r#"{{"slo":{{"latency":{{"quantile":0.99,"target":"300ms"}}}}{more}}}"#);
        Config::from_json(text.as_bytes()).unwrap()
    }

    fn told(host: &FakeHost, config: &str, mode: &str) -> Option<u64> {
        host.metric_value(&format!(
            "tidegate_version=.={VERSION};.;tidegate_config=.={config};.;tidegate_mode=.={mode};.;tidegate_info"
        ))
    }

    #[test]
    fn only_what_runs_now_is_1_whoever_said_the_rest() {
        let host = FakeHost::default();
        let proxy = Proxy::new(host.clone(), "tidegate");
        let mut one = Info::new("info".to_owned());
        one.name_config(1);
        one.record(&config(""), &proxy);
        assert_eq!(told(&host, "0000000000000001", "enforce"), Some(1));
        // Another VM leads, with another configuration.
        let mut other = Info::new("info".to_owned());
        other.name_config(2);
        other.record(&config(r#","mode":"observe""#), &proxy);
        let both = || {
            (
                told(&host, "0000000000000001", "enforce"),
                told(&host, "0000000000000002", "observe"),
            )
        };
        assert_eq!(both(), (Some(0), Some(1)));
        one.record(&config(""), &proxy);
        assert_eq!(both(), (Some(0), Some(1)), "it was said already");
        one.take_over();
        one.record(&config(""), &proxy);
        assert_eq!(both(), (Some(1), Some(0)));
        one.name_config(3);
        one.record(&config(r#","enabled":false"#), &proxy);
        assert_eq!(told(&host, "0000000000000003", "disabled"), Some(1));
        assert_eq!(both(), (Some(0), Some(0)));
    }

    #[test]
    fn the_number_of_series_is_bounded() {
        let host = FakeHost::default();
        let proxy = Proxy::new(host.clone(), "tidegate");
        let mut info = Info::new("info".to_owned());
        for digest in 0..300 {
            info.name_config(digest);
            info.record(&config(""), &proxy);
        }
        let mut names = host.metric_names();
        names.sort();
        names.dedup();
        assert!((100..130).contains(&names.len()), "{}", names.len());
        let runs = |name: &&String| host.metric_value(name) == Some(1);
        assert_eq!(names.iter().filter(runs).count(), 1);
        assert_eq!(told(&host, OTHER, "enforce"), Some(1));
        info.name_config(5);
        info.record(&config(""), &proxy);
        assert_eq!(told(&host, "0000000000000005", "enforce"), Some(1));
        assert_eq!(told(&host, OTHER, "enforce"), Some(0));
    }

    #[test]
    fn without_shared_data_it_is_said_all_the_same() {
        let host = FakeHost::default();
        host.break_shared_data();
        let proxy = Proxy::new(host.clone(), "tidegate");
        let mut info = Info::new("info".to_owned());
        info.name_config(1);
        info.record(&config(""), &proxy);
        assert_eq!(told(&host, "0000000000000001", "enforce"), Some(1));
    }
}
