//! Policies in, plugin configuration out.
//!
//! A [`policy::Policy`] is what a person wrote, read and checked as a whole;
//! [`render`] says which of them holds for a proxy and what the filter there is
//! to be configured with. Both are pure: no clock, no files, no network. What
//! surrounds them (files, REST, xDS, Kubernetes) brings policies and proxies in
//! and carries what was rendered out.

#![forbid(unsafe_code)]

pub mod document;
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
pub mod xds;
