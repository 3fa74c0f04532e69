//! Fuzz targets: requests of proxies, in both dialects, as bytes and as conversations.

use std::time::Duration;

use bolero::TypeGenerator;
use envoy_types::pb::envoy::config::core::v3::{Node, TypedExtensionConfig};
use envoy_types::pb::envoy::service::discovery::v3 as wire;
use envoy_types::pb::google::protobuf::Any;
use envoy_types::pb::google::rpc::Status;
use prost::Message;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::stream::{Conversation, OUTBOX, StreamContext};
use super::wire::{Dialect, resource_type};
use crate::event::EventSink;
use crate::fleet::{DiscoveryApi, ProxyFleet, StreamOrigin};
use crate::net::Peers;
use crate::policy::gather;
use crate::xds::{
    DeltaSubscription, MAX_NAMES, Module, NativeModule, NativeTemplate, PluginTemplate,
    SotwSubscription,
};

const NAMES: [&str; 6] = ["tidegate", "inbound", "", "*", "other", "\u{0}"];
const POLICY: &str = "
apiVersion: tidegate.dev/v1alpha1
kind: BreakerPolicy
metadata: {name: a}
spec:
  proxies: [{metadata: {zone: a}}, {id: 'p*'}]
  slo: {latency: {quantile: 0.9, target: 1s}}
";

/// The template of the resources.
pub(crate) fn plugin() -> PluginTemplate {
    let native = NativeModule::Named("tidegate".to_owned());
    PluginTemplate {
        names: vec![NAMES[0].to_owned()],
        native: NativeTemplate {
            names: vec![NAMES[1].to_owned()],
            module: native.clone(),
        },
        ..PluginTemplate::usual(Module::File("tidegate.wasm".to_owned()), native)
    }
}

/// One step of a conversation.
#[derive(Debug, TypeGenerator)]
enum ConversationStep {
    /// The bytes of a request.
    Bytes(Vec<u8>),
    /// A valid first request.
    First {
        id: u8,
        names: Vec<u8>,
    },
    Names {
        names: Vec<u8>,
        others: Vec<u8>,
        with_nonce: bool,
    },
    /// Many names, some of them long.
    Many(u8),
    Accepted,
    Rejected(String),
    /// An answer to a push that was never made.
    Stale(String),
    OfAnotherType,
    /// The policies change.
    Policies(bool),
}

#[test]
fn every_request_gets_what_it_requested_or_ends_the_stream() {
    bolero::check!(name = "xds_requests")
        .with_type::<(bool, Vec<ConversationStep>)>()
        .with_iterations(1_000)
        .for_each(|(is_delta, steps): &(bool, Vec<ConversationStep>)| {
            if *is_delta {
                Talk::<DeltaSubscription>::play(steps);
            } else {
                Talk::<SotwSubscription>::play(steps);
            }
        });
}

/// The messages of a dialect.
trait Messages: Dialect<Request: Message + Default + Clone> {
    fn request(said: Words) -> Self::Request;
    /// The nonce, the type and the resources of a response.
    fn pushed(response: Self::Response) -> (String, String, Vec<Any>);
}

#[derive(Default)]
struct Words {
    node: Option<Node>,
    type_url: String,
    names: Vec<String>,
    others: Vec<String>,
    nonce: String,
    rejection: Option<Status>,
}

impl Messages for SotwSubscription {
    fn request(said: Words) -> wire::DiscoveryRequest {
        wire::DiscoveryRequest {
            node: said.node,
            type_url: said.type_url,
            resource_names: said.names,
            response_nonce: said.nonce,
            error_detail: said.rejection,
            ..wire::DiscoveryRequest::default()
        }
    }

    fn pushed(response: wire::DiscoveryResponse) -> (String, String, Vec<Any>) {
        (response.nonce, response.type_url, response.resources)
    }
}

impl Messages for DeltaSubscription {
    fn request(said: Words) -> wire::DeltaDiscoveryRequest {
        wire::DeltaDiscoveryRequest {
            node: said.node,
            type_url: said.type_url,
            resource_names_subscribe: said.names,
            resource_names_unsubscribe: said.others,
            response_nonce: said.nonce,
            error_detail: said.rejection,
            ..wire::DeltaDiscoveryRequest::default()
        }
    }

    fn pushed(response: wire::DeltaDiscoveryResponse) -> (String, String, Vec<Any>) {
        let resources = response
            .resources
            .into_iter()
            .filter_map(|resource| resource.resource);
        (response.nonce, response.type_url, resources.collect())
    }
}

