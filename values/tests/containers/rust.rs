//! Containers of Rust's std, against what the program itself prints.

use values::containers::{Container, Key};
use values::{RenderOptions, render_with};

use crate::common::{behind, container, look};
use crate::snapshot::Snapshot;

fn agrees_with_debug(artifact: &str) {
    let snapshot = Snapshot::take("containers_rust", artifact, false);
    let (everything, look) = (behind(&snapshot, "EVERYTHING"), look(&snapshot));
    let lines = snapshot.printed.lines();
    let lines = lines.filter(|line| !line.starts_with("begun "));
    let members: Vec<(&str, &str)> = lines.filter_map(|l| l.split_once(" = ")).collect();
    assert!(members.len() > 100, "{}", snapshot.printed);
    let differences: Vec<String> = members
        .iter()
        .filter_map(|(name, expected)| {
            let value = everything.member(name, &look).expect("a member");
            let found = render_with(&value, &RenderOptions::default(), &look);
            // A reference keeps its sign, which Debug leaves out.
            let found = match name.starts_with("reference") {
                true => found.strip_prefix('&').expect("a sign").to_owned(),
                false => found,
            };
            (found != *expected).then(|| format!("{name}: {found}\n  expected {expected}"))
        })
        .collect();
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn text_is_what_debug_prints() {
    agrees_with_debug("containers_rust_O0");
}

#[test]
fn text_of_an_optimised_program_is_what_debug_prints() {
    agrees_with_debug("containers_rust_O2");
}

#[test]
fn iterators_show_what_is_left_and_handles_what_threads_returned() {
    for artifact in ["containers_rust_O0", "containers_rust_O2"] {
        let snapshot = Snapshot::take("containers_rust", artifact, false);
        let (begun, look) = (behind(&snapshot, "BEGUN"), look(&snapshot));
        let lines = snapshot.printed.lines();
        let lines = lines.filter_map(|line| line.strip_prefix("begun "));
        let members: Vec<(&str, &str)> = lines.filter_map(|l| l.split_once(" = ")).collect();
        assert_eq!(members.len(), 10, "{}", snapshot.printed);
        for (name, expected) in members {
            let value = begun.member(name, &look).expect("a member");
            let found = render_with(&value, &RenderOptions::default(), &look);
            assert_eq!(found, expected, "{artifact}: {name}");
        }
    }
}

#[test]
fn what_debug_does_not_tell_is_shown_too() {
    let snapshot = Snapshot::take("containers_rust", "containers_rust_O2", false);
    let (everything, look) = (behind(&snapshot, "EVERYTHING"), look(&snapshot));
    let line = |name: &str| {
        let value = everything.member(name, &look).expect("a member");
        render_with(&value, &RenderOptions::default(), &look)
    };
    let long = line("vec_long");
    assert!(
        long.starts_with("[0, 1, 2, ") && long.ends_with(", 198, 199, ...]"),
        "{long}"
    );
    assert_eq!(line("string_longer"), format!("\"{}\"...", "y".repeat(200)));
    assert_eq!(line("weak_alive"), "(Weak, strong: 1)");
    assert_eq!(line("weak_never"), "(Weak)");
    assert_eq!(line("os_invalid"), r#""bad \xFF end""#);
    let part = |name: &str, part: &str| {
        let value = everything.member(name, &look).expect("a member");
        let found = container(&value, &look).lookup(&Key::Text(part.to_owned()), &look);
        found.expect("a part").as_integer().expect("a number")
    };
    assert_eq!(part("rc_shared", "strong"), 1);
    assert_eq!(part("rc_shared", "weak"), 1);
    assert_eq!(part("arc_point", "strong"), 1);
    assert_eq!(part("arc_point", "weak"), 0);
}

#[test]
fn elements_are_found_by_number_and_by_key() {
    let snapshot = Snapshot::take("containers_rust", "containers_rust_O0", false);
    let (everything, look) = (behind(&snapshot, "EVERYTHING"), look(&snapshot));
    let of = |name: &str| -> Container {
        let value = everything.member(name, &look).expect("a member");
        container(&value, &look)
    };
    let number = |name: &str, key: Key| {
        let found = of(name).lookup(&key, &look);
        found.map(|v| v.as_integer().expect("a number"))
    };
    let text = |key: &str| Key::Text(key.to_owned());
    assert_eq!(number("vec_long", Key::Integer(999)), Ok(999));
    assert_eq!(number("deque_wrapped", Key::Integer(7)), Ok(12));
    assert_eq!(number("slice", Key::Integer(2)), Ok(9));
    assert_eq!(number("list_many", Key::Integer(1)), Ok(2));
    assert_eq!(number("map_many", Key::Integer(7 * 149)), Ok(149));
    assert_eq!(number("map_one", text("a")), Ok(1));
    assert_eq!(number("btree_many", Key::Integer(179)), Ok(1790));
    assert_eq!(
        number("string_short", Key::Integer(0)),
        Ok(i128::from(b's'))
    );
    assert_eq!(
        of("set_strings").lookup(&text("only"), &look).map(|_| ()),
        Ok(())
    );
    assert_eq!(of("btree_churned").len(&look), Some(Ok(112)));
    assert!(of("map_one").is_keyed() && !of("vec_one").is_keyed());
    assert!(of("boxed").len(&look).is_none());
    let entries = of("map_nested").entries(1, &look);
    assert_eq!(entries.list[0].name, "[\"list\"]");
    let why = number("vec_one", Key::Integer(1)).expect_err("there is one");
    assert_eq!(why.to_string(), "there is no element 1; there are 1");
    let why = number("map_one", text("b")).expect_err("there is one");
    assert_eq!(why.to_string(), "there is no key \"b\"");
}
