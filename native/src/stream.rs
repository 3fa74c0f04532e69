//! One request, as Envoy holds it.
//!
//! Envoy calls the hooks of a stream on one thread. It may call one from within another: a local reply comes back as
//! `local_reply`, and might as well end the stream. A stream that is busy answers such a hook with nothing, and is freed
//! afterwards.

#![expect(unsafe_code, reason = "Envoy hands the streams back as pointers")]

use core::cell::{Cell, UnsafeCell};
use core::ffi::c_void;
use core::ptr::NonNull;
use std::sync::Arc;

use tidegate_worker::stream::Stream;

use crate::abi::{self, EnvoyPtr};
use crate::guard;
use crate::plugin::{NativePlugin, WorkerAccess};
use crate::pool::FreePlaces;
use crate::registry::{self, RouteConfig};

/// One request; see the module.
#[derive(Debug)]
pub(crate) struct NativeStream {
    is_busy: Cell<bool>,
    is_doomed: Cell<bool>,
    stage: UnsafeCell<Stage>,
}

/// How far a request has come.
#[derive(Debug)]
enum Stage {
    /// No request headers yet; Envoy never shows some streams to filters.
    New(Arc<NativePlugin>),
    Begun(Stream<WorkerAccess>),
    /// No worker is known for it: it passes by.
    Unknown,
}

thread_local! {
    static FREE: FreePlaces<NativeStream> = const { FreePlaces::new() };
}

/// Ends the hook under way of a stream, even if it panics, and frees the stream if Envoy has destroyed it meanwhile. Not a
/// reference, because nothing may refer to what is freed.
struct Busy(*const NativeStream);

impl Drop for Busy {
    fn drop(&mut self) {
        // SAFETY: a busy stream is not freed.
        let is_doomed = unsafe {
            (*self.0).is_busy.set(false);
            (*self.0).is_doomed.get()
        };
        if is_doomed {
            // While one panic unwinds, another one that is not caught ends Envoy.
            // SAFETY: Envoy has destroyed the stream during the hook, and this was its last use.
            guard::call("destroy", (), || unsafe {
                NativeStream::destroy(self.0.cast());
            });
        }
    }
}

impl NativeStream {
    /// A request to a filter with this plugin, as a pointer for Envoy.
    pub(crate) fn create(plugin: &Arc<NativePlugin>) -> *const c_void {
        let stream = Self {
            is_busy: Cell::new(false),
            is_doomed: Cell::new(false),
            stage: UnsafeCell::new(Stage::New(Arc::clone(plugin))),
        };
        let place = FREE.with(|free| free.put(stream));
        place.as_ptr().cast_const().cast()
    }

    /// Places that the thread keeps for other requests.
    #[cfg(test)]
    pub(crate) fn free_places() -> usize {
        FREE.with(FreePlaces::count)
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
        unsafe { Self::visit(pointer, |stage| stage.stream().map(hook)) }.flatten()
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
            Self::visit(pointer, |stage| {
                if matches!(stage, Stage::New(_)) {
                    let index =
                        abi::envoy_dynamic_module_callback_http_filter_get_worker_index(envoy);
                    stage.begin(route_of(envoy), index, envoy);
                }
                stage.stream().map(hook)
            })
        }
        .flatten()
    }

    /// # Safety
    /// As [`NativeStream::on`].
    unsafe fn visit<T>(pointer: *const c_void, visit: impl FnOnce(&mut Stage) -> T) -> Option<T> {
        // SAFETY: the pointer came from the pool and was not freed: a busy stream is not (see `destroy`).
        let it = unsafe { pointer.cast::<Self>().as_ref() }?;
        if it.is_busy.replace(true) {
            return None;
        }
        let _busy = Busy(pointer.cast());
        // SAFETY: `is_busy` was false, so nothing else refers to it.
        Some(visit(unsafe { &mut *it.stage.get() }))
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
        // SAFETY: the pointer came from the pool, is not null, and this is its last use.
        FREE.with(|free| unsafe {
            free.free(NonNull::new_unchecked(pointer.cast::<Self>().cast_mut()))
        });
    }
}

impl Stage {
    const fn stream(&mut self) -> Option<&mut Stream<WorkerAccess>> {
        match self {
            Self::Begun(stream) => Some(stream),
            Self::New(_) | Self::Unknown => None,
        }
    }

    /// Finds the worker of a new request, under the configuration of its route if that has one.
    fn begin(&mut self, route: Option<&RouteConfig>, index: u32, envoy: EnvoyPtr) {
        let Self::New(plugin) = core::mem::replace(self, Self::Unknown) else {
            return;
        };
        let plugin = route.map_or(plugin, |route| Arc::clone(&route.plugin));
        if let Ok(index) = usize::try_from(index)
            && let Some(access) = WorkerAccess::new(plugin, index, envoy)
        {
            // `Unknown` has nothing to drop.
            core::mem::forget(core::mem::replace(self, Self::Begun(Stream::new(access))));
        }
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
