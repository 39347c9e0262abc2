//! Expressions over variables of functions that are named with them, as in `push::q->len`: which function is meant, and how the
//! expression reads inside it.

use debuginfo::types::name_fit;

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns the first path in an expression, without the name that it leads to: `push` of `2 * push::q->len`.
#[must_use]
pub fn path_of(text: &str) -> Option<&str> {
    let is_of_path = |c: char| is_word(c) || c == ':';
    let mut names = text.split(|c| !is_of_path(c));
    names.find_map(|name| {
        name.rsplit_once("::")
            .map(|(path, _)| path)
            .filter(|p| !p.is_empty())
    })
}

/// Returns the expression without `path` and the `::` behind it before its names.
#[must_use]
pub fn without_path(text: &str, path: &str) -> String {
    let path = format!("{path}::");
    let mut left = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(&path) {
        let (before, behind) = rest.split_at(at);
        left.push_str(before);
        // It may be the end of a longer one.
        let is_part = left.ends_with(|c| is_word(c) || c == ':');
        left.push_str(if is_part { &path } else { "" });
        rest = &behind[path.len()..];
    }
    left + rest
}

/// Tells whether `path` names the function called `function` in full.
#[must_use]
pub fn is_called(function: &str, path: &str) -> bool {
    name_fit(path, function).is_some()
}

#[cfg(test)]
mod tests {
    use super::{path_of, without_path};

    #[test]
    fn variables_are_named_with_their_functions() {
        for (text, function, inside) in [
            ("push::q->len", "push", "q->len"),
            ("*push::q", "push", "*q"),
            ("2 * push::q->len", "push", "2 * q->len"),
            ("ns::push::q", "ns::push", "q"),
            ("push::a + push::b", "push", "a + b"),
            ("f::a + elf::b", "f", "a + elf::b"),
        ] {
            let named = path_of(text).expect("there is one");
            assert_eq!(named, function, "{text}");
            assert_eq!(without_path(text, named), inside, "{text}");
        }
        assert_eq!(path_of("q->len"), None);
        assert_eq!(path_of("::errno"), None);
    }
}
