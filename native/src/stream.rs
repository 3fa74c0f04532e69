//! One request, as Envoy holds it.
//!
//! Envoy calls the hooks of a stream on one thread. It may call one from within another: a local reply comes back as
//! `local_reply`, and might as well end the stream. A stream that is busy answers such a hook with nothing, and is freed
//! afterwards.

#![expect(unsafe_code, reason = "Envoy hands the streams back as pointers")]

use core::cell::{Cell, UnsafeCell};
use core::ffi::c_void;
use std::sync::Arc;

use tidegate_worker::stream::Stream;

use crate::abi::{self, EnvoyPtr};
use crate::plugin::{Plugin, WorkerAccess};
use crate::registry::{self, RouteConfig};

/// One request; see the module.
#[derive(Debug)]
pub(crate) struct NativeStream {
    plugin: Arc<Plugin>,
    is_busy: Cell<bool>,
    is_doomed: Cell<bool>,
    /// Nothing before the request headers; Envoy never shows some streams to filters.
    stream: UnsafeCell<Option<Stream<WorkerAccess>>>,
}

/// Ends the hook under way, even if it panics.
struct Busy<'a>(&'a Cell<bool>);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

impl NativeStream {
    /// A request to a filter with this plugin, as a pointer for Envoy.
    pub(crate) fn create(plugin: &Arc<Plugin>) -> *const c_void {
        let stream = Box::new(Self {
            plugin: Arc::clone(plugin),
            is_busy: Cell::new(false),
            is_doomed: Cell::new(false),
            stream: UnsafeCell::new(None),
        });
        Box::into_raw(stream).cast_const().cast()
    }

    /// Runs a hook of the request behind a pointer of Envoy's; nothing without such a request.
    ///
    /// # Safety
    /// The pointer is one of [`NativeStream::create`] that was not destroyed, on the stream's own thread.
    pub(crate) unsafe fn on<T>(
        pointer: *const c_void,
        hook: impl FnOnce(&mut Stream<WorkerAccess>) -> T,
    ) -> Option<T> {
        // SAFETY: the caller's.
        unsafe { Self::visit(pointer, |_, stream| stream.as_mut().map(hook)) }.flatten()
    }

    /// The request headers have come: the request gets its worker.
    ///
    /// # Safety
    /// As [`NativeStream::on`]; `envoy` is the stream of the hook under way.
    pub(crate) unsafe fn begin<T>(
        pointer: *const c_void,
        envoy: EnvoyPtr,
        hook: impl FnOnce(&mut Stream<WorkerAccess>) -> T,
    ) -> Option<T> {
        // SAFETY: the caller's.
        unsafe {
            Self::visit(pointer, |plugin, stream| {
                if stream.is_none() {
                    let index =
                        abi::envoy_dynamic_module_callback_http_filter_get_worker_index(envoy);
                    let index = usize::try_from(index).ok()?;
                    let worker = match route_of(envoy) {
                        Some(route) => Arc::clone(route.plugin.worker(index)?),
                        None => Arc::clone(plugin.worker(index)?),
                    };
                    *stream = Some(Stream::new(WorkerAccess::new(worker, envoy)));
                }
                stream.as_mut().map(hook)
            })
        }
        .flatten()
    }

    /// # Safety
    /// As [`NativeStream::on`].
    unsafe fn visit<T>(
        pointer: *const c_void,
        visit: impl FnOnce(&Arc<Plugin>, &mut Option<Stream<WorkerAccess>>) -> T,
    ) -> Option<T> {
        // SAFETY: the pointer came from a box that was not freed: a busy stream is not (see `destroy`).
        let it = unsafe { pointer.cast::<Self>().as_ref() }?;
        if it.is_busy.replace(true) {
            return None;
        }
        let busy = Busy(&it.is_busy);
        // SAFETY: `is_busy` was false, so nothing else refers to it.
        let result = visit(&it.plugin, unsafe { &mut *it.stream.get() });
        drop(busy);
        if it.is_doomed.get() {
            // SAFETY: Envoy has destroyed the stream during the hook, and this was its last use.
            unsafe { Self::destroy(pointer) };
        }
        Some(result)
    }

    /// Frees the request, if no hook of it runs; else when that ends.
    ///
    /// # Safety
    /// As [`NativeStream::on`], and the pointer is not used afterwards.
    pub(crate) unsafe fn destroy(pointer: *const c_void) {
        // SAFETY: as in `visit`.
        let Some(it) = (unsafe { pointer.cast::<Self>().as_ref() }) else {
            return;
        };
        if it.is_busy.get() {
            it.is_doomed.set(true);
            return;
        }
        // SAFETY: the pointer came from a box.
        drop(unsafe { Box::from_raw(pointer.cast_mut().cast::<Self>()) });
    }
}

/// The configuration of the request's route, if that has one.
///
/// # Safety
/// `envoy` is the stream of the hook under way.
unsafe fn route_of<'a>(envoy: EnvoyPtr) -> Option<&'a RouteConfig> {
    if !registry::has_routes() {
        return None;
    }
    // SAFETY: the caller's. Envoy holds the route, and so its configuration, during the hook.
    unsafe {
        abi::envoy_dynamic_module_callback_get_most_specific_route_config(envoy)
            .cast::<RouteConfig>()
            .as_ref()
    }
}
