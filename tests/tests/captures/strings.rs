//! Texts that arguments point to, where functions are entered.
//! Of several builds of a program each run takes a part; `WHOLE=1` all.

use e2e::in_turn;

use super::{recorded, texts, values};

#[test]
fn texts_of_c_are_known_where_functions_are_entered() {
    for artifact in in_turn(["captured_O0", "captured_O2"]) {
        let comparison = recorded(artifact, &["--strings"]);
        let recording = &comparison.recording;
        let seen = values(recording, "push", "start_seq", "text");
        let ends: Vec<&str> = seen
            .iter()
            .map(|text| text.split_once(' ').unwrap().1)
            .collect();
        let expected = [
            "\"alpha\"",
            "\"beta\"",
            "\"\"",
            "\"a text that is longer than the others\"",
        ];
        assert_eq!(ends, expected, "{artifact}");
        // A null pointer is shown as a pointer; a string without an end is known as far as it was captured.
        let odd = values(recording, "odd_pointer", "start_seq", "text");
        assert_eq!(odd[0], "0x0");
        assert!(odd[1].starts_with("0x10"), "{odd:?}");
        let length = "SELECT mem(start_seq, a0, 256) IS NOT NULL AS value FROM calls \
                      WHERE function = 'odd_pointer' AND a0 > 4096";
        assert_eq!(texts(recording, length), ["true"]);
    }
}

#[test]
fn texts_of_cxx_and_rust_are_known_where_functions_are_entered() {
    let comparison = recorded("captured_cxx", &["--strings"]);
    let long = format!("\"{}\"", "y".repeat(40));
    for (function, expected) in [
        ("by_reference", vec!["\"brief\"".to_owned(), long.clone()]),
        ("by_value", vec![long]),
        ("view", vec!["\"a view\"".to_owned()]),
        ("view_second", vec!["\"second\"".to_owned()]),
    ] {
        let seen = values(&comparison.recording, function, "start_seq", "text");
        assert_eq!(seen, expected, "{function}");
    }
    for artifact in in_turn(["captured_rust_O0", "captured_rust"]) {
        let comparison = recorded(artifact, &["--strings"]);
        for (name, expected) in [
            ("slice", "\"sliced\""),
            ("second", "\"grüße\""),
            ("borrowed", "&\"borrowed text\""),
            ("owned", "\"owned text\""),
        ] {
            let sql = format!(
                "SELECT value(start_seq, 'text') AS value FROM calls WHERE function LIKE '%::{name}'"
            );
            let seen = texts(&comparison.recording, &sql);
            assert_eq!(seen, [expected], "{artifact}: {name}");
        }
    }
}
