//! What Tidegate is compared with: algorithms from their published descriptions, one in each file.

mod none;

use crate::contender::Kind;

/// Every rival, in the order of tables.
pub const RIVALS: &[Kind] = &[none::KIND];
