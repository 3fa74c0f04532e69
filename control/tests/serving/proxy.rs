//! A client that uses the discovery protocol as a proxy does.

use std::error::Error;
use std::net::SocketAddr;

use envoy_types::pb::envoy::config::core::v3::{Node, TypedExtensionConfig};
use envoy_types::pb::envoy::extensions::filters::http::wasm::v3::Wasm;
use envoy_types::pb::envoy::service::discovery::v3::aggregated_discovery_service_client::AggregatedDiscoveryServiceClient;
use envoy_types::pb::envoy::service::discovery::v3::{
    DeltaDiscoveryRequest, DeltaDiscoveryResponse, DiscoveryRequest, DiscoveryResponse,
};
use envoy_types::pb::envoy::service::extension::v3::extension_config_discovery_service_client::ExtensionConfigDiscoveryServiceClient;
use envoy_types::pb::google::protobuf::StringValue;
use envoy_types::pb::google::rpc::Status as ErrorDetail;
use prost::Message;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::{Channel, Endpoint};
use tonic::{Status, Streaming};

use crate::stage::BOUND;

/// The type of the resources.
pub(crate) const TYPE: &str = "type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig";

/// One stream, in the variant state of the world.
pub(crate) struct TestProxy {
    pub(crate) requests: mpsc::Sender<DiscoveryRequest>,
    pub(crate) responses: Streaming<DiscoveryResponse>,
    id: String,
}

pub(crate) async fn channel(addr: SocketAddr) -> Channel {
    let endpoint = Endpoint::from_shared(format!("http://{addr}")).unwrap();
    endpoint.connect().await.unwrap()
}

pub(crate) fn node(id: &str) -> Option<Node> {
    Some(Node {
        id: id.to_owned(),
        cluster: "tests".to_owned(),
        ..Node::default()
    })
}

/// The first request of a proxy.
fn first(id: &str, version: &str) -> DiscoveryRequest {
    DiscoveryRequest {
        version_info: version.to_owned(),
        node: node(id),
        resource_names: vec!["tidegate".to_owned()],
        type_url: TYPE.to_owned(),
        ..DiscoveryRequest::default()
    }
}

/// What a new proxy is sent first. An error if the connection or the stream ends before, none if the service closes the stream
/// without one.
pub(crate) async fn first_push(
    addr: SocketAddr,
    id: &str,
) -> Result<Option<DiscoveryResponse>, Box<dyn Error>> {
    let channel = Endpoint::from_shared(format!("http://{addr}"))?
        .connect()
        .await?;
    let mut proxy = TestProxy::asking(channel, id, "").await?;
    Ok(timeout(BOUND, proxy.responses.message()).await??)
}

/// Sends one request and returns the answer.
pub(crate) async fn fetch(
    addr: SocketAddr,
    request: DiscoveryRequest,
) -> Result<DiscoveryResponse, Status> {
    let mut client = ExtensionConfigDiscoveryServiceClient::new(channel(addr).await);
    let response = client.fetch_extension_configs(request).await?;
    Ok(response.into_inner())
}

impl TestProxy {
    /// Connects to extension configuration discovery and sends nothing yet.
    pub(crate) async fn silent(addr: SocketAddr, id: &str) -> Self {
        Self::on(channel(addr).await, id).await.unwrap()
    }

    /// The same on an existing connection.
    pub(crate) async fn on(channel: Channel, id: &str) -> Result<Self, Status> {
        Self::with(mpsc::channel(64), channel, id).await
    }

    /// The same, and asks for the configuration. The request is there before the stream is, so that no delay of this machine makes
    /// the service end it as a silent one. `version` is what the proxy runs.
    async fn asking(channel: Channel, id: &str, version: &str) -> Result<Self, Status> {
        let (requests, outbound) = mpsc::channel(64);
        requests.try_send(first(id, version)).unwrap();
        Self::with((requests, outbound), channel, id).await
    }

    async fn with(
        (requests, outbound): (
            mpsc::Sender<DiscoveryRequest>,
            mpsc::Receiver<DiscoveryRequest>,
        ),
        channel: Channel,
        id: &str,
    ) -> Result<Self, Status> {
        let mut client = ExtensionConfigDiscoveryServiceClient::new(channel);
        let responses = client
            .stream_extension_configs(ReceiverStream::new(outbound))
            .await?
            .into_inner();
        Ok(Self {
            requests,
            responses,
            id: id.to_owned(),
        })
    }

