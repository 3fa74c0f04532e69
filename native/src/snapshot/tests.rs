#![expect(unsafe_code, reason = "a test makes a pipe")]

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt as _;

use proptest::prelude::*;
use tempfile::TempDir;
use tidegate_core::config::Config;
use tidegate_core::{BreakerState, Directives};
use tidegate_worker::api::Expect;
use tidegate_worker::exchange::keys::Keys;

use super::*;
use crate::fake::{LOG, STATUS, buffer};
use crate::hooks::*;
use crate::plugin::NamedConfig;
use crate::registry;
use crate::rig::{Filter, Hook};

/// More rounds than any decision takes, and the time between them: rounds that are closer measure nothing.
const MOST_ROUNDS: u32 = 400;
const ROUND: core::time::Duration = core::time::Duration::from_millis(12);

/// A breaker that stays open for longer than the test takes, and a file in this directory that the test writes itself.
fn document(directory: &Path) -> String {
    format!(
        r#"{{"slo":{{"latency":{{"quantile":0.99,"target":"300ms"}}}},"breaker":{{"minOpen":"5m","maxOpen":"10m"}},"native":{{"snapshot":{{"directory":{directory:?},"interval":"10m"}}}}}}"#
    )
}

fn named(directory: &Path) -> NamedConfig {
    let (config, options, digest) =
        Config::native_from_json(document(directory).as_bytes()).unwrap();
    NamedConfig {
        config,
        options,
        digest,
    }
}

/// What the plugin `web` of a process that starts now finds in this directory.
fn started(directory: &Path) -> Arc<SnapshotFile> {
    let config = named(directory);
    LOG.take();
    opened("web", &config)
}

fn opened(plugin: &str, config: &NamedConfig) -> Arc<SnapshotFile> {
    let file = SnapshotFile::new(plugin, &Arc::default(), config.options.snapshot());
    file.restore();
    file
}

fn key(file: &SnapshotFile) -> String {
    Keys::new(&file.plugin).learned().to_owned()
}

fn learned(file: &SnapshotFile) -> Option<Directives<'static>> {
    let value = file.shared.values.get(&key(file))?;
    Some(Directives::decode(value.bytes.to_vec()).unwrap())
}

/// The path of the file of `web`.
fn file_in(directory: &Path) -> PathBuf {
    path(named(directory).options.snapshot().unwrap(), "web")
}

/// The plugin learns that there is nothing to know.
fn learn_nothing(file: &SnapshotFile) {
    let nothing: [tidegate_core::Directive; 0] = [];
    let at = learned::clocks(&file.shared).unwrap().monotonic;
    let bytes = Directives::new(1, at, nothing).encode();
    file.shared.values.set(&key(file), &bytes, Expect::Anything);
}

/// Leaves a file of `web`, of which nothing is known.
fn save_nothing(directory: &Path) {
    let file = started(directory);
    learn_nothing(&file);
    file.write(&file_in(directory));
}

#[test]
fn an_open_breaker_is_there_at_the_next_start() {
    let directory = TempDir::new().unwrap();
    let name = "snapshot-breaker";
    let mut filter = Filter::with(name, &document(directory.path()));
    let plugin = Arc::clone(&filter.config().plugin);
    let file = Arc::clone(plugin.snapshot());
    let is_open = |file: &SnapshotFile| {
        learned(file).is_some_and(|learned| {
            let mut entries = learned.entries();
            entries.any(|entry| matches!(entry.breaker, BreakerState::Open { .. }))
        })
    };
    STATUS.set("503");
    for _ in 0..MOST_ROUNDS {
        if is_open(&file) {
            break;
        }
        let hooks = [
            Hook::New,
            Hook::RequestHeaders(true),
            Hook::ResponseHeaders(true),
            Hook::StreamComplete,
            Hook::Destroy,
        ];
        for hook in &hooks {
            filter.play(0, hook);
        }
        thread::sleep(ROUND);
        filter.play(0, &Hook::Round);
    }
    STATUS.set("200");
    assert!(
        is_open(&file),
        "the breaker has opened, and that is learned"
    );
    let to = path(named(directory.path()).options.snapshot().unwrap(), name);
    file.write(&to);
    LOG.take();

    let next = crate::plugin::NativePlugin::new(name, 1, named(directory.path()));
    assert!(is_open(next.snapshot()));
    let lines = LOG.take();
    let line = lines.first().unwrap();
    assert!(
        line.contains(&format!("{to:?}: starting from learned state of "))
            && line.ends_with("upstreams=1"),
        "{line}"
    );
    let other = opened("other", &named(directory.path()));
    assert_eq!(learned(&other), None, "each plugin has its own");
    filter.end();
}

