//! Tests of the service graph: each file tests one part.
//!
//! They are one program, because linking one for each file takes longer than the tests.

mod fake_server;
mod outputs;
mod placement;
mod recordings;
mod tls;
