//! Bytes that are not valid containers: an error, no endless walk, no allocation sized by a length from memory.

use debuginfo::value::Value;
use values::containers::Container;
use values::{RenderOptions, render_with};

use crate::common::{ALL, behind, look};
use crate::snapshot::Snapshot;

/// Visits all of a container in every way, and returns the text.
fn exhaust(value: &Value, snapshot: &Snapshot) -> String {
    let look = look(snapshot);
    if let Some(Ok(container)) = Container::of(value, &look) {
        let entries = container.entries(ALL, &look);
        assert!(entries.list.len() <= ALL);
        let _ = container.len(&look);
        let _ = container.at(u64::MAX, &look);
        let _ = container.at(5, &look);
    }
    render_with(value, &RenderOptions::default(), &look)
}

fn all_end(fixture: &str, artifact: &str, name: &str, expected: &[(&str, &str)]) {
    let snapshot = Snapshot::take(fixture, artifact, false);
    let damaged = behind(&snapshot, name);
    let look = look(&snapshot);
    let members = damaged.ty.strip().members();
    let mut names = members.iter().filter_map(|m| m.name.as_deref());
    for (name, part) in expected {
        assert!(names.any(|n| n == *name), "{name} is the next member");
        let value = damaged.member(name, &look).expect("a member");
        let text = exhaust(&value, &snapshot);
        assert!(text.len() < 1 << 16, "{name}: {} bytes", text.len());
        assert!(text.contains(part), "{name}: {text}");
    }
    assert_eq!(names.next(), None, "every member is compared");
}

#[test]
fn containers_of_cpp_end_with_an_error() {
    let expected = [
        ("string", "corrupt"),
        ("vector_huge", "corrupt"),
        ("vector_backwards", "corrupt"),
        ("vector_unmapped", "no memory at 0x1230"),
        ("bits", "of length 0"),
        ("list_loop", "corrupt"),
        ("list_null", "no memory"),
        ("forward_loop", "corrupt"),
        ("map_loop", "corrupt"),
        ("map_null", "corrupt"),
        ("set_count", "corrupt"),
        ("deque", "corrupt"),
        ("hash_loop", "corrupt"),
        ("hash_count", "corrupt"),
        ("variant", "corrupt"),
        ("optional", "corrupt"),
        ("shared", "no memory"),
        ("any", "no function is known"),
        ("function", "no function is known"),
        ("map_unmapped", "<unknown: no memory at 0x1230> {"),
        ("map_itself", "is in no tree"),
        ("map_nowhere", "is in no tree"),
        ("map_reverse", "is in no tree"),
        ("list_apart", "does not lead back"),
        ("list_ring", "none of the 2 nodes is the end of a list"),
        ("hash_unmapped", "no memory at 0x123"),
        ("deque_nowhere", "is no element of the block"),
        ("bit", "corrupt: bit"),
    ];
    all_end("containers_cxx", "containers_cxx_O0", "damaged", &expected);
}

#[test]
fn containers_of_libcxx_end_with_an_error() {
    let expected = [
        ("string_long", "corrupt"),
        ("string_short", "corrupt: 100 characters in room for 22"),
        ("vector_huge", "corrupt"),
        ("vector_backwards", "corrupt"),
        ("vector_unmapped", "no memory at 0x1230"),
        ("bits", "corrupt"),
        ("list_loop", "corrupt"),
        ("list_null", "no memory"),
        ("forward_loop", "corrupt"),
        ("map_loop", "corrupt"),
        ("map_null", "corrupt"),
        ("set_count", "corrupt"),
        ("deque", "corrupt"),
        ("deque_garbage", "corrupt"),
        ("hash_loop", "corrupt"),
        ("hash_count", "corrupt"),
        ("variant", "corrupt"),
        ("optional", "corrupt"),
        ("shared", "no memory"),
        ("any", "no function is known"),
        ("function", "no memory"),
        ("map_unmapped", "<unknown: no memory at 0x1228> {"),
        ("map_itself", "is in no tree"),
        ("map_nowhere", "is in no tree"),
        ("map_reverse", "is in no tree"),
        ("list_apart", "does not lead back"),
        ("list_ring", "none of the 2 nodes is the end of a list"),
        ("hash_unmapped", "no memory at 0x124"),
        ("deque_nowhere", "no memory"),
        ("bit", "corrupt: bit"),
    ];
    let program = "containers_libcxx_O0";
    all_end("containers_libcxx", program, "damaged", &expected);
}

#[test]
fn containers_of_rust_end_with_an_error() {
    let expected = [
        ("string", "corrupt"),
        ("string_unmapped", "no memory"),
        ("string_invalid", r"bad \xFF\xFE end"),
        ("vec_huge", "corrupt"),
        ("vec_unmapped", "no memory"),
        ("deque", "corrupt"),
        ("list_loop", "no memory"),
        ("map_huge", "corrupt"),
        ("map_count", "corrupt"),
        ("btree_huge", "corrupt"),
        ("btree_loop", "corrupt"),
        ("str_huge", "corrupt"),
        ("slice_huge", "corrupt"),
        ("boxed", ""),
        ("boxed_dyn", "is of no known type"),
        ("rc", ""),
        ("duration", "corrupt"),
        ("shape", ""),
    ];
    all_end(
        "containers_rust",
        "containers_rust_O0",
        "DAMAGED",
        &expected,
    );
}
