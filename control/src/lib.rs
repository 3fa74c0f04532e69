//! Policies in, plugin configuration out.
//!
//! A [`policy::CheckedPolicy`] is a policy that was read and completely checked;
//! [`render`] determines which policy wins a proxy, and the proxy's configuration.
//! Both are pure: no clock, no files, no network. The modules
//! around them (files, REST, xDS, Kubernetes) bring in policies and proxies and
//! deliver what was rendered; [`serve`] connects all of them.

#![forbid(unsafe_code)]

pub mod about;
pub mod advice;
pub mod cluster;
pub mod discovery;
pub mod document;
pub mod event;
pub mod fleet;
#[cfg(test)]
mod fuzz;
pub mod kube;
pub mod metrics;
pub mod migrate;
pub mod net;
pub mod policy;
pub mod render;
pub mod resource;
pub mod rest;
pub mod serve;
pub mod source;
pub mod telemetry;
pub mod traffic;
pub mod xds;
