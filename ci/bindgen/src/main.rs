//! `tidegate-bindgen MODULE FOLDER`: writes the module for browsers, and the JavaScript that loads it, into the folder.
//!
//! Does the same as the command `wasm-bindgen --target web`, with the library behind it.

use std::env;

use anyhow::{Context as _, Result, bail};
use wasm_bindgen_cli_support::Bindgen;

fn main() -> Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [module, folder] = arguments.as_slice() else {
        bail!("usage: tidegate-bindgen MODULE FOLDER");
    };
    Bindgen::new()
        .input_path(module)
        .web(true)
        .context("choose the output")?
        .omit_default_module_path(false)
        .typescript(false)
        .remove_producers_section(true)
        .remove_name_section(true)
        .generate(folder)
        .with_context(|| format!("read {module}"))
}
