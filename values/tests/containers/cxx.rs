//! Containers of libstdc++, against gdb.

use std::collections::BTreeMap;

use debuginfo::value::Value;
use values::containers::Key;
use values::{RenderOptions, render_with};

use crate::common::{ALL, behind, container, flat, iterators_do_not_guess, look};
use crate::snapshot::Snapshot;

/// What gdb shows as plain structures, or in its own notation.
const OWN_WAY: [&str; 20] = [
    "function_empty",
    "function_plain",
    "function_lambda",
    "atomic_int",
    "atomic_bool",
    "atomic_pointer",
    "complex_double",
    "complex_float",
    "bitset_small",
    "bitset_wide",
    "reference",
    "map_iterator",
    "vector_iterator",
    "error_code_none",
    "error_code_file",
    "error_code_system",
    "error_condition_busy",
    "exception_none",
    "exception_runtime",
    "exception_number",
];
/// What gdb shows only one part of.
const FIRST_PART: [&str; 2] = ["unique_", "shared_"];

fn told_by_gdb(snapshot: &Snapshot) -> BTreeMap<String, String> {
    let member = |line: &str| {
        let (name, text) = line.strip_prefix("MEMBER\t")?.split_once('\t')?;
        Some((name.to_owned(), unquoted(text)))
    };
    snapshot.said.lines().filter_map(member).collect()
}

/// The text in a string of JSON as Python writes it, which is ASCII.
fn unquoted(json: &str) -> String {
    let inside = json.strip_prefix('"').and_then(|s| s.strip_suffix('"'));
    let mut chars = inside.expect("a string").chars();
    let mut units = Vec::new();
    while let Some(c) = chars.next() {
        let c = match c {
            '\\' => match chars.next().expect("an escape") {
                'n' => '\n',
                't' => '\t',
                'u' => {
                    let digits: String = chars.by_ref().take(4).collect();
                    units.push(u16::from_str_radix(&digits, 16).expect("four digits"));
                    continue;
                }
                other => other,
            },
            c => c,
        };
        units.extend(c.encode_utf16(&mut [0; 2]).iter());
    }
    String::from_utf16(&units).expect("whole characters")
}

fn agrees_with_gdb(artifact: &str) {
    let snapshot = Snapshot::take("containers_cxx", artifact, true);
    let (everything, look) = (behind(&snapshot, "everything"), look(&snapshot));
    let expected = told_by_gdb(&snapshot);
    assert!(expected.len() > 100, "gdb said {}", snapshot.said);
    let mut compared = 0;
    for (name, expected) in expected {
        if OWN_WAY.contains(&name.as_str()) {
            continue;
        }
        let value = everything.member(&name, &look).expect("a member");
        let expected = expected.replace("True", "true").replace("False", "false");
        let found = match FIRST_PART
            .iter()
            .chain(&["weak_"])
            .any(|p| name.starts_with(p))
        {
            true => {
                let parts = container(&value, &look).entries(1, &look);
                format!("{{{}}}", flat(&parts.list[0].value, &look))
            }
            // gdb shows the array inside; that of no elements has no array.
            false if name.starts_with("array_") => format!("{{{}}}", flat(&value, &look)),
            false => flat(&value, &look),
        };
        assert_eq!(found, expected, "{name}");
        compared += 1;
    }
    assert!(compared > 85, "only {compared}");
}

#[test]
fn contents_are_those_that_gdb_finds() {
    agrees_with_gdb("containers_cxx_O0");
}

#[test]
fn contents_of_an_optimised_program_are_those_that_gdb_finds() {
    agrees_with_gdb("containers_cxx_O2");
}

#[test]
fn contents_with_the_old_abi_are_those_that_gdb_finds() {
    agrees_with_gdb("containers_cxx_old_abi");
}

#[test]
fn contents_described_in_type_units_are_those_that_gdb_finds() {
    agrees_with_gdb("containers_cxx_types");
}

fn line(value: &Value, snapshot: &Snapshot) -> String {
    render_with(value, &RenderOptions::default(), &look(snapshot))
}

