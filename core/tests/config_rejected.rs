//! Every kind of bad configuration, with the exact lines its author reads.

use tidegate_core::config::{Config, ConfigErrors, MAX_DOCUMENT_BYTES};

/// A bad document and the lines of its rejection.
struct Case {
    name: &'static str,
    document: &'static str,
    errors: &'static [&'static str],
}

fn rejection(document: &[u8]) -> Result<ConfigErrors, String> {
    match Config::from_json(document) {
        Ok(config) => Err(format!("was taken: {config:?}")),
        Err(errors) => Ok(errors),
    }
}

/// Puts `members` behind a valid objective.
fn with_objective(members: &str) -> String {
    format!(r#"{{"slo":{{"latency":{{"quantile":0.99,"target":"300ms"}}}},{members}}}"#)
}

/// Documents as a whole.
const DOCUMENTS: &[Case] = &[
    Case {
        name: "no bytes",
        document: "",
        errors: &[
            r#"document: found nothing, expected at least the objective, such as {"slo":{"latency":{"quantile":0.99,"target":"300ms"}}}"#,
        ],
    },
    Case {
        name: "blanks",
        document: " \r\n\t",
        errors: &[
            r#"document: found nothing, expected at least the objective, such as {"slo":{"latency":{"quantile":0.99,"target":"300ms"}}}"#,
        ],
    },
    Case {
        name: "an object without the objective",
        document: "{}",
        errors: &[
            "slo.latency.quantile: found nothing, expected a number from 0.5 to 0.999 (the objective has no default)",
            r#"slo.latency.target: found nothing, expected a duration from 1ms to 10m such as "250ms" (the objective has no default)"#,
        ],
    },
    Case {
        name: "half an objective",
        document: r#"{"slo":{"latency":{"target":"300ms"}}}"#,
        errors: &[
            "slo.latency.quantile: found nothing, expected a number from 0.5 to 0.999 (the objective has no default)",
        ],
    },
    Case {
        name: "an objective of the wrong type",
        document: r#"{"slo":0.99}"#,
        errors: &["slo: found 0.99, expected an object"],
    },
    Case {
        name: "not an object: null",
        document: "null",
        errors: &["document: found null, expected an object"],
    },
    Case {
        name: "not an object: a list",
        document: "[1]",
        errors: &["document: found a list, expected an object"],
    },
    Case {
        name: "not an object: a text",
        document: r#""slo""#,
        errors: &[r#"document: found "slo", expected an object"#],
    },
    Case {
        name: "malformed: ends early",
        document: r#"{"slo":"#,
        errors: &[
            "line 1, column 7: found malformed JSON (EOF while parsing a value), expected a JSON object",
        ],
    },
    Case {
        name: "malformed: trailing comma on a later line",
        document: "{\n  \"slo\": {\"latency\": {\"quantile\": 0.99, \"target\": \"300ms\"}},\n}",
        errors: &[
            "line 3, column 1: found malformed JSON (trailing comma), expected a JSON object",
        ],
    },
    Case {
        name: "malformed: text behind the end",
        document: r#"{"slo":{"latency":{"quantile":0.99,"target":"300ms"}}} x"#,
        errors: &[
            "line 1, column 56: found malformed JSON (trailing characters), expected a JSON object",
        ],
    },
    Case {
        name: "malformed: YAML",
        document: "slo: {latency: {quantile: 0.99}}",
        errors: &[
            "line 1, column 1: found malformed JSON (expected value), expected a JSON object",
        ],
    },
    Case {
        name: "malformed: NaN",
        document: r#"{"enforcement": NaN}"#,
        errors: &[
            "line 1, column 17: found malformed JSON (expected value), expected a JSON object",
        ],
    },
    Case {
        name: "malformed: a number that is infinite",
        document: r#"{"enforcement": 1e999}"#,
        errors: &[
            "line 1, column 21: found malformed JSON (number out of range), expected a JSON object",
        ],
    },
    Case {
        name: "malformed: half a surrogate pair",
        document: r#"{"mode": "\ud800"}"#,
        errors: &[
            "line 1, column 17: found malformed JSON (unexpected end of hex escape), expected a JSON object",
        ],
    },
    Case {
        name: "all errors at once",
        document: r#"{"slo":{"latency":{"quantile":1,"target":"-5s"},"successRate":"high"},"mode":"on","limit":{"min":0},"upstreams":[{"match":{}},{"match":{"service":"a.b"},"shed":{"status":200}}],"extra":1}"#,
        errors: &[
            "slo.latency.quantile: found 1, expected a number from 0.5 to 0.999",
            r#"slo.latency.target: found "-5s", expected a duration from 1ms to 10m such as "250ms""#,
            r#"slo.successRate: found "high", expected a number from 0.5 to 0.99999"#,
            r#"mode: found "on", expected "observe" or "enforce""#,
            "limit.min: found 0, expected a whole number from 1 to 100000",
            "upstreams[0].match: found no condition, expected at least one of service, cluster, route",
            "upstreams[1].shed.status: found 200, expected a whole number from 400 to 599",
            "extra: found an unknown key, expected one of enabled, slo, mode, enforcement, stance, keyBy, limit, breaker, overload, shed, upstreams, criticality, deadline, ignore, maxUpstreams, maxDestinations",
        ],
    },
    Case {
        name: "an unknown moment, no open request, and bounds that contradict each other",
        document: r#"{"slo":{"latency":{"quantile":0.99,"target":"300ms","until":"body"}},"limit":{"min":10,"max":9,"maxOpen":0},"upstreams":[{"match":{"cluster":"a"},"limit":{"min":3,"maxOpen":2}}]}"#,
        errors: &[
            r#"slo.latency.until: found "body", expected "headers", "firstByte" or "end""#,
            "limit.maxOpen: found 0, expected a whole number from 1 to 100000",
            "limit.max: found 9, expected at least limit.min (10)",
            "upstreams[0].limit.maxOpen: found 2, expected at least limit.min (3)",
        ],
    },
];

/// Members behind a valid objective, or replacing it where they repeat it.
const MEMBERS: &[Case] = &[
    Case {
        name: "an unknown key near a known one, by case",
        document: r#""Mode":"observe""#,
        errors: &[
            r#"Mode: found an unknown key, expected one of enabled, slo, mode, enforcement, stance, keyBy, limit, breaker, overload, shed, upstreams, criticality, deadline, ignore, maxUpstreams, maxDestinations (did you mean "mode"?)"#,
        ],
    },
    Case {
        name: "unknown keys near known ones, by letters",
        document: r#""limit":{"intial":5},"breaker":{"trip_ratio":0.5},"shed":{"replay":"stop"}"#,
        errors: &[
            r#"limit.intial: found an unknown key, expected one of min, max, initial, maxOpen (did you mean "initial"?)"#,
            r#"breaker.trip_ratio: found an unknown key, expected one of enabled, tripRatio, minOpen, maxOpen (did you mean "tripRatio"?)"#,
            r#"shed.replay: found an unknown key, expected one of reply, status, body, maxShare, reasonHeader (did you mean "reply"?)"#,
        ],
    },
    Case {
        name: "unknown keys that are like nothing, or hostile",
        document: r#""limit":{"":1,"a b\n":2,"burst":3}"#,
        errors: &[
            r#"limit[""]: found an unknown key, expected one of min, max, initial, maxOpen"#,
            r#"limit["a b\n"]: found an unknown key, expected one of min, max, initial, maxOpen"#,
            "limit.burst: found an unknown key, expected one of min, max, initial, maxOpen",
        ],
    },
    Case {
        name: "top-level keys in a rule",
        document: r#""upstreams":[{"match":{"cluster":"a"},"maxUpstreams":5}]"#,
        errors: &[
            "upstreams[0].maxUpstreams: found an unknown key, expected one of match, slo, mode, enforcement, stance, keyBy, limit, breaker, overload, shed",
        ],
    },
    Case {
        name: "a key twice",
        document: r#""slo":{"latency":{"quantile":0.5,"target":"1s"}},"limit":{"min":1,"min":2,"min":3}"#,
        errors: &[
            "slo: found the key again, with an object, expected each key once",
            "limit.min: found the key again, with 2, expected each key once",
            "limit.min: found the key again, with 3, expected each key once",
        ],
    },
    Case {
        name: "wrong types",
        document: r#""enabled":"yes","mode":true,"enforcement":"1","stance":null,"limit":[],"breaker":{"enabled":1,"tripRatio":[],"minOpen":1000},"shed":{"status":"503","body":{}},"upstreams":{},"criticality":"critical","ignore":{"paths":"/x","userAgents":[1,null]},"maxUpstreams":1.5"#,
        errors: &[
            r#"enabled: found "yes", expected true or false"#,
            r#"mode: found true, expected "observe" or "enforce""#,
            r#"enforcement: found "1", expected a number from 0 to 1"#,
            r#"stance: found null, expected "failFast" or "throughput""#,
            "limit: found a list, expected an object",
            "breaker.enabled: found 1, expected true or false",
            "breaker.tripRatio: found a list, expected a number from 0.05 to 1",
            r#"breaker.minOpen: found 1000, expected a duration from 50ms to 10m such as "250ms""#,
            r#"shed.status: found "503", expected a whole number from 400 to 599"#,
            "shed.body: found an object, expected a text of at most 4096 bytes",
            "upstreams: found an object, expected a list of at most 1000 entries",
            r#"criticality: found "critical", expected an object"#,
            r#"ignore.paths: found "/x", expected a list of at most 100 entries"#,
            "ignore.userAgents[0]: found 1, expected the start of a user-agent, 1 to 128 bytes",
            "ignore.userAgents[1]: found null, expected the start of a user-agent, 1 to 128 bytes",
            "maxUpstreams: found 1.5, expected a whole number from 1 to 10000",
        ],
    },
    Case {
        name: "statuses that are none, or no signals",
        document: r#""overload":{"statuses":[429,200,"503",600,399.5],"statusesWithRetryAfter":503,"grpcStatuses":[0,8,17],"codes":[]},"upstreams":[{"match":{"cluster":"a"},"overload":{"statuses":[[]]}},{"match":{"cluster":"b"},"overload":[429]}]"#,
        errors: &[
            "overload.statuses[1]: found 200, expected a whole number from 400 to 599",
            r#"overload.statuses[2]: found "503", expected a whole number from 400 to 599"#,
            "overload.statuses[3]: found 600, expected a whole number from 400 to 599",
            "overload.statuses[4]: found 399.5, expected a whole number from 400 to 599",
            "overload.statusesWithRetryAfter: found 503, expected a list of at most 100 entries",
            "overload.grpcStatuses[0]: found 0, expected a whole number from 1 to 16",
            "overload.grpcStatuses[2]: found 17, expected a whole number from 1 to 16",
            "overload.codes: found an unknown key, expected one of statuses, statusesWithRetryAfter, grpcStatuses",
            "upstreams[0].overload.statuses[0]: found a list, expected a whole number from 400 to 599",
            "upstreams[1].overload: found a list, expected an object",
        ],
    },
    Case {
        name: "a state for what there is not, and no room for any",
        document: r#""keyBy":"host","maxDestinations":0,"upstreams":[{"match":{"cluster":"a"},"keyBy":true,"maxDestinations":5}]"#,
        errors: &[
            r#"keyBy: found "host", expected "auto", "cluster", "authority" or "none""#,
            r#"upstreams[0].keyBy: found true, expected "auto", "cluster", "authority" or "none""#,
            "upstreams[0].maxDestinations: found an unknown key, expected one of match, slo, mode, enforcement, stance, keyBy, limit, breaker, overload, shed",
            "maxDestinations: found 0, expected a whole number from 1 to 10000",
        ],
    },
    Case {
        name: "names in the wrong case",
        document: r#""mode":"Enforce","stance":"fail_fast","shed":{"reply":"Stop"},"criticality":{"default":"criticalPlus"}"#,
        errors: &[
            r#"mode: found "Enforce", expected "observe" or "enforce""#,
            r#"stance: found "fail_fast", expected "failFast" or "throughput""#,
            r#"shed.reply: found "Stop", expected "stop" or "retryElsewhere""#,
            r#"criticality.default: found "criticalPlus", expected "sheddable", "sheddable_plus", "critical" or "critical_plus""#,
        ],
    },
    Case {
        name: "min above max",
        document: r#""limit":{"min":20,"max":10},"breaker":{"minOpen":"30s","maxOpen":"10s"}"#,
        errors: &[
            "limit.max: found 10, expected at least limit.min (20)",
            r#"breaker.maxOpen: found "10s", expected at least breaker.minOpen (30s)"#,
        ],
    },
    Case {
        name: "min above the default max",
        document: r#""limit":{"min":20000},"breaker":{"minOpen":"90s"}"#,
        errors: &[
            "limit.min: found 20000, expected at most limit.max (10000)",
            r#"breaker.minOpen: found "90s", expected at most breaker.maxOpen (1m)"#,
        ],
    },
    Case {
        name: "min above the max inherited from the top level",
        document: r#""limit":{"max":50},"upstreams":[{"match":{"cluster":"a"},"limit":{"min":60}}]"#,
        errors: &["upstreams[0].limit.min: found 60, expected at most limit.max (50)"],
    },
    Case {
        name: "initial outside min and max",
        document: r#""limit":{"min":10,"max":20,"initial":21},"upstreams":[{"match":{"cluster":"a"},"limit":{"initial":9}}]"#,
        errors: &[
            "limit.initial: found 21, expected a number from limit.min to limit.max (10 to 20)",
            "upstreams[0].limit.initial: found 9, expected a number from limit.min to limit.max (10 to 20)",
        ],
    },
    Case {
        name: "bounds that are wrong themselves are not compared",
        document: r#""limit":{"min":5000,"max":"many","initial":1}"#,
        errors: &[r#"limit.max: found "many", expected a whole number from 1 to 100000"#],
    },
    Case {
        name: "a value that is wrong itself hides no contradiction of others",
        document: r#""limit":{"min":10,"max":9,"maxOpen":0},"breaker":{"tripRatio":2,"minOpen":"30s","maxOpen":"10s"}"#,
        errors: &[
            "limit.maxOpen: found 0, expected a whole number from 1 to 100000",
            "limit.max: found 9, expected at least limit.min (10)",
            "breaker.tripRatio: found 2, expected a number from 0.05 to 1",
            r#"breaker.maxOpen: found "10s", expected at least breaker.minOpen (30s)"#,
        ],
    },
    Case {
        name: "words that until does not know",
        document: r#""upstreams":[{"match":{"cluster":"a"},"slo":{"latency":{"until":"first_byte"}}},{"match":{"cluster":"b"},"slo":{"latency":{"until":"Headers"}}},{"match":{"cluster":"c"},"slo":{"latency":{"until":""}}},{"match":{"cluster":"d"},"slo":{"latency":{"until":null}}},{"match":{"cluster":"e"},"slo":{"latency":{"util":"end"}}}]"#,
        errors: &[
            r#"upstreams[0].slo.latency.until: found "first_byte", expected "headers", "firstByte" or "end""#,
            r#"upstreams[1].slo.latency.until: found "Headers", expected "headers", "firstByte" or "end""#,
            r#"upstreams[2].slo.latency.until: found "", expected "headers", "firstByte" or "end""#,
            r#"upstreams[3].slo.latency.until: found null, expected "headers", "firstByte" or "end""#,
            r#"upstreams[4].slo.latency.util: found an unknown key, expected one of quantile, target, until (did you mean "until"?)"#,
        ],
    },
    Case {
        name: "bounds on open requests out of range or of another kind",
        document: r#""limit":{"maxOpen":0},"upstreams":[{"match":{"cluster":"a"},"limit":{"maxOpen":100001}},{"match":{"cluster":"b"},"limit":{"maxOpen":-1}},{"match":{"cluster":"c"},"limit":{"maxOpen":1.5}},{"match":{"cluster":"d"},"limit":{"maxOpen":"many"}},{"match":{"cluster":"e"},"limit":{"maxOpen":null}},{"match":{"cluster":"f"},"limit":{"max_open":5}}]"#,
        errors: &[
            "limit.maxOpen: found 0, expected a whole number from 1 to 100000",
            "upstreams[0].limit.maxOpen: found 100001, expected a whole number from 1 to 100000",
            "upstreams[1].limit.maxOpen: found -1, expected a whole number from 1 to 100000",
            "upstreams[2].limit.maxOpen: found 1.5, expected a whole number from 1 to 100000",
            r#"upstreams[3].limit.maxOpen: found "many", expected a whole number from 1 to 100000"#,
            "upstreams[4].limit.maxOpen: found null, expected a whole number from 1 to 100000",
            r#"upstreams[5].limit.max_open: found an unknown key, expected one of min, max, initial, maxOpen (did you mean "maxOpen"?)"#,
        ],
    },
    Case {
        name: "min above maxOpen",
        document: r#""limit":{"min":10,"maxOpen":9},"upstreams":[{"match":{"cluster":"a"},"limit":{"maxOpen":8}},{"match":{"cluster":"b"},"limit":{"maxOpen":10}},{"match":{"cluster":"c"},"limit":{"min":9}},{"match":{"cluster":"d"},"limit":{"min":11}}]"#,
        errors: &[
            "limit.maxOpen: found 9, expected at least limit.min (10)",
            "upstreams[0].limit.maxOpen: found 8, expected at least limit.min (10)",
            "upstreams[3].limit.min: found 11, expected at most limit.maxOpen (9)",
        ],
    },
    Case {
        name: "min above all other bounds",
        document: r#""limit":{"min":20000,"initial":10,"maxOpen":1000},"upstreams":[{"match":{"cluster":"a"},"limit":{"min":20,"max":19,"maxOpen":18}}]"#,
        errors: &[
            "limit.min: found 20000, expected at most limit.max (10000)",
            "limit.maxOpen: found 1000, expected at least limit.min (20000)",
            "upstreams[0].limit.max: found 19, expected at least limit.min (20)",
            "upstreams[0].limit.maxOpen: found 18, expected at least limit.min (20)",
        ],
    },
    Case {
        name: "counts out of range",
        document: r#""limit":{"min":-1,"max":4294967297,"initial":1e300},"maxUpstreams":18446744073709551615"#,
        errors: &[
            "limit.min: found -1, expected a whole number from 1 to 100000",
            "limit.max: found 4294967297, expected a whole number from 1 to 100000",
            "limit.initial: found 1e+300, expected a whole number from 1 to 100000",
            "maxUpstreams: found 18446744073709551615, expected a whole number from 1 to 10000",
        ],
    },
    Case {
        name: "ratios out of range",
        document: r#""enforcement":50,"breaker":{"tripRatio":0},"shed":{"maxShare":-0.1},"upstreams":[{"match":{"cluster":"a"},"slo":{"latency":{"quantile":0},"successRate":1}},{"match":{"cluster":"b"},"slo":{"latency":{"quantile":1.0}}},{"match":{"cluster":"c"},"slo":{"latency":{"quantile":99}}}]"#,
        errors: &[
            "enforcement: found 50, expected a number from 0 to 1",
            "breaker.tripRatio: found 0, expected a number from 0.05 to 1",
            "shed.maxShare: found -0.1, expected a number from 0 to 1",
            "upstreams[0].slo.latency.quantile: found 0, expected a number from 0.5 to 0.999",
            "upstreams[0].slo.successRate: found 1, expected a number from 0.5 to 0.99999",
            "upstreams[1].slo.latency.quantile: found 1, expected a number from 0.5 to 0.999",
            "upstreams[2].slo.latency.quantile: found 99, expected a number from 0.5 to 0.999",
        ],
    },
    Case {
        name: "durations that are negative, zero, absurd or no durations",
        document: r#""breaker":{"minOpen":"-1s","maxOpen":"0s"},"upstreams":[{"match":{"cluster":"a"},"slo":{"latency":{"target":"100000h"}}},{"match":{"cluster":"b"},"slo":{"latency":{"target":"0"}}},{"match":{"cluster":"c"},"slo":{"latency":{"target":"999999999999999999999s"}}},{"match":{"cluster":"d"},"slo":{"latency":{"target":"1us"}}},{"match":{"cluster":"e"},"slo":{"latency":{"target":"5 s"}}}]"#,
        errors: &[
            r#"breaker.minOpen: found "-1s", expected a duration from 50ms to 10m such as "250ms""#,
            r#"breaker.maxOpen: found "0s", expected a duration from 50ms to 1h such as "250ms""#,
            r#"upstreams[0].slo.latency.target: found "100000h", expected a duration from 1ms to 10m such as "250ms""#,
            r#"upstreams[1].slo.latency.target: found "0", expected a duration from 1ms to 10m such as "250ms""#,
            r#"upstreams[2].slo.latency.target: found "999999999999999999999s", expected a duration from 1ms to 10m such as "250ms""#,
            r#"upstreams[3].slo.latency.target: found "1us", expected a duration from 1ms to 10m such as "250ms""#,
            r#"upstreams[4].slo.latency.target: found "5 s", expected a duration from 1ms to 10m such as "250ms""#,
        ],
    },
    Case {
        name: "the same match twice",
        document: r#""upstreams":[{"match":{"service":"a.b"}},{"match":{"service":"a.b","route":"r"}},{"match":{"service":"a.b"}},{"match":{"route":"r","service":"a.b"}}]"#,
        errors: &[
            "upstreams[2].match: found the conditions of upstreams[0] again, expected each match once: the first one wins",
            "upstreams[3].match: found the conditions of upstreams[1] again, expected each match once: the first one wins",
        ],
    },
    Case {
        name: "rules without a match",
        document: r#""upstreams":[{},{"match":{}},{"match":null},7]"#,
        errors: &[
            "upstreams[0].match: found no condition, expected at least one of service, cluster, route",
            "upstreams[1].match: found no condition, expected at least one of service, cluster, route",
            "upstreams[2].match: found null, expected an object",
            "upstreams[3]: found 7, expected an object",
        ],
    },
    Case {
        name: "patterns of another dialect, empty or with a misspelt key",
        document: r#""upstreams":[{"match":{"service":"payments.[a-z]+"}},{"match":{"service":""}},{"match":{"service":"Payments.shop"}},{"match":{"cluster":"a\u0000b"}},{"match":{"services":"a.b"}}]"#,
        errors: &[
            r#"upstreams[0].match.service: found "payments.[a-z]+", expected a host in lower case with * for any text, at most 512 bytes"#,
            r#"upstreams[1].match.service: found "", expected a host in lower case with * for any text, at most 512 bytes"#,
            r#"upstreams[2].match.service: found "Payments.shop", expected a host in lower case with * for any text, at most 512 bytes"#,
            r#"upstreams[3].match.cluster: found "a\u{0}b", expected a name with * for any text, at most 512 bytes"#,
            "upstreams[4].match: found no condition, expected at least one of service, cluster, route",
            r#"upstreams[4].match.services: found an unknown key, expected one of service, cluster, route (did you mean "service"?)"#,
        ],
    },
    Case {
        name: "the header with the reason",
        document: r#""shed":{"reasonHeader":"X-Tidegate-Reason"},"upstreams":[{"match":{"cluster":"a"},"shed":{"reasonHeader":"retry-after"}},{"match":{"cluster":"b"},"shed":{"reasonHeader":"x-envoy-ratelimited"}},{"match":{"cluster":"c"},"shed":{"reasonHeader":"x-a\r\nset-cookie"}}]"#,
        errors: &[
            r#"shed.reasonHeader: found "X-Tidegate-Reason", expected a header name in lower case from x- on, not from x-envoy- on"#,
            r#"upstreams[0].shed.reasonHeader: found "retry-after", expected a header name in lower case from x- on, not from x-envoy- on"#,
            r#"upstreams[1].shed.reasonHeader: found "x-envoy-ratelimited", expected a header name in lower case from x- on, not from x-envoy- on"#,
            r#"upstreams[2].shed.reasonHeader: found "x-a\r\nset-cookie", expected a header name in lower case from x- on, not from x-envoy- on"#,
        ],
    },
    Case {
        name: "criticality",
        document: r#""criticality":{"header":"X-Criticality","cohortHeader":":path","rules":[{"criticality":"critical"},{"path":"/a"},{"path":"a","criticality":"critical"},{"path":"/a?b=1","criticality":"critical"},{"method":"get","criticality":"critical"},{"clientIdentity":"","criticality":"vital"}]}"#,
        errors: &[
            r#"criticality.header: found "X-Criticality", expected a header name in lower case"#,
            r#"criticality.cohortHeader: found ":path", expected a header name in lower case"#,
            "criticality.rules[0]: found no condition, expected at least one of path, method, clientIdentity",
            r#"criticality.rules[1].criticality: found nothing, expected "sheddable", "sheddable_plus", "critical" or "critical_plus""#,
            r#"criticality.rules[2].path: found "a", expected a path without query, from / or *, with * for any text, at most 512 bytes"#,
            r#"criticality.rules[3].path: found "/a?b=1", expected a path without query, from / or *, with * for any text, at most 512 bytes"#,
            r#"criticality.rules[4].method: found "get", expected an HTTP method in capitals such as "GET""#,
            r#"criticality.rules[5].clientIdentity: found "", expected a name with * for any text, at most 512 bytes"#,
            r#"criticality.rules[5].criticality: found "vital", expected "sheddable", "sheddable_plus", "critical" or "critical_plus""#,
        ],
    },
    Case {
        name: "a long value that would forge a log line",
        document: r#""mode":"enforce\n[critical] all is well xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx""#,
        errors: &[
            r#"mode: found "enforce\n[critical] all is well xxxxxxxxxxxxxxxxxxxxxxx...", expected "observe" or "enforce""#,
        ],
    },
];

#[test]
fn every_bad_document_is_rejected_with_all_its_errors() {
    for case in DOCUMENTS {
        let errors = rejection(case.document.as_bytes())
            .unwrap_or_else(|taken| panic!("{}: {taken}", case.name));

        let lines: Vec<String> = errors.to_string().lines().map(str::to_owned).collect();
        assert_eq!(lines, case.errors, "{}", case.name);
    }
}

#[test]
fn every_bad_member_is_rejected_with_all_its_errors() {
    for case in MEMBERS {
        let errors = rejection(with_objective(case.document).as_bytes())
            .unwrap_or_else(|taken| panic!("{}: {taken}", case.name));

        let lines: Vec<String> = errors.to_string().lines().map(str::to_owned).collect();
        assert_eq!(lines, case.errors, "{}", case.name);
        for error in errors.iter() {
            assert!(error.found().len() <= 80, "{}: {error}", case.name);
        }
    }
}

#[test]
fn a_document_of_ten_megabytes_is_rejected_by_its_size() {
    // Not even JSON: nothing looked at it.
    let errors = rejection(&vec![b'x'; 10_000_000]).unwrap();

    assert_eq!(
        errors.to_string(),
        "document: found 10000000 bytes, expected at most 1048576 bytes"
    );
}

#[test]
fn a_document_of_the_greatest_size_is_read() {
    let mut document = with_objective(r#""mode":"observe""#).into_bytes();
    document.resize(MAX_DOCUMENT_BYTES, b' ');

    assert!(Config::from_json(&document).is_ok());
}

#[test]
fn invalid_utf8_is_rejected_with_its_place() {
    let mut document = with_objective(r#""shed":{"body":"x"}"#).into_bytes();
    let at = document.len() - 4;
    document[at] = 0xff;

    let errors = rejection(&document).unwrap();

    assert_eq!(
        errors.to_string(),
        format!("document: found invalid UTF-8 at byte {at}, expected UTF-8 text")
    );
}

#[test]
fn a_depth_bomb_is_rejected_where_it_gets_too_deep() {
    for (open, close) in [("[", "]"), (r#"{"slo":"#, "}")] {
        let document = format!("{}1{}", open.repeat(100_000), close.repeat(100_000));

        let text = rejection(document.as_bytes()).unwrap().to_string();

        assert!(
            text.ends_with(
                "found malformed JSON (recursion limit exceeded), expected a JSON object"
            ),
            "{text}"
        );
    }
}

#[test]
fn a_document_of_too_many_values_is_rejected() {
    let document = format!("[{}0]", "0,".repeat(400_000));

    let text = rejection(document.as_bytes()).unwrap().to_string();

    assert!(
        text.ends_with("found malformed JSON (more than 100000 values), expected a JSON object"),
        "{text}"
    );
}

#[test]
fn more_than_a_thousand_rules_are_rejected() {
    let rules = |count: usize| {
        let rules: Vec<String> = (0..count)
            .map(|n| format!(r#"{{"match":{{"cluster":"c{n}"}}}}"#))
            .collect();
        with_objective(&format!(r#""upstreams":[{}]"#, rules.join(",")))
    };

    let errors = rejection(rules(1001).as_bytes()).unwrap();

    assert_eq!(
        errors.to_string(),
        "upstreams: found 1001 entries, expected at most 1000 entries"
    );
    let taken = Config::from_json(rules(1000).as_bytes()).unwrap();
    assert_eq!(taken.rules().len(), 1000);
}

#[test]
fn more_errors_than_anybody_reads_are_counted() {
    let keys: Vec<String> = (0..50_000).map(|n| format!(r#""k{n}":1"#)).collect();

    let errors = rejection(with_objective(&keys.join(",")).as_bytes()).unwrap();

    assert_eq!(errors.total(), 50_000);
    assert_eq!(errors.iter().count(), 100);
    assert!(errors.to_string().ends_with("\nand 49900 more"));
}

#[test]
fn a_body_may_be_four_kibibytes_and_no_more() {
    let body =
        |bytes: usize| with_objective(&format!(r#""shed":{{"body":"{}"}}"#, "x".repeat(bytes)));

    assert!(Config::from_json(body(4096).as_bytes()).is_ok());
    let errors = rejection(body(4097).as_bytes()).unwrap();
    assert_eq!(
        errors.to_string(),
        format!(
            "shed.body: found \"{}...\", expected a text of at most 4096 bytes",
            "x".repeat(55)
        )
    );
}
