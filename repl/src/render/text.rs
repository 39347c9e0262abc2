//! Text that is safe on any terminal, and lines that are not wider than it.

use std::borrow::Cow;

pub use values::one_line::{escaped, fitted, width};

/// What stands for the folders that a path has lost.
const FOLDERS: &str = "...";

/// Returns `text` in at most `columns` terminal columns. Paths lose folders at their beginning first, so that names and
/// lines stay; what is still too long is cut.
pub fn fitted_paths(text: &str, columns: usize) -> Cow<'_, str> {
    let mut over = width(text).saturating_sub(columns);
    if over == 0 || !text.contains('/') {
        return fitted(text, columns);
    }
    let words = text.split(' ').map(|word| {
        let shorter = with_fewer_folders(word, over);
        over = over.saturating_sub(width(word) - width(&shorter));
        shorter
    });
    let shorter = words.collect::<Vec<_>>().join(" ");
    Cow::Owned(fitted(&shorter, columns).into_owned())
}

/// Removes folders at the beginning of an absolute path until it is `over` columns shorter, or only its name is left.
fn with_fewer_folders(word: &str, over: usize) -> String {
    let start = word.find('/').unwrap_or(0);
    let (before, path) = word.split_at(start);
    if over == 0 || before.contains(char::is_alphanumeric) {
        return word.to_owned();
    }
    let mut shortest = word.to_owned();
    for (at, _) in path.match_indices('/').skip(1) {
        if width(word) - width(&shortest) >= over || at + 1 == path.len() {
            break;
        }
        let shorter = format!("{before}{FOLDERS}{}", &path[at..]);
        if width(&shorter) < width(&shortest) {
            shortest = shorter;
        }
    }
    shortest
}

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

    #[test]
    fn a_path_keeps_its_end() {
        let at = |text, columns| fitted_paths(text, columns).into_owned();
        let change = "load at /data/work/q/app.c:12, by memcpy";
        assert_eq!(at(change, 40), change);
        assert_eq!(at(change, 39), "load at .../work/q/app.c:12, by memcpy");
        assert_eq!(at(change, 34), "load at .../q/app.c:12, by memcpy");
        assert_eq!(at(change, 20), "load at .../app.c...");
        assert_eq!(at("/a/b", 3), "...");
        assert_eq!(at("a/long/ratio and more", 10), "a/long/...");
        assert_eq!(at("(/usr/lib/x/libc.so.6)", 16), "(.../libc.so.6)");
        assert_eq!(at("/usr/share/folder/", 12), ".../folder/");
    }
}
