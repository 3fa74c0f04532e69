//! Command line of [`tidegate_pack`]: reads a module, packs it, writes it and says what it is.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use tidegate_pack::{FunctionNames, List, Rules, pack};

const USAGE: &str = "\
Packs a WebAssembly module for a proxy-wasm host.

usage: tidegate-pack IN.wasm OUT.wasm [options]

  --keep FILE           keep only the exports of this list (name: required, name?: kept if there)
  --keep-export NAME    keep this export as well; may be repeated
  --imports FILE        reject imports that are not in this list (lines as env.proxy_log)
  --max-bytes N         reject a packed module larger than N bytes
  --names               keep the names of functions
  --help                show this text";

#[derive(Debug, thiserror::Error)]
enum MainError {
    #[error("{0}\n\n{USAGE}")]
    Usage(#[from] lexopt::Error),
    #[error("cannot read {}: {source}", .path.display())]
    Read {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("cannot write {}: {source}", .path.display())]
    Write {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("{}: {source}", .path.display())]
    Refused {
        path: PathBuf,
        source: tidegate_pack::PackError,
    },
}

/// The command line, parsed: which file becomes which, under which rules.
struct PackJob {
    input: PathBuf,
    output: PathBuf,
    rules: Rules,
}

fn main() -> ExitCode {
    let outcome = match parse(std::env::args_os().skip(1)) {
        Ok(Some(job)) => run(&job),
        Ok(None) => Ok(USAGE.to_owned()),
        Err(error) => Err(error),
    };
    match outcome {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("tidegate-pack: {error}");
            ExitCode::FAILURE
        }
    }
}

fn parse(arguments: impl Iterator<Item = OsString>) -> Result<Option<PackJob>, MainError> {
    use lexopt::{Arg, ValueExt};

    let mut parser = lexopt::Parser::from_args(arguments);
    let mut rules = Rules::default();
    let mut paths = Vec::new();
    while let Some(argument) = parser.next()? {
        match argument {
            Arg::Long("keep") => rules.exports = Some(read_list(parser.value()?.into())?),
            Arg::Long("keep-export") => {
                rules
                    .exports
                    .get_or_insert_default()
                    .require(&parser.value()?.string()?);
            }
            Arg::Long("imports") => rules.imports = Some(read_list(parser.value()?.into())?),
            Arg::Long("max-bytes") => rules.max_bytes = Some(parser.value()?.parse()?),
            Arg::Long("names") => rules.names = FunctionNames::Keep,
            Arg::Long("help") | Arg::Short('h') => return Ok(None),
            Arg::Value(path) if paths.len() < 2 => paths.push(PathBuf::from(path)),
            other => return Err(other.unexpected().into()),
        }
    }
    match <[PathBuf; 2]>::try_from(paths) {
        Ok([input, output]) => Ok(Some(PackJob {
            input,
            output,
            rules,
        })),
        Err(_) => Err(lexopt::Error::from("expected IN.wasm and OUT.wasm").into()),
    }
}

fn read_list(path: PathBuf) -> Result<List, MainError> {
    match fs::read_to_string(&path) {
        Ok(text) => Ok(List::parse(&text)),
        Err(source) => Err(MainError::Read { path, source }),
    }
}

fn run(job: &PackJob) -> Result<String, MainError> {
    let bytes = fs::read(&job.input).map_err(|source| MainError::Read {
        path: job.input.clone(),
        source,
    })?;
    let packed = pack(&bytes, &job.rules).map_err(|source| MainError::Refused {
        path: job.input.clone(),
        source,
    })?;
    replace(&job.output, &packed.bytes).map_err(|source| MainError::Write {
        path: job.output.clone(),
        source,
    })?;
    Ok(format!(
        "{}: {} bytes (from {}), {} exports, {} imports, sha256 {}",
        job.output.display(),
        packed.bytes.len(),
        bytes.len(),
        packed.exports.len(),
        packed.imports.len(),
        packed.sha256(),
    ))
}

/// Replaces a file at once: a proxy that watches it must never read half a module.
fn replace(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut staging = path.as_os_str().to_owned();
    staging.push(".new");
    fs::write(&staging, bytes)?;
    fs::rename(&staging, path)
}
