//! Invalid settings.

/// An invalid setting.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: found {found}, expected {expected}")]
pub struct SettingError {
    /// The name of the option.
    pub path: &'static str,
    /// Its value.
    pub found: String,
    /// The expected values.
    pub expected: &'static str,
}

/// Collects invalid settings.
#[derive(Default)]
pub(super) struct Complaints(pub(super) Vec<SettingError>);

impl Complaints {
    pub(super) fn unless(
        &mut self,
        is_valid: bool,
        path: &'static str,
        found: &str,
        expected: &'static str,
    ) {
        if !is_valid {
            self.0.push(SettingError {
                path,
                found: format!("{found:?}"),
                expected,
            });
        }
    }
}
