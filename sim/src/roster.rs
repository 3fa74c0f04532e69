//! All contenders there are.

use crate::kind::ContenderKind;
use crate::rivals::{BOUNDS, RIVALS};
use crate::tidegate;

/// All contenders that compete, Tidegate first.
#[must_use]
pub fn all() -> Vec<ContenderKind> {
    let mut all = vec![tidegate::KIND];
    all.extend(RIVALS);
    all
}

/// All contenders that compete, and then the bounds.
#[must_use]
pub fn known() -> Vec<ContenderKind> {
    let mut known = all();
    known.extend(BOUNDS);
    known
}
