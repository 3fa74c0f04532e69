//! Load tests that stand on tools which users of Envoy know: fortio and k6, and the testbed's own client.
//!
//! Published experiments with static breakers are repeated on real Envoys, with Tidegate beside them. Its rooms:
//!
//! - what a run leaves behind, for whoever makes or shows it: [`result`].

pub mod result;
