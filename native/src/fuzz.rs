//! Fuzz target `native_hooks` (`docs/fuzzing.md`): hooks in any order, as Envoy might call them, on two workers, with routes, options,
//! replies within which Envoy calls back, and states that are taken. Nothing is lost, and nothing panics.

use core::cell::Cell;
use core::ffi::c_void;
use core::ptr;
use std::sync::Arc;

use bolero::produce;

use crate::fake::{CLUSTER, FLAGS, REPLIES, ROUTE, STATUS, WITHIN_REPLY, WORKER};
use crate::guard;
use crate::hooks::*;
use crate::rig::{DOCUMENT, Filter, Hook, Route, STREAMS, in_flight};

/// A step as it is drawn: what, where, and with which values.
type Drawn = (u8, u8, u8);

/// What is put in front of [`DOCUMENT`], and what of it is replaced.
const OPTIONS: [(&str, &str, &str); 6] = [
    ("", "", ""),
    (
        r#""native":{"hosts":2,"loadReports":"set","histograms":true},"#,
        "",
        "",
    ),
    (
        r#""native":{"loadReports":"remove"},"#,
        r#""end""#,
        r#""headers""#,
    ),
    (r#""mode":"observe","#, r#""end""#, r#""firstByte""#),
    (r#""enabled":false,"#, "", ""),
    (
        r#""breaker":{"enabled":false},"#,
        r#""initial":3,"max":3"#,
        r#""initial":2,"max":2"#,
    ),
];
const STATUSES: [&str; 7] = ["200", "503", "101", "302", "404", "429", ""];
/// None, that the upstream's connection failed, that it was cut, that the caller left.
const ALL_FLAGS: [u64; 4] = [0, 0x20, 0x40, 0x4000];
/// One of them never takes part: Envoy has said that there are two.
const WORKERS: u8 = 3;
const ROUTES: usize = 2;

thread_local! {
    /// The stream of the hook under way.
    static CURRENT: Cell<*const c_void> = const { Cell::new(ptr::null()) };
    /// Inputs that did not come to their end: the next one must not find what they left.
    static BROKEN_OFF: Cell<u32> = const { Cell::new(0) };
    /// Whether Envoy has destroyed it within a reply.
    static IS_DESTROYED: Cell<bool> = const { Cell::new(false) };
}

fn document(number: u8) -> String {
    let (option, from, to) = OPTIONS[usize::from(number) % OPTIONS.len()];
    let document = DOCUMENT.replacen('{', &format!("{{{option}"), 1);
    if from.is_empty() {
        document
    } else {
        document.replace(from, to)
    }
}

/// A filter, and routes that come and go.
struct World {
    name: String,
    filter: Filter,
    routes: [Option<Route>; ROUTES],
}

impl World {
    fn new() -> Self {
        STATUS.set("200");
        CLUSTER.set("web");
        FLAGS.set(0);
        WORKER.set(0);
        let number = BROKEN_OFF.replace(BROKEN_OFF.get() + 1);
        let name = format!("fuzz-{number}");
        Self {
            filter: Filter::new(&name),
            routes: [const { None }; ROUTES],
            name,
        }
    }

    fn take(&mut self, (what, place, value): Drawn) {
        let (at, flag) = (usize::from(place) % STREAMS, value % 2 == 1);
        let hook = match what {
            0..28 => Hook::New,
            28..70 => return self.request_headers(at, value),
            70..84 => Hook::RequestBody(flag),
            84..90 => Hook::RequestTrailers,
            90..118 => Hook::ResponseHeaders(flag),
            118..132 => Hook::ResponseBody(flag),
            132..138 => Hook::ResponseTrailers,
            138..144 => Hook::LocalReply,
            144..170 => Hook::StreamComplete,
            170..190 => Hook::Destroy,
            190..196 => return self.while_taken(at, value),
            196..206 => return self.filter.round(),
            206..212 => return self.filter.publish(),
            212..218 => return Filter::with(&self.name, &document(value)).end(),
            218..224 => return self.replace(value),
            224..232 => return self.change_route(usize::from(place) % ROUTES, value),
            232..240 => return STATUS.set(STATUSES[usize::from(value) % STATUSES.len()]),
            240..244 => return FLAGS.set(ALL_FLAGS[usize::from(value) % ALL_FLAGS.len()]),
            244..250 => return WORKER.set(u32::from(value % WORKERS)),
            _ => Hook::Cluster(value % 4 > 0),
        };
        self.filter.play(at, &hook);
    }

    /// The request may be one to a route, and Envoy may end and destroy its stream within a local reply.
    fn request_headers(&mut self, at: usize, value: u8) {
        let route = self.routes.get(usize::from(value / 4) % (ROUTES + 1));
        let route = route.and_then(Option::as_ref);
        ROUTE.set(route.map_or(ptr::null(), |route| route.0));
        CURRENT.set(self.filter.streams[at].unwrap_or(ptr::null()));
        IS_DESTROYED.set(false);
        WITHIN_REPLY.set(match value % 4 {
            0 => call_back,
            1 => call_back_and_destroy,
            _ => || {},
        });
        self.filter.play(at, &Hook::RequestHeaders(value % 2 == 1));
        WITHIN_REPLY.set(|| {});
        ROUTE.set(ptr::null());
        if IS_DESTROYED.get() {
            self.filter.streams[at] = None;
        }
    }

    /// A hook while another thread has the worker's state.
    fn while_taken(&mut self, at: usize, value: u8) {
        let plugin = Arc::clone(&self.filter.config().plugin);
        let hook = match value % 4 {
            0 => Hook::RequestHeaders(true),
            1 => Hook::ResponseHeaders(true),
            2 => Hook::StreamComplete,
            _ => Hook::Destroy,
        };
        plugin.while_taken(usize::from(value / 4) % 2, || self.filter.play(at, &hook));
    }

    /// The filter's configuration is another one, and the one before ends.
    fn replace(&mut self, value: u8) {
        let newer = Filter::with(&self.name, &document(value));
        let older = core::mem::replace(&mut self.filter.config, newer.config);
        envoy_dynamic_module_on_http_filter_config_destroy(older);
    }

    /// A route gets a configuration, another one, or loses it.
    fn change_route(&mut self, at: usize, value: u8) {
        let newer = (!value.is_multiple_of(3)).then(|| {
            let name = format!("{}@{at}", self.name);
            Route::with(&name, &document(value / 3))
        });
        if let Some(older) = core::mem::replace(&mut self.routes[at], newer) {
            older.end();
        }
    }

    /// All streams end.
    fn end(mut self) {
        let panics = guard::panics();
        for at in 0..STREAMS {
            self.filter.play(at, &Hook::StreamComplete);
            self.filter.play(at, &Hook::Destroy);
        }
        // What ended while a state was taken is completed in the next round.
        let plugins = self.routes.iter().flatten().map(Route::plugin);
        for plugin in plugins.chain([Arc::clone(&self.filter.config().plugin)]) {
            plugin.begin_round();
            plugin.end_round();
            assert_eq!(in_flight(&plugin), Some(0), "{}", plugin.name());
        }
        assert_eq!(guard::panics(), panics);
        self.routes.into_iter().flatten().for_each(Route::end);
        self.filter.publish();
        self.filter.end();
        BROKEN_OFF.set(BROKEN_OFF.get() - 1);
    }
}

fn call_back() {
    let (envoy, stream) = (ptr::dangling_mut(), CURRENT.get());
    let details = crate::fake::buffer("details");
    envoy_dynamic_module_on_http_filter_local_reply(envoy, stream, 503, details, false);
    envoy_dynamic_module_on_http_filter_response_headers(envoy, stream, true);
}

fn call_back_and_destroy() {
    call_back();
    envoy_dynamic_module_on_http_filter_stream_complete(ptr::dangling_mut(), CURRENT.get());
    envoy_dynamic_module_on_http_filter_destroy(CURRENT.get());
    IS_DESTROYED.set(true);
}

#[test]
fn hooks_in_any_order_leave_nothing_in_flight() {
    let drawn = produce::<Vec<Drawn>>().with().len(0..250_usize);
    bolero::check!(name = "native_hooks")
        .with_generator(drawn)
        .with_iterations(400)
        .for_each(|steps: &Vec<Drawn>| {
            let (mut world, panics) = (World::new(), guard::panics());
            let replies = REPLIES.get();
            for step in steps {
                world.take(*step);
            }
            assert!(REPLIES.get() - replies <= steps.len());
            assert_eq!(guard::panics(), panics);
            world.end();
        });
}
