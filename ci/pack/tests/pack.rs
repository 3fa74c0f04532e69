//! Packing small modules: what stays, what goes, what is rejected.

#![expect(
    clippy::unwrap_used,
    reason = "a test fails by panicking, its helpers too"
)]

use std::collections::BTreeSet;

use tidegate_pack::{FunctionNames, List, PackError, Packed, Rules, pack};

/// A module like those of an SDK: it exports more than its filter uses.
const MODULE: &str = r#"
(module
  (import "env" "proxy_log" (func $log (param i32 i32 i32) (result i32)))
  (import "env" "proxy_http_call" (func $call (result i32)))
  (memory (export "memory") 1)
  (func (export "_initialize"))
  (func (export "proxy_abi_version_0_2_1"))
  (func $headers (export "proxy_on_request_headers") (param i32 i32 i32) (result i32)
    (drop (call $log (i32.const 0) (i32.const 0) (i32.const 0)))
    (i32.const 0))
  (func $body (export "proxy_on_request_body") (param i32 i32 i32) (result i32)
    (call $only_for_bodies))
  (func $only_for_bodies (result i32) (call $call))
  (data (i32.const 0) "text")
  (@custom "target_features" "\00")
)"#;

fn module() -> Vec<u8> {
    wat::parse_str(MODULE).unwrap()
}

fn keeping(exports: &str) -> Rules {
    Rules {
        exports: Some(List::parse(exports)),
        ..Rules::default()
    }
}

fn headers_only() -> Rules {
    keeping("memory\n_initialize\nproxy_abi_version_0_2_1\nproxy_on_request_headers\nmalloc?")
}

fn packed(rules: &Rules) -> Packed {
    pack(&module(), rules).unwrap()
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes
        .windows(text.len())
        .any(|window| window == text.as_bytes())
}

#[test]
fn unlisted_exports_go_with_everything_behind_them() {
    let packed = packed(&headers_only());
    let expected = [
        "_initialize",
        "memory",
        "proxy_abi_version_0_2_1",
        "proxy_on_request_headers",
    ];
    assert!(packed.exports.iter().eq(expected), "{:?}", packed.exports);
    assert!(
        packed.imports.iter().eq(["env.proxy_log"]),
        "{:?}",
        packed.imports
    );
    assert!(
        !contains(&packed.bytes, "proxy_http_call"),
        "only the removed export called it"
    );
}

#[test]
fn without_a_list_every_export_stays() {
    assert_eq!(packed(&Rules::default()).exports.len(), 5);
}

#[test]
fn a_name_can_be_kept_beside_the_list() {
    let mut rules = headers_only();
    rules
        .exports
        .get_or_insert_default()
        .require("proxy_on_request_body");
    assert_eq!(packed(&rules).imports.len(), 2);
}

#[test]
fn data_stays_and_custom_sections_go() {
    let packed = packed(&headers_only());
    assert!(contains(&packed.bytes, "text"));
    for gone in ["target_features", "producers", "name"] {
        assert!(!contains(&packed.bytes, gone), "{gone} is still there");
    }
}

#[test]
fn names_of_functions_stay_when_asked_for() {
    assert!(contains(
        &packed(&Rules {
            names: FunctionNames::Keep,
            ..Rules::default()
        })
        .bytes,
        "only_for_bodies"
    ));
    assert!(!contains(
        &packed(&Rules::default()).bytes,
        "only_for_bodies"
    ));
}

#[test]
fn the_same_module_packs_to_the_same_bytes() {
    let once = packed(&headers_only());
    let twice = packed(&headers_only());
    let again = pack(&once.bytes, &headers_only()).unwrap();
    assert_eq!(once.bytes, twice.bytes);
    assert_eq!(
        once.sha256(),
        again.sha256(),
        "packing a packed module changes nothing"
    );
}

#[test]
fn a_missing_required_export_is_rejected() {
    let error = pack(&module(), &keeping("memory\nproxy_on_log\nproxy_on_tick")).unwrap_err();
    let expected = "the list of exports requires, but the module does not export\n  proxy_on_log\n  proxy_on_tick";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn imports_are_held_against_their_list_in_both_directions() {
    let import = |list: &str| {
        let rules = Rules {
            imports: Some(List::parse(list)),
            ..headers_only()
        };
        pack(&module(), &rules)
    };
    assert!(import("env.proxy_log").is_ok());
    assert!(
        matches!(import(""), Err(PackError::UnlistedImports(names)) if names == ["env.proxy_log"])
    );
    assert!(matches!(import("env.proxy_log\nenv.proxy_done"),
        Err(PackError::StaleImports(names)) if names == ["env.proxy_done"]));
}

#[test]
fn the_size_budget_counts_the_packed_module() {
    let size = packed(&headers_only()).bytes.len();
    assert!(size < module().len());
    assert!(
        pack(
            &module(),
            &Rules {
                max_bytes: Some(size),
                ..headers_only()
            }
        )
        .is_ok()
    );
    let error = pack(
        &module(),
        &Rules {
            max_bytes: Some(size - 1),
            ..headers_only()
        },
    )
    .unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "the packed module has {size} bytes, 1 more than the {} allowed",
            size - 1
        )
    );
}

#[test]
fn bytes_that_are_no_module_are_rejected() {
    for bytes in [&b""[..], b"not wasm", &module()[..40]] {
        assert!(matches!(
            pack(bytes, &Rules::default()),
            Err(PackError::Parse { .. })
        ));
    }
}

#[test]
fn the_checksum_is_sha256_in_hexadecimal() {
    let empty = Packed {
        bytes: Vec::new(),
        exports: BTreeSet::new(),
        imports: BTreeSet::new(),
    };
    assert_eq!(
        empty.sha256(),
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    );
}
