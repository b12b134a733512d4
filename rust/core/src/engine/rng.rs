//! Random streams: each has a purpose, and is derived from the run's seed and that purpose alone.

use rand_pcg::Pcg64;

/// The stream of random numbers for `purpose` (and its number `index` among streams of that purpose) under `seed`.
///
/// `Pcg64` gives the same numbers on every machine, and 2^64 values of the seed select unrelated starting points, so
/// adding a stream never changes the draws of another.
pub fn stream(seed: u64, purpose: &str, index: u64) -> Pcg64 {
    let name = purpose
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    let state = u128::from(mix(seed)) << 64 | u128::from(mix(seed ^ name));
    let sequence = u128::from(name) << 64 | u128::from(index);
    Pcg64::new(state, sequence)
}

/// The finalizer of SplitMix64 (Steele, Lea and Flood 2014): neighbouring numbers become unrelated.
pub(crate) const fn mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use rand_core::Rng;

    use super::stream;

    #[test]
    fn streams_of_different_purpose_index_or_seed_differ_and_repeat() {
        let draw = |seed, purpose, index| stream(seed, purpose, index).next_u64();
        assert_eq!(draw(1, "durations", 0), draw(1, "durations", 0));
        assert_ne!(draw(1, "durations", 0), draw(1, "durations", 1));
        assert_ne!(draw(1, "durations", 0), draw(1, "placement", 0));
        assert_ne!(draw(1, "durations", 0), draw(2, "durations", 0));
    }
}
