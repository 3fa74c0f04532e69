//! Quantities of Kubernetes, such as `250m` and `1.5Gi`.
//!
//! Source: <https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/>.

/// CPU in cores; `None` if the text is not a quantity.
#[must_use]
pub fn cores(text: &str) -> Option<f64> {
    amount(text)
}

/// Memory in bytes, rounded up; `None` if the text is not a quantity.
#[must_use]
pub fn bytes(text: &str) -> Option<u64> {
    let amount = amount(text)?.ceil();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "not negative; a float beyond the range becomes the greatest value"
    )]
    Some(amount as u64)
}

fn amount(text: &str) -> Option<f64> {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, suffix) = text.split_at_checked(end)?;
    let factor = match suffix {
        "" => 1.0,
        "n" => 1e-9,
        "u" => 1e-6,
        "m" => 1e-3,
        "k" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        "T" => 1e12,
        "P" => 1e15,
        "E" => 1e18,
        "Ki" => 1024.0,
        "Mi" => 1024.0 * 1024.0,
        "Gi" => 1024.0 * 1024.0 * 1024.0,
        "Ti" => 1024.0_f64.powi(4),
        "Pi" => 1024.0_f64.powi(5),
        "Ei" => 1024.0_f64.powi(6),
        // The form with an exponent, such as 12e6.
        _ if suffix.starts_with(['e', 'E']) => {
            10_f64.powi(suffix.get(1..)?.parse::<i8>().ok()?.into())
        }
        _ => return None,
    };
    let number: f64 = number.parse().ok()?;
    Some(number * factor).filter(|amount| amount.is_finite())
}
