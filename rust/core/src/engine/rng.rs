//! Random numbers. What a run's seed is to change comes from a [`stream`] with a purpose; what is to differ from one time to the
//! next, but not from run to run, from [`Draws`].

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

/// Random numbers of which the n-th is a function of n alone: all that latencies need, at the cost of a few operations.
#[derive(Clone, Debug, Default)]
pub(crate) struct Draws {
    drawn: u64,
}

impl Draws {
    /// The next of them, and from now on those that follow it.
    #[inline]
    pub(crate) fn next(&mut self) -> u64 {
        self.drawn += 1;
        scattered(self.drawn)
    }
}

/// A random number as one of the even law from -1 to 1.
#[inline]
pub(crate) fn even(random: u64) -> f64 {
    (random >> 40) as f64 / f64::from(1_u32 << 23) - 1.0
}

/// The finalizer of MurmurHash3 (Appleby 2011): neighbouring numbers become unrelated, and 0 stays.
#[inline]
pub(crate) const fn scattered(x: u64) -> u64 {
    let x = (x ^ (x >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let x = (x ^ (x >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    x ^ (x >> 33)
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

    use super::{Draws, even, stream};

    #[test]
    fn streams_of_different_purpose_index_or_seed_differ_and_repeat() {
        let draw = |seed, purpose, index| stream(seed, purpose, index).next_u64();
        assert_eq!(draw(1, "durations", 0), draw(1, "durations", 0));
        assert_ne!(draw(1, "durations", 0), draw(1, "durations", 1));
        assert_ne!(draw(1, "durations", 0), draw(1, "placement", 0));
        assert_ne!(draw(1, "durations", 0), draw(2, "durations", 0));
    }

    #[test]
    fn draws_repeat_and_fill_the_even_law_from_minus_one_to_one() {
        let draws = || {
            std::iter::repeat_with({
                let mut draws = Draws::default();
                move || even(draws.next())
            })
            .take(10_000)
        };
        assert!(draws().eq(draws()));
        let mut sorted: Vec<f64> = draws().collect();
        sorted.sort_unstable_by(f64::total_cmp);
        for (i, draw) in sorted.into_iter().enumerate() {
            // Kolmogorov's distance at a chance of 1 in 1,000.
            assert!((draw - (i as f64 / 5_000.0 - 1.0)).abs() < 2.0 * 1.95 / 100.0, "{i}: {draw}");
        }
    }
}
