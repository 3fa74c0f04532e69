//! Which version of the module a policy names.

use tidegate_core::config::Section;

use super::PolicyTargets;

/// The key of `spec` with the name of the version.
pub const MODULE_KEY: &str = "module";

/// What the name of a version must be.
pub const MODULE_EXPECTED: &str =
    "the name of a version in letters, digits, ., - and _, at most 63 long";

/// Longest name, in bytes.
const MAX_NAME_BYTES: usize = 63;

/// Whether a text can be the name of a version.
#[must_use]
pub fn is_module_name(text: &str) -> bool {
    let is_end = |b: u8| b.is_ascii_alphanumeric();
    let is_inner = |b: u8| is_end(b) || matches!(b, b'.' | b'-' | b'_');
    let bytes = text.as_bytes();
    bytes.len() <= MAX_NAME_BYTES
        && bytes.iter().all(|b| is_inner(*b))
        && bytes.first().is_some_and(|b| is_end(*b))
        && bytes.last().is_some_and(|b| is_end(*b))
}

/// Reads the name. Standalone proxies load the module in the service's settings, so their policies name no version.
pub(super) fn module(s: &mut Section<'_>, targets: &PolicyTargets) -> Option<String> {
    let is_standalone = matches!(targets, PolicyTargets::Proxies(_));
    let expected = if is_standalone {
        "no version in a policy for standalone proxies, which run the module of the control service's settings"
    } else {
        MODULE_EXPECTED
    };
    s.text(MODULE_KEY, &expected, |text| {
        (!is_standalone && is_module_name(text)).then(|| text.to_owned())
    })
}