#[test]
fn errors_are_what_the_program_says_of_them() {
    for artifact in [
        "containers_cxx_O0",
        "containers_cxx_O2",
        "containers_cxx_types",
    ] {
        let snapshot = Snapshot::take("containers_cxx", artifact, false);
        let (everything, look) = (behind(&snapshot, "everything"), look(&snapshot));
        let shown = |name: &str| {
            line(
                &everything.member(name, &look).expect("a member"),
                &snapshot,
            )
        };
        let lines = snapshot.printed.lines();
        let said: BTreeMap<&str, &str> = lines.filter_map(|l| l.split_once(" = ")).collect();
        for name in [
            "error_code_file",
            "error_code_system",
            "error_condition_busy",
        ] {
            let shown = shown(name);
            assert_eq!(
                shown.split_once(" = ").expect("a label").1,
                said[name],
                "{artifact}: {name}"
            );
        }
        assert_eq!(
            shown("error_code_none"),
            "std::error_code = {\"system\": 0}"
        );
        let prefix = "std::__exception_ptr::exception_ptr";
        assert_eq!(shown("exception_none"), format!("{prefix} [no exception]"));
        let number = format!("{prefix} containing int = {{{}}}", said["exception_number"]);
        assert_eq!(shown("exception_number"), number, "{artifact}");
        let of_type = format!("{prefix} containing std::runtime_error");
        assert!(
            shown("exception_runtime").starts_with(&of_type),
            "{artifact}"
        );
    }
}

