//! What a configuration and a round ask of all workers of a plugin.

use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use tidegate_core::config::{Config, LoadReports, NativeOptions};

/// A configuration, and the digest by which metrics name it.
#[derive(Clone, Debug)]
pub(crate) struct NamedConfig {
    pub(crate) config: Config,
    pub(crate) options: NativeOptions,
    pub(crate) digest: u64,
}

impl NamedConfig {
    /// What happens to load reports: the kill switch leaves responses as they are.
    pub(super) const fn load_reports(&self) -> LoadReports {
        if self.config.enabled() {
            self.options.load_reports()
        } else {
            LoadReports::Pass
        }
    }

    /// Most upstream hosts that have counts of their own.
    pub(super) fn most_hosts(&self) -> usize {
        usize::try_from(self.options.most_hosts()).unwrap_or(usize::MAX)
    }
}

/// What all workers do in their next hook, or have the ticker do.
#[derive(Debug)]
pub(super) struct Orders {
    /// The configuration in force, with its number.
    pub(super) config: Mutex<(u64, NamedConfig)>,
    pub(super) newest: AtomicU64,
    /// Of the configuration in force, as its place in [`LoadReports::ALL`].
    pub(super) load_reports: AtomicU8,
    pub(super) has_histograms: AtomicBool,
    /// Most upstream hosts with counts of their own.
    pub(super) most_hosts: AtomicUsize,
    /// The round under way; each worker does its upkeep once in each.
    pub(super) round: AtomicU64,
}

impl Orders {
    pub(super) fn replace(&self, config: NamedConfig) {
        let mut current = self.config.lock().unwrap_or_else(PoisonError::into_inner);
        current.0 += 1;
        self.load_reports
            .store(config.load_reports() as u8, Ordering::Relaxed);
        self.has_histograms
            .store(config.options.has_histograms(), Ordering::Relaxed);
        self.most_hosts
            .store(config.most_hosts(), Ordering::Relaxed);
        current.1 = config;
        self.newest.store(current.0, Ordering::Release);
    }

    /// What happens to load reports.
    pub(super) fn load_reports(&self) -> LoadReports {
        let place = self.load_reports.load(Ordering::Relaxed);
        let found = LoadReports::ALL.get(usize::from(place));
        found.copied().unwrap_or_default()
    }

    pub(super) fn config(&self) -> (u64, NamedConfig) {
        let current = self.config.lock().unwrap_or_else(PoisonError::into_inner);
        current.clone()
    }
}
