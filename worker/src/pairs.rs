//! Header maps as proxy-wasm serializes them.
//!
//! Little-endian: the number of pairs, then the lengths of every name and value, then names and values, each
//! followed by a NUL (proxy-wasm's `pairs_util.cc`). Reading borrows and checks every length: what the proxy hands
//! over is trusted not to be hostile, but nothing here may panic.

/// The serialised form of `pairs`.
#[must_use]
pub fn encode(pairs: &[(&str, &str)]) -> Vec<u8> {
    let lengths = |(name, value): &(&str, &str)| name.len() + value.len() + 10;
    let mut bytes = Vec::with_capacity(4 + pairs.iter().map(lengths).sum::<usize>());
    push_len(&mut bytes, pairs.len());
    for (name, value) in pairs {
        push_len(&mut bytes, name.len());
        push_len(&mut bytes, value.len());
    }
    for (name, value) in pairs {
        for text in [name, value] {
            bytes.extend_from_slice(text.as_bytes());
            bytes.push(0);
        }
    }
    bytes
}

/// The first value of `name`.
#[must_use]
pub fn find<'a>(bytes: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let (count, rest) = split_len(bytes)?;
    let mut lengths = rest.get(..count.checked_mul(8)?)?;
    let mut texts = rest.get(count.checked_mul(8)?..)?;
    for _ in 0..count {
        let (name_len, rest) = split_len(lengths)?;
        let (value_len, rest) = split_len(rest)?;
        lengths = rest;
        let found = texts.get(..name_len)?;
        let value_at = name_len.checked_add(1)?;
        let value_end = value_at.checked_add(value_len)?;
        if found == name.as_bytes() {
            return texts.get(value_at..value_end);
        }
        texts = texts.get(value_end.checked_add(1)?..)?;
    }
    None
}

fn push_len(bytes: &mut Vec<u8>, len: usize) {
    bytes.extend_from_slice(&u32::try_from(len).unwrap_or(u32::MAX).to_le_bytes());
}

fn split_len(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (len, rest) = bytes.split_first_chunk::<4>()?;
    Some((usize::try_from(u32::from_le_bytes(*len)).ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoded_pairs_are_found() {
        let bytes = encode(&[(":path", "/a"), ("x-empty", ""), ("x", "1"), ("x", "2")]);
        assert_eq!(find(&bytes, ":path"), Some(b"/a".as_slice()));
        assert_eq!(find(&bytes, "x-empty"), Some(b"".as_slice()));
        assert_eq!(find(&bytes, "x"), Some(b"1".as_slice()), "the first one");
        assert_eq!(find(&bytes, "y"), None);
    }

    #[test]
    fn any_cut_or_nonsense_finds_nothing_and_does_not_panic() {
        let bytes = encode(&[("a", "b"), ("c", "d")]);
        for end in 0..bytes.len() - 1 {
            assert_eq!(find(&bytes[..end], "c").filter(|v| *v != b"d"), None);
        }
        assert_eq!(find(&[0xff; 64], "a"), None);
    }
}
