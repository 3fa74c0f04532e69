//! The envelope of a payload, written as by another plugin that knows the format.

use tidegate_core::WIRE_VERSION;

/// Bytes in front of what the checksum covers.
pub(crate) const PREFIX: usize = 13;

/// The content behind version, length and checksum (`core/src/exchange/envelope.rs`).
pub(crate) fn seal(content: &[u8]) -> Vec<u8> {
    const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut padded = content.to_vec();
    padded.resize(content.len() / 8 * 8 + 8, 0);
    let sum = padded.chunks(8).fold(SPREAD, |sum, word| {
        let word = u64::from_le_bytes(word.try_into().unwrap());
        (sum.rotate_left(26) ^ word).wrapping_mul(SPREAD)
    });
    let length = u32::try_from(content.len()).unwrap().to_le_bytes();
    [
        &[WIRE_VERSION],
        length.as_slice(),
        &sum.to_le_bytes(),
        content,
    ]
    .concat()
}
