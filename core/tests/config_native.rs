//! Options of the native module alone.

use tidegate_core::config::{Config, LoadReports, NATIVE_FIELDS};

fn document(native: &str) -> String {
    format!(r#"{{"slo":{{"latency":{{"quantile":0.99,"target":"300ms"}}}}{native}}}"#)
}

/// What the native module says about a document.
fn native(options: &str) -> Result<LoadReports, String> {
    match Config::native_from_json(document(options).as_bytes()) {
        Ok((_, options, _)) => Ok(options.load_reports()),
        Err(errors) => Err(errors.to_string()),
    }
}

/// What every other reader says.
fn others(options: &str) -> Result<(), String> {
    let read = Config::named_from_json(document(options).as_bytes());
    read.map(|_| ()).map_err(|errors| errors.to_string())
}

#[test]
fn load_reports_are_left_alone_unless_the_document_says_otherwise() {
    assert_eq!(native(""), Ok(LoadReports::Pass));
    assert_eq!(native(r#","native":{}"#), Ok(LoadReports::Pass));
    for reports in LoadReports::ALL {
        let options = format!(r#","native":{{"loadReports":"{}"}}"#, reports.name());
        assert_eq!(native(&options), Ok(reports));
    }
}

#[test]
fn a_bad_option_is_rejected_with_its_path() {
    let found = native(r#","native":{"loadReports":"on","x":1}"#).unwrap_err();
    assert_eq!(
        found,
        "native.loadReports: found \"on\", expected \"pass\", \"remove\" or \"set\"\n\
         native.x: found an unknown key, expected one of loadReports, histograms, hosts, snapshot"
    );
}

#[test]
fn a_reader_that_is_not_the_native_module_rejects_each_option_by_name() {
    assert_eq!(
        others(r#","native":{"loadReports":"set"}"#).unwrap_err(),
        "native.loadReports: found \"set\", expected nothing here: only the native module can do this"
    );
    for field in NATIVE_FIELDS {
        let key = field.path.split('.').nth(1).unwrap();
        let found = others(&format!(r#","native":{{"{key}":null}}"#)).unwrap_err();
        assert!(found.contains("only the native module"), "{found}");
    }
}

#[test]
fn the_digest_is_that_of_the_whole_document() {
    let digest = |options: &str| {
        let read = Config::native_from_json(document(options).as_bytes());
        read.unwrap().2
    };
    let plain = Config::named_from_json(document("").as_bytes()).unwrap().1;
    assert_eq!(digest(""), plain);
    assert_ne!(digest(r#","native":{"loadReports":"set"}"#), plain);
}

/// Directory and interval in seconds that the native module reads.
fn snapshot(options: &str) -> Result<Option<(String, u64)>, String> {
    let options = format!(r#","native":{{"snapshot":{options}}}"#);
    match Config::native_from_json(document(&options).as_bytes()) {
        Ok((_, options, _)) => {
            let snapshot = options.snapshot();
            Ok(snapshot.map(|it| (it.directory().to_owned(), it.interval().as_secs())))
        }
        Err(errors) => Err(errors.to_string()),
    }
}

#[test]
fn a_snapshot_is_off_unless_there_is_a_directory() {
    let (_, options, _) = Config::native_from_json(document("").as_bytes()).unwrap();
    assert_eq!(options.snapshot(), None);
    let found = |seconds| Ok(Some(("/var/lib/tidegate".to_owned(), seconds)));
    assert_eq!(snapshot(r#"{"directory":"/var/lib/tidegate"}"#), found(10));
    assert_eq!(
        snapshot(r#"{"directory":"/var/lib/tidegate","interval":"1s"}"#),
        found(1)
    );
}

#[test]
fn a_bad_snapshot_option_is_rejected_with_path_value_and_what_was_expected() {
    let directory = "native.snapshot.directory: found {}, expected an absolute path of a directory, at most 4000 bytes";
    let interval =
        "native.snapshot.interval: found {}, expected a duration from 1s to 10m such as \"250ms\"";
    let long = "/x".repeat(2_001);
    let long_shown = format!("\"{}...\"", &long[..55]);
    for (options, expected, found) in [
        ("{}", directory, "nothing"),
        (r#"{"directory":""}"#, directory, r#""""#),
        (
            r#"{"directory":"lib/tidegate"}"#,
            directory,
            r#""lib/tidegate""#,
        ),
        (r#"{"directory":"/a\u0000b"}"#, directory, r#""/a\u{0}b""#),
        (
            &format!(r#"{{"directory":"{long}"}}"#),
            directory,
            &long_shown,
        ),
        (r#"{"directory":7}"#, directory, "7"),
        (r#"{"directory":"/a","interval":"0s"}"#, interval, r#""0s""#),
        (
            r#"{"directory":"/a","interval":"11m"}"#,
            interval,
            r#""11m""#,
        ),
        (r#"{"directory":"/a","interval":10}"#, interval, "10"),
    ] {
        let expected = expected.replace("{}", found);
        assert_eq!(snapshot(options), Err(expected), "{options}");
    }
    assert_eq!(
        snapshot(r#""/var/lib/tidegate""#),
        Err("native.snapshot: found \"/var/lib/tidegate\", expected an object".to_owned())
    );
}
