//! Puts the texts of all scenarios into the module, so that the page loads no other file.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let folder = here.join("../sim/scenarios").canonicalize()?;
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut names = Vec::new();
    for entry in fs::read_dir(&folder)? {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "toml")
        {
            names.extend(path.file_stem().map(|stem| stem.display().to_string()));
        }
    }
    names.sort();
    let entry = |name: &String| {
        let path = folder.join(format!("{name}.toml"));
        format!(
            "({name:?}, include_str!({:?})),\n",
            path.display().to_string()
        )
    };
    let entries: String = names.iter().map(entry).collect();
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    let text = format!(
        "/// Name and text of every scenario.\nstatic TEXTS: &[(&str, &str)] = &[\n{entries}];\n"
    );
    fs::write(Path::new(&out).join("texts.rs"), text)
}
