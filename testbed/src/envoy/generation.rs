//! Hot restarts: successive Envoys behind the same listening sockets.
//!
//! The first process chooses a base id, by which a successor with the next epoch finds it, takes over its sockets and makes
//! it drain. The successor also inherits the sums of counters and gauges.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// File into which the first process writes its base id.
const BASE_ID: &str = "base-id";

/// An Envoy's place in a series of hot restarts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Generation {
    /// The predecessor's [`super::Envoy::base_id`]; `None` for the first.
    pub base: Option<u32>,
    /// 0 for the first; each successor adds one.
    pub epoch: u32,
    /// How long the predecessor drains; whole seconds.
    pub drain: Duration,
    /// When the predecessor ends, counted from the start of its successor; whole seconds.
    pub parent_shutdown: Duration,
}

impl Generation {
    /// The options of the process whose folder is `folder`.
    pub(super) fn arguments(this: Option<&Self>, folder: &Path) -> Vec<OsString> {
        let Some(this) = this else {
            return vec!["--disable-hot-restart".into()];
        };
        let mut arguments: Vec<OsString> = match this.base {
            None => vec![
                "--use-dynamic-base-id".into(),
                "--base-id-path".into(),
                folder.join(BASE_ID).into(),
            ],
            Some(id) => vec!["--base-id".into(), id.to_string().into()],
        };
        let numbers = [
            ("--restart-epoch", u64::from(this.epoch)),
            ("--drain-time-s", this.drain.as_secs()),
            ("--parent-shutdown-time-s", this.parent_shutdown.as_secs()),
        ];
        for (name, value) in numbers {
            arguments.extend([name.into(), value.to_string().into()]);
        }
        arguments
    }
}

/// The base id that the first process wrote into its folder.
pub(super) fn base_id(folder: &Path) -> Option<u32> {
    fs::read_to_string(folder.join(BASE_ID))
        .ok()?
        .trim()
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_successor_names_its_predecessor() {
        let next = Generation {
            base: Some(7),
            epoch: 2,
            drain: Duration::from_secs(3),
            parent_shutdown: Duration::from_secs(5),
        };
        let said = Generation::arguments(Some(&next), Path::new("/x"));
        let expected = [
            "--base-id",
            "7",
            "--restart-epoch",
            "2",
            "--drain-time-s",
            "3",
            "--parent-shutdown-time-s",
            "5",
        ];
        assert_eq!(said, expected);
    }
}
