//! A running hash of what happened: equal for equal input and seed, on any machine.

/// The hash so far.
#[derive(Clone, Copy, Debug)]
pub struct Digest(u64);

impl Default for Digest {
    fn default() -> Self {
        Self(0x9e37_79b9_7f4a_7c15)
    }
}

/// Odd numbers with bits spread evenly.
const KEYS: [u64; 2] = [0xa076_1d64_78bd_642f, 0xe703_7ed1_a0b4_28db];

impl Digest {
    /// Takes in two words: the 128-bit product of both, folded, so that every bit of either reaches every other.
    #[inline]
    pub fn pair(&mut self, a: u64, b: u64) {
        let product = u128::from(a ^ self.0 ^ KEYS[0]) * u128::from(b ^ self.0.rotate_left(32) ^ KEYS[1]);
        self.0 = (product >> 64) as u64 ^ product as u64;
    }

    /// The hash of all words so far.
    pub const fn value(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::Digest;

    fn of(pairs: &[(u64, u64)]) -> u64 {
        let mut digest = Digest::default();
        for &(a, b) in pairs {
            digest.pair(a, b);
        }
        digest.value()
    }

    #[test]
    fn order_and_every_single_bit_count() {
        assert_ne!(of(&[(1, 0), (2, 0)]), of(&[(2, 0), (1, 0)]));
        assert_ne!(of(&[(1, 2)]), of(&[(2, 1)]));
        assert_ne!(of(&[(0, 0)]), of(&[(0, 0), (0, 0)]));
        let bits = (0..64).flat_map(|bit| [of(&[(1 << bit, 0)]), of(&[(0, 1 << bit)])]);
        let distinct: std::collections::BTreeSet<_> = bits.collect();
        assert_eq!(distinct.len(), 128);
    }
}
