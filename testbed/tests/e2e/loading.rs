//! Envoy's messages about a native module that it cannot load, and about a document that the module rejects.
//!
//! The troubleshooting page quotes these messages; each case compares the page with a real Envoy.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;
use tidegate_testbed::client::Call;
use tidegate_testbed::envoy::{
    Cluster, Envoy, Plugin, PushOutcome, native_config, native_module, repository,
};
use tidegate_testbed::upstream::{Script, Upstream};

use crate::config::fixed_limit;
use crate::load::Crowd;
use crate::stage::{Stage, chain, ensure, require};
use crate::turn;

/// The page that quotes Envoy.
const PAGE: &str = "docs/install/troubleshooting.md";

/// The byte of an ELF header that names the machine, and a value that is neither x86-64 nor arm64 (RISC-V).
const MACHINE: usize = 18;
const OTHER_MACHINE: u8 = 0xf3;

fn native() -> PathBuf {
    require(&native_module());
    native_module()
}

/// A native filter with this shared object.
fn filter(file: &Path, document: &Value) -> Value {
    let mut config = native_config(file, "tidegate", &document.to_string());
    config["dynamic_module_config"] =
        json!({"module": {"local": {"filename": file}}, "do_not_close": true});
    json!({"name": "tidegate", "typed_config": config})
}

/// The message of an Envoy that does not start with this file.
async fn refusal(file: &Path) -> String {
    refusal_of(filter(file, &fixed_limit(1, json!({})))).await
}

async fn refusal_of(filter: Value) -> String {
    match Envoy::builder().filter(filter.clone()).start().await {
        Ok(_) => panic!("Envoy starts with {filter}"),
        Err(error) => chain(&error),
    }
}

/// Compiles a shared object from C.
fn compiled(folder: &TempDir, source: &str) -> PathBuf {
    let (c, object) = (folder.path().join("m.c"), folder.path().join("m.so"));
    fs::write(&c, source).unwrap();
    let status = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .args([&object, &c])
        .status()
        .unwrap();
    assert!(status.success(), "cc ended with {status}");
    object
}

