//! The work in Kubernetes, without Kubernetes: plans on paper, elections on a clock that is moved by hand, and the
//! whole against an API server of this test's own.

mod cluster;
mod documents;
mod elections;
mod plans;
mod properties;
mod replica;
mod scripted;
mod server;
