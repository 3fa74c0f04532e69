//! What a proxy may do, one callback at a time.

/// How many VMs, stream numbers and root contexts there are.
pub(super) const VMS: usize = 3;
pub(super) const STREAMS: u32 = 6;
const ROOTS: u32 = 4;

/// A step as it is drawn: what, where, and with which values.
pub(super) type Drawn = (u8, u8, u8, u16);

/// One thing that happens.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    /// A callback of a stream.
    Stream(Stream, Callback),
    /// Whole exchanges of the same kind, one after the other.
    Exchanges {
        vm: usize,
        count: u32,
    },
    /// Requests that stay.
    Pile {
        vm: usize,
        count: u32,
    },
    Tick {
        vm: usize,
        root: u32,
    },
    /// All VMs tick so many times, a tenth of a second apart.
    Ticks(u32),
    /// Milliseconds go by.
    Pass(u64),
    Configure {
        vm: usize,
        root: u32,
        which: usize,
    },
    /// What the next callbacks find.
    Find(Find, u16),
    Hostile(Hostile),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stream {
    pub(super) vm: usize,
    pub(super) id: u32,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Callback {
    Create { root: u32 },
    RequestHeaders { more: bool },
    RequestBody { end: bool },
    RequestTrailers,
    ResponseHeaders { more: bool },
    ResponseBody { end: bool },
    ResponseTrailers,
    Log,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Find {
    Cluster,
    Status,
    Details,
    Flags,
    GrpcStatus,
    GrpcTrailer,
    RetryAfter,
    Path,
    Class,
    Caller,
    Attempt,
    Endpoints,
    Route,
}

const FINDS: [Find; 13] = [
    Find::Cluster,
    Find::Status,
    Find::Details,
    Find::Flags,
    Find::GrpcStatus,
    Find::GrpcTrailer,
    Find::RetryAfter,
    Find::Path,
    Find::Class,
    Find::Caller,
    Find::Attempt,
    Find::Endpoints,
    Find::Route,
];

/// What goes wrong; a proxy in order does nothing of it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Hostile {
    /// These calls fail with this status.
    Fail {
        calls: u16,
        status: u8,
    },
    /// All calls work again.
    Heal,
    Beat(bool),
    RejectMetrics(bool),
    /// A neighbor writes a byte at a place of a shared value, or behind its end.
    Overwrite {
        key: u8,
        at: u16,
        byte: u8,
    },
    /// A neighbor puts one value in another's place.
    Copy {
        from: u8,
        to: u8,
    },
    /// A neighbor writes a directive that can be read.
    Directive {
        kind: u8,
        number: u16,
    },
    /// The header map is cut off after so many bytes, and one of them is another.
    Map {
        cut: u16,
        byte: u8,
    },
    Trap {
        vm: usize,
    },
    /// The clock is set.
    Clock(u16),
}

impl Step {
    /// The step that was drawn; what goes wrong is drawn only where `with_hostile`.
    pub(super) fn of(drawn: &Drawn, with_hostile: bool) -> Self {
        let (what, place, flag, value) = *drawn;
        let vm = usize::from(place) % VMS;
        let stream = Stream {
            vm,
            id: 1 + u32::from(place / 4) % STREAMS,
        };
        let (flag, low) = (flag % 2 == 1, u32::from(value));
        let root = 1 + low % ROOTS;
        let on = |callback| Self::Stream(stream, callback);
        match what {
            0..24 => on(Callback::Create {
                root: if low < 4 { low } else { 1 },
            }),
            24..60 => on(Callback::RequestHeaders { more: flag }),
            60..72 => on(Callback::RequestBody { end: flag }),
            72..76 => on(Callback::RequestTrailers),
            76..100 => on(Callback::ResponseHeaders { more: flag }),
            100..112 => on(Callback::ResponseBody { end: flag }),
            112..118 => on(Callback::ResponseTrailers),
            118..138 => on(Callback::Log),
            138..156 => Self::Exchanges {
                vm,
                count: 1 + low % 20,
            },
            156..162 => Self::Pile {
                vm,
                count: 1 + low % 12,
            },
            162..170 => Self::Tick { vm, root },
            170..186 => Self::Ticks(1 + low % 5),
            186..200 => Self::Pass(u64::from(value) / if flag { 64 } else { 4 }),
            200..206 => Self::Configure {
                vm,
                root,
                which: usize::from(value),
            },
            206..231 => Self::Find(FINDS[usize::from(place) % FINDS.len()], value),
            _ if !with_hostile => Self::Ticks(1),
            _ => Self::Hostile(Hostile::of(drawn)),
        }
    }
}

impl Hostile {
    fn of(&(what, place, byte, value): &Drawn) -> Self {
        let is_odd = byte % 2 == 1;
        match what {
            0..236 => Self::Fail {
                calls: value,
                status: byte,
            },
            236..240 => Self::Heal,
            240..242 => Self::Beat(is_odd),
            242 => Self::RejectMetrics(is_odd),
            243..247 => Self::Overwrite {
                key: place,
                at: value,
                byte,
            },
            247 => Self::Copy {
                from: place,
                to: byte,
            },
            248..250 => Self::Directive {
                kind: byte,
                number: value,
            },
            250..252 => Self::Map { cut: value, byte },
            252..254 => Self::Trap {
                vm: usize::from(place) % VMS,
            },
            _ => Self::Clock(value),
        }
    }
}
