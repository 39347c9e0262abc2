//! "Did you mean": the nearest of some known words, or none if no word is near.

/// Returns the candidate most similar to `word`, ignoring case, if one is similar enough.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    candidates
        .into_iter()
        .map(|candidate| {
            (
                strsim::jaro_winkler(&word, &candidate.to_lowercase()),
                candidate,
            )
        })
        .filter(|(likeness, _)| *likeness > 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

/// Returns whether `text` is the single word `word` with a typing error.
pub fn is_slip(text: &str, word: &str) -> bool {
    let text = text.to_lowercase();
    text.chars().all(char::is_alphabetic) && strsim::damerau_levenshtein(&text, word) == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_finds_its_word_and_nonsense_finds_none() {
        let formats = ["table", "csv", "json", "jsonl", "parquet"];
        assert_eq!(nearest("jsn", formats), Some("json"));
        assert_eq!(nearest("Tabel", formats), Some("table"));
        assert_eq!(nearest("parket", formats), Some("parquet"));
        assert_eq!(nearest("xml", formats), None);
        assert_eq!(nearest("", formats), None);
    }

    #[test]
    fn a_slip_is_one_letter_off() {
        assert!(is_slip("hlep", "help"));
        assert!(is_slip("Hel", "help"));
        assert!(!is_slip("help", "help"));
        assert!(!is_slip("shell", "help"));
        assert!(!is_slip("help 1", "help"));
    }
}
