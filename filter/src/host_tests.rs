//! The calls of [`super`], answered by functions of the same names: every pointer that crosses is read or written to its
//! last byte. `make miri` runs this where each such access is checked.

use std::cell::RefCell;
use std::slice;

use tidegate_core::reply::LocalReply;

use super::*;

/// What the host answers next, and what it was told.
#[derive(Default)]
struct Table {
    status: u32,
    bytes: Option<Vec<u8>>,
    number: u64,
    told: Vec<Vec<u8>>,
}

thread_local! {
    static TABLE: RefCell<Table> = RefCell::default();
}

fn answer(status: u32, bytes: Option<&[u8]>, number: u64) {
    TABLE.replace(Table {
        status,
        bytes: bytes.map(<[u8]>::to_vec),
        number,
        told: Vec::new(),
    });
}

fn told() -> Vec<Vec<u8>> {
    TABLE.with_borrow_mut(|table| core::mem::take(&mut table.told))
}

fn tell(data: *const u8, len: usize) {
    // SAFETY: what a caller of the host hands over.
    let bytes = unsafe { slice::from_raw_parts(data, len) }.to_vec();
    TABLE.with_borrow_mut(|table| table.told.push(bytes));
}

fn status() -> u32 {
    TABLE.with_borrow(|table| table.status)
}

fn number() -> u64 {
    TABLE.with_borrow(|table| table.number)
}

/// Hands bytes over as Envoy does: in memory that it asked the module for.
fn give(data: *mut *mut u8, len: *mut usize) -> u32 {
    if let Some(bytes) = TABLE.with_borrow_mut(|table| table.bytes.take()) {
        let memory = allocate(bytes.len());
        // SAFETY: there are so many bytes, and out-pointers of a caller of the host.
        unsafe {
            memory.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
            len.write(bytes.len());
            data.write(memory);
        }
    }
    status()
}

fn write<T>(place: *mut T, value: T) -> u32 {
    // SAFETY: an out-pointer of a caller of the host.
    unsafe { place.write(value) };
    status()
}

#[unsafe(no_mangle)]
extern "C" fn proxy_log(_level: u32, text: *const u8, len: usize) -> u32 {
    tell(text, len);
    status()
}

#[unsafe(no_mangle)]
extern "C" fn proxy_set_tick_period_milliseconds(period: u32) -> u32 {
    tell(period.to_le_bytes().as_ptr(), 4);
    status()
}

#[unsafe(no_mangle)]
extern "C" fn proxy_get_buffer_bytes(
    _buffer: u32,
    _start: usize,
    _max: usize,
    data: *mut *mut u8,
    len: *mut usize,
) -> u32 {
    give(data, len)
}

#[unsafe(no_mangle)]
extern "C" fn proxy_get_header_map_value(
    _map: u32,
    name: *const u8,
    name_len: usize,
    data: *mut *mut u8,
    len: *mut usize,
) -> u32 {
    tell(name, name_len);
    give(data, len)
}

#[unsafe(no_mangle)]
extern "C" fn proxy_get_header_map_pairs(_map: u32, data: *mut *mut u8, len: *mut usize) -> u32 {
    give(data, len)
}

#[unsafe(no_mangle)]
extern "C" fn proxy_get_property(
    path: *const u8,
    path_len: usize,
    data: *mut *mut u8,
    len: *mut usize,
) -> u32 {
    tell(path, path_len);
    give(data, len)
}

#[unsafe(no_mangle)]
extern "C" fn proxy_get_shared_data(
    key: *const u8,
    key_len: usize,
    data: *mut *mut u8,
    len: *mut usize,
    cas: *mut u32,
) -> u32 {
    tell(key, key_len);
    write(cas, 7);
    give(data, len)
}

#[unsafe(no_mangle)]
extern "C" fn proxy_set_shared_data(
    key: *const u8,
    key_len: usize,
    value: *const u8,
    value_len: usize,
    cas: u32,
) -> u32 {
    tell(key, key_len);
    tell(value, value_len);
    tell(cas.to_le_bytes().as_ptr(), 4);
    status()
}

#[unsafe(no_mangle)]
extern "C" fn proxy_send_local_response(
    _status: u32,
    details: *const u8,
    details_len: usize,
    body: *const u8,
    body_len: usize,
    headers: *const u8,
    headers_len: usize,
    _grpc_status: i32,
) -> u32 {
    tell(details, details_len);
    tell(body, body_len);
    tell(headers, headers_len);
    status()
}

#[unsafe(no_mangle)]
extern "C" fn proxy_define_metric(
    _kind: u32,
    name: *const u8,
    name_len: usize,
    id: *mut u32,
) -> u32 {
    tell(name, name_len);
    write(id, 3)
}

#[unsafe(no_mangle)]
extern "C" fn proxy_increment_metric(id: u32, by: i64) -> u32 {
    tell(
        [id.to_le_bytes().as_slice(), &by.to_le_bytes()]
            .concat()
            .as_ptr(),
        12,
    );
    status()
}

#[unsafe(no_mangle)]
extern "C" fn proxy_record_metric(id: u32, value: u64) -> u32 {
    tell(
        [id.to_le_bytes().as_slice(), &value.to_le_bytes()]
            .concat()
            .as_ptr(),
        12,
    );
    status()
}

#[unsafe(no_mangle)]
extern "C" fn proxy_get_metric(_id: u32, value: *mut u64) -> u32 {
    write(value, number())
}

#[unsafe(no_mangle)]
extern "C" fn clock_time_get(clock: u32, _precision: u64, time: *mut u64) -> u32 {
    write(time, number() + u64::from(clock))
}

const REFUSED: u32 = 10;

