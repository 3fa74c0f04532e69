//! Discovery over gRPC: proxies subscribe to their plugin configuration and receive it whenever it changes.
//!
//! Two services offer it: extension configuration discovery (ECDS), and aggregated discovery (ADS).

#[cfg(test)]
pub(crate) mod fuzz;
mod node;
mod stream;
mod wire;

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

use crate::fleet::{DiscoveryApi, ProxyFleet, StreamOrigin};
use crate::net::{Peer, Peers};
use crate::xds::{DeltaSubscription, SotwSubscription};
use node::proxy;
use stream::{Responses, StreamContext};
use wire::Dialect;

/// Largest request that is read, in bytes. Most of a request is the node's metadata, about 10 KB in a mesh.
const MAX_REQUEST_BYTES: usize = 1 << 20;

#[derive(Debug, Clone)]
struct Discovery(DiscoveryContext);

/// The state that the services share.
#[derive(Debug, Clone)]
pub struct DiscoveryContext {
    /// The connected proxies.
    pub fleet: ProxyFleet,
    /// Bounds the streams of one peer.
    pub peers: Peers,
    /// How long a stream may stay open without its first request.
    pub patience: Duration,
    /// Ends streams when canceled.
    pub closing: CancellationToken,
    /// Tracks the tasks of streams.
    pub tasks: TaskTracker,
}

/// The services as routes.
pub fn routes(context: DiscoveryContext) -> axum::Router {
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
        api: DiscoveryApi,
        request: Request<Streaming<D::Request>>,
    ) -> Result<Response<Responses<D>>, Status> {
        let peer = request.extensions().get::<Peer>();
        let peer = peer.ok_or_else(|| Status::internal("the connection has no peer"))?;
        let share = self.0.peers.take(peer.addr.ip());
        let share =
            share.ok_or_else(|| Status::resource_exhausted("too many streams from one address"))?;
        let origin = StreamOrigin {
            api,
            dialect: D::NAME,
            peer: peer.to_string(),
        };
        let context = StreamContext {
            fleet: self.0.fleet.clone(),
            patience: self.0.patience,
            closing: self.0.closing.clone(),
        };
        let (conversation, responses) = stream::open::<D>(context, origin, share);
        self.0.tasks.spawn(conversation.run(request.into_inner()));
        Ok(Response::new(responses))
    }
}

#[tonic::async_trait]
impl ExtensionConfigDiscoveryService for Discovery {
    type StreamExtensionConfigsStream = Responses<SotwSubscription>;
    type DeltaExtensionConfigsStream = Responses<DeltaSubscription>;

    async fn stream_extension_configs(
        &self,
        request: Request<Streaming<DiscoveryRequest>>,
    ) -> Result<Response<Self::StreamExtensionConfigsStream>, Status> {
        self.carry::<SotwSubscription>(DiscoveryApi::Ecds, request)
    }

    async fn delta_extension_configs(
        &self,
        request: Request<Streaming<DeltaDiscoveryRequest>>,
    ) -> Result<Response<Self::DeltaExtensionConfigsStream>, Status> {
        self.carry::<DeltaSubscription>(DiscoveryApi::Ecds, request)
    }

    async fn fetch_extension_configs(
        &self,
        request: Request<DiscoveryRequest>,
    ) -> Result<Response<DiscoveryResponse>, Status> {
        let mut request = request.into_inner();
        let node = request.node.take();
        let node = node.ok_or_else(|| Status::invalid_argument("the request has no node"))?;
        let desired = self.0.fleet.desired_once(&proxy(node)?);
        let mut subscription = SotwSubscription::default();
        subscription
            .receive_wire(request, &desired)
            .map_err(|excess| Status::resource_exhausted(excess.to_string()))?;
        let (response, _) = subscription
            .push_wire(&desired)
            .ok_or_else(|| Status::not_found("no new resource under these names"))?;
        Ok(Response::new(response))
    }
}

#[tonic::async_trait]
impl AggregatedDiscoveryService for Discovery {
    type StreamAggregatedResourcesStream = Responses<SotwSubscription>;
    type DeltaAggregatedResourcesStream = Responses<DeltaSubscription>;

    async fn stream_aggregated_resources(
        &self,
        request: Request<Streaming<DiscoveryRequest>>,
    ) -> Result<Response<Self::StreamAggregatedResourcesStream>, Status> {
        self.carry::<SotwSubscription>(DiscoveryApi::Ads, request)
    }

    async fn delta_aggregated_resources(
        &self,
        request: Request<Streaming<DeltaDiscoveryRequest>>,
    ) -> Result<Response<Self::DeltaAggregatedResourcesStream>, Status> {
        self.carry::<DeltaSubscription>(DiscoveryApi::Ads, request)
    }
}
