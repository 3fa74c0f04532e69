//! The gRPC services: extension configuration discovery on its own, and within aggregated discovery.

use std::time::Duration;

use envoy_types::pb::envoy::service::discovery::v3::aggregated_discovery_service_server::{
    AggregatedDiscoveryService, AggregatedDiscoveryServiceServer,
};
use envoy_types::pb::envoy::service::discovery::v3::{
    DeltaDiscoveryRequest, DiscoveryRequest, DiscoveryResponse,
};
use envoy_types::pb::envoy::service::extension::v3::extension_config_discovery_service_server::{
    ExtensionConfigDiscoveryService, ExtensionConfigDiscoveryServiceServer,
};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tonic::service::Routes;
use tonic::{Request, Response, Status, Streaming};

use super::node::proxy;
use super::stream::{Responses, carry};
use super::wire::Dialect;
use super::{DeltaSubscription, Subscription};
use crate::fleet::{Api, Arrival, Fleet};
use crate::net::{Peer, Peers};

/// Largest request that is read, in bytes. A node's metadata is most of it, in a mesh some 10 KB.
const MAX_REQUEST_BYTES: usize = 1 << 20;

#[derive(Debug, Clone)]
struct Discovery(Context);

/// What the services need.
#[derive(Debug, Clone)]
pub struct Context {
    /// Proxies.
    pub fleet: Fleet,
    /// How many streams one peer may have.
    pub peers: Peers,
    /// How long a stream may be without its first request.
    pub patience: Duration,
    /// Ends streams when cancelled.
    pub closing: CancellationToken,
    /// Counts them.
    pub tasks: TaskTracker,
}

/// The services as routes.
pub fn routes(context: Context) -> axum::Router {
    let discovery = Discovery(context);
    let ecds = ExtensionConfigDiscoveryServiceServer::new(discovery.clone())
        .max_decoding_message_size(MAX_REQUEST_BYTES);
    let ads = AggregatedDiscoveryServiceServer::new(discovery)
        .max_decoding_message_size(MAX_REQUEST_BYTES);
    Routes::new(ecds)
        .add_service(ads)
        .prepare()
        .into_axum_router()
}

impl Discovery {
    fn carry<D: Dialect>(
        &self,
        api: Api,
        request: Request<Streaming<D::Request>>,
    ) -> Result<Response<Responses<D>>, Status> {
        let peer = request.extensions().get::<Peer>();
        let peer = peer.ok_or_else(|| Status::internal("a connection without a peer"))?;
        let share = self.0.peers.take(peer.addr.ip());
        let share =
            share.ok_or_else(|| Status::resource_exhausted("too many streams of one address"))?;
        let arrival = Arrival {
            api,
            dialect: D::NAME,
            peer: peer.to_string(),
        };
        let responses = carry::<D>(self.0.clone(), arrival, share, request.into_inner());
        Ok(Response::new(responses))
    }
}

#[tonic::async_trait]
impl ExtensionConfigDiscoveryService for Discovery {
    type StreamExtensionConfigsStream = Responses<Subscription>;
    type DeltaExtensionConfigsStream = Responses<DeltaSubscription>;

    async fn stream_extension_configs(
        &self,
        request: Request<Streaming<DiscoveryRequest>>,
    ) -> Result<Response<Self::StreamExtensionConfigsStream>, Status> {
        self.carry::<Subscription>(Api::Ecds, request)
    }

    async fn delta_extension_configs(
        &self,
        request: Request<Streaming<DeltaDiscoveryRequest>>,
    ) -> Result<Response<Self::DeltaExtensionConfigsStream>, Status> {
        self.carry::<DeltaSubscription>(Api::Ecds, request)
    }

    async fn fetch_extension_configs(
        &self,
        request: Request<DiscoveryRequest>,
    ) -> Result<Response<DiscoveryResponse>, Status> {
        let mut request = request.into_inner();
        let node = request.node.take();
        let node = node.ok_or_else(|| Status::invalid_argument("the request has no node"))?;
        let desired = self.0.fleet.desired_once(&proxy(node)?);
        let mut subscription = Subscription::default();
        subscription
            .hear_wire(request, &desired)
            .map_err(|excess| Status::resource_exhausted(excess.to_string()))?;
        let (response, _) = subscription
            .push_wire(&desired)
            .ok_or_else(|| Status::not_found("nothing new under these names"))?;
        Ok(Response::new(response))
    }
}

#[tonic::async_trait]
impl AggregatedDiscoveryService for Discovery {
    type StreamAggregatedResourcesStream = Responses<Subscription>;
    type DeltaAggregatedResourcesStream = Responses<DeltaSubscription>;

    async fn stream_aggregated_resources(
        &self,
        request: Request<Streaming<DiscoveryRequest>>,
    ) -> Result<Response<Self::StreamAggregatedResourcesStream>, Status> {
        self.carry::<Subscription>(Api::Ads, request)
    }

    async fn delta_aggregated_resources(
        &self,
        request: Request<Streaming<DeltaDiscoveryRequest>>,
    ) -> Result<Response<Self::DeltaAggregatedResourcesStream>, Status> {
        self.carry::<DeltaSubscription>(Api::Ads, request)
    }
}
