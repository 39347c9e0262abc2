//! Containers of libc++, against what the program itself prints of them.

use std::collections::BTreeSet;

use debuginfo::value::Value;
use values::containers::{Key, room};
use values::{RenderOptions, render_with};

use crate::common::{behind, container, iterators_do_not_guess, look};
use crate::snapshot::Snapshot;

fn line(value: &Value, snapshot: &Snapshot) -> String {
    render_with(value, &RenderOptions::default(), &look(snapshot))
}

fn agrees_with_the_program(artifact: &str) {
    let snapshot = Snapshot::take("containers_libcxx", artifact, false);
    let look = look(&snapshot);
    let mut differences = Vec::new();
    for holder in ["everything", "iterators"] {
        let whole = behind(&snapshot, holder);
        let members = whole.ty.strip().members();
        let mut names: BTreeSet<&str> = members.iter().filter_map(|m| m.name.as_deref()).collect();
        let lines = snapshot.printed.lines();
        for line_of in lines.filter_map(|line| line.strip_prefix(holder)) {
            let (name, expected) = line_of.trim_start().split_once(" = ").expect("a line");
            assert!(names.remove(name), "{name} is a member, and said once");
            let value = whole.member(name, &look).expect("a member");
            let found = line(&value, &snapshot);
            if found != expected {
                differences.push(format!("{name}: {found}\n  expected {expected}"));
            }
        }
        // The program cannot say where an expired pointer points.
        names.remove("weak_expired");
        assert_eq!(names, BTreeSet::new(), "{artifact}: every member is said");
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    let expired = behind(&snapshot, "everything").member("weak_expired", &look);
    let expired = line(&expired.expect("a member"), &snapshot);
    let start = "std::weak_ptr (expired, weak count 1) = {get() = 0x";
    assert!(expired.starts_with(start), "{expired}");
    iterators_do_not_guess(&snapshot);
}

#[test]
fn text_is_what_the_program_prints() {
    agrees_with_the_program("containers_libcxx_O0");
}

#[test]
fn text_of_an_optimised_program_is_what_it_prints() {
    agrees_with_the_program("containers_libcxx_O2");
}

#[test]
fn elements_are_found_by_number_and_by_key() {
    let snapshot = Snapshot::take("containers_libcxx", "containers_libcxx_O0", false);
    let (everything, look) = (behind(&snapshot, "everything"), look(&snapshot));
    let number = |name: &str, key: Key| {
        let value = everything.member(name, &look).expect("a member");
        let found = container(&value, &look).lookup(&key, &look);
        found.map(|v| v.as_integer().expect("a number"))
    };
    let text = |key: &str| Key::Text(key.to_owned());
    assert_eq!(number("vector_many", Key::Integer(19)), Ok(361));
    assert_eq!(number("deque_many", Key::Integer(24)), Ok(1024));
    assert_eq!(number("list_many", Key::Integer(2)), Ok(3));
    assert_eq!(number("bits_many", Key::Integer(66)), Ok(1));
    assert_eq!(number("bits_many", Key::Integer(67)), Ok(0));
    assert_eq!(number("map_names", text("three")), Ok(3));
    assert_eq!(number("hash_names", text("two")), Ok(2));
    assert_eq!(number("hash_many", Key::Integer(31 * 49)), Ok(49));
    assert_eq!(number("optional_some", text("value")), Ok(5));
    assert_eq!(number("shared_two", text("use count")), Ok(2));
    assert_eq!(number("shared_two", text("weak count")), Ok(1));
    let why = number("forward_many", Key::Integer(3)).expect_err("there are three");
    assert_eq!(why.to_string(), "there is no element 3; there are 3");
}

#[test]
fn long_strings_can_be_written_in_place() {
    let snapshot = Snapshot::take("containers_libcxx", "containers_libcxx_O0", false);
    let (everything, look) = (behind(&snapshot, "everything"), look(&snapshot));
    let member = |name: &str| everything.member(name, &look).expect("a member");
    let (long, short) = (member("string_long"), member("string_short"));
    let found = room(&long, &look)
        .expect("a string")
        .expect("a long string");
    let own = long.address().expect("it lies in memory");
    assert_eq!(found.len_at, own + 8);
    assert!((150..256).contains(&found.capacity), "{found:?}");
    assert!(found.is_terminated && !found.is_utf8);
    assert_eq!(Some(found.start), container(&long, &look).start());
    let why = room(&short, &look)
        .expect("a string")
        .expect_err("a short one");
    assert_eq!(why.to_string(), "its length is a part of a byte");
}
