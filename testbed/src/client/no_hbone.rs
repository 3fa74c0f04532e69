//! Replaces HBONE in a build without it, such as that of `make demo`: no waypoint can be reached.

use std::convert::Infallible;
use std::net::SocketAddr;

use hyper::upgrade::Upgraded;

use super::CallError;

/// The route to a waypoint. Without the feature `hbone` there is none, so this type has no value.
#[derive(Debug, Clone)]
pub struct Hbone(Infallible);

/// Would keep a tunnel open. Has no value either.
#[derive(Debug, Clone)]
pub(super) struct HeldConnection(Infallible);

impl Hbone {
    #[expect(clippy::unused_async, reason = "the real one waits for a connection")]
    pub(super) async fn open(
        &self,
        _service: SocketAddr,
    ) -> Result<(Upgraded, HeldConnection), CallError> {
        match self.0 {}
    }
}
