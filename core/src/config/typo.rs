//! Which key was meant.
//!
//! The edit distance (Levenshtein, 1966) finds typing errors. It ignores case, so
//! it finds `tripratio` too. Distant keys are not suggested: a wrong guess is
//! worse than the plain list.

/// Keys with a greater distance are not suggested as "did you mean".
const MAX_TYPOS: usize = 2;

/// Longer keys are not treated as misspellings.
const MAX_KEY_CHARS: usize = 40;

/// The known key that `key` is most likely a misspelling of.
pub(super) fn closest(key: &str, known: &[&'static str]) -> Option<&'static str> {
    if key.len() > MAX_KEY_CHARS {
        return None;
    }
    known
        .iter()
        .map(|known| (distance(key, known), *known))
        // A key must keep more letters than it loses: `a` is not `min`.
        .filter(|(typos, known)| *typos <= MAX_TYPOS && typos.saturating_mul(2) <= known.len())
        .min_by_key(|(typos, _)| *typos)
        .map(|(_, known)| known)
}

/// Levenshtein distance of two short keys. It ignores the case of ASCII letters.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (above, a_byte) in a.bytes().enumerate() {
        let mut diagonal = above;
        let mut left = above.saturating_add(1);
        if let Some(first) = row.first_mut() {
            *first = left;
        }
        for (cell, b_byte) in row.iter_mut().skip(1).zip(b.bytes()) {
            let replaced =
                diagonal.saturating_add(usize::from(!a_byte.eq_ignore_ascii_case(&b_byte)));
            diagonal = *cell;
            left = replaced.min(left.min(*cell).saturating_add(1));
            *cell = left;
        }
    }
    row.last().copied().unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_counts_edits_but_not_case() {
        for (a, b, typos) in [
            ("min", "min", 0),
            ("MIN", "min", 0),
            ("mni", "min", 2),
            ("trip_ratio", "tripRatio", 1),
            ("", "min", 3),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(distance(a, b), typos, "{a} {b}");
        }
    }

    #[test]
    fn only_likely_misspellings_are_suggested() {
        let known = ["min", "max", "initial"];

        assert_eq!(closest("Max", &known), Some("max"));
        assert_eq!(closest("intial", &known), Some("initial"));
        assert_eq!(closest("a", &known), None);
        assert_eq!(closest("minimum", &known), None);
        assert_eq!(closest(&"min".repeat(1000), &known), None);
    }
}