/// Fails unless both Envoy's message and the page contain the phrase.
fn holds(said: &str, phrase: &str) {
    assert!(
        said.contains(phrase),
        "Envoy does not say {phrase:?}:\n{said}"
    );
    let page = fs::read_to_string(repository().join(PAGE)).unwrap();
    assert!(page.contains(phrase), "{PAGE} does not quote {phrase:?}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the native module: make e2e-native"]
async fn the_page_quotes_what_envoy_says_to_a_file_that_it_cannot_load() {
    let _turn = turn::shared().await;
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("libtidegate.so");
    holds(
        &refusal(&missing).await,
        "cannot open shared object file: No such file or directory",
    );
    let document = fixed_limit(1, json!({})).to_string();
    let named = native_config(&missing, "tidegate", &document);
    let said = refusal_of(json!({"name": "tidegate", "typed_config": named})).await;
    holds(&said, "not found in any search path");

    // The loader skips a file for another machine, and then says that there is none.
    let mut bytes = fs::read(native()).unwrap();
    bytes[MACHINE] = OTHER_MACHINE;
    let foreign = folder.path().join("libforeign.so");
    fs::write(&foreign, bytes).unwrap();
    holds(
        &refusal(&foreign).await,
        "cannot open shared object file: No such file or directory",
    );

    let text = folder.path().join("libtext.so");
    fs::write(&text, "not a shared object").unwrap();
    holds(&refusal(&text).await, "file too short");

    let wasm = repository().join("dist/tidegate.wasm");
    holds(&refusal(&wasm).await, "invalid ELF header");

    // The loader does not notice that the end is missing, and reads beyond it.
    let bytes = fs::read(native()).unwrap();
    let cut = folder.path().join("libcut.so");
    fs::write(&cut, &bytes[..bytes.len() / 8]).unwrap();
    holds(&refusal(&cut).await, "Caught Bus error");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the native module: make e2e-native"]
async fn the_page_quotes_what_envoy_says_to_another_abi_and_to_a_bad_document() {
    let _turn = turn::shared().await;
    let folder = tempfile::tempdir().unwrap();
    let other = "const char *envoy_dynamic_module_on_program_init(void) { return \"v9.9.9\"; }";
    let said = refusal(&compiled(&folder, other)).await;
    holds(
        &said,
        "is deprecated. Please recompile the module against the SDK",
    );
    holds(
        &said,
        "Failed to resolve symbol envoy_dynamic_module_on_http_filter_config_new",
    );

    let filter = filter(&native(), &json!({"mode": "enforce"}));
    holds(
        &refusal_of(filter).await,
        "Failed to initialize dynamic module",
    );

    let newer = "extern int envoy_dynamic_module_callback_of_a_newer_envoy(void);\n\
                 int use(void) { return envoy_dynamic_module_callback_of_a_newer_envoy(); }";
    let said = refusal(&compiled(&folder, newer)).await;
    holds(&said, "undefined symbol: envoy_dynamic_module_callback_");
}

/// An Envoy with a limit of one request in flight, which can be pushed, and an upstream that holds requests.
async fn full(module: PathBuf) -> (Upstream, Stage) {
    let turn = turn::shared().await;
    let script = |_: &_| Some(Script::Hang);
    let upstream = Upstream::builder("main")
        .script(script)
        .start()
        .await
        .unwrap();
    let document = fixed_limit(1, json!({"shed": {"status": 529}}));
    let plugin = Plugin::tidegate(&document).module(module).pushed();
    let envoy = Envoy::builder()
        .cluster(Cluster::new("main", upstream.addr()))
        .plugin(plugin);
    let stage = Stage::start(turn, envoy).await;
    (upstream, stage)
}

/// The lines about rejected documents, without the host's prefix.
fn rejections(stage: &Stage) -> Vec<String> {
    const WORDS: &str = "tidegate: configuration rejected: ";
    let log = stage.envoy.log();
    let lines = log.lines().filter_map(|line| line.split_once(WORDS));
    lines.map(|(_, reason)| reason.to_owned()).collect()
}

/// Pushes the documents, and returns the module's messages.
async fn rejected(module: PathBuf, documents: &[&str]) -> Vec<String> {
    let (_upstream, mut stage) = full(module).await;
    let caller = stage.caller();
    let held = Crowd::send(&caller, &Call::get("/"), 1);
    stage.until_sum("in_flight", "main", 1).await;
    for document in documents {
        match stage.envoy.push(document).await {
            Ok(PushOutcome::Rejected) => {}
            Ok(PushOutcome::Accepted) => stage.fail(&format!("accepted: {document}")).await,
            Err(error) => stage.fail(&chain(&error)).await,
        }
        let status = caller.get("/").await.unwrap().status;
        ensure!(stage, status == 529, "{status} after {document}");
    }
    let said = rejections(&stage);
    drop(held);
    said
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the native module: make e2e-native"]
async fn both_modules_reject_a_document_in_the_same_words() {
    let documents = [
        "",
        "{",
        "[]",
        "{}",
        r#"{"slo":{"latency":{"quantile":1.5,"target":"300ms"}},"mood":"bad"}"#,
        r#"{"slo":{"latency":{"quantile":0.99,"target":"300ms"}},"limit":{"min":20,"max":10}}"#,
        r#"{"slo":{"latency":{"quantile":0.99,"target":"soon"}},"mode":"enforced"}"#,
        r#"{"slo":{"latency":{"quantile":0.99,"target":"300ms"}},"slo":{}}"#,
    ];

    let native = rejected(native(), &documents).await;
    let wasm = rejected(repository().join("dist/tidegate.wasm"), &documents).await;

    assert!(native.len() > documents.len(), "{native:#?}");
    // The host of a WebAssembly module tries a document on every thread.
    let mut once = wasm;
    once.dedup();
    // The native module suggests one more key, for the options that only it has.
    let suggested = native
        .iter()
        .filter(|line| line.contains(", native ("))
        .count();
    let native: Vec<String> = native
        .iter()
        .map(|line| line.replace(", native (", " ("))
        .collect();
    assert_eq!(suggested, 1, "{native:#?}");
    assert_eq!(native, once);
}
