//! Goal: short names are those that people use. Method: names from compilers, and invented ones.

use super::*;

#[test]
fn names_of_rust_are_those_of_the_source() {
    for (full, short) in [
        ("main", "main"),
        ("alloc::vec::Vec<i32, alloc::alloc::Global>", "Vec<i32>"),
        (
            "alloc::vec::Vec<i32, arena::Local>",
            "Vec<i32, arena::Local>",
        ),
        ("core::option::Option<&str>", "Option<&str>"),
        (
            "std::collections::hash::map::HashMap<u32, i64, std::hash::random::RandomState>::entry",
            "HashMap<u32, i64>::entry",
        ),
        (
            "HashMap<alloc::string::String, std::hash::random::RandomState>",
            "HashMap<String, RandomState>",
        ),
        (
            "<shop::Cache<alloc::string::String>>::get",
            "shop::Cache<String>::get",
        ),
        ("<[u8]>::len", "<[u8]>::len"),
        (
            "<alloc::vec::Vec<T> as core::iter::traits::collect::Extend<&T>>::extend",
            "<Vec<T> as Extend<&T>>::extend",
        ),
        (
            "core::ptr::drop_in_place<alloc::string::String>",
            "ptr::drop_in_place<String>",
        ),
        (
            "core::ptr::mut_ptr::<impl *mut T>::add",
            "<impl *mut T>::add",
        ),
        (
            "std::rt::lang_start::{closure#0}",
            "rt::lang_start::{closure#0}",
        ),
        ("std::thread::spawn<fn(), ()>", "thread::spawn<fn(), ()>"),
        (
            "std::thread::join_handle::JoinHandle<i32>",
            "JoinHandle<i32>",
        ),
        (
            "std::thread::JoinHandle<i32>::join",
            "JoinHandle<i32>::join",
        ),
        ("shop::cache::Cache<K>::get", "shop::cache::Cache<K>::get"),
        ("shop::main::h0123456789abcdef", "shop::main"),
        ("shop::h0123456789abcdeg", "shop::h0123456789abcdeg"),
        ("shop[f0e1d2c3b4a59687]::main", "shop::main"),
        ("&mut [core::cell::Cell<u8>; 3]", "&mut [Cell<u8>; 3]"),
        (
            "fn(&core::time::Duration) -> alloc::string::String",
            "fn(&Duration) -> String",
        ),
        ("*const dyn core::fmt::Debug", "*const dyn Debug"),
        (
            "Vec::<core::num::nonzero::NonZero<u8>>::new",
            "Vec::<NonZero<u8>>::new",
        ),
    ] {
        assert_eq!(short_name(full), short, "{full}");
    }
}

#[test]
fn names_of_cpp_are_those_of_the_source() {
    const STRING: &str =
        "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >";
    for (full, short) in [
        (STRING.to_owned(), "std::string"),
        (
            format!("std::map<{STRING}, int, std::less<{STRING} >, std::allocator<std::pair<{STRING} const, int> > >"),
            "std::map<std::string, int>",
        ),
        (format!("std::vector<{STRING}, std::allocator<{STRING} > >::push_back"), "std::vector<std::string>::push_back"),
        (
            "std::unordered_map<int, long, std::hash<int>, std::equal_to<int>, std::allocator<std::pair<int const, long>>>".to_owned(),
            "std::unordered_map<int, long>",
        ),
        ("std::set<int, std::greater<int>, std::allocator<int> >".to_owned(), "std::set<int, std::greater<int>>"),
        ("std::unique_ptr<Node, std::default_delete<Node> >".to_owned(), "std::unique_ptr<Node>"),
        (
            "std::priority_queue<int, std::vector<int, std::allocator<int> >, std::less<int> >"
                .to_owned(),
            "std::priority_queue<int>",
        ),
        ("std::pair<int, std::allocator<int> >".to_owned(), "std::pair<int, std::allocator<int>>"),
        ("std::map<int, std::less<int> >".to_owned(), "std::map<int, std::less<int>>"),
        ("std::chrono::_V2::system_clock::now".to_owned(), "std::chrono::system_clock::now"),
        ("std::thread::_State_impl<F>::_M_run".to_owned(), "std::thread::_State_impl<F>::_M_run"),
        ("core::Engine::run".to_owned(), "core::Engine::run"),
        ("(anonymous namespace)::f".to_owned(), "(anonymous namespace)::f"),
        ("operator<< <char>".to_owned(), "operator<< <char>"),
        ("a::operator-><int>".to_owned(), "a::operator-><int>"),
        ("a::operator()".to_owned(), "a::operator()"),
        ("std::basic_string_view<wchar_t, std::char_traits<wchar_t> >".to_owned(), "std::wstring_view"),
        (format!("main::{{lambda({STRING})#1}}::operator()"), "main::{lambda(std::string)#1}::operator()"),
        ("f[abi:cxx11]".to_owned(), "f"),
    ] {
        assert_eq!(short_name(&full), short, "{full}");
    }
}

