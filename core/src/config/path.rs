//! The path of a value: `upstreams[2].limit.max`.
//!
//! It is a list on the stack while reading. Only an error turns it into text.

use std::fmt::{self, Write as _};

use super::errors::quoted;

/// Longer keys are quoted and shortened in paths.
const MAX_PLAIN_CHARS: usize = 40;

/// The path of a value, as a list from the value to the root.
#[derive(Clone, Copy, Debug)]
pub struct Path<'a> {
    parent: Option<&'a Self>,
    pub(super) step: PathStep<'a>,
}

/// The last part of a path.
#[derive(Clone, Copy, Debug)]
pub enum PathStep<'a> {
    /// The whole document.
    Root,
    /// The value at this key of an object.
    Key(&'a str),
    /// The entry of a list, from 0.
    Index(usize),
}

impl Path<'_> {
    /// The whole document; shown as an empty text.
    pub const ROOT: Path<'static> = Path {
        parent: None,
        step: PathStep::Root,
    };

    /// The path of a value one step below.
    #[must_use]
    pub const fn child<'a>(&'a self, step: PathStep<'a>) -> Path<'a> {
        Path {
            parent: Some(self),
            step,
        }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            fmt::Display::fmt(parent, f)?;
        }
        match self.step {
            PathStep::Root => Ok(()),
            PathStep::Index(index) => write!(f, "[{index}]"),
            PathStep::Key(key) if is_plain(key) => {
                if self
                    .parent
                    .is_some_and(|p| !matches!(p.step, PathStep::Root))
                {
                    f.write_char('.')?;
                }
                f.write_str(key)
            }
            PathStep::Key(key) => write!(f, "[{}]", quoted(key)),
        }
    }
}

fn is_plain(key: &str) -> bool {
    (1..=MAX_PLAIN_CHARS).contains(&key.len())
        && key
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_read_like_the_document() {
        let upstreams = Path::ROOT.child(PathStep::Key("upstreams"));
        let rule = upstreams.child(PathStep::Index(2));
        let odd = rule.child(PathStep::Key("a b\n"));

        assert_eq!(
            rule.child(PathStep::Key("limit")).to_string(),
            "upstreams[2].limit"
        );
        assert_eq!(odd.to_string(), r#"upstreams[2]["a b\n"]"#);
    }
}
