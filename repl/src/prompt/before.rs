//! What the text before the cursor says about the next word: an open quote, a table, a column of a table. It looks at
//! words, not at grammar, since incomplete input is not SQL yet.

/// Returns the start of the quote that is still open at the end of `text`.
pub fn open_quote(text: &str) -> Option<usize> {
    let mut open = None;
    for (at, c) in text.char_indices() {
        if c == '\'' {
            open = if open.is_some() { None } else { Some(at) };
        }
    }
    open
}

/// Returns the table that the word before a dot means: the word itself, or the table it is an alias of (`calls c`).
pub fn qualifier<'a>(before_dot: &'a str, statement: &'a str) -> &'a str {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let alias = &before_dot[before_dot.trim_end_matches(is_word).len()..];
    let words: Vec<&str> = statement
        .split(|c| !is_word(c))
        .filter(|w| !w.is_empty())
        .collect();
    let definition = words
        .windows(3)
        .find(|w| names_a_table(w[0]) && !w[2].is_empty() && w[2] == alias);
    definition.map_or(alias, |w| w[1])
}

/// Returns whether a table's name comes next, according to the last word.
pub fn names_a_table(earlier: &str) -> bool {
    let last = earlier.split_whitespace().last().unwrap_or_default();
    let ends_word = earlier.ends_with(char::is_whitespace) || earlier == last;
    ends_word
        && ["from", "join"]
            .iter()
            .any(|word| last.eq_ignore_ascii_case(word))
}