/// One stream and the proxy at its other end.
struct Talk<D: Messages> {
    fleet: ProxyFleet,
    conversation: Conversation<D>,
    responses: mpsc::Receiver<Result<D::Response, tonic::Status>>,
    nonces: Vec<String>,
}

impl<D: Messages> Talk<D> {
    fn new() -> Self {
        let fleet = ProxyFleet::new(plugin(), EventSink::default());
        let peers = Peers::new(1);
        let share = peers.take([127, 0, 0, 1].into()).unwrap();
        let context = StreamContext {
            fleet: fleet.clone(),
            patience: Duration::from_secs(1),
            closing: CancellationToken::new(),
        };
        let origin = StreamOrigin {
            api: DiscoveryApi::Ads,
            dialect: D::NAME,
            peer: "fuzzer".to_owned(),
        };
        let (outbox, responses) = mpsc::channel(OUTBOX);
        Self {
            fleet,
            conversation: Conversation::new(context, origin, share, outbox),
            responses,
            nonces: Vec::new(),
        }
    }

    fn play(steps: &[ConversationStep]) {
        let mut talk = Self::new();
        for step in steps {
            if talk.take(step).is_err() {
                break;
            }
        }
        let fleet = talk.fleet.clone();
        assert!(fleet.proxies().len() <= 1);
        drop(talk);
        assert_eq!(fleet.proxies(), [], "a proxy that left is forgotten");
    }

    fn take(&mut self, step: &ConversationStep) -> Result<(), tonic::Status> {
        let nonce = self.nonces.last().cloned().unwrap_or_default();
        let ours = Words {
            type_url: resource_type(),
            ..Words::default()
        };
        let words = match step {
            ConversationStep::Bytes(bytes) => {
                let Ok(request) = D::Request::decode(bytes.as_slice()) else {
                    // The transport ends the stream.
                    return Err(tonic::Status::internal("malformed"));
                };
                return self.receive(request);
            }
            ConversationStep::First { id, names } => Words {
                node: Some(Node {
                    id: format!("p{id}"),
                    ..Node::default()
                }),
                names: named(names),
                ..ours
            },
            ConversationStep::Names {
                names,
                others,
                with_nonce,
            } => Words {
                names: named(names),
                others: named(others),
                nonce: if *with_nonce { nonce } else { String::new() },
                ..ours
            },
            ConversationStep::Many(count) => Words {
                names: (0..*count)
                    .map(|number| "n".repeat(usize::from(number) * 2))
                    .collect(),
                ..ours
            },
            ConversationStep::Accepted => Words {
                nonce,
                names: named(&[0, 1]),
                ..ours
            },
            ConversationStep::Rejected(message) => Words {
                nonce,
                names: named(&[0, 1]),
                rejection: Some(Status {
                    code: 13,
                    message: message.clone(),
                    ..Status::default()
                }),
                ..ours
            },
            ConversationStep::Stale(nonce) => Words {
                nonce: nonce.clone(),
                ..ours
            },
            ConversationStep::OfAnotherType => Words {
                type_url: "type.googleapis.com/other".to_owned(),
                ..ours
            },
            ConversationStep::Policies(is_there) => {
                let text = if *is_there { POLICY } else { "" };
                self.fleet
                    .replace(&gather([("a", text.as_bytes())]).policies, false);
                return self.push();
            }
        };
        self.receive(D::request(words))
    }

    fn receive(&mut self, request: D::Request) -> Result<(), tonic::Status> {
        let encoded = request.encode_to_vec();
        assert_eq!(
            D::Request::decode(encoded.as_slice()).map(|again| again.encoded_len()),
            Ok(encoded.len())
        );
        self.conversation.receive(request)?;
        self.push()
    }

    fn push(&mut self) -> Result<(), tonic::Status> {
        self.conversation.push()?;
        while let Ok(response) = self.responses.try_recv() {
            let (nonce, type_url, resources) = D::pushed(response?);
            assert_eq!(type_url, resource_type());
            assert!(
                !nonce.is_empty() && !self.nonces.contains(&nonce),
                "each push has a nonce of its own"
            );
            assert!(resources.len() <= MAX_NAMES);
            for resource in resources {
                assert_eq!(resource.type_url, resource_type());
                let read = TypedExtensionConfig::decode(&*resource.value).unwrap();
                assert!(NAMES[..2].contains(&read.name.as_str()), "{}", read.name);
                assert!(read.typed_config.is_some());
            }
            self.nonces.push(nonce);
        }
        Ok(())
    }
}

fn named(numbers: &[u8]) -> Vec<String> {
    numbers
        .iter()
        .map(|number| NAMES[usize::from(*number) % NAMES.len()].to_owned())
        .collect()
}
