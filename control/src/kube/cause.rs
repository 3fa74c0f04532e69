//! What an error says, with what is behind it: that a connection failed is the least of it.

use std::error::Error;

/// The words of an error and of all that caused it.
pub(super) fn words(error: &dyn Error) -> String {
    let mut said = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let words = error.to_string();
        // Many repeat their cause in their own words.
        if !said.contains(&words) {
            said = format!("{said}: {words}");
        }
        cause = error.source();
    }
    said
}
