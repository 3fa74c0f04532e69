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
         native.x: found an unknown key, expected one of loadReports, histograms, hosts"
    );
}

#[test]
fn a_reader_that_is_not_the_native_module_rejects_each_option_by_name() {
    assert_eq!(
        others(r#","native":{"loadReports":"set"}"#).unwrap_err(),
        "native.loadReports: found \"set\", expected nothing here: only the native module can do this"
    );
    for field in NATIVE_FIELDS {
        let key = field.path.strip_prefix("native.").unwrap();
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
