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
            "core::ops::function::FnOnce::call_once<std::thread::lifecycle::{impl#2}::drop::{closure_env#0}<u64>, ()>",
            "FnOnce::call_once<lifecycle::{impl#2}::drop::{closure_env#0}<u64>, ()>",
        ),
        (
            "core::pin::Pin<&mut app::fetch::{async_fn_env#0}>",
            "Pin<&mut app::fetch::{async_fn_env#0}>",
        ),
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

/// Both manglings; hashes and numbers of crates are invented.
#[test]
fn names_of_rust_for_the_linker_become_short_ones() {
    for (linkage, short) in [
        (
            "_ZN93_$LT$alloc..vec..Vec$LT$T$C$A$GT$$u20$as$u20$core..iter..traits..collect..Extend$LT$T$GT$$GT$6extend17h0123456789abcdefE",
            "<Vec<T, A> as Extend<T>>::extend",
        ),
        (
            "_ZN4core3ptr42drop_in_place$LT$alloc..string..String$GT$17h0123456789abcdefE",
            "ptr::drop_in_place<String>",
        ),
        (
            "_ZN3app4main28_$u7b$$u7b$closure$u7d$$u7d$17h0123456789abcdefE",
            "app::main::{{closure}}",
        ),
        (
            "_ZN3app5fetch28_$u7b$$u7b$closure$u7d$$u7d$28_$u7b$$u7b$closure$u7d$$u7d$17h0123456789abcdefE",
            "app::fetch::{{closure}}::{{closure}}",
        ),
        (
            "_ZN4core3ops8function6FnOnce40call_once$u7b$$u7b$vtable.shim$u7d$$u7d$17h0123456789abcdefE",
            "FnOnce::call_once{{vtable.shim}}",
        ),
        (
            "_ZN5alloc3vec16Vec$LT$T$C$A$GT$4push17h0123456789abcdefE",
            "Vec<T, A>::push",
        ),
        (
            "_ZN3std6thread9lifecycle15spawn_unchecked28_$u7b$$u7b$closure$u7d$$u7d$17h0123456789abcdefE",
            "lifecycle::spawn_unchecked::{{closure}}",
        ),
        (
            "_ZN3std6thread7current17with_current_name17h0123456789abcdefE",
            "current::with_current_name",
        ),
        (
            "_ZN4core3fmt3num52_$LT$impl$u20$core..fmt..Debug$u20$for$u20$usize$GT$3fmt17h0123456789abcdefE",
            "<impl Debug for usize>::fmt",
        ),
        (
            "_ZN3std2io5stdio6_print17h0123456789abcdefE",
            "stdio::_print",
        ),
        (
            "_ZN9hashbrown3raw21RawTable$LT$T$C$A$GT$14reserve_rehash17h0123456789abcdefE",
            "hashbrown::raw::RawTable<T,A>::reserve_rehash",
        ),
        (
            "_ZN50_$LT$app..Car$u20$as$u20$core..ops..drop..Drop$GT$4drop17h0123456789abcdefE",
            "<app::Car as Drop>::drop",
        ),
        (
            "_ZN4core3ptr60drop_in_place$LT$app..fetch..$u7b$$u7b$closure$u7d$$u7d$$GT$17h0123456789abcdefE",
            "ptr::drop_in_place<app::fetch::{{closure}}>",
        ),
        ("_RNCNvCs1234_3app4main0", "app::main::{closure#0}"),
        (
            "_RNCNCNvCs1234_3app5fetch00",
            "app::fetch::{closure#0}::{closure#0}",
        ),
        (
            "_RINvNtCs1234_4core3ptr13drop_in_placeNtNtCs5678_5alloc6string6StringE",
            "ptr::drop_in_place<String>",
        ),
        ("_RNvMCs1234_3appNtCs1234_3app3Car5drive", "app::Car::drive"),
        (
            "_RNvXCs1234_3appRNtCs1234_3app3CarNtNtCs5678_4core3fmt5Debug3fmt",
            "<&app::Car as Debug>::fmt",
        ),
        (
            "_RNCNvXCs1234_3appNtCs1234_3app3CarNtNtNtCs5678_4core3ops4drop4Drop4drop0",
            "<app::Car as Drop>::drop::{closure#0}",
        ),
        (
            "_RNvMNtCs5678_5alloc3vecINtNtCs5678_5alloc3vec3VeclE4push",
            "Vec<i32>::push",
        ),
        (
            "_RNSNvYNCNvCs1234_3app4main0INtNtNtCs5678_4core3ops8function6FnOnceuE9call_once6vtable",
            "<app::main::{closure#0} as FnOnce<()>>::call_once::{shim:vtable#0}",
        ),
        (
            "_RINvNtCs5678_3std6thread5spawnNCNvCs1234_3app4main0uE",
            "thread::spawn<app::main::{closure#0}, ()>",
        ),
    ] {
        let full = crate::function_name(linkage).expect("it is mangled");
        assert_eq!(short_name(&full), short, "{full}");
    }
}

#[test]
fn different_functions_of_a_list_have_different_names() {
    let full = [
        "core::ptr::drop_in_place<std::io::error::Error>",
        "core::ptr::drop_in_place<core::fmt::Error>",
        "core::ptr::drop_in_place<alloc::string::String>",
        "core::ptr::drop_in_place<alloc::string::String>",
        "app::main",
    ];
    let short = full.iter().map(|name| short_name(name)).collect();
    assert_eq!(
        told_apart(&full, short),
        [
            "core::ptr::drop_in_place<std::io::error::Error>",
            "core::ptr::drop_in_place<core::fmt::Error>",
            "ptr::drop_in_place<String>",
            "ptr::drop_in_place<String>",
            "app::main",
        ]
    );
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
        (format!("{STRING}::basic_string<std::allocator<char> >"), "std::string::basic_string"),
        ("std::operator+<char, std::char_traits<char>, std::allocator<char> >".to_owned(), "std::operator+<char>"),
        ("std::operator==<int, std::allocator<int> >".to_owned(), "std::operator==<int>"),
        ("std::getline<char, std::char_traits<char>, std::allocator<char> >".to_owned(), "std::getline<char>"),
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
    assert_eq!(
        at("shop::fetch::{async_fn#0}"),
        "shop::fetch::{async_fn@main.rs:12}"
    );
    assert_eq!(
        at("shop::main::{closure#0}::{async_block#1}"),
        "shop::main::{closure#0}::{async_block@main.rs:12}"
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
