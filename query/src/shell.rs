//! Command lines as text that a shell reads as the same words.

/// Joins words, with quotes around those that a shell would interpret.
pub fn words(words: &[String]) -> String {
    let is_plain = |word: &str| {
        !word.is_empty()
            && word
                .chars()
                .all(|c| c.is_alphanumeric() || "_-./:=,+@%".contains(c))
    };
    let word = |word: &String| match is_plain(word) {
        true => word.clone(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    };
    words.iter().map(word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_quoted_where_a_shell_needs_it() {
        let given = ["-x", "a b", "it's", "", "k=v"].map(str::to_owned);
        assert_eq!(words(&given), r"-x 'a b' 'it'\''s' '' k=v");
    }
}
