//! Header maps as the proxy hands them over.

use bolero::TypeGenerator;

use tidegate_worker::pairs;

#[derive(Debug, TypeGenerator)]
struct Map {
    pairs: Vec<(String, String)>,
    /// Bytes that differ from what was written, and where.
    changes: Vec<(u16, u8)>,
    #[generator(0..8_u8)]
    cut: u8,
    tail: Vec<u8>,
    wanted: String,
}

#[test]
fn what_is_found_stands_in_the_bytes_where_the_format_says() {
    bolero::check!(name = "header_pairs")
        .with_type::<Map>()
        .with_iterations(10_000)
        .for_each(|map: &Map| {
            let list: Vec<_> = map
                .pairs
                .iter()
                .map(|(n, v)| (n.as_str(), v.as_str()))
                .collect();
            let mut bytes = pairs::encode(&list);
            for (name, _) in &list {
                let first = list.iter().find(|(other, _)| other == name);
                let value = first.map(|(_, value)| value.as_bytes());
                assert_eq!(pairs::find(&bytes, name), value);
            }
            for (at, value) in &map.changes {
                let at = usize::from(*at) % bytes.len();
                bytes[at] = *value;
            }
            bytes.truncate(bytes.len() - usize::from(map.cut).min(bytes.len()));
            bytes.extend_from_slice(&map.tail);
            let names = list
                .iter()
                .map(|(name, _)| *name)
                .chain([map.wanted.as_str(), ""]);
            for name in names {
                assert_eq!(
                    pairs::find(&bytes, name),
                    by_definition(&bytes, name.as_bytes())
                );
            }
        });
}

/// The pairs up to the first that does not lie within the bytes, counted in 128 bits.
fn by_definition<'a>(bytes: &'a [u8], wanted: &[u8]) -> Option<&'a [u8]> {
    let number = |at: u128| {
        let at = usize::try_from(at).ok()?;
        let four = bytes.get(at..)?.first_chunk::<4>()?;
        Some(u128::from(u32::from_le_bytes(*four)))
    };
    let count = number(0)?;
    let mut at = 4 + 8 * count;
    if at > bytes.len() as u128 {
        return None;
    }
    for index in 0..count {
        let (name_len, value_len) = (number(4 + 8 * index)?, number(8 + 8 * index)?);
        let text = |from: u128, len: u128| {
            bytes.get(usize::try_from(from).ok()?..usize::try_from(from + len).ok()?)
        };
        if text(at, name_len)? == wanted {
            return text(at + name_len + 1, value_len);
        }
        at += name_len + value_len + 2;
        if at > bytes.len() as u128 {
            return None;
        }
    }
    None
}
