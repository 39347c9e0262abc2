//! The prompt on a terminal.

use super::common::Folder;

#[test]
fn the_prompt_says_that_it_is_a_recording() {
    let folder = Folder::with_debugged();
    let text = folder.on_terminal(
        80,
        &["TERM=dumb"],
        &["repl", "debugged"],
        &[
            // The recording opens at the program's crash.
            ("recorded 25 t4243> ", "goto 5\n"),
            ("recorded 5 t4242 price> ", "alias g = goto\n"),
            ("price> ", "g 8\n"),
            ("recorded 8 t4242 price> ", "quit\n"),
        ],
    );
    assert!(text.contains("events of"), "{text}");
    assert_eq!(
        std::fs::read_to_string(folder.path(".config/hindsight/aliases")).unwrap(),
        "g = goto\n"
    );
    // The alias was saved, and scripts know it too.
    let next = folder.transcript(&["repl", "debugged", "--cmd", "g 5"]);
    assert!(next.contains("at event 5"), "{next}");
}

#[test]
fn ctrl_c_ends_a_long_question_and_not_the_prompt() {
    let folder = Folder::with_shop();
    let text = folder.on_terminal(
        80,
        &["TERM=xterm-256color", "NO_COLOR=1"],
        &["repl", "shop"],
        &[
            (
                "recorded ",
                "select count(*) from events a, events b, events c, events d, events e, events f\r",
            ),
            ("until:error: interrupted", "\x03"),
            (
                "recorded ",
                "continue where 0 < (select count(*) from events a, events b, events c, events d, events e, events f)\r",
            ),
            // Once: it does not begin again with the other table.
            ("Ctrl-C stops it", "\x03"),
            ("error: interrupted", ""),
            ("recorded ", "goto 5\r"),
            ("at event 5", ""),
            ("recorded 5 ", "quit\r"),
        ],
    );
    assert!(!text.contains("exit code"), "{text}");
}
