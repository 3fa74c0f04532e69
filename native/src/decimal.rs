//! A number as text, without an allocation: headers of local replies.

/// As many digits as the greatest number has.
const MOST_DIGITS: usize = 20;

/// The digits of a number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Decimal {
    digits: [u8; MOST_DIGITS],
    first: usize,
}

impl Decimal {
    pub(crate) fn of(mut number: u64) -> Self {
        let (mut digits, mut first) = ([b'0'; MOST_DIGITS], MOST_DIGITS);
        for place in digits.iter_mut().rev() {
            // A remainder below ten.
            *place = b'0' + u8::try_from(number % 10).unwrap_or_default();
            number /= 10;
            first -= 1;
            if number == 0 {
                break;
            }
        }
        Self { digits, first }
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.digits.get(self.first..).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_those_of_the_number() {
        for number in [0, 7, 10, 1_234_567_890, u64::MAX] {
            assert_eq!(
                Decimal::of(number).as_bytes(),
                number.to_string().as_bytes()
            );
        }
    }
}