#[test]
fn each_container_is_one_line() {
    let snapshot = Snapshot::take("containers_cxx", "containers_cxx_O0", false);
    let (everything, look) = (behind(&snapshot, "everything"), look(&snapshot));
    let expected = [
        ("string_empty", r#""""#),
        ("string_nul", r#""a\000b""#),
        ("string_quoted", r#""say \"hi\"\n\tback\\slash""#),
        ("string_wide", r#"L"wide""#),
        ("vector_empty", "std::vector of length 0"),
        ("vector_one", "std::vector of length 1 = {42}"),
        (
            "vector_points",
            "std::vector of length 2 = {{x = 1, y = 2}, {x = 3, y = 4}}",
        ),
        (
            "vector_nested",
            "std::vector of length 3 = {std::vector of length 2 = {1, 2}, std::vector of length 0, \
             std::vector of length 1 = {3}}",
        ),
        (
            "deque_strings",
            r#"std::deque of length 2 = {"front", "back"}"#,
        ),
        ("list_many", "std::list of length 3 = {1, 2, 3}"),
        ("forward_empty", "std::forward_list of length 0"),
        ("forward_many", "std::forward_list of length 3 = {4, 5, 6}"),
        ("map_empty", "std::map with 0 elements"),
        (
            "map_names",
            r#"std::map with 3 elements = {["one"] = 1, ["three"] = 3, ["two"] = 2}"#,
        ),
        ("set_many", "std::set of length 4 = {1, 7, 8, 9}"),
        (
            "hash_points",
            "std::unordered_map with 1 element = {[5] = {x = 6, y = 7}}",
        ),
        ("tuple_empty", "std::tuple = {}"),
        ("tuple_three", r#"std::tuple = {1, "two", 3.5}"#),
        ("optional_none", "std::optional [no contained value]"),
        ("optional_some", "std::optional = {5}"),
        ("variant_string", r#"std::variant [index 1] = {"text"}"#),
        ("any_empty", "std::any [no contained value]"),
        ("any_int", "std::any containing int = {17}"),
        ("unique_null", "std::unique_ptr = {get() = 0x0}"),
        ("weak_empty", "std::weak_ptr (empty) = {get() = 0x0}"),
        ("array_four", "std::array of length 4 = {1, 2, 3, 4}"),
        ("array_none", "std::array of length 0"),
        ("function_empty", "std::function [empty]"),
        ("function_plain", "std::function = {twice}"),
        ("atomic_int", "std::atomic = {33}"),
        ("atomic_bool", "std::atomic = {true}"),
        ("complex_double", "std::complex = 1.5 + -0.5i"),
        ("seconds", "std::chrono::duration = 90s"),
        ("milliseconds", "std::chrono::duration = 1500ms"),
        ("nanoseconds", "std::chrono::duration = 7ns"),
        ("minutes", "std::chrono::duration = 3min"),
        ("hours", "std::chrono::duration = -2h"),
        ("seconds_double", "std::chrono::duration = 0.25s"),
        ("bitset_small", "std::bitset of length 12 = 101000000101"),
        ("bitset_none", "std::bitset of length 0"),
        (
            "initializer",
            "std::initializer_list of length 3 = {1, 2, 3}",
        ),
        ("vector_iterator", "std::vector iterator -> 4"),
        ("map_iterator", "iterator -> {first = 0, second = 0}"),
    ];
    for (name, expected) in expected {
        let value = everything.member(name, &look).expect("a member");
        assert_eq!(line(&value, &snapshot), expected, "{name}");
    }
    let ends = [
        (
            "unique_int",
            "std::unique_ptr = {get() = 0x",
            ", *get() = 11}",
        ),
        (
            "shared_two",
            "std::shared_ptr (use count 2, weak count 1) = {get() = 0x",
            r#", *get() = "shared"}"#,
        ),
        (
            "weak_alive",
            "std::weak_ptr (use count 2, weak count 1) = {",
            r#""shared"}"#,
        ),
        (
            "weak_expired",
            "std::weak_ptr (expired, weak count 1) = {get() = 0x",
            "}",
        ),
        (
            "vector_300",
            "std::vector of length 300 = {0, 1, 2, ",
            ", 198, 199, ...}",
        ),
        ("string_long", "\"xxxx", "xxxx\"..."),
        (
            "function_lambda",
            "std::function = {Everything::Everything()::{lambda(int)#1}",
            "}",
        ),
    ];
    for (name, start, end) in ends {
        let value = everything.member(name, &look).expect("a member");
        let line = line(&value, &snapshot);
        assert!(
            line.starts_with(start) && line.ends_with(end),
            "{name}: {line}"
        );
    }
}

/// Without a count in the list nothing distinguishes its end.
fn doubt(name: &str) -> &'static str {
    match name {
        _ if !name.starts_with("list_") || name.contains("null") || name.contains("empty") => "",
        _ if name.contains("reverse") => " (or rend())",
        _ => " (or end())",
    }
}

fn iterators_point_to_elements(snapshot: &Snapshot, is_counted: bool) {
    let (iterators, look) = (behind(snapshot, "iterators"), look(snapshot));
    let lines = snapshot.printed.lines();
    let lines = lines.filter_map(|line| line.strip_prefix("iterator "));
    let members: Vec<(&str, &str)> = lines.filter_map(|l| l.split_once(" = ")).collect();
    assert_eq!(members.len(), 28, "{}", snapshot.printed);
    for (name, expected) in members {
        let value = iterators.member(name, &look).expect("a member");
        let label = match name.split_once('_').map_or(name, |(first, _)| first) {
            _ if name.contains("reverse") => "std::reverse_iterator",
            "list" => "std::list iterator",
            "vector" => "std::vector iterator",
            "bits" => "std::vector<bool> iterator",
            "deque" => "std::deque iterator",
            "moved" => "std::move_iterator",
            _ => "iterator",
        };
        let doubt = if is_counted { "" } else { doubt(name) };
        let expected = format!("{label} -> {expected}{doubt}");
        assert_eq!(line(&value, snapshot), expected, "{name}");
    }
}

fn iterators_of_no_element_show_none(snapshot: &Snapshot, is_counted: bool) {
    let (iterators, look) = (behind(snapshot, "iterators"), look(snapshot));
    let expected = [
        ("map_end", "iterator -> end()"),
        ("map_empty_end", "iterator -> end()"),
        ("map_null", "iterator [null]"),
        ("multimap_end", "iterator -> end()"),
        ("set_end", "iterator -> end()"),
        ("map_reverse_end", "std::reverse_iterator -> rend()"),
        ("map_empty_reverse", "std::reverse_iterator -> rend()"),
        ("list_doubtful", "std::list iterator -> 3 (or end())"),
        ("list_doubtful_end", "std::list iterator -> 3 (or end())"),
        ("list_odd_end", "std::list iterator -> end()"),
        ("list_empty_end", "std::list iterator -> end()"),
        ("list_null", "std::list iterator [null]"),
        ("list_strings_end", "std::list iterator -> end()"),
        ("list_reverse_end", "std::reverse_iterator -> rend()"),
        (
            "forward_first",
            "std::forward_list iterator -> 4 (or before_begin())",
        ),
        ("forward_end", "std::forward_list iterator -> end()"),
        ("hash_end", "iterator -> end()"),
        ("vector_null", "std::vector iterator [null]"),
        ("string", "std::string iterator -> 104 'h'"),
        (
            "inserter",
            "std::back_insert_iterator of std::vector of length 1 = {42}",
        ),
    ];
    for (name, expected) in expected {
        let value = iterators.member(name, &look).expect("a member");
        let shown = line(&value, snapshot);
        match doubt(name) {
            doubt if !is_counted && !doubt.is_empty() => {
                assert!(shown.ends_with(doubt), "{name}: {shown}");
            }
            _ => assert_eq!(shown, expected, "{name}"),
        }
    }
}

fn reverse_iterators_walk_back(snapshot: &Snapshot) {
    let look = look(snapshot);
    let elements = |holder: &str, name: &str| {
        let value = behind(snapshot, holder).member(name, &look);
        let entries = container(&value.expect("a member"), &look).entries(ALL, &look);
        assert_eq!(entries.error, None);
        entries.list
    };
    let shown = |name: &str| -> Vec<String> {
        let all = elements("iterators", name);
        all.iter().map(|e| line(&e.value, snapshot)).collect()
    };
    let pairs = elements("everything", "map_many");
    let pairs = pairs.iter().rev().map(|entry| {
        let key = entry.key.as_ref().expect("a key");
        let (key, value) = (line(key, snapshot), line(&entry.value, snapshot));
        format!("std::reverse_iterator -> {{first = {key}, second = {value}}}")
    });
    let pairs: Vec<String> = pairs.collect();
    assert_eq!(pairs.len(), 1000);
    assert_eq!(shown("map_all_reverse"), pairs);
    let numbers = elements("everything", "deque_many");
    let numbers = numbers.iter().rev();
    let numbers: Vec<String> = numbers
        .map(|e| format!("std::reverse_iterator -> {}", line(&e.value, snapshot)))
        .collect();
    assert_eq!(shown("deque_all_reverse"), numbers);
}

fn iterators_agree(artifact: &str) {
    let snapshot = Snapshot::take("containers_cxx", artifact, false);
    let is_counted = artifact != "containers_cxx_old_abi";
    iterators_point_to_elements(&snapshot, is_counted);
    iterators_of_no_element_show_none(&snapshot, is_counted);
    reverse_iterators_walk_back(&snapshot);
    iterators_do_not_guess(&snapshot);
}

#[test]
fn iterators_show_the_element_that_the_program_finds() {
    iterators_agree("containers_cxx_O0");
}

#[test]
fn iterators_of_an_optimised_program_show_the_element_that_it_finds() {
    iterators_agree("containers_cxx_O2");
}

#[test]
fn iterators_with_the_old_abi_show_the_element_or_a_doubt() {
    iterators_agree("containers_cxx_old_abi");
}

#[test]
fn iterators_described_in_type_units_show_the_element() {
    iterators_agree("containers_cxx_types");
}

#[test]
fn elements_are_found_by_number_and_by_key() {
    let snapshot = Snapshot::take("containers_cxx", "containers_cxx_O2", false);
    let (everything, look) = (behind(&snapshot, "everything"), look(&snapshot));
    let number = |name: &str, key: Key| {
        let value = everything.member(name, &look).expect("a member");
        let found = container(&value, &look).lookup(&key, &look);
        found.map(|v| v.as_integer().expect("a number"))
    };
    let text = |key: &str| Key::Text(key.to_owned());
    assert_eq!(number("vector_300", Key::Integer(299)), Ok(299));
    assert_eq!(number("deque_many", Key::Integer(349)), Ok(499));
    assert_eq!(number("list_many", Key::Integer(2)), Ok(3));
    assert_eq!(number("bits_many", Key::Integer(66)), Ok(1));
    assert_eq!(number("bits_many", Key::Integer(67)), Ok(0));
    assert_eq!(number("map_many", Key::Integer(999)), Ok(321));
    assert_eq!(number("map_names", text("three")), Ok(3));
    assert_eq!(number("hash_names", text("two")), Ok(2));
    assert_eq!(number("hash_many", Key::Integer(31 * 49)), Ok(49));
    assert_eq!(number("set_many", Key::Integer(8)), Ok(8));
    assert_eq!(number("optional_some", text("value")), Ok(5));
    assert_eq!(number("shared_two", text("use count")), Ok(2));
    assert_eq!(number("shared_two", text("weak count")), Ok(1));
    let missing = [
        (
            "vector_300",
            Key::Integer(300),
            "there is no element 300; there are 300",
        ),
        ("vector_300", Key::Integer(-1), "there is no element -1"),
        (
            "forward_many",
            Key::Integer(3),
            "there is no element 3; there are 3",
        ),
        ("map_names", text("four"), "there is no key \"four\""),
        ("map_many", Key::Integer(1000), "there is no key 1000"),
        ("vector_300", text("x"), "its elements have numbers"),
        ("optional_none", text("value"), "it has no part value"),
    ];
    for (name, key, expected) in missing {
        let why = number(name, key).expect_err("nothing is there");
        assert_eq!(why.to_string(), expected, "{name}");
    }
}