    /// Connects to aggregated discovery and sends nothing yet.
    pub(crate) async fn aggregated(addr: SocketAddr, id: &str) -> Self {
        let (requests, outbound) = mpsc::channel(64);
        let mut client = AggregatedDiscoveryServiceClient::new(channel(addr).await);
        let responses = client
            .stream_aggregated_resources(ReceiverStream::new(outbound))
            .await
            .unwrap()
            .into_inner();
        Self {
            requests,
            responses,
            id: id.to_owned(),
        }
    }

    /// Connects and asks for the configuration. `version` is what the proxy runs.
    pub(crate) async fn connect(addr: SocketAddr, id: &str, version: &str) -> Self {
        Self::asking(channel(addr).await, id, version)
            .await
            .unwrap()
    }

    /// The first request.
    pub(crate) fn first(&self, version: &str) -> DiscoveryRequest {
        first(&self.id, version)
    }

    pub(crate) async fn ask(&self, version: &str) {
        self.requests.send(self.first(version)).await.unwrap();
    }

    /// The next push.
    pub(crate) async fn pushed(&mut self) -> DiscoveryResponse {
        let message = timeout(BOUND, self.responses.message()).await;
        message.expect("a push in time").unwrap().unwrap()
    }

    /// The next push, accepted.
    pub(crate) async fn pushed_and_accepted(&mut self) -> DiscoveryResponse {
        let response = self.pushed().await;
        self.accept(&response).await;
        response
    }

    /// Waits for the end of the stream, and returns its status.
    pub(crate) async fn ended(&mut self) -> Status {
        loop {
            match timeout(BOUND, self.responses.message())
                .await
                .expect("an end in time")
            {
                Ok(Some(_)) => {}
                Ok(None) => return Status::ok("ended"),
                Err(status) => return status,
            }
        }
    }

    pub(crate) fn acceptance(response: &DiscoveryResponse) -> DiscoveryRequest {
        DiscoveryRequest {
            version_info: response.version_info.clone(),
            response_nonce: response.nonce.clone(),
            resource_names: vec!["tidegate".to_owned()],
            type_url: TYPE.to_owned(),
            ..DiscoveryRequest::default()
        }
    }

    pub(crate) async fn accept(&self, response: &DiscoveryResponse) {
        self.requests
            .send(Self::acceptance(response))
            .await
            .unwrap();
    }

    pub(crate) fn rejection(response: &DiscoveryResponse, message: &str) -> DiscoveryRequest {
        DiscoveryRequest {
            version_info: String::new(),
            error_detail: Some(ErrorDetail {
                code: 13,
                message: message.to_owned(),
                ..ErrorDetail::default()
            }),
            ..Self::acceptance(response)
        }
    }
}

/// One stream, in the incremental variant.
pub(crate) struct DeltaProxy {
    pub(crate) requests: mpsc::Sender<DeltaDiscoveryRequest>,
    pub(crate) responses: Streaming<DeltaDiscoveryResponse>,
}

impl DeltaProxy {
    pub(crate) async fn connect(addr: SocketAddr, first: DeltaDiscoveryRequest) -> Self {
        let (requests, outbound) = mpsc::channel(64);
        let mut client = ExtensionConfigDiscoveryServiceClient::new(channel(addr).await);
        requests.send(first).await.unwrap();
        let responses = client
            .delta_extension_configs(ReceiverStream::new(outbound))
            .await
            .unwrap()
            .into_inner();
        Self {
            requests,
            responses,
        }
    }

    pub(crate) async fn pushed(&mut self) -> DeltaDiscoveryResponse {
        let message = timeout(BOUND, self.responses.message()).await;
        message.expect("a push in time").unwrap().unwrap()
    }
}

/// The filter's configuration in a resource.
pub(crate) fn config(resource: &[u8]) -> Value {
    let extension = TypedExtensionConfig::decode(resource).unwrap();
    let wasm = Wasm::decode(&*extension.typed_config.unwrap().value).unwrap();
    let configuration = wasm.config.unwrap().configuration.unwrap();
    let text = StringValue::decode(&*configuration.value).unwrap().value;
    serde_json::from_str(&text).unwrap()
}

/// The limit, by which tests tell configurations apart; null if no policy matches the proxy.
pub(crate) fn limit(response: &DiscoveryResponse) -> Value {
    config(&response.resources[0].value)["limit"]["max"].clone()
}
