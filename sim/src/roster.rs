//! All contenders there are.

use crate::kind::Kind;
use crate::rivals::{BOUNDS, RIVALS};
use crate::tidegate;

/// All contenders that compete, Tidegate first.
#[must_use]
pub fn all() -> Vec<Kind> {
    let mut all = vec![tidegate::KIND];
    all.extend(RIVALS);
    all
}

/// All contenders that compete, and then the bounds.
#[must_use]
pub fn known() -> Vec<Kind> {
    let mut known = all();
    known.extend(BOUNDS);
    known
}
