//! The parts of a filter's message that are the same for both modules.

use envoy_types::pb::google::protobuf::{Any, StringValue};
use prost::Message as _;

pub(super) const STRING_TYPE: &str = "type.googleapis.com/google.protobuf.StringValue";

/// The id of the filter's only root context, and the name under which native filters share their state.
pub(super) const ROOT_ID: &str = "tidegate";

/// A document as the message that both modules accept.
pub(super) fn text(config: &str) -> Any {
    let value = StringValue {
        value: config.to_owned(),
    };
    Any {
        type_url: STRING_TYPE.to_owned(),
        value: value.encode_to_vec(),
    }
}
