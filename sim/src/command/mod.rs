//! The subcommands.

/// Prints a line. A reader that stops early, such as `head`, is not an error; `println!` would panic.
macro_rules! out {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stdout().lock(), $($text)*);
    }};
}

#[cfg(feature = "ablation")]
pub(crate) mod ablate;
pub(crate) mod chaos;
pub(crate) mod compare;
pub(crate) mod fleet;
pub(crate) mod list;
pub(crate) mod run;
pub(crate) mod sweep;

mod accept;
mod jobs;
mod stories;
mod sweep_options;

use std::path::Path;

use anyhow::{Result, bail};
use tidegate_sim::kind::ContenderKind;
use tidegate_sim::roster;
use tidegate_sim::scenario::{self, Scenario};

/// A scenario by its file, or by the name of one of this repository.
pub(crate) fn scenario(name: &str) -> Result<Scenario> {
    let path = Path::new(name);
    if path.exists() {
        return Ok(Scenario::read(path)?);
    }
    let path = scenario::folder().join(format!("{name}.toml"));
    if !path.exists() {
        bail!("scenario: found {name}, expected a file or a name of `tidegate-sim list`");
    }
    Ok(Scenario::read(&path)?)
}

/// A contender by its name.
pub(crate) fn contender(name: &str) -> Result<ContenderKind> {
    let known = roster::known();
    if let Some(kind) = known.iter().find(|kind| kind.name == name) {
        return Ok(*kind);
    }
    let names: Vec<&str> = known.iter().map(|kind| kind.name).collect();
    bail!(
        "contender: found {name}, expected one of: {}",
        names.join(", ")
    )
}

/// Contenders by their names; `all` of them are those that compete, and no bounds.
fn contenders(names: &[String]) -> Result<Vec<ContenderKind>> {
    let chosen = chosen("contender", names, &roster::known(), |kind| kind.name)?;
    let is_named = |kind: &ContenderKind| names.iter().any(|name| name == kind.name);
    let is_wanted = |kind: &ContenderKind| !kind.is_bound() || is_named(kind);
    Ok(chosen.into_iter().filter(is_wanted).collect())
}

/// Those of `known` that are named, in their own order.
fn chosen<T: Clone>(
    what: &str,
    wanted: &[String],
    known: &[T],
    name: impl Fn(&T) -> &str,
) -> Result<Vec<T>> {
    if let Some(unknown) = wanted
        .iter()
        .find(|wanted| *wanted != "all" && !known.iter().any(|item| name(item) == *wanted))
    {
        let names: Vec<&str> = known.iter().map(&name).collect();
        bail!(
            "{what}: found {unknown}, expected all or some of: {}",
            names.join(", ")
        );
    }
    let is_wanted = |item: &&T| wanted.iter().any(|w| w == "all" || w == name(item));
    Ok(known.iter().filter(is_wanted).cloned().collect())
}
