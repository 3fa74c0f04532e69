use super::*;

fn name(name: &str) -> PolicyName {
    PolicyName::new(None, name.to_owned())
}

fn policy(name: &str, target_ms: u32) -> Vec<u8> {
    format!(
        "apiVersion: tidegate.dev/v1alpha1
kind: BreakerPolicy
metadata: {{name: {name}}}
spec:
  proxies: [{{id: '*'}}]
  slo: {{latency: {{quantile: 0.99, target: {target_ms}ms}}}}
"
    )
    .into_bytes()
}

fn tagged(tag: &ResourceVersion) -> Precondition {
    Precondition::Tagged(vec![tag.to_string()])
}

#[test]
fn stored_policies_survive_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path().join("new")).unwrap();
    let (tag, is_new) = store
        .put(&name("a"), &policy("a", 100), &Precondition::None)
        .unwrap();
    assert!(is_new);

    let again = Store::open(folder.path().join("new")).unwrap();

    assert_eq!(again.stored(&name("a")).unwrap().tag, tag);
    assert_eq!(*again.stored(&name("a")).unwrap().text, *policy("a", 100));
    assert!(again.gathered().problems.is_empty());
}

#[test]
fn a_text_is_replaced_only_with_its_current_tag() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path().to_owned()).unwrap();
    let (first, _) = store
        .put(&name("a"), &policy("a", 100), &Precondition::Absent)
        .unwrap();

    let newer = policy("a", 200);
    let mut put = |precondition| store.put(&name("a"), &newer, &precondition);
    assert!(matches!(
        put(Precondition::None),
        Err(StoreError::Unconditional)
    ));
    assert!(matches!(
        put(Precondition::Absent),
        Err(StoreError::Changed)
    ));
    let (second, is_new) = put(tagged(&first)).unwrap();
    assert!(!is_new);

    let older = store.put(&name("a"), &policy("a", 300), &tagged(&first));
    assert!(matches!(older, Err(StoreError::Changed)));
    assert!(matches!(
        store.remove(&name("a"), &tagged(&first)),
        Err(StoreError::Changed)
    ));
    store.remove(&name("a"), &tagged(&second)).unwrap();
    assert!(matches!(
        store.remove(&name("a"), &Precondition::None),
        Err(StoreError::Unknown)
    ));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_text_with_errors_or_another_name_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path().to_owned()).unwrap();
    let both = [policy("a", 1), b"---\n".to_vec(), policy("b", 1)].concat();

    for (text, path) in [
        (policy("b", 100), "metadata.name"),
        (both, "document"),
        (b"kind: [".to_vec(), "document 1"),
        (Vec::new(), "document"),
    ] {
        let Err(StoreError::Invalid(problems)) = store.put(&name("a"), &text, &Precondition::None)
        else {
            panic!("{path}");
        };
        assert_eq!(problems[0].path, path);
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_failed_write_leaves_the_old_text_in_force() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    let mut store = Store::open(path.clone()).unwrap();
    let (tag, _) = store
        .put(&name("a"), &policy("a", 100), &Precondition::None)
        .unwrap();
    // Root may write anywhere, but not into a directory that is gone.
    fs::rename(&path, folder.path().join("gone")).unwrap();

    let refused = store.put(&name("a"), &policy("a", 200), &tagged(&tag));

    assert!(matches!(refused, Err(StoreError::Write(_))));
    assert_eq!(store.stored(&name("a")).unwrap().tag, tag);
}

#[test]
fn a_damaged_file_is_reported_and_the_others_are_read() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.yaml"), policy("a", 100)).unwrap();
    fs::write(folder.path().join("b.yaml"), b"kind: [").unwrap();

    let store = Store::open(folder.path().to_owned()).unwrap();

    assert!(store.stored(&name("a")).is_some());
    let problems = store.gathered().problems;
    assert!(problems[0].source.ends_with("b.yaml"));
}
