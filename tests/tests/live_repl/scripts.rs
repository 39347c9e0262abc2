//! Lines from files, and answers as JSON.

use std::path::Path;

use e2e::Live;

use super::{assert_in_order, code, program, repl};

#[test]
fn scripts_name_the_file_and_the_line_that_fails() {
    let live = Live::new("repl-script");
    let script = "# what is there?\nalias px = print --format hex\npx by\n\nfrob\nprint nobody\nquit\nprint 1\n";
    std::fs::write(live.scratch.join("look.txt"), script).expect("the folder is writable");
    let ended = live
        .command(&[
            "repl",
            "--break",
            "bump",
            &program(),
            "--script",
            "look.txt",
        ])
        .run();
    assert_in_order(&ended.text(), &["bump at ", "$1 = 0x1\n"]);
    assert_in_order(
        &ended.errors(),
        &[
            "error: there is no verb \"frob\"",
            "  at look.txt:5: frob (exit code 2)\n",
            "error: no variable \"nobody\" here\n",
            "  at look.txt:6: print nobody (exit code 1)\n",
        ],
    );
    assert_eq!(code(&ended), 1, "that of the last that failed");
    let piped = live
        .command(&["repl", "--break", "bump", &program()])
        .stdin("print by\nprint nobody\n")
        .run();
    assert_in_order(&piped.text(), &["$1 = 1\n"]);
    assert_in_order(
        &piped.errors(),
        &["  at stdin:2: print nobody (exit code 1)\n"],
    );
}

#[test]
fn json_is_the_daemons_answer_line_by_line() {
    let live = Live::new("repl-json");
    live.start(&["--break", "bump"], Path::new(&program()), &[]);
    let line = repl(&live, &["--json"], &["print by"]);
    let command = live.command(&["print", "--json", "by"]).run();
    let next = command.text().replace("\"number\": 2", "\"number\": 1");
    assert_eq!(line.text(), next);
    let failed = repl(
        &live,
        &["--json"],
        &["goto 99999", "goto first", "set by 3"],
    );
    assert_in_order(
        &failed.text(),
        &["\"NO_EVENT\"", "\"session\": 1", "\"NOT_ALLOWED\""],
    );
    let errors = failed.errors();
    assert!(!errors.contains("at --cmd"), "{errors}");
    assert_eq!(code(&failed), 1);
}
