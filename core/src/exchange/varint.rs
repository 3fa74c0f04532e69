//! Small numbers in few bytes (LEB128): seven bits to a byte, the lowest first.

/// The eighth bit: more bytes follow.
const MORE: u8 = 0x80;
/// The greatest shift of the last byte of a 64-bit number.
const MAX_SHIFT: u32 = 63;

/// Appends a number to `bytes`.
pub(super) fn put(mut value: u64, bytes: &mut Vec<u8>) {
    while value >= u64::from(MORE) {
        bytes.push(value.to_le_bytes()[0] | MORE);
        value >>= 7;
    }
    bytes.push(value.to_le_bytes()[0]);
}

/// Takes a number off the bytes; `None` if they cannot be read.
pub(super) fn take(bytes: &mut &[u8]) -> Option<u64> {
    let (mut value, mut shift) = (0_u64, 0);
    loop {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & !MORE).checked_shl(shift)?;
        if byte & MORE == 0 {
            return Some(value);
        }
        shift += 7;
        if shift > MAX_SHIFT {
            return None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_survive_the_wire() {
        for value in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX] {
            let mut bytes = Vec::new();
            put(value, &mut bytes);
            let mut rest = bytes.as_slice();
            assert_eq!((take(&mut rest), rest.len()), (Some(value), 0));
            let mut cut = bytes.get(1..).unwrap_or_default();
            let _ = take(&mut cut);
        }
    }

    #[test]
    fn a_number_must_end() {
        assert_eq!(take(&mut [].as_slice()), None);
        assert_eq!(take(&mut [MORE].as_slice()), None);
        assert_eq!(take(&mut [MORE; 20].as_slice()), None);
    }
}
