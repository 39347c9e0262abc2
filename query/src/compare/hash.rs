//! The hash of rows. It never changes: files of accepted differences hold such hashes.

use serde::Serializer;

/// The golden ratio, as a fraction of 2^64.
const MIX: u64 = 0x9e37_79b9_7f4a_7c15;

/// Adds a word.
#[inline]
pub fn fold(hash: u64, word: u64) -> u64 {
    let mixed = (hash ^ word).wrapping_mul(MIX);
    (mixed ^ (mixed >> 29)).rotate_left(23)
}

/// Hashes words.
pub fn of_words(words: &[u64]) -> u64 {
    words
        .iter()
        .fold(words.len() as u64, |hash, word| fold(hash, *word))
}

/// Hashes bytes.
pub fn of_bytes(bytes: &[u8]) -> u64 {
    let word = |chunk: &[u8]| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    };
    let chunks = bytes.chunks(8).map(word);
    chunks.fold(bytes.len() as u64, fold)
}

/// Serializes a hash as the text that files of accepted differences have; many readers of JSON round large numbers.
pub fn as_hex<S: Serializer>(hash: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{hash:016x}"))
}

/// Serializes hashes as such texts.
pub fn all_as_hex<S: Serializer>(hashes: &[u64], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(hashes.iter().map(|hash| format!("{hash:016x}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_the_same_in_every_release() {
        assert_eq!(of_bytes(b""), 0);
        assert_eq!(of_bytes(b"parse"), 0x1a5d_ac45_9c8a_d302);
        assert_ne!(of_bytes(b"parse"), of_bytes(b"parse\0"));
        assert_ne!(of_words(&[1, 2]), of_words(&[2, 1]));
        assert_ne!(of_words(&[0]), of_words(&[0, 0]));
    }
}
