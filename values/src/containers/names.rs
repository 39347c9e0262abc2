//! Splits names of generic types into the path before the arguments, and the arguments.

/// The inline namespaces of libc++ in `std`.
const LIBCXX: [&str; 3] = ["std::__1::", "std::__ndk1::", "std::__2::"];

/// Returns the path of a type's name: no arguments, and no inline namespaces of the standard libraries.
pub(crate) fn path(name: &str) -> String {
    let end = name.find('<').unwrap_or(name.len());
    let path = name[..end].trim();
    match libcxx(path) {
        Some(namespace) => format!("std::{}", &path[namespace.len()..]),
        None => path.replace("__cxx11::", ""),
    }
}

/// Returns the namespace of a name of libc++.
pub(crate) fn libcxx(name: &str) -> Option<&'static str> {
    LIBCXX.into_iter().find(|prefix| name.starts_with(prefix))
}

/// Returns the outermost generic arguments of `name` as written; empty if there are none.
pub(crate) fn arguments(name: &str) -> Vec<&str> {
    let Some(start) = name.find('<') else {
        return Vec::new();
    };
    let inside = &name[start + 1..];
    let mut found = Vec::new();
    let (mut depth, mut from) = (0usize, 0);
    let mut before = ' ';
    for (at, c) in inside.char_indices() {
        // The angle bracket of an arrow, as in `fn(i32) -> i32`, closes nothing.
        let closes = matches!(c, ')' | ']' | '}') || (c == '>' && before != '-');
        before = c;
        match c {
            '<' | '(' | '[' | '{' => depth += 1,
            ',' if depth == 0 => {
                found.push(inside[from..at].trim());
                from = at + 1;
            }
            _ if closes && depth == 0 => {
                found.push(inside[from..at].trim());
                return found;
            }
            _ if closes => depth -= 1,
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{arguments, libcxx, path};

    #[test]
    fn paths_lose_arguments_and_inline_namespaces() {
        assert_eq!(
            path("alloc::vec::Vec<i32, alloc::alloc::Global>"),
            "alloc::vec::Vec"
        );
        assert_eq!(
            path("std::__cxx11::list<int, std::allocator<int> >"),
            "std::list"
        );
        assert_eq!(
            path("std::__1::list<int, std::__1::allocator<int> >"),
            "std::list"
        );
        assert_eq!(libcxx("std::__1::list<int>"), Some("std::__1::"));
        assert_eq!(libcxx("std::list<std::__1::pair<int, int> >"), None);
        assert_eq!(path("u8"), "u8");
        assert_eq!(path(""), "");
    }

    #[test]
    fn arguments_keep_what_is_nested() {
        let name = "Map<(u8, [u16; 2]), fn(i32) -> Vec<i32>, {closure#0}>::Inner";
        let expected = ["(u8, [u16; 2])", "fn(i32) -> Vec<i32>", "{closure#0}"];
        assert_eq!(arguments(name), expected);
        assert_eq!(arguments("std::any"), Vec::<&str>::new());
    }

    #[test]
    fn damaged_names_end() {
        assert_eq!(arguments("A<B<C"), Vec::<&str>::new());
        assert_eq!(arguments("A<"), Vec::<&str>::new());
        assert_eq!(arguments("A<>"), [""]);
        assert_eq!(arguments("A<)))>"), [""]);
    }
}
