//! A process of some VMs, and the steps of a script as its proxy takes them.

mod harm;
mod invariants;
mod values;

use core::time::Duration;

use tidegate_core::classify::Length;
use tidegate_core::config::Config;

use super::script::{Callback, STREAMS, Step, Stream, VMS};
use crate::vm::Vm;
use tidegate_worker::api::{Headers, attribute};
use tidegate_worker::fake::FakeHost;
use tidegate_worker::plugin::TICK;
use tidegate_worker::stream::{self, Next};

use values::{CLUSTERS, CONFIGS};

/// Stream numbers of exchanges that one step plays, and of requests that stay, which no other step uses.
const EXCHANGE: u32 = 1_000;
const FIRST_OF_PILE: u32 = 2_000;

const PLUGIN: &str = "tidegate";

/// The process, its VMs, and what the proxy knows of them.
pub(super) struct World {
    hosts: Vec<FakeHost>,
    vms: Vec<Vm<FakeHost>>,
    /// The streams that were created and have not ended.
    open: Vec<Stream>,
    /// Those of them that the filter answered at their request headers.
    answered: Vec<Stream>,
    piled: u32,
    is_hostile: bool,
}

impl World {
    pub(super) fn new(is_hostile: bool) -> Self {
        let host = FakeHost::default();
        host.advance(Duration::from_secs(1));
        host.set_attribute(attribute::CLUSTER, CLUSTERS[0].as_bytes());
        host.set_attribute(attribute::PLUGIN_NAME, PLUGIN.as_bytes());
        host.set_header(Headers::Response, ":status", "200");
        let hosts: Vec<_> = (0..VMS).map(|_| host.another_vm()).collect();
        let mut world = Self {
            vms: (0..VMS).map(|_| Vm::default()).collect(),
            hosts,
            open: Vec::new(),
            answered: Vec::new(),
            piled: 0,
            is_hostile,
        };
        for vm in 0..VMS {
            world.configure(vm, 1, 0);
        }
        world
    }

    fn host(&self) -> &FakeHost {
        &self.hosts[0]
    }

    pub(super) fn take(&mut self, step: Step) {
        match step {
            Step::Stream(stream, callback) => self.call(stream, callback),
            Step::Exchanges { vm, count } => {
                for _ in 0..count {
                    let stream = Stream { vm, id: EXCHANGE };
                    self.call(stream, Callback::Create { root: 1 });
                    self.call(stream, Callback::RequestHeaders { more: false });
                    self.host().advance(Duration::from_millis(u64::from(count)));
                    self.call(stream, Callback::ResponseHeaders { more: false });
                    self.call(stream, Callback::Log);
                }
            }
            Step::Pile { vm, count } => {
                for _ in 0..count {
                    self.piled += 1;
                    let stream = Stream {
                        vm,
                        id: FIRST_OF_PILE + self.piled,
                    };
                    self.call(stream, Callback::Create { root: 1 });
                    self.call(stream, Callback::RequestHeaders { more: false });
                }
            }
            Step::Tick { vm, root } => self.vms[vm].tick(root),
            Step::Ticks(count) => self.ticks(count),
            Step::Pass(millis) => self.host().advance(Duration::from_millis(millis)),
            Step::Configure { vm, root, which } => self.configure(vm, root, which % CONFIGS.len()),
            Step::Find(find, value) => self.find(find, value),
            Step::Hostile(hostile) => self.go_wrong(hostile),
        }
    }

    pub(super) fn ticks(&mut self, count: u32) {
        for _ in 0..count {
            self.host().advance(TICK);
            for vm in &self.vms {
                (1..=4).for_each(|root| vm.tick(root));
            }
        }
    }

    /// Callbacks as `entry.rs` passes them on.
    fn call(&mut self, stream: Stream, callback: Callback) {
        let (vm, id) = (&self.vms[stream.vm], stream.id);
        let (calls, replies) = (self.host().calls(), self.host().replies().len());
        let is_over = !self.open.contains(&stream) || self.answered.contains(&stream);
        let mut says_nothing = is_over;
        match callback {
            Callback::Create { root } => {
                // A proxy gives a number to one stream at a time.
                if self.open.contains(&stream) {
                    return;
                }
                vm.create(id, root);
                if root != 0 && vm.plugin_of(root).is_some() {
                    self.open.push(stream);
                }
                says_nothing = true;
            }
            Callback::RequestHeaders { more } => {
                let next = vm.on_stream(id, |stream| stream.on_request_headers(length(more)));
                says_nothing = next.is_none();
                let is_answered = next == Some(Next::Answered);
                let sent = self.host().replies().len() - replies;
                assert_eq!(
                    sent,
                    usize::from(is_answered),
                    "answered if and only if a reply was sent"
                );
                self.answered.retain(|other| *other != stream);
                if is_answered {
                    self.answered.push(stream);
                }
            }
            Callback::RequestBody { end: false } => {}
            Callback::RequestBody { end: true } | Callback::RequestTrailers => {
                vm.on_stream(id, stream::Stream::on_request_end);
            }
            Callback::ResponseHeaders { more } => {
                vm.on_stream(id, |stream| stream.on_response_headers(length(more)));
            }
            Callback::ResponseBody { end } => {
                vm.on_stream(id, |stream| {
                    stream.on_response_body();
                    if end {
                        stream.on_response_end();
                    }
                });
            }
            Callback::ResponseTrailers => {
                vm.on_stream(id, stream::Stream::on_response_trailers);
            }
            Callback::Log => {
                vm.end(id);
                self.open.retain(|other| *other != stream);
                self.answered.retain(|other| *other != stream);
            }
        }
        if says_nothing {
            assert_eq!(
                self.host().calls(),
                calls,
                "a stream that is over asks for nothing: {callback:?}"
            );
        }
    }

    fn configure(&mut self, vm: usize, root: u32, which: usize) {
        let text = CONFIGS[which];
        self.host().set_configuration(text.as_bytes());
        let before = self.config(vm, root);
        let lines = self.host().log_lines().len();
        let is_taken = self.vms[vm].configure(&self.hosts[vm], root);
        if self.is_hostile {
            return;
        }
        match Config::from_json(text.as_bytes()) {
            Ok(config) => {
                assert!(is_taken);
                assert_eq!(self.config(vm, root), Some(config));
            }
            Err(errors) => {
                assert!(!is_taken, "{errors}");
                assert_eq!(self.config(vm, root), before, "what was in force stays");
                let told = self.host().log_lines().len() - lines;
                assert_eq!(told, errors.iter().count(), "all that is wrong is told");
            }
        }
    }

    fn config(&self, vm: usize, root: u32) -> Option<Config> {
        let plugin = self.vms[vm].plugin_of(root)?;
        let plugin = plugin.borrow();
        Some(Config::clone(plugin.engine().config()))
    }

    /// All streams end.
    pub(super) fn end_all(&mut self) {
        for stream in self.open.clone() {
            self.call(stream, Callback::Log);
        }
        for vm in 0..VMS {
            for id in 0..STREAMS + 2 {
                self.call(Stream { vm, id }, Callback::Log);
            }
            assert_eq!(self.vms[vm].streams(), 0, "streams are forgotten");
        }
    }
}

const fn length(more: bool) -> Length {
    if more {
        Length::More
    } else {
        Length::HeadersOnly
    }
}
