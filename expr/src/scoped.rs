//! Expressions over variables qualified with their function, as in `push::q->len`: finds the function and the
//! expression to evaluate in it.

use debuginfo::names_function;

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns the first path in an expression, without its last name: `push` of `2 * push::q->len`.
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

/// Removes `path` and the `::` after it from the names in an expression.
#[must_use]
pub fn without_path(text: &str, path: &str) -> String {
    let path = format!("{path}::");
    let mut left = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(&path) {
        let (before, behind) = rest.split_at(at);
        left.push_str(before);
        // It may be the end of a longer path.
        let is_part = left.ends_with(|c| is_word(c) || c == ':');
        left.push_str(if is_part { &path } else { "" });
        rest = &behind[path.len()..];
    }
    left + rest
}

/// Returns whether `path` names the function called `function`. Scopes and template arguments may be left out.
#[must_use]
pub fn is_called(function: &str, path: &str) -> bool {
    path == function || names_function(path, function)
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
