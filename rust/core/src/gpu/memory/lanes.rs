//! The bytes of a word, compared all at once.

/// Each byte of a word.
const BYTES: u64 = 0x0101_0101_0101_0101;
/// All bits of each byte but the highest.
const LOW: u64 = 0x7f * BYTES;

/// Whether any byte of these words is `byte` (Mycroft 1987): half the work of [`equal`], which also says which.
#[inline]
pub(crate) fn hold(words: &[[u8; 8]], byte: u8) -> bool {
    let borrowed = words.iter().fold(0, |borrowed, &word| {
        let other = u64::from_le_bytes(word) ^ (u64::from(byte) * BYTES);
        borrowed | other.wrapping_sub(BYTES) & !other
    });
    borrowed & !LOW != 0
}

/// The bytes of a word that are `byte`, each by its highest bit.
#[inline]
pub(crate) const fn equal(word: u64, byte: u8) -> u64 {
    let other = word ^ (byte as u64 * BYTES);
    !(((other & LOW) + LOW) | other | LOW)
}

/// Which byte the lowest bit of [`equal`] stands for.
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
        fn a_byte_is_found_where_it_is_and_nowhere_else(bytes in prop::array::uniform8(0..4_u8), high in any::<u8>()) {
            let bytes = bytes.map(|byte| if byte == 3 { high } else { byte });
            let word = u64::from_le_bytes(bytes);
            for byte in [0, 1, 2, high] {
                let expected = bytes.map(|other| if other == byte { 0x80 } else { 0 });
                prop_assert_eq!(equal(word, byte).to_le_bytes(), expected);
                let place = bytes.iter().position(|&other| other == byte);
                prop_assert_eq!(hold(&[[byte ^ 1; 8], bytes], byte), place.is_some());
                prop_assert_eq!(place, (equal(word, byte) != 0).then(|| first(equal(word, byte))));
            }
        }
    }
}
