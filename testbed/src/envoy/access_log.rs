//! Envoy's access log, with one line for each request that has ended.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

/// Its file name in Envoy's folder.
pub(super) const FILE: &str = "access.log";

/// One request as Envoy logged it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessLine {
    /// Status sent to the caller; 0 when there was none.
    pub status: u16,
    /// Why this status (`via_upstream`, `tidegate_shed_limit`, ...).
    pub details: String,
    /// Envoy's response flags.
    pub flags: String,
    /// The cluster it was routed to.
    pub cluster: String,
    /// gRPC status number, if there is one.
    pub grpc_status: Option<u32>,
    /// Path of the request.
    pub path: String,
}

pub(super) fn json(path: &Path) -> Value {
    let line = "%RESPONSE_CODE% %RESPONSE_CODE_DETAILS% %RESPONSE_FLAGS% %UPSTREAM_CLUSTER% \
                %GRPC_STATUS_NUMBER% %REQ(:PATH)%\n";
    json!({
        "name": "envoy.access_loggers.file",
        "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog",
            "path": path,
            "log_format": {"text_format_source": {"inline_string": line}},
        },
    })
}

pub(super) fn read(path: &Path) -> Vec<AccessLine> {
    fs::read_to_string(path)
        .unwrap_or_default()
        .lines()
        .filter_map(parse)
        .collect()
}

fn parse(line: &str) -> Option<AccessLine> {
    let mut fields = line.split(' ');
    let mut next = || fields.next().map(str::to_owned);
    Some(AccessLine {
        status: next()?.parse().ok()?,
        details: next()?,
        flags: next()?,
        cluster: next()?,
        grpc_status: next()?.parse().ok(),
        path: next()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_becomes_fields() {
        let line = parse("503 tidegate_shed_limit - main - /a").unwrap();
        assert_eq!(line.status, 503);
        assert_eq!(line.details, "tidegate_shed_limit");
        assert_eq!(line.grpc_status, None);
        assert_eq!(parse("half a li"), None);
    }
}