/// What is said about a file, and what makes it so.
type Case<'a> = (&'a str, &'a dyn Fn(&Path));

#[test]
fn whatever_is_wrong_with_a_file_is_said_once_and_the_module_starts_from_nothing() {
    let mut whole = Vec::new();
    let pipe = |path: &Path| {
        let path = CString::new(path.as_os_str().as_bytes()).unwrap();
        // SAFETY: the path ends with NUL.
        assert_eq!(unsafe { libc::mkfifo(path.as_ptr(), 0o600) }, 0);
    };
    let directory = TempDir::new().unwrap();
    save_nothing(directory.path());
    File::open(file_in(directory.path()))
        .unwrap()
        .read_to_end(&mut whole)
        .unwrap();
    let mark = whole.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    let with = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = whole.clone();
        change(&mut bytes);
        bytes
    };
    let cases: [Case<'_>; 8] = [
        ("found other content, expected", &|it| {
            fs::write(it, b"{}").unwrap()
        }),
        ("found other content, expected", &|it| {
            fs::write(it, b"").unwrap()
        }),
        ("cut off or damaged, expected", &|it| {
            fs::write(it, with(&|bytes| bytes.truncate(bytes.len() - 1))).unwrap();
        }),
        ("cut off or damaged, expected", &|it| {
            fs::write(it, with(&|bytes| *bytes.last_mut().unwrap() ^= 1)).unwrap();
        }),
        ("found version 200, expected", &|it| {
            fs::write(it, with(&|bytes| bytes[mark] = 200)).unwrap();
        }),
        ("bytes, expected at most 16777216", &|it| {
            File::create(it).unwrap().set_len(MAX_BYTES + 1).unwrap();
        }),
        ("found no regular file, expected", &|it| {
            fs::create_dir(it).unwrap()
        }),
        ("found no regular file, expected", &pipe),
    ];
    for (expected, make) in cases {
        let directory = TempDir::new().unwrap();
        let path = file_in(directory.path());
        make(&path);
        let file = started(directory.path());
        let lines = LOG.take();
        assert_eq!(lines.len(), 1, "{lines:?}");
        let shown = format!("{path:?}");
        assert!(
            lines[0].contains(expected) && lines[0].contains(&shown),
            "{lines:?}"
        );
        assert!(lines[0].ends_with("starting from nothing"), "{lines:?}");
        assert_eq!(learned(&file), None);
        assert!(path.exists(), "it is left as it was");
        let can_replace = !path.is_dir();
        save_nothing(directory.path());
        LOG.take();
        let found = started(directory.path());
        assert_eq!(learned(&found).is_some(), can_replace, "{expected}");
    }
}

#[test]
fn a_first_start_and_a_missing_directory_are_told_apart() {
    let directory = TempDir::new().unwrap();
    started(directory.path());
    let first = LOG.take().concat();
    assert!(
        first.contains("found none yet: starting from nothing"),
        "{first}"
    );
    started(&directory.path().join("missing"));
    let missing = LOG.take().concat();
    assert!(
        missing.contains("found no such directory, expected one"),
        "{missing}"
    );
}

