//! The local reply: an answer in the place of the upstream.

use tidegate_core::reply::LocalReply;
use tidegate_worker::api::HostError;

use super::{NativeHost, unknown};
use crate::abi::{self, Buffer, Header};
use crate::decimal::Decimal;
use crate::load_figures::REPORT;
use crate::load_reports::ReportText;

impl NativeHost {
    /// Answers the request in the upstream's place, with a load report if there is one.
    pub(super) fn send(
        &self,
        reply: &LocalReply<'_>,
        report: Option<&ReportText>,
    ) -> Result<(), HostError> {
        let stream = self.stream().ok_or_else(|| unknown("send_response"))?;
        let retry_after = Decimal::of(reply.retry_after_secs);
        let grpc = reply.pushback_ms.filter(|_| self.is_grpc());
        let grpc = grpc.map(|millis| (Decimal::of(millis), Decimal::of(reply.grpc_status.into())));
        let header = |name: &str, value: &[u8]| {
            Some(Header {
                key: Buffer::of(name.as_bytes()),
                value: Buffer::of(value),
            })
        };
        let all = [
            header("retry-after", retry_after.as_bytes()),
            reply
                .is_final
                .then(|| header("x-envoy-ratelimited", b"true"))
                .flatten(),
            reply
                .reason
                .and_then(|(name, value)| header(name, value.as_bytes())),
            grpc.as_ref()
                .and_then(|(pushback, _)| header("grpc-retry-pushback-ms", pushback.as_bytes())),
            // Envoy keeps a status that is there already.
            grpc.as_ref()
                .and_then(|(_, status)| header("grpc-status", status.as_bytes())),
            report.and_then(|text| header(REPORT, text.as_bytes())),
        ];
        let mut headers = [Header::EMPTY; 6];
        let mut count = 0;
        for (place, header) in headers.iter_mut().zip(all.into_iter().flatten()) {
            *place = header;
            count += 1;
        }
        // SAFETY: the stream is that of the hook under way; Envoy reads all bytes during the call. Hooks that it calls
        // meanwhile find the stream busy.
        unsafe {
            abi::envoy_dynamic_module_callback_http_send_response(
                stream,
                u32::from(reply.status),
                headers.as_ptr(),
                count,
                Buffer::of(reply.body.as_bytes()),
                Buffer::of(reply.details.as_bytes()),
            );
        }
        #[cfg(any(test, feature = "test-hooks"))]
        crate::crash::panic_if_asked("reply");
        Ok(())
    }
}
