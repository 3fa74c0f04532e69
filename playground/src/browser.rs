//! The functions that JavaScript calls. They take and return texts, as JSON if there is more than one value.

#![expect(
    unreachable_pub,
    reason = "wasm-bindgen exports only public functions, and no crate calls them"
)]

use serde::Serialize;
use tidegate_sim::roster;
use wasm_bindgen::prelude::*;

use crate::described::Described;
use crate::facts::Facts;
use crate::played::Played;
use crate::settings::Settings;

/// Everything that the page shows before there is a run.
#[wasm_bindgen]
pub fn facts() -> Result<String, JsError> {
    text(&Facts::all())
}

/// The settings of a fragment, or its errors.
#[wasm_bindgen]
pub fn describe(fragment: &str) -> Result<String, JsError> {
    text(&Described::of(fragment))
}

/// Plays the run of a fragment with one contender.
#[wasm_bindgen]
pub fn play(fragment: &str, contender: &str) -> Result<String, JsError> {
    let scenario = settings(fragment)?.scenario().map_err(js)?;
    let kinds = roster::all();
    let kind = kinds.iter().find(|kind| kind.name == contender);
    let kind = kind.ok_or_else(|| JsError::new(&format!("contender: found {contender}")))?;
    text(&Played::of(&scenario, kind).map_err(js)?)
}

/// The run of a fragment as a scenario file.
#[wasm_bindgen]
pub fn scenario_file(fragment: &str) -> Result<String, JsError> {
    let settings = settings(fragment)?;
    let scenario = settings.scenario().map_err(js)?;
    scenario.text().map_err(js)
}

fn settings(fragment: &str) -> Result<Settings, JsError> {
    Settings::parse(fragment).map_err(|faults| JsError::new(&faults.join("; ")))
}

fn text(value: &impl Serialize) -> Result<String, JsError> {
    serde_json::to_string(value).map_err(js)
}

fn js(error: impl std::fmt::Display) -> JsError {
    JsError::new(&error.to_string())
}
