//! Every policy in the pages is valid.

#![expect(clippy::unwrap_used, reason = "a test that panics fails")]

use std::fs;
use std::path::{Path, PathBuf};

use tidegate_control::policy::gather;

/// Folders whose contents are no pages of the repository.
const BUILT: [&str; 4] = ["target", "dist", "out", "node_modules"];

/// All Markdown files below a folder.
fn pages(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() {
            if !name.starts_with('.') && !BUILT.contains(&name) {
                pages(&path, found);
            }
        } else if name.ends_with(".md") {
            found.push(path);
        }
    }
}

/// The fenced blocks of YAML that have a policy, each with its first line's number.
fn policies(page: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut open: Option<(usize, usize, String)> = None;
    for (number, line) in page.lines().enumerate() {
        let rest = line.trim_start();
        let indent = line.len() - rest.len();
        match &mut open {
            None if rest == "```yaml" || rest == "```yml" => {
                open = Some((indent, number + 2, String::new()));
            }
            None => {}
            Some(_) if rest == "```" => {
                let (_, first, text) = open.take().unwrap();
                if text.contains("kind: BreakerPolicy") {
                    found.push((first, text));
                }
            }
            Some((indent, _, text)) => {
                text.push_str(line.get(*indent..).unwrap_or_default());
                text.push('\n');
            }
        }
    }
    found
}

#[test]
fn every_policy_in_a_page_is_valid() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = Vec::new();
    pages(&root, &mut found);
    let mut valid = 0;
    for page in found {
        for (line, text) in policies(&fs::read_to_string(&page).unwrap()) {
            let name = format!("{}:{line}", page.display());
            let gathered = gather([(name.as_str(), text.as_bytes())]);
            assert_eq!(gathered.problems, [], "{name}");
            valid += gathered.policies.iter().count();
        }
    }
    assert!(
        valid > 10,
        "found {valid} policies, fewer than the pages have"
    );
}

#[test]
fn a_policy_is_found_also_in_a_list() {
    let page =
        "```yaml\na: b\n```\n- x\n\n  ```yaml\n  kind: BreakerPolicy\n  spec:\n    a: b\n  ```\n";

    let text = "kind: BreakerPolicy\nspec:\n  a: b\n".to_owned();
    assert_eq!(policies(page), [(7, text)]);
}
