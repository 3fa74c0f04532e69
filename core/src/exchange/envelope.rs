//! The envelope of every payload: version, length, checksum.
//!
//! ```text
//! version 1 byte | length 4 bytes | checksum 8 bytes | head | payload
//! ```
//!
//! Length and checksum cover head and payload, little-endian. A payload that was cut off, or lengthened, has another
//! length; one that was damaged has another checksum.
//!
//! The checksum is one multiplication for each eight bytes, because payloads are long and frequent: a thousand upstreams
//! make 100 KiB of directives, which every worker checks ten times a second. Each step maps the sum before it, and the
//! word, one to one, and no bit of the result is dropped: a change within one word is always found, any other one but
//! for 1 in 2^64. A CRC-32 is slower without an instruction for it, which Wasm does not have, and its tables take 16 KiB
//! of the module. It is not a defense against an attacker: what a directive may say is checked apart
//! ([`super::directive`]).

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// Version of both wire formats; a change to any type that is sent needs a new version.
pub const WIRE_VERSION: u8 = 14;

/// A payload that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// Another version of the module wrote it.
    #[error("payload version {found}, expected {WIRE_VERSION}")]
    Version {
        /// The version byte.
        found: u8,
    },
    /// It is damaged, or has a number outside the range of its unit.
    #[error("malformed payload")]
    Malformed,
    /// It is well-formed, but no leader can have written it.
    #[error("payload with {field} out of range")]
    OutOfRange {
        /// The field of a [`super::Directive`].
        field: &'static str,
    },
}

/// Bytes in front of the head.
const PREFIX: usize = 1 + 4 + 8;
/// Room for the prefix and any head, so that a payload that is sealed need not move.
pub(crate) const ENVELOPE_BYTES: usize = PREFIX + 32;

/// An odd number with bits all over: 2^64 divided by the golden ratio (Knuth, TAOCP 3, 6.4).
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
/// Brings the bits of one word beside those of the next.
const ROTATE: u32 = 26;

/// Head and payload as the bytes to share.
pub(super) fn seal(head: &impl Serialize, mut payload: Vec<u8>) -> Vec<u8> {
    // Writing plain data to a growing vector cannot fail; and if it did, readers would reject a payload without a head.
    let mut prefix = Vec::with_capacity(ENVELOPE_BYTES);
    prefix.resize(PREFIX, 0);
    let prefix = postcard::to_extend(head, prefix).unwrap_or_default();
    payload.splice(..0, prefix);
    if let Some((prefix, content)) = payload.split_first_chunk_mut::<PREFIX>() {
        *prefix = prefix_of(content);
    }
    payload
}

/// Head and payload of what [`seal`] wrote. Bytes that are owned stay where they are.
pub(super) fn open<'a, T: for<'de> Deserialize<'de>>(
    bytes: Cow<'a, [u8]>,
) -> Result<(T, Cow<'a, [u8]>), WireError> {
    let content = match bytes.split_first() {
        Some((&WIRE_VERSION, _)) => content(&bytes).ok_or(WireError::Malformed)?,
        Some((&found, _)) => return Err(WireError::Version { found }),
        None => return Err(WireError::Malformed),
    };
    let (head, payload) = postcard::take_from_bytes(content).map_err(|_| WireError::Malformed)?;
    let length = bytes.len() - payload.len();
    let payload = match bytes {
        Cow::Borrowed(bytes) => Cow::Borrowed(bytes.get(length..).unwrap_or_default()),
        Cow::Owned(mut bytes) => {
            bytes.drain(..length);
            Cow::Owned(bytes)
        }
    };
    Ok((head, payload))
}

/// What stands behind the prefix, if that is true to it.
fn content(bytes: &[u8]) -> Option<&[u8]> {
    let (prefix, content) = bytes.split_first_chunk::<PREFIX>()?;
    (*prefix == prefix_of(content)).then_some(content)
}

fn prefix_of(content: &[u8]) -> [u8; PREFIX] {
    // One that is longer than 4 GiB cannot be: no VM has the room.
    let length = u32::try_from(content.len()).unwrap_or(u32::MAX);
    let mut prefix = [WIRE_VERSION; PREFIX];
    let (_, rest) = prefix.split_at_mut(1);
    let (place, sum) = rest.split_at_mut(4);
    place.copy_from_slice(&length.to_le_bytes());
    sum.copy_from_slice(&checksum(content).to_le_bytes());
    prefix
}

fn checksum(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let mut last = [0; 8];
    for (byte, place) in rest.iter().zip(&mut last) {
        *place = *byte;
    }
    let words = words.iter().chain(core::iter::once(&last));
    words.fold(SPREAD, |sum, word| {
        (sum.rotate_left(ROTATE) ^ u64::from_le_bytes(*word)).wrapping_mul(SPREAD)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reopened(bytes: &[u8]) -> Result<(u64, Vec<u8>), WireError> {
        let (head, payload) = open::<u64>(bytes.into())?;
        assert_eq!(open(bytes.to_vec().into()), Ok((head, payload.clone())));
        Ok((head, payload.into_owned()))
    }

    #[test]
    fn a_sealed_payload_of_any_length_can_be_opened() {
        for length in 0..40 {
            let payload: Vec<u8> = (0..length).collect();
            let sealed = seal(&7_u64, payload.clone());
            assert_eq!(reopened(&sealed), Ok((7, payload)));
        }
    }

    #[test]
    fn a_payload_that_was_cut_off_or_lengthened_is_rejected() {
        let sealed = seal(&7_u64, vec![0; 30]);
        for end in 0..sealed.len() {
            assert_eq!(reopened(&sealed[..end]), Err(WireError::Malformed), "{end}");
        }
        let longer = [&sealed[..], &[0]].concat();
        assert_eq!(reopened(&longer), Err(WireError::Malformed));
    }

    #[test]
    fn every_byte_is_covered_and_every_bit_of_it() {
        let sealed = seal(&7_u64, (0..30).collect());
        for place in 1..sealed.len() {
            for bit in 0..8 {
                let mut damaged = sealed.clone();
                damaged[place] ^= 1 << bit;
                assert_eq!(reopened(&damaged), Err(WireError::Malformed), "{place}");
            }
        }
        let another = [&[WIRE_VERSION + 1], &sealed[1..]].concat();
        let found = WIRE_VERSION + 1;
        assert_eq!(reopened(&another), Err(WireError::Version { found }));
    }

    #[test]
    fn words_that_changed_places_are_found() {
        let (one, other) = ([1_u8; 8], [2_u8; 8]);
        let [sum, swapped] = [[one, other], [other, one]].map(|words| checksum(&words.concat()));
        assert_ne!(sum, swapped);
        assert_ne!(checksum(&[0; 8]), checksum(&[0; 16]));
    }
}
