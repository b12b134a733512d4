//! The bytes of a word, compared all at once.

/// Each byte of a word.
const BYTES: u64 = 0x0101_0101_0101_0101;
/// The highest bit of each byte.
const HIGH: u64 = 0x80 * BYTES;

/// The bytes of a word that are `byte`, each by its highest bit (Mycroft 1987). Of a byte that is not, but stands above one
/// that is, the bit may be set too; to tell these apart would be half as much work again.
#[inline]
pub(crate) const fn candidates(word: u64, byte: u8) -> u64 {
    let other = word ^ (byte as u64 * BYTES);
    other.wrapping_sub(BYTES) & !other & HIGH
}

/// Which byte the lowest bit of [`candidates`] stands for.
#[inline]
pub(crate) const fn first(found: u64) -> usize {
    found.trailing_zeros() as usize / 8
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_byte_is_found_wherever_it_is_and_first_where_it_is_first(
            bytes in prop::array::uniform8(0..4_u8), high in any::<u8>(),
        ) {
            let bytes = bytes.map(|byte| if byte == 3 { high } else { byte });
            for byte in [0, 1, 2, high, high ^ 1] {
                let found = candidates(u64::from_le_bytes(bytes), byte);
                for (other, lane) in bytes.into_iter().zip(found.to_le_bytes()) {
                    prop_assert!(lane == 0x80 || lane == 0 && other != byte);
                }
                let place = bytes.iter().position(|&other| other == byte);
                prop_assert_eq!(place, (found != 0).then(|| first(found)));
            }
        }
    }
}
