//! This package has no code: its manifest is what counts.
//!
//! Cargo compiles a dependency once for each set of features. Tests enable more of them than programs do (`tokio/test-util`), so without
//! this package a clone compiles most of the asynchronous stack twice: for `make test`, and for `cargo run`. Cargo unites the features
//! of all packages of the workspace that a command selects, and no package depends on this one. So it counts for a command without
//! `--package`, and never for what ships, which is built by package. `cargo hakari` does the same for large workspaces.
//!
//! `ci/features.py` checks that it names every such feature.
