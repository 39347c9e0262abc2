//! Text that is safe on any terminal, and lines that are not wider than it.

pub use values::one_line::{escaped, fitted, width};

/// Returns `text` broken between words into lines of at most `columns` terminal columns; a longer word sticks out.
pub fn fold(text: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("it begins with one line");
        if line.is_empty() {
            line.push_str(word);
        } else if width(line) + 1 + width(word) <= columns {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_between_words() {
        assert_eq!(fold("", 4), [""]);
        assert_eq!(fold("a bc def", 4), ["a bc", "def"]);
        assert_eq!(fold("longer than", 4), ["longer", "than"]);
    }
}
