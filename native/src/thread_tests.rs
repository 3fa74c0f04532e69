//! Workers, the module's own thread, and configurations that are pushed meanwhile.

use core::ffi::c_void;
use core::ptr;
use std::thread;

use crate::fake::{ROUTE, WORKER, WORKERS};
use crate::guard;
use crate::rig::{DOCUMENT, Filter, Hook, Route, STREAMS, in_flight};

const COUNT: u32 = 3;
const ROUNDS: usize = 3_000;
const PUSHES: usize = 200;

/// Requests of one worker, some of them to the route, all with an end.
fn serve(worker: u32, config: usize, route: usize) {
    WORKER.set(worker);
    let mut filter = Filter {
        config: config as *const c_void,
        streams: [None; STREAMS],
    };
    for round in 0..ROUNDS {
        let at = round % STREAMS;
        // One of each number's streams is under way while those of the others are.
        filter.play(at, &Hook::StreamComplete);
        filter.play(at, &Hook::Destroy);
        filter.play(at, &Hook::New);
        let is_routed = round % 3 == 0;
        ROUTE.set(if is_routed {
            route as *const c_void
        } else {
            ptr::null()
        });
        filter.play(at, &Hook::RequestHeaders(round % 2 == 0));
        filter.play(at, &Hook::RequestBody(true));
        if round % 5 > 0 {
            filter.play(at, &Hook::ResponseHeaders(round % 7 == 0));
        }
    }
    for at in 0..STREAMS {
        filter.play(at, &Hook::StreamComplete);
        filter.play(at, &Hook::Destroy);
    }
}

#[test]
fn three_workers_and_pushes_meanwhile_leave_nothing_in_flight() {
    WORKERS.set(COUNT);
    let panics = guard::panics();
    let filter = Filter::new("threads");
    let route = Route::with("threads@route", DOCUMENT);
    let (config, pointer) = (filter.config as usize, route.0 as usize);
    thread::scope(|scope| {
        for worker in 0..COUNT {
            scope.spawn(move || serve(worker, config, pointer));
        }
        for push in 0..PUSHES {
            let document = DOCUMENT.replace("300ms", ["200ms", "100ms"][push % 2]);
            Filter::with("threads", &document).end();
            Route::with("threads@route", &document).end();
            filter.round();
            filter.publish();
        }
    });
    assert_eq!(filter.in_flight("threads"), Some(0));
    assert_eq!(in_flight(&route.plugin()), Some(0));
    assert_eq!(guard::panics(), panics);
    route.end();
    filter.end();
    WORKERS.set(2);
}
