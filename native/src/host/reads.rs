//! What is read from the stream of the hook under way: its cluster, attributes and headers.

use core::ptr;

use tidegate_worker::api::Headers;

use super::NativeHost;
use crate::abi::{self, Buffer, EnvoyPtr, NewerCallbacks, attribute_id, header_type};

/// The priorities whose endpoints are counted. In practice, no cluster of Envoy has more.
const PRIORITIES: u32 = 8;

impl NativeHost {
    pub(super) fn stream(&self) -> Option<EnvoyPtr> {
        let stream = self.stream.get();
        (!stream.is_null()).then_some(stream)
    }

    /// A text attribute of the stream under way, as long as its hook lasts.
    pub(super) fn text(&self, id: u32) -> Option<&[u8]> {
        // SAFETY: the stream is that of the hook under way; nothing keeps the text beyond it.
        unsafe { attribute_text(self.stream()?, id) }
    }

    /// The address of the upstream host that Envoy chose last for the stream under way, as long as its hook lasts.
    pub(crate) fn upstream_address(&self) -> Option<&[u8]> {
        self.text(attribute_id::UPSTREAM_ADDRESS)
    }

    /// The name of the cluster, as long as the hook under way lasts: it is a part of Envoy's cluster.
    pub(super) fn cluster_name(&self) -> Option<&[u8]> {
        let stream = self.stream()?;
        let mut value = Buffer::EMPTY;
        // SAFETY: the stream is that of the hook under way, and `value` is a local.
        let found = unsafe {
            abi::envoy_dynamic_module_callback_http_get_cluster_name(stream, &raw mut value)
        };
        // SAFETY: as in `text`; nothing keeps it beyond the hook.
        let name = found.then(|| unsafe { value.bytes() });
        name.filter(|name| !name.is_empty())
    }

    /// The number of endpoints of the cluster of the stream under way.
    pub(super) fn host_count(&self) -> Option<u64> {
        let (stream, count) = (self.stream()?, NewerCallbacks::get().cluster_host_count?);
        let mut sum = 0_usize;
        for priority in 0..PRIORITIES {
            let (mut all, mut healthy, mut degraded) = (0, 0, 0);
            // SAFETY: the stream is that of the hook under way, and the numbers are locals.
            let found = unsafe {
                count(
                    stream,
                    priority,
                    &raw mut all,
                    &raw mut healthy,
                    &raw mut degraded,
                )
            };
            if !found {
                break;
            }
            sum = sum.saturating_add(all);
        }
        let sum = u64::try_from(sum).unwrap_or(u64::MAX);
        (sum > 0).then_some(sum)
    }

    /// Envoy's response flags of the stream under way.
    pub(super) fn flags(&self) -> Option<u64> {
        let mut value = 0_u64;
        let stream = self.stream()?;
        // SAFETY: as in `host_count`.
        let found = unsafe {
            abi::envoy_dynamic_module_callback_http_filter_get_attribute_int(
                stream,
                attribute_id::RESPONSE_FLAGS,
                &raw mut value,
            )
        };
        found.then_some(value)
    }

    /// A header of the stream under way, as long as its hook lasts.
    pub(super) fn value(&self, kind: u32, name: &str) -> Option<&[u8]> {
        let stream = self.stream()?;
        let mut value = Buffer::EMPTY;
        // SAFETY: as in `text`.
        let found = unsafe {
            abi::envoy_dynamic_module_callback_http_get_header(
                stream,
                kind,
                Buffer::of(name.as_bytes()),
                &raw mut value,
                0,
                ptr::null_mut(),
            )
        };
        // SAFETY: as in `text`; nothing keeps it beyond the hook.
        found.then(|| unsafe { value.bytes() })
    }

    pub(super) fn is_grpc(&self) -> bool {
        self.value(header_type::REQUEST, "content-type")
            .is_some_and(|kind| kind.starts_with(b"application/grpc"))
    }
}

/// A text attribute of a stream.
///
/// # Safety
/// The stream is that of the hook under way, which outlives `'a`.
pub(crate) unsafe fn attribute_text<'a>(stream: EnvoyPtr, id: u32) -> Option<&'a [u8]> {
    let mut value = Buffer::EMPTY;
    // SAFETY: the caller's, and `value` is a local.
    let found = unsafe {
        abi::envoy_dynamic_module_callback_http_filter_get_attribute_string(
            stream,
            id,
            &raw mut value,
        )
    };
    // SAFETY: Envoy gave the buffer in this hook.
    found.then(|| unsafe { value.bytes() })
}

pub(super) const fn header_kind(map: Headers) -> u32 {
    match map {
        Headers::Request => header_type::REQUEST,
        Headers::Response => header_type::RESPONSE,
        Headers::ResponseTrailers => header_type::RESPONSE_TRAILERS,
    }
}