#[test]
fn bytes_that_the_host_hands_over_are_owned_and_freed() {
    for len in [1, 2, 8, 4_096] {
        let bytes = vec![b'x'; len];
        answer(OK, Some(&bytes), 0);
        let read = EnvoyHost.attribute(b"plugin_name").unwrap().unwrap();
        assert_eq!(*read, bytes);
        // A vector of its own: it grows, moves and is freed.
        let mut read = read.into_owned();
        read.extend_from_slice(b"more");
        assert_eq!(read.len(), len + 4);
        assert_eq!(told(), [b"plugin_name"]);
    }
}

#[test]
fn an_empty_or_missing_value_is_none() {
    for (status, bytes) in [(OK, None), (OK, Some(&b""[..])), (NOT_FOUND, None)] {
        answer(status, bytes, 0);
        assert_eq!(EnvoyHost.header(Headers::Request, ":path"), Ok(None));
    }
    answer(OK, None, 0);
    assert_eq!(EnvoyHost.header_map(Headers::Response), Ok(Vec::new()));
    answer(OK, None, 0);
    assert_eq!(EnvoyHost.configuration(), Ok(Vec::new()));
}

#[test]
fn every_call_that_is_refused_is_an_error() {
    answer(REFUSED, None, 0);
    assert!(EnvoyHost.now().is_err() && EnvoyHost.wall_clock().is_err());
    assert!(EnvoyHost.attribute(b"a").is_err() && EnvoyHost.header(Headers::Request, "a").is_err());
    assert!(EnvoyHost.header_map(Headers::Request).is_err() && EnvoyHost.configuration().is_err());
    assert!(EnvoyHost.define_metric(MetricKind::Gauge, "a").is_err());
    assert!(EnvoyHost.increment_metric(MetricId(1), 1).is_err());
    assert!(
        EnvoyHost.record_metric(MetricId(1), 1).is_err() && EnvoyHost.metric(MetricId(1)).is_err()
    );
    assert!(
        EnvoyHost.shared("a").is_err() && EnvoyHost.set_shared("a", b"", Expect::Absent).is_err()
    );
    assert!(EnvoyHost.set_tick_period(Duration::from_secs(1)).is_err());
    assert!(EnvoyHost.log(LogLevel::Info, "a").is_err());
}

#[test]
fn a_shared_value_comes_with_its_version_and_goes_with_the_one_expected() {
    answer(OK, Some(b"value"), 0);
    let value = EnvoyHost.shared("key").unwrap().unwrap();
    assert_eq!((value.bytes.as_slice(), value.version), (&b"value"[..], 7));
    answer(OK, None, 0);
    let empty = EnvoyHost.shared("key").unwrap().unwrap();
    assert!(empty.bytes.is_empty(), "there is one, of no bytes");
    answer(NOT_FOUND, None, 0);
    assert_eq!(EnvoyHost.shared("key"), Ok(None));

    for (expect, cas) in [
        (Expect::Anything, 0),
        (Expect::Absent, u32::MAX),
        (Expect::Version(7), 7),
    ] {
        answer(OK, None, 0);
        assert_eq!(
            EnvoyHost.set_shared("key", b"", expect),
            Ok(WriteResult::Done)
        );
        let cas = u32::to_le_bytes(cas).to_vec();
        assert_eq!(told(), [b"key".to_vec(), Vec::new(), cas]);
    }
    answer(CAS_MISMATCH, None, 0);
    let beaten = EnvoyHost.set_shared("key", b"x", Expect::Absent);
    assert_eq!(beaten, Ok(WriteResult::Beaten));
}

#[test]
fn numbers_come_back_through_their_places() {
    answer(OK, None, u64::MAX);
    assert_eq!(EnvoyHost.metric(MetricId(3)), Ok(u64::MAX));
    assert_eq!(
        EnvoyHost.define_metric(MetricKind::Counter, "name"),
        Ok(MetricId(3))
    );
    assert_eq!(EnvoyHost.record_metric(MetricId(3), 9), Ok(()));
    assert_eq!(EnvoyHost.increment_metric(MetricId(3), -1), Ok(()));
    assert_eq!(told().len(), 3);
    answer(OK, None, 5);
    let clocks = (EnvoyHost.wall_clock(), EnvoyHost.now());
    let at = |nanos| Ok(Instant::from_nanos(nanos));
    assert_eq!(clocks, (at(5), at(6)));
    assert_eq!(
        EnvoyHost.set_tick_period(Duration::from_millis(100)),
        Ok(())
    );
    assert_eq!(EnvoyHost.log(LogLevel::Error, "line"), Ok(()));
    assert_eq!(told(), [100_u32.to_le_bytes().to_vec(), b"line".to_vec()]);
}

#[test]
fn a_reply_is_told_with_all_its_headers() {
    answer(OK, None, 0);
    let reply = LocalReply {
        status: 503,
        grpc_status: 8,
        details: "tidegate_shed_limit",
        body: "",
        retry_after_secs: 2,
        pushback_ms: Some(1_500),
        is_final: true,
        reason: Some(("x-tidegate-reason", "limit")),
    };
    assert_eq!(EnvoyHost.send_local_reply(&reply), Ok(()));
    let told = told();
    assert_eq!(told[..2], [b"tidegate_shed_limit".to_vec(), Vec::new()]);
    let header = |name| pairs::find(&told[2], name).map(<[u8]>::to_vec);
    assert_eq!(header("retry-after"), Some(b"2".to_vec()));
    assert_eq!(header("x-envoy-ratelimited"), Some(b"true".to_vec()));
    assert_eq!(header("grpc-retry-pushback-ms"), Some(b"1500".to_vec()));
    assert_eq!(header("x-tidegate-reason"), Some(b"limit".to_vec()));
}
