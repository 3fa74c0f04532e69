//! Load reports (ORCA) in the headers and trailers of responses.
//!
//! The proxy's own report is set only where the configuration says so, and replaces any that the upstream sent: two would
//! contradict each other. Envoy's load balancer reads a response before the filters do, so what is removed here was of use to this
//! proxy.

#![expect(unsafe_code, reason = "headers are changed by calls into Envoy")]

use tidegate_core::classify::Length;
use tidegate_core::config::LoadReports;
use tidegate_worker::stream::Stream;

use crate::abi::{self, Buffer, EnvoyPtr, header_type};
use crate::load_figures::REPORT;
use crate::load_reports::ReportText;
use crate::plugin::WorkerAccess;

/// Those of gRPC servers, which send it as a trailer, and of Envoys before 1.33.
const OTHERS: [&str; 2] = ["endpoint-load-metrics-bin", "endpoint-load-metrics-json"];

/// The response headers of a request have come.
pub(crate) fn on_response_headers(
    stream: &mut Stream<WorkerAccess>,
    envoy: EnvoyPtr,
    length: Length,
) {
    let reports = stream.access().load_reports();
    // Afterwards the request may have no upstream any more.
    let own = (reports == LoadReports::Set).then(|| own_report(stream));
    stream.on_response_headers(length);
    if reports != LoadReports::Pass {
        replace(envoy, header_type::RESPONSE, own.flatten().as_ref());
    }
}

/// The response trailers of a request have come.
pub(crate) fn on_response_trailers(stream: &mut Stream<WorkerAccess>, envoy: EnvoyPtr) {
    let reports = stream.access().load_reports();
    stream.on_response_trailers();
    if reports != LoadReports::Pass {
        replace(envoy, header_type::RESPONSE_TRAILERS, None);
    }
}

fn own_report(stream: &Stream<WorkerAccess>) -> Option<ReportText> {
    let found = stream.look(|plugin, upstream| plugin.host().load_report(upstream?));
    found.flatten()
}

/// Replaces what the upstream sent by `own`; `None` removes it.
fn replace(envoy: EnvoyPtr, kind: u32, own: Option<&ReportText>) {
    let own = own.map_or(Buffer::EMPTY, |text| Buffer::of(text.as_bytes()));
    set(envoy, kind, REPORT, own);
    for other in OTHERS {
        set(envoy, kind, other, Buffer::EMPTY);
    }
}

/// Sets a header; an empty value removes it.
fn set(envoy: EnvoyPtr, kind: u32, name: &str, value: Buffer) {
    // SAFETY: the stream is that of the hook under way; Envoy reads both texts during the call. Without such a map it does
    // nothing.
    unsafe {
        abi::envoy_dynamic_module_callback_http_set_header(
            envoy,
            kind,
            Buffer::of(name.as_bytes()),
            value,
        );
    }
}
