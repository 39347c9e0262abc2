//! Compares names of types and variables in source notation with those in the debug information.

use super::spelling::canonical;

/// Returns whether two names differ only in white space and, inside template arguments, in the spelling of types.
pub(crate) fn same_text(a: &str, b: &str) -> bool {
    let significant = |text: &str| {
        let mut out = String::with_capacity(text.len());
        let mut gap = false;
        for c in text.chars() {
            if c.is_whitespace() {
                gap = true;
                continue;
            }
            let word = |c: char| c.is_alphanumeric() || c == '_';
            // A space between two words separates them. All others are optional.
            if gap && word(c) && out.chars().last().is_some_and(word) {
                out.push(' ');
            }
            gap = false;
            out.push(c);
        }
        out
    };
    let (a, b) = (significant(a), significant(b));
    let has_arguments = a.contains('<') && b.contains('<');
    a == b || has_arguments && key(&a) == key(&b) && canonical(&a) == canonical(&b)
}

/// Returns the last component of a qualified name, without template arguments, which is its key in the index.
pub(super) fn key(name: &str) -> &str {
    let bare = without_arguments(name);
    let start = last_scope(bare);
    &bare[start..]
}

/// Returns the name before its template arguments.
pub(crate) fn without_arguments(name: &str) -> &str {
    let name = name.trim_end();
    if !name.ends_with('>') {
        return name;
    }
    let mut depth = 0usize;
    for (at, byte) in name.bytes().enumerate().rev() {
        match byte {
            // The arrow of a function's result closes no bracket.
            b'>' if at > 0 && name.as_bytes()[at - 1] == b'-' => {}
            b'>' => depth += 1,
            b'<' => {
                depth = depth.saturating_sub(1);
                if depth == 0 && at > 0 {
                    return name[..at].trim_end();
                }
            }
            _ => {}
        }
    }
    name
}

/// Returns where the last component of a qualified name begins. `::` inside brackets does not count.
fn last_scope(name: &str) -> usize {
    let bytes = name.as_bytes();
    let (mut depth, mut start) = (0usize, 0);
    for at in 0..bytes.len() {
        match bytes[at] {
            b'<' | b'(' | b'{' | b'[' => depth += 1,
            b'>' if at > 0 && bytes[at - 1] == b'-' => {}
            b'>' | b')' | b'}' | b']' => depth = depth.saturating_sub(1),
            b':' if depth == 0 && bytes.get(at + 1) == Some(&b':') => start = at + 2,
            _ => {}
        }
    }
    start
}

/// Splits a qualified name before its last component. `::` inside brackets does not count.
pub(crate) fn split_scope(name: &str) -> Option<(&str, &str)> {
    let start = last_scope(name);
    let outer = start.checked_sub(2)?;
    Some((&name[..outer], &name[start..]))
}

/// Returns the components of a qualified name.
pub(crate) fn components(name: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = name;
    while let Some((outer, last)) = split_scope(rest) {
        found.push(last);
        rest = outer;
    }
    found.push(rest);
    found.reverse();
    found
}

/// What stands for a namespace without a name.
pub(crate) const ANONYMOUS: &str = "(anonymous namespace)";

/// Returns whether `asked` is `full`, or its end after a `::`. In both cases `asked` may omit the arguments at the end
/// altogether, and namespaces without a name, whose members are names of the scope around them.
pub(super) fn matches(asked: &str, full: &str) -> Option<Rank> {
    let found = fit(asked, full);
    if found.is_some() || !full.contains(ANONYMOUS) {
        return found;
    }
    let visible = full.replace(&format!("{ANONYMOUS}::"), "");
    fit(asked, &visible).map(|rank| rank.max(Rank::End))
}

fn fit(asked: &str, full: &str) -> Option<Rank> {
    let asked = asked.trim().trim_start_matches("::");
    if same_text(asked, full) {
        return Some(Rank::Whole);
    }
    let bare = without_arguments(full);
    let candidates = [(full, Rank::End), (bare, Rank::EndWithoutArguments)];
    for (text, rank) in candidates {
        if rank == Rank::EndWithoutArguments && same_text(asked, text) {
            return Some(Rank::WithoutArguments);
        }
        let mut from = 0;
        while let Some(at) = text.get(from..).and_then(|rest| rest.find("::")) {
            from += at + 2;
            if same_text(asked, &text[from..]) {
                return Some(rank);
            }
        }
    }
    None
}

/// How well a name fits. Smaller is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    Whole,
    End,
    WithoutArguments,
    EndWithoutArguments,
}

/// Returns how well `asked` fits `full` (smaller is better), or `None` if it does not fit.
pub fn name_fit(asked: &str, full: &str) -> Option<u8> {
    matches(asked, full).map(|rank| rank as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_last_parts_without_arguments() {
        assert_eq!(key("std::vector<int, std::allocator<int> >"), "vector");
        assert_eq!(key("core::option::Option<fn(i32) -> i32>"), "Option");
        assert_eq!(key("plain"), "plain");
        assert_eq!(key("a::{impl#0}::b"), "b");
        assert_eq!(key(""), "");
        assert_eq!(key("<>"), "<>");
    }

    #[test]
    fn names_have_components() {
        assert_eq!(components("a::Box<b::c>::x"), ["a", "Box<b::c>", "x"]);
        assert_eq!(components("x"), ["x"]);
        assert_eq!(split_scope("::x"), Some(("", "x")));
        assert_eq!(split_scope("Box<b::c>"), None);
    }

    #[test]
    fn the_best_fit_is_told_from_others() {
        let full = "ns::Box<int, 3>";
        assert_eq!(matches("ns::Box<int,3>", full), Some(Rank::Whole));
        assert_eq!(matches("Box<int, 3>", full), Some(Rank::End));
        assert_eq!(matches("ns::Box", full), Some(Rank::WithoutArguments));
        assert_eq!(matches("Box", full), Some(Rank::EndWithoutArguments));
        assert_eq!(matches("ox", full), None);
        assert!(!same_text("unsigned int", "unsignedint"));
        assert_eq!(
            matches("Ring<short, 4>", "shop::Ring<short int, 4>"),
            Some(Rank::End)
        );
        assert_eq!(matches("Ring<short, 4>", "shop::Ring<int, 4>"), None);
        let hidden = "app::(anonymous namespace)::deep";
        assert_eq!(matches("app::deep", hidden), Some(Rank::End));
        assert_eq!(matches(hidden, hidden), Some(Rank::Whole));
        assert_eq!(matches("other::deep", hidden), None);
    }
}