#[test]
fn what_is_not_understood_stays() {
    for name in [
        "", "a<", "a>", "std::", "::", "a<b", "(", "a::<", "operator", "f<'<'>", "<>::",
    ] {
        assert_eq!(short_name(name), name);
    }
    let deep = format!("{}std::__cxx11::x{}", "a<".repeat(100), ">".repeat(100));
    assert_eq!(short_name(&deep), deep);
}

#[test]
fn closures_are_called_by_their_line() {
    let at = |name| short_name_at(name, Some("src/bin/main.rs"), Some(12));
    assert_eq!(
        at("shop::main::{closure#0}"),
        "shop::main::{closure@main.rs:12}"
    );
    assert_eq!(
        at("shop::main::{closure#1}::{closure#0}"),
        "shop::main::{closure#1}::{closure@main.rs:12}"
    );
    assert_eq!(
        at("main::{lambda(int)#2}::operator()"),
        "main::{lambda@main.rs:12}"
    );
    assert_eq!(at("f<main::{closure#0}>"), "f<main::{closure#0}>");
    assert_eq!(
        at("shop::main::{{closure}}"),
        "shop::main::{closure@main.rs:12}"
    );
    assert_eq!(at("main::$_0::operator()"), "main::{lambda@main.rs:12}");
    assert_eq!(at("main"), "main");
    assert_eq!(
        short_name_at("a::{closure#0}", None, Some(1)),
        "a::{closure#0}"
    );
}

/// Random names, most of which make sense.
struct MadeUp(u64);

impl MadeUp {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) as usize % limit
    }

    fn one(&mut self, of: &[&str]) -> String {
        of[self.below(of.len())].to_owned()
    }

    fn path(&mut self, depth: usize) -> String {
        let mut out = self.one(&["std", "core", "alloc", "app", "__gnu_cxx", "Vec", "\u{e9}"]);
        for _ in 0..self.below(4) {
            out += "::";
            out += &self.one(&[
                "vec",
                "Vec",
                "map",
                "basic_string",
                "collections",
                "HashMap",
                "option",
                "Option",
                "__cxx11",
                "allocator",
                "alloc",
                "Global",
                "char_traits",
                "unique_ptr",
                "thread",
                "{closure#0}",
                "{lambda(int)#1}",
                "operator()",
                "operator<<",
                "~f",
                "f",
            ]);
            if depth > 0 && self.below(2) == 0 {
                out += &self.arguments(depth - 1);
            }
        }
        out
    }

    fn arguments(&mut self, depth: usize) -> String {
        let arguments: Vec<String> = (0..=self.below(3)).map(|_| self.argument(depth)).collect();
        let gap = self.one(&[", ", ","]);
        format!("<{}{}>", arguments.join(&gap), self.one(&["", " "]))
    }

    fn argument(&mut self, depth: usize) -> String {
        let inner = self.path(depth);
        match self.below(8) {
            0 => format!("&mut [{inner}; 3]"),
            1 => format!("fn({inner}) -> {inner}"),
            2 => format!("{inner} const*"),
            3 => format!("<{inner} as {inner}>::f"),
            4 => "char".to_owned(),
            _ => inner,
        }
    }

    /// A name, possibly with a missing piece.
    fn name(&mut self) -> String {
        let mut name = self.path(3);
        if self.below(3) == 0 {
            let at = self.below(name.chars().count().max(1));
            name = name
                .chars()
                .enumerate()
                .filter(|(i, _)| *i != at)
                .map(|(_, c)| c)
                .collect();
        }
        name
    }
}

fn is_balanced(name: &str) -> bool {
    let mut open = Vec::new();
    for c in name.replace("->", "").chars() {
        match c {
            '<' | '(' | '[' | '{' => open.push(c),
            '>' | ')' | ']' | '}' => {
                let expected = match c {
                    '>' => '<',
                    ')' => '(',
                    ']' => '[',
                    _ => '{',
                };
                if open.pop() != Some(expected) {
                    return false;
                }
            }
            _ => {}
        }
    }
    open.is_empty()
}

#[test]
fn a_short_name_is_short_balanced_and_its_own_short_name() {
    let mut made_up = MadeUp(1);
    let mut shorter = 0;
    for _ in 0..50_000 {
        let name = made_up.name();
        let short = short_name(&name);
        assert!(short.len() <= name.len(), "{name}: {short}");
        assert_eq!(short_name(&short), short, "{name}");
        if is_balanced(&name) && !name.contains("operator") {
            assert!(is_balanced(&short), "{name}: {short}");
        }
        shorter += usize::from(short.len() < name.len());
    }
    assert!(shorter > 1000, "{shorter}");
}

#[test]
fn long_names_are_brief_without_their_arguments() {
    let inner = "shop::Order<shop::Item, 4>, ".repeat(20);
    let long = format!("shop::merge<{inner}int>(int)");
    assert!(long.len() > 500);
    assert_eq!(brief_name(&long), "shop::merge<..>(int)");
    assert_eq!(brief_name("shop::merge<int, 4>"), "shop::merge<int, 4>");
}
