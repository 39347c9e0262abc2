//! Names with wildcards: one syntax for breakpoints, filters, exceptions and steps through a recording.
//!
//! `*` matches any text, `/` and `::` included, and `?` one character. Names may contain brackets and braces of their
//! own (`operator[]`, `{closure#0}`), so these match themselves as well as the alternatives of file globs, `[ab]` and
//! `{a,b}`.

use std::path::Path;

use globset::{GlobBuilder, GlobMatcher};

use crate::functions::short_name;
use crate::lines::{names_function, without_tags};
use crate::types::without_arguments;

/// A pattern for names.
#[derive(Debug, Clone)]
pub struct Glob {
    text: String,
    /// Brackets and braces match themselves.
    plain: Option<GlobMatcher>,
    /// Brackets and braces are alternatives. `None` if there are none or they are malformed.
    choices: Option<GlobMatcher>,
}

impl Glob {
    /// Reads a pattern. Every text is a valid one.
    #[must_use]
    pub fn new(text: &str) -> Glob {
        let special = ['[', ']', '{', '}', '\\'];
        let has_special = text.contains(special);
        let mut plain = String::with_capacity(text.len());
        for c in text.chars() {
            match special.contains(&c) {
                true => plain.extend(['\\', c]),
                false => plain.push(c),
            }
        }
        Glob {
            text: text.to_owned(),
            plain: matcher(&plain),
            choices: has_special.then(|| matcher(text)).flatten(),
        }
    }

    /// Returns the text of the pattern.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns whether a text has wildcards, which do not occur in names.
    #[must_use]
    pub fn is_one(text: &str) -> bool {
        text.contains(['*', '?'])
    }

    /// Returns whether the pattern matches `name`.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        let mut matchers = self.plain.iter().chain(&self.choices);
        self.text == name || matchers.any(|matcher| matcher.is_match(name))
    }

    /// Returns whether it matches the full name of a function, or the short one. A name without wildcards may lack template
    /// arguments, and a name with a scope may lack the scopes around that. Both may lack ABI tags (`f[abi:cxx11]`).
    #[must_use]
    pub fn matches_function(&self, name: &str) -> bool {
        let name = &*without_tags(name, &self.text);
        // Without a scope or arguments, a short name has nothing that the full one lacks.
        let may_be_short = self.text.contains("::") || self.text.contains('<');
        self.matches(name)
            || may_be_short && self.matches(&short_name(name))
            || self.lacks_parts_of(name)
    }

    fn lacks_parts_of(&self, name: &str) -> bool {
        match self.text.contains("::") {
            true => names_function(&self.text, name),
            false => without_arguments(name) == self.text,
        }
    }

    /// Returns whether the pattern matches `path` or its last component.
    #[must_use]
    pub fn matches_path(&self, path: &Path) -> bool {
        let last = path.file_name().map(|name| name.to_string_lossy());
        self.matches(&path.to_string_lossy()) || last.is_some_and(|name| self.matches(&name))
    }
}

fn matcher(glob: &str) -> Option<GlobMatcher> {
    let glob = GlobBuilder::new(glob).backslash_escape(true).build();
    glob.ok().map(|glob| glob.compile_matcher())
}

#[cfg(test)]
mod tests {
    use super::Glob;

    #[test]
    fn stars_and_question_marks_match_as_in_file_names() {
        for (pattern, text, expected) in [
            ("main", "main", true),
            ("main", "main2", false),
            ("m*n", "main", true),
            ("m*n*", "maintain", true),
            ("*::f", "a::b::f", true),
            ("a/*", "a/b/c", true),
            ("ma?n", "main", true),
            ("ma?n", "man", false),
            ("*", "", true),
            ("", "", true),
            ("a*b*c", "axxbyybc", true),
            ("a*b*c", "axxbyyb", false),
        ] {
            let glob = Glob::new(pattern);
            assert_eq!(glob.matches(text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn parts_of_a_functions_name_may_be_left_out() {
        for (pattern, name, expected) in [
            ("twice", "twice<int>", true),
            ("Cache::get", "ns::Cache<int, long>::get", true),
            ("Thing::go", "ns::Thing::go", true),
            ("go", "ns::Thing::go", false),
            ("get", "Cache<int, long>::get", false),
            ("Cache::g*", "ns::Cache<int, long>::get", false),
            ("open", "File::open", false),
            ("greet", "greet[abi:cxx11]", true),
            ("gr?et", "greet[abi:cxx11]", true),
            ("greet[abi:cxx11]", "greet[abi:cxx11]", true),
            ("greet[abi:v2]", "greet[abi:cxx11]", false),
            ("Shop::name", "ns::Shop::name[abi:cxx11]", true),
            ("twice", "twice[abi:cxx11]<int>", true),
        ] {
            let glob = Glob::new(pattern);
            assert_eq!(glob.matches_function(name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn brackets_are_choices_and_themselves() {
        for (pattern, text, expected) in [
            ("f[12]*", "f1x", true),
            ("f[12]*", "f3x", false),
            ("f[12]*", "f[12]x", true),
            ("{get,set}_*", "set_x", true),
            ("*::operator[]", "V::operator[]", true),
            ("*operator[]*", "V::operator[](int)", true),
            ("main::{closure#0}*", "main::{closure#0}::f", true),
            ("main::{closure*", "main::{closure#0}", true),
            ("<[T] as *", "<[T] as Debug>::fmt", true),
            ("a\\*", "a\\b", true),
        ] {
            let glob = Glob::new(pattern);
            assert_eq!(glob.matches(text), expected, "{pattern} {text}");
        }
    }
}
