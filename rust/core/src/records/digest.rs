//! A running hash of what happened: equal for equal input and seed, on any machine.

/// An odd number with bits spread evenly.
const MULTIPLIER: u64 = 0xa076_1d64_78bd_642f;

/// The hash so far.
#[derive(Clone, Copy, Debug)]
pub struct Digest(u64);

impl Default for Digest {
    fn default() -> Self {
        Self(0x9e37_79b9_7f4a_7c15)
    }
}

impl Digest {
    /// Takes in one word: a multiply and a fold of the 128-bit product, so that every bit reaches every other.
    #[inline]
    pub fn word(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word) * u128::from(MULTIPLIER);
        self.0 = (product >> 64) as u64 ^ product as u64 ^ self.0.rotate_left(23);
    }

    /// The hash of all words so far.
    pub const fn value(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::Digest;

    fn of(words: &[u64]) -> u64 {
        let mut digest = Digest::default();
        words.iter().for_each(|&word| digest.word(word));
        digest.value()
    }

    #[test]
    fn order_and_every_single_bit_count() {
        assert_ne!(of(&[1, 2]), of(&[2, 1]));
        assert_ne!(of(&[0]), of(&[0, 0]));
        let mut seen: Vec<_> = (0..64).map(|bit| of(&[1 << bit])).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 64);
    }
}
