//! Spreads numbers: neighboring inputs give results that look unrelated.

/// The finalizer of splitmix64 (Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators", 2014):
/// neighboring numbers give unlike results.
#[must_use]
pub const fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}
