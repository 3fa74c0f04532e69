//! What a VM may read of its proxy: attributes, headers and configurations, valid and invalid ones.

use tidegate_worker::api::{Headers, attribute};

use super::World;
use crate::fuzz::script::Find;

pub(super) const CLUSTERS: [&str; 6] = [
    "web",
    "outbound|80||web.shop.svc.cluster.local",
    "inbound-vip|80|http|db.shop.svc.cluster.local",
    "PassthroughCluster",
    "\u{fffd};\0\n",
    "",
];
const STATUSES: [&str; 10] = [
    "200", "204", "404", "429", "500", "503", "504", "101", "no", "",
];
const DETAILS: [&str; 6] = [
    "via_upstream",
    "",
    "upstream_reset_before_response_started{connection_failure}",
    "upstream_reset_before_response_started{overflow}",
    "response_timeout",
    "no_healthy_upstream",
];
const NUMBERS: [&str; 8] = ["0", "8", "14", "4", "1", "-1", "99999999999999999999", "x"];
const PATHS: [&str; 4] = ["/", "/healthz", "/pay/1?a=b", ""];
const CLASSES: [&str; 4] = ["critical_plus", "sheddable", "Critical", "?"];

/// Configurations that are taken, then some that are rejected.
pub(super) const CONFIGS: [&str; 11] = [
    r#"{"slo":{"latency":{"quantile":0.99,"target":"300ms"}}}"#,
    r#"{"slo":{"latency":{"quantile":0.5,"target":"5ms"}},"limit":{"min":1,"initial":1,"max":2,"maxOpen":4}}"#,
    r#"{"slo":{"latency":{"quantile":0.9,"target":"50ms","until":"end"}},"stance":"throughput","limit":{"min":1,"initial":2},
        "criticality":{"header":"x-class","cohortHeader":"x-user","rules":[{"path":"/pay/*","criticality":"critical_plus"}]}}"#,
    r#"{"slo":{"latency":{"quantile":0.9,"target":"50ms","until":"firstByte"}},"mode":"observe","limit":{"min":1,"initial":1,"max":1}}"#,
    r#"{"slo":{"latency":{"quantile":0.9,"target":"100ms"}},"enforcement":0.5,"breaker":{"minOpen":"100ms","maxOpen":"1s"},
        "limit":{"min":1,"initial":3,"max":3},"shed":{"maxShare":0.5,"reply":"retryElsewhere"}}"#,
    r#"{"slo":{"latency":{"quantile":0.9,"target":"100ms"}},"ignore":{"paths":["/healthz"],"userAgents":["x"]},
        "upstreams":[{"match":{"route":"r*"},"limit":{"max":2,"initial":2}},{"match":{"service":"web.*"},"breaker":{"enabled":false}}]}"#,
    r#"{"slo":{"latency":{"quantile":0.9,"target":"100ms"}},"enabled":false}"#,
    r#"{"slo":{"latency":{"quantile":0.9,"target":"100ms"}},"limit":{"min":5,"max":4}}"#,
    r#"{"mode":"enforce"}"#,
    "",
    "{",
];

impl World {
    pub(super) fn find(&self, find: Find, value: u16) {
        let host = self.host();
        let text = |texts: &[&'static str]| texts[usize::from(value) % texts.len()];
        let number = u64::from(value);
        match find {
            Find::Cluster => host.set_attribute(attribute::CLUSTER, text(&CLUSTERS).as_bytes()),
            Find::Status => host.set_header(Headers::Response, ":status", text(&STATUSES)),
            Find::Details => host.set_attribute(attribute::CODE_DETAILS, text(&DETAILS).as_bytes()),
            // Each of the flags that are looked at, and others.
            Find::Flags => {
                host.set_attribute(attribute::FLAGS, &(1_u64 << (value % 30)).to_le_bytes())
            }
            Find::GrpcStatus => host.set_header(Headers::Response, "grpc-status", text(&NUMBERS)),
            Find::GrpcTrailer => {
                host.set_header(Headers::ResponseTrailers, "grpc-status", text(&NUMBERS))
            }
            Find::RetryAfter => host.set_header(Headers::Response, "retry-after", text(&NUMBERS)),
            Find::Path => host.set_header(Headers::Request, ":path", text(&PATHS)),
            Find::Class => host.set_header(Headers::Request, "x-class", text(&CLASSES)),
            Find::Caller => host.set_header(Headers::Request, "x-user", value.to_le_bytes()),
            Find::Attempt => {
                host.set_header(Headers::Request, "x-envoy-attempt-count", text(&NUMBERS))
            }
            Find::Endpoints => {
                host.set_attribute(attribute::ENDPOINTS, &(number % 5).to_le_bytes())
            }
            Find::Route => {
                host.set_attribute(attribute::ROUTE, text(&["r1", "other", ""]).as_bytes())
            }
        }
    }
}
