use std::os::unix::fs::symlink;

use super::*;

fn policy(name: &str, target_ms: u32) -> String {
    format!(
        "apiVersion: tidegate.dev/v1alpha1
kind: BreakerPolicy
metadata: {{name: {name}}}
spec:
  proxies: [{{id: '*'}}]
  slo: {{latency: {{quantile: 0.99, target: {target_ms}ms}}}}
"
    )
}

fn named(directory: &Directory) -> Vec<String> {
    let gathered = directory.gathered();
    gathered
        .policies
        .iter()
        .map(|p| p.name().to_string())
        .collect()
}

fn scanned(path: &Path) -> Directory {
    let mut directory = Directory::new(path.to_owned());
    directory.scan();
    directory
}

#[test]
fn added_changed_and_removed_files_are_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let mut directory = scanned(folder.path());
    assert_eq!(named(&directory), [""; 0]);
    assert!(!directory.scan());

    fs::write(folder.path().join("a.yaml"), policy("a", 100)).unwrap();
    assert!(directory.scan());
    assert!(!directory.scan());
    assert_eq!(named(&directory), ["a"]);

    fs::write(folder.path().join("a.yaml"), policy("b", 100)).unwrap();
    assert!(directory.scan());
    assert_eq!(named(&directory), ["b"]);

    fs::remove_file(folder.path().join("a.yaml")).unwrap();
    assert!(directory.scan());
    assert_eq!(named(&directory), [""; 0]);
}

#[test]
fn a_broken_file_keeps_its_last_valid_policies_and_reports_why() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.yaml");
    fs::write(&file, policy("a", 100)).unwrap();
    let mut directory = scanned(folder.path());

    fs::write(&file, policy("a", 100).replace("0.99", "9.9")).unwrap();
    assert!(directory.scan());

    assert_eq!(named(&directory), ["a"]);
    let problems = directory.gathered().problems;
    assert_eq!(problems.len(), 1);
    assert_eq!(problems[0].found, "9.9");

    fs::write(&file, policy("a", 200)).unwrap();
    assert!(directory.scan());
    assert!(directory.gathered().problems.is_empty());
}

#[test]
fn a_missing_directory_leaves_all_policies_in_force() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("policies");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("a.yaml"), policy("a", 100)).unwrap();
    let mut directory = scanned(&folder);

    fs::rename(&folder, parent.path().join("elsewhere")).unwrap();
    assert!(directory.scan());
    assert!(!directory.scan(), "said once");
    assert_eq!(named(&directory), ["a"]);
    assert_eq!(directory.gathered().problems.len(), 1);

    fs::rename(parent.path().join("elsewhere"), &folder).unwrap();
    assert!(directory.scan());
    assert!(directory.gathered().problems.is_empty());
}

#[test]
fn a_swapped_link_is_followed_as_in_a_mounted_config_map() {
    let folder = tempfile::tempdir().unwrap();
    for (version, target) in [("..1", 100), ("..2", 200)] {
        let version = folder.path().join(version);
        fs::create_dir(&version).unwrap();
        fs::write(version.join("a.yaml"), policy("a", target)).unwrap();
    }
    symlink("..1", folder.path().join("..data")).unwrap();
    symlink("..data/a.yaml", folder.path().join("a.yaml")).unwrap();
    let mut directory = scanned(folder.path());
    let before = directory.gathered().policies;
    assert_eq!(named(&directory), ["a"]);

    symlink("..2", folder.path().join("..new")).unwrap();
    fs::rename(folder.path().join("..new"), folder.path().join("..data")).unwrap();

    assert!(directory.scan());
    assert_ne!(directory.gathered().policies, before);
}

#[test]
fn two_policies_with_one_name_are_an_error_and_the_first_file_wins() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.yaml"), policy("same", 100)).unwrap();
    fs::write(folder.path().join("b.yaml"), policy("same", 200)).unwrap();

    let gathered = scanned(folder.path()).gathered();

    assert_eq!(gathered.policies.len(), 1);
    assert_eq!(gathered.problems.len(), 1);
    assert!(gathered.problems[0].found.contains("a.yaml"));
    assert!(gathered.problems[0].source.ends_with("b.yaml"));
}
