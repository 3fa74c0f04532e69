//! Translates between the messages on the wire and the values of the subscriptions, for both dialects.

use envoy_types::pb::envoy::config::core::v3::{Node, TypedExtensionConfig};
use envoy_types::pb::envoy::service::discovery::v3 as wire;
use envoy_types::pb::google::protobuf::Any;
use envoy_types::pb::google::rpc::Status;
use prost::Name as _;

use crate::xds::{
    DeltaRequest, DeltaSubscription, Desired, Excess, Name, PushReply, Rejection, Resource,
    ResourceVersion, SotwRequest, SotwSubscription,
};

/// The contents of a push for the status of the proxy: names, and versions of the resources that exist.
pub(super) type PushContents = Vec<(Name, Option<ResourceVersion>)>;

/// One of the two dialects of the protocol.
pub(super) trait Dialect: Default + Send + 'static {
    /// What proxies send.
    type Request: Send + 'static;
    /// What they receive.
    type Response: Send + 'static;

    /// The name in status and metrics.
    const NAME: &'static str;

    fn node(request: &mut Self::Request) -> Option<Node>;
    fn type_url(request: &Self::Request) -> &str;
    fn receive_wire(
        &mut self,
        request: Self::Request,
        desired: &Desired,
    ) -> Result<PushReply, Excess>;
    fn push_wire(&mut self, desired: &Desired) -> Option<(Self::Response, PushContents)>;
    fn runs(&self, name: &str) -> Option<&ResourceVersion>;
    fn wants(&self, name: &str) -> bool;
}

/// The type of the resources that are served.
pub(super) fn resource_type() -> String {
    TypedExtensionConfig::type_url()
}

impl Dialect for SotwSubscription {
    type Request = wire::DiscoveryRequest;
    type Response = wire::DiscoveryResponse;

    const NAME: &'static str = "sotw";

    fn node(request: &mut Self::Request) -> Option<Node> {
        request.node.take()
    }

    fn type_url(request: &Self::Request) -> &str {
        &request.type_url
    }

    fn receive_wire(
        &mut self,
        request: Self::Request,
        desired: &Desired,
    ) -> Result<PushReply, Excess> {
        let request = SotwRequest {
            version: request.version_info,
            nonce: request.response_nonce,
            names: request.resource_names,
            rejection: request.error_detail.map(rejection),
        };
        self.receive(&request, desired)
    }

    fn push_wire(&mut self, desired: &Desired) -> Option<(Self::Response, PushContents)> {
        let push = self.push(desired)?;
        let contents = contents(&push.resources);
        let response = wire::DiscoveryResponse {
            version_info: push.version.to_string(),
            resources: push.resources.into_iter().map(any).collect(),
            type_url: resource_type(),
            nonce: push.nonce,
            ..wire::DiscoveryResponse::default()
        };
        Some((response, contents))
    }

    fn runs(&self, name: &str) -> Option<&ResourceVersion> {
        self.running(name)
    }

    fn wants(&self, name: &str) -> bool {
        self.is_wanted(name)
    }
}

impl Dialect for DeltaSubscription {
    type Request = wire::DeltaDiscoveryRequest;
    type Response = wire::DeltaDiscoveryResponse;

    const NAME: &'static str = "delta";

    fn node(request: &mut Self::Request) -> Option<Node> {
        request.node.take()
    }

    fn type_url(request: &Self::Request) -> &str {
        &request.type_url
    }

    fn receive_wire(&mut self, request: Self::Request, _: &Desired) -> Result<PushReply, Excess> {
        let request = DeltaRequest {
            nonce: request.response_nonce,
            rejection: request.error_detail.map(rejection),
            subscribe: request.resource_names_subscribe,
            unsubscribe: request.resource_names_unsubscribe,
            initial_versions: request.initial_resource_versions.into_iter().collect(),
        };
        self.receive(&request)
    }

    fn push_wire(&mut self, desired: &Desired) -> Option<(Self::Response, PushContents)> {
        let push = self.push(desired)?;
        let mut contents = contents(&push.resources);
        contents.extend(push.removed.iter().map(|name| (name.clone(), None)));
        let resources = push.resources.into_iter().map(|resource| wire::Resource {
            name: resource.name.to_string(),
            version: resource.version.to_string(),
            resource: Some(any(resource)),
            ..wire::Resource::default()
        });
        let response = wire::DeltaDiscoveryResponse {
            resources: resources.collect(),
            removed_resources: push.removed.iter().map(ToString::to_string).collect(),
            type_url: resource_type(),
            nonce: push.nonce,
            ..wire::DeltaDiscoveryResponse::default()
        };
        Some((response, contents))
    }

    fn runs(&self, name: &str) -> Option<&ResourceVersion> {
        self.running(name)
    }

    fn wants(&self, name: &str) -> bool {
        self.is_wanted(name)
    }
}

fn contents(resources: &[Resource]) -> PushContents {
    let entry = |resource: &Resource| (resource.name.clone(), Some(resource.version.clone()));
    resources.iter().map(entry).collect()
}

fn any(resource: Resource) -> Any {
    Any {
        type_url: resource_type(),
        value: resource.body.into(),
    }
}

fn rejection(status: Status) -> Rejection {
    Rejection::new(status.code, &status.message)
}
