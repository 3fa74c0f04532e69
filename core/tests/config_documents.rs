//! The documents of the repository: the generated reference is fresh, and every
//! configuration that is shown or shipped anywhere is one that the filter takes.

use std::fs;
use std::path::{Path, PathBuf};

use tidegate_core::config::{Config, reference};

/// Where configurations are shown to people or shipped.
const SHOWN_IN: [&str; 6] = [
    "README.md",
    "ARCHITECTURE.md",
    "docs",
    "examples",
    "manifests",
    "loadtests",
];

/// Files that may hold a configuration, as a whole or inside.
const EXTENSIONS: [&str; 5] = ["md", "json", "yaml", "yml", "toml"];

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) {
    if path.is_dir() {
        let entries = fs::read_dir(path).into_iter().flatten().flatten();
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        paths.sort();
        for path in paths {
            collect(&path, files);
        }
    } else if path.is_file()
        && path
            .extension()
            .is_some_and(|extension| EXTENSIONS.iter().any(|known| extension == *known))
    {
        files.push(path.to_owned());
    }
}

/// The JSON objects in `text` that state an objective, outermost only. A rule
/// under `upstreams` that stands alone in prose is none: it has a `match`.
fn configurations(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find('{') {
        rest = &rest[start..];
        let mut stream = serde_json::Deserializer::from_str(rest).into_iter::<serde_json::Value>();
        match stream.next() {
            Some(Ok(value)) if value.get("slo").is_some() && value.get("match").is_none() => {
                let end = stream.byte_offset();
                found.push(rest[..end].to_owned());
                rest = &rest[end..];
            }
            _ => rest = &rest[1..],
        }
    }
    found
}

#[test]
fn every_configuration_in_the_repository_is_taken() {
    let mut files = Vec::new();
    for place in SHOWN_IN {
        collect(&repository().join(place), &mut files);
    }
    let mut rejected = Vec::new();
    let mut taken = 0;
    for file in &files {
        let text = fs::read_to_string(file).unwrap();
        for document in configurations(&text) {
            match Config::from_json(document.as_bytes()) {
                Ok(_) => taken += 1,
                Err(errors) => rejected.push(format!("{}:\n{errors}\n{document}", file.display())),
            }
        }
    }

    assert!(rejected.is_empty(), "{}", rejected.join("\n\n"));
    assert!(taken >= 2, "the reference alone shows two, found {taken}");
}

#[test]
fn configurations_are_found_inside_other_text() {
    let text = r#"value: |
      {"slo": {"latency": {}}}
    other: {"a": {"slo": 1, "match": {}}} {broken {"b": {"slo": 2}} "#;

    assert_eq!(
        configurations(text),
        [r#"{"slo": {"latency": {}}}"#, r#"{"slo": 2}"#]
    );
}

#[test]
fn the_reference_is_fresh() {
    let file = repository().join("docs/configuration.md");
    let committed = fs::read_to_string(&file).unwrap_or_default();

    assert!(
        committed == reference::markdown(),
        "docs/configuration.md is stale; refresh it with\n\
         cargo run -p tidegate-core --example reference -- configuration > docs/configuration.md"
    );
}
