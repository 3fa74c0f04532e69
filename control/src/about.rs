//! What this program is: its version, the commit that it was built from, and the module that it belongs to.

/// The version of the service, and of everything else in the same release.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The commit, or `unknown`: outside of git, and in builds for tests.
pub const COMMIT: &str = env!("TIDEGATE_COMMIT");

/// The version of the module in the same release; in a released program also the module's checksum.
pub const MODULE: &str = env!("TIDEGATE_BUILT_FOR");

/// Version, commit and module, as `tidegate --version` prints them.
pub const FULL_VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    " (commit ",
    env!("TIDEGATE_COMMIT"),
    ", module ",
    env!("TIDEGATE_BUILT_FOR"),
    ")"
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_full_version_states_version_commit_and_module() {
        let expected = format!("{VERSION} (commit {COMMIT}, module {MODULE})");

        assert_eq!(FULL_VERSION, expected);
        assert!(!COMMIT.is_empty(), "unknown is said, not left out");
        assert!(
            MODULE.starts_with(VERSION),
            "{MODULE}: one release has one version"
        );
    }
}