#[test]
fn a_write_that_fails_is_said_once_and_tried_again() {
    let parent = TempDir::new().unwrap();
    let directory = parent.path().join("later");
    let to = file_in(&directory);
    let file = started(&directory);
    learn_nothing(&file);
    LOG.take();
    for _ in 0..3 {
        file.write(&to);
    }
    let lines = LOG.take();
    assert_eq!(lines.len(), 1, "{lines:?}");
    let shown = format!("snapshot not written to {to:?}: found \"No such file or directory");
    assert!(lines[0].contains(&shown), "{lines:?}");
    fs::create_dir(&directory).unwrap();
    file.write(&to);
    assert!(LOG.take().concat().contains("again"));
    assert!(learned(&started(&directory)).is_some());
    let left: Vec<_> = fs::read_dir(&directory).unwrap().collect();
    assert_eq!(left.len(), 1, "nothing beside it: {left:?}");
}

#[test]
fn what_the_file_has_already_is_not_written_again() {
    let directory = TempDir::new().unwrap();
    save_nothing(directory.path());
    let path = file_in(directory.path());
    let file = started(directory.path());
    fs::remove_file(&path).unwrap();
    file.write(&path);
    assert!(!path.exists(), "it is what was restored");
    let value = file.shared.values.get(&key(&file)).unwrap();
    file.shared
        .values
        .set(&key(&file), &value.bytes, Expect::Anything);
    file.write(&path);
    assert!(path.exists(), "it was learned since");
}

#[test]
fn writes_keep_their_distance_and_one_is_under_way_at_a_time() {
    let directory = TempDir::new().unwrap();
    let file = started(directory.path());
    LOG.take();
    assert_eq!(file.due(), None, "the first comes after an interval");
    let is_time = |file: &SnapshotFile| {
        file.state().schedule.as_mut().unwrap().next = Instant::now();
    };
    is_time(&file);
    assert_eq!(file.due(), Some(file_in(directory.path())));
    for _ in 0..2 {
        is_time(&file);
        assert_eq!(file.due(), None, "the first has not ended");
    }
    let lines = LOG.take();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains("a write that does not end"), "{lines:?}");
    file.is_writing.store(false, Ordering::Release);
    is_time(&file);
    assert!(file.due().is_some());
    file.is_writing.store(false, Ordering::Release);
    is_time(&file);
    file.follow(None);
    assert_eq!(file.due(), None, "it was turned off");
}

#[test]
fn the_configuration_of_a_route_has_no_snapshot() {
    LOG.take();
    let document = document(Path::new("/var/lib/tidegate"));
    let route = envoy_dynamic_module_on_http_filter_per_route_config_new(
        buffer("snapshot-route"),
        buffer(&document),
    );
    assert!(route.is_null());
    let said = LOG.take().concat();
    assert!(
        said.contains("native.snapshot: found an object, expected nothing here"),
        "{said}"
    );
    assert!(!registry::knows("snapshot-route"));
}

proptest! {
    /// Any bytes, or a true file that is damaged.
    #[test]
    fn no_content_of_the_file_panics(
        bytes in prop::collection::vec(any::<u8>(), 0..400),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        is_damaged in any::<bool>(),
    ) {
        let directory = TempDir::new().unwrap();
        let path = file_in(directory.path());
        if is_damaged {
            save_nothing(directory.path());
            let mut bytes = fs::read(&path).unwrap();
            for (place, byte) in &changes {
                let place = place.index(bytes.len());
                bytes[place] = *byte;
            }
            fs::write(&path, bytes).unwrap();
        } else {
            fs::write(&path, bytes).unwrap();
        }
        let panics = guard::panics();
        let plugin = crate::plugin::NativePlugin::new("web", 1, named(directory.path()));
        plugin.begin_round();
        plugin.end_round();
        prop_assert_eq!(guard::panics(), panics);
    }
}
