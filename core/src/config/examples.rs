//! Documents for the reference, and for the error about a blank document.

/// The smallest valid document.
pub const MINIMAL_EXAMPLE: &str = r#"{"slo":{"latency":{"quantile":0.99,"target":"300ms"}}}"#;

/// A document that uses every part; shown in the reference, and a test reads it.
pub const FULL_EXAMPLE: &str = r#"{
  "slo": {"latency": {"quantile": 0.99, "target": "250ms"}, "successRate": 0.999},
  "mode": "enforce",
  "stance": "failFast",
  "limit": {"min": 1, "max": 10000, "initial": 20},
  "breaker": {"tripRatio": 0.5, "minOpen": "1s", "maxOpen": "1m"},
  "shed": {"reply": "stop", "status": 503},
  "criticality": {
    "header": "x-criticality",
    "default": "critical",
    "rules": [
      {"path": "/checkout/*", "method": "POST", "criticality": "critical_plus"},
      {"clientIdentity": "spiffe://cluster.local/ns/batch/sa/*", "criticality": "sheddable_plus"}
    ]
  },
  "deadline": {"headers": ["x-envoy-expected-rq-timeout-ms", "grpc-timeout"]},
  "ignore": {"paths": ["/healthz", "/livez"]},
  "upstreams": [
    {
      "match": {"service": "payments.*"},
      "slo": {"latency": {"target": "80ms"}},
      "limit": {"max": 200}
    },
    {
      "match": {"service": "chat.*"},
      "slo": {"latency": {"target": "2s", "until": "firstByte"}},
      "limit": {"maxOpen": 500}
    },
    {
      "match": {"cluster": "dynamic_forward_proxy_cluster"},
      "keyBy": "authority",
      "overload": {"statuses": [429, 529]}
    },
    {
      "match": {"service": "*.reports", "route": "nightly-*"},
      "stance": "throughput",
      "mode": "observe"
    }
  ]
}"#;
