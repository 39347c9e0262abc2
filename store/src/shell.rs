//! Writes words as shells read them, for commands that people paste.

/// Quotes a word for a shell, if it needs that. A word that begins like an option is taken for a path: recordings are files.
#[must_use]
pub fn word(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,:@%".contains(c);
    match !word.is_empty() && !word.starts_with('-') && word.chars().all(is_plain) {
        true => word.to_owned(),
        false if word.starts_with('-') => self::word(&format!("./{word}")),
        false => quoted(word),
    }
}

/// Joins the words of a command line, with quotes around those that a shell would interpret.
#[must_use]
pub fn words(words: &[String]) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "_-./:=,+@%".contains(c);
    let word = |word: &String| match !word.is_empty() && word.chars().all(is_plain) {
        true => word.clone(),
        false => quoted(word),
    };
    words.iter().map(word).collect::<Vec<_>>().join(" ")
}

/// Puts a word in quotes.
#[must_use]
pub fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::{word, words};

    #[test]
    fn a_shell_reads_what_was_meant() {
        for (text, written) in [
            ("app", "app"),
            ("runs/app-2", "runs/app-2"),
            ("my app", "'my app'"),
            ("it's", r"'it'\''s'"),
            ("-x", "./-x"),
            ("", "''"),
        ] {
            assert_eq!(word(text), written);
        }
    }

    #[test]
    fn arguments_are_quoted_where_a_shell_needs_it() {
        let given = ["-x", "a b", "it's", "", "k=v"].map(str::to_owned);
        assert_eq!(words(&given), r"-x 'a b' 'it'\''s' '' k=v");
    }
}
