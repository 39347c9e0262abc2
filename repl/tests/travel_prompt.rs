//! The prompt of `hindsight repl` on a terminal: completion by Tab, search by Ctrl-R, history, pager, colours and
//! warnings. No typed text may be lost.

mod common;

use common::Folder;
use expect_test::expect;

/// A capable terminal without colours, so that texts can be found unchanged.
const PLAIN: [&str; 2] = ["TERM=xterm-256color", "NO_COLOR=1"];
/// A pager that runs until it receives a line.
const WAITING_PAGER: &str = "PAGER=cat; read line < /dev/tty";
/// A pager that marks its lines.
const MARKING_PAGER: &str = "PAGER=sed s/^/P:/";

/// Types at the prompt of `orders`, step by step.
fn typed(folder: &Folder, steps: &[(&str, &str)]) -> String {
    folder.on_terminal(80, &PLAIN, &["repl", "orders"], steps)
}

/// As [`typed`], at a terminal that cannot edit, which shows only the typed text and the answers.
fn typed_without_editing(folder: &Folder, steps: &[(&str, &str)]) -> String {
    folder.on_terminal(80, &["TERM=dumb"], &["repl", "orders"], steps)
}

/// Runs `hindsight ARGS` on a terminal with so few rows that a long answer goes to a pager.
fn paged(
    folder: &Folder,
    rows: usize,
    pager: &str,
    args: &[&str],
    steps: &[(&str, &str)],
) -> String {
    folder.on_terminal_of((80, rows), &[PLAIN[0], PLAIN[1], pager], args, steps)
}

/// Returns the saved history of the prompt.
fn kept_lines(folder: &Folder) -> Vec<String> {
    let kept = std::fs::read_to_string(folder.path(".local/share/hindsight/travel_history"));
    let kept = kept.unwrap();
    let lines = kept.lines().filter(|line| !line.starts_with('#'));
    lines.map(str::to_owned).collect()
}

#[test]
fn lines_are_kept_for_the_next_time_and_found_with_ctrl_r() {
    let folder = Folder::with_frozen(&["orders"]);
    let first = [
        ("recorded 0 ", "goto 13\r"),
        ("recorded 13 ", "goto 20\r"),
        ("recorded 20 ", "\x04"),
    ];
    typed(&folder, &first);
    let second = [
        ("recorded 0 ", "\x12to 1"),
        ("goto 13", "\r"),
        ("at event 13", ""),
        ("recorded 13 ", "\x1b[A\x1b[A"),
        ("goto 20", "\r"),
        ("at event 20", ""),
        ("recorded 20 ", "quit\r"),
    ];
    let text = typed(&folder, &second);
    assert!(text.contains("reverse-i-search"), "{text}");
    assert_eq!(
        kept_lines(&folder),
        ["goto 13", "goto 20", "goto 13", "goto 20", "quit"]
    );
}

#[test]
fn tab_completes_what_the_recording_has() {
    let folder = Folder::with_frozen(&["orders"]);
    let steps = [
        // A verb.
        ("recorded 0 ", "las\t"),
        ("last-write", "\x15got\t 19\r"),
        ("at event 19", ""),
        // A function.
        ("recorded 19 ", "break pr\t\r"),
        ("Breakpoint 1: price (1 function)", ""),
        // A file.
        ("recorded 19 ", "break orders\t50\r"),
        ("Breakpoint 2: orders.c:50 (1 function)", ""),
        // A variable of the frame, then of another frame.
        ("recorded 19 ", "print order->pieces + disc\t\r"),
        ("$1 = ", ""),
        ("recorded 19 ", "up\r"),
        ("recorded 19 ", "print sec\t\r"),
        ("$2 = 0x", ""),
        // A table.
        ("recorded 19 ", "select count(*) as n from exc\t\r"),
        ("(1 row)", ""),
        // All candidates.
        ("recorded 19 ", "break s\t\t"),
        ("say", ""),
        ("settle", "\x15goto \t\t"),
        ("first", ""),
        ("output:", "\x15quit\r"),
    ];
    let text = typed(&folder, &steps);
    assert!(!text.contains("error:"), "{text}");
    assert!(!text.contains("exit code"), "{text}");
}

#[test]
fn long_answers_are_paged_on_a_terminal_alone() {
    let folder = Folder::with_frozen(&["orders"]);
    let args = [
        "repl",
        "orders",
        "--cmd",
        "goto 19",
        "--cmd",
        "registers",
        "--cmd",
        "registers rip",
    ];
    let short = paged(&folder, 10, MARKING_PAGER, &args, &[]);
    let lines: Vec<&str> = short
        .lines()
        .filter(|line| line.starts_with("P:"))
        .collect();
    assert_eq!(
        lines.len(),
        22,
        "twenty registers and their heading: {short}"
    );
    assert!(lines[0].contains("Register | Value"), "{short}");
    // A short answer is not paged.
    assert!(
        short.ends_with(" rip      | 0x55a57873f2df | settle+12\n"),
        "{short}"
    );
    let tall = paged(&folder, 60, MARKING_PAGER, &args, &[]);
    assert!(!tall.contains("P:"), "{tall}");
    let mut command = folder.command(&args);
    let piped = command
        .env("PAGER", "sed s/^/P:/")
        .env("TERM", "xterm-256color");
    let piped = String::from_utf8(piped.output().unwrap().stdout).unwrap();
    assert!(piped.contains("Register | Value"), "{piped}");
    assert!(!piped.contains("P:"), "{piped}");
}

#[test]
fn colour_is_for_terminals() {
    let folder = Folder::with_frozen(&["orders"]);
    let args = [
        "repl",
        "orders",
        "--cmd",
        "goto 19",
        "--cmd",
        "registers rip",
        "--cmd",
        "frob",
    ];
    let coloured = folder.on_terminal(80, &["TERM=xterm-256color"], &args, &[]);
    assert!(coloured.contains("\x1b[1mRegister\x1b[0m"), "{coloured:?}");
    assert!(
        coloured.contains("\x1b[1;36m->\x1b[0m    36 |"),
        "{coloured:?}"
    );
    for variables in [&PLAIN[..], &["TERM=dumb"]] {
        let plain = folder.on_terminal(80, variables, &args, &[]);
        assert!(!plain.contains('\x1b'), "{plain:?}");
        assert!(plain.contains("->    36 |"), "{plain:?}");
    }
    let mut command = folder.command(&args);
    let piped = command.env("TERM", "xterm-256color").output().unwrap();
    let piped = String::from_utf8([piped.stdout, piped.stderr].concat()).unwrap();
    assert!(!piped.contains('\x1b'), "{piped:?}");
}

#[test]
fn modules_that_are_missing_are_told_of_first() {
    let folder = Folder::with_frozen(&["orders"]);
    let steps = [
        ("recorded 0 ", "goto 19\n"),
        ("recorded 19 t28464 settle> ", "quit\n"),
    ];
    let text = typed_without_editing(&folder, &steps);
    expect![[r#"
        70 events of /home/ada/orders/./orders; help lists the verbs, quit leaves
        note: the module /usr/lib/orders/libc.so.6 cannot be read: open /usr/lib/orders/libc.so.6: No such file or directory (os error 2)
        note: the module /usr/lib/orders/ld-linux-x86-64.so.2 cannot be read: open /usr/lib/orders/ld-linux-x86-64.so.2: No such file or directory (os error 2)
        recorded 0 t28464> goto 19
        Thread 28464 (orders) at event 19, pause: breakpoint 3: settle at /home/ada/orders/orders.c:36
        ->    36 |   int discount = order->pieces > 3;
        recorded 19 t28464 settle> quit
    "#]].assert_eq(&text);
}

#[test]
fn lines_that_are_typed_while_a_verb_runs_come_next() {
    let folder = Folder::with_frozen(&["orders"]);
    let steps = [
        ("recorded 0 ", "goto 19\r"),
        ("recorded 19 ", "registers\r"),
        ("gs_base", "go on\ngoto 13\ngoto 20\n"),
        ("at event 13", ""),
        ("at event 20", ""),
        ("recorded 20 ", "quit\r"),
    ];
    let text = paged(&folder, 10, WAITING_PAGER, &["repl", "orders"], &steps);
    assert!(!text.contains("error:"), "{text}");
    assert!(kept_lines(&folder).ends_with(&["goto 13", "goto 20", "quit"].map(str::to_owned)));
}

#[test]
fn an_end_that_is_typed_while_a_verb_runs_ends_the_prompt() {
    let folder = Folder::with_frozen(&["orders"]);
    let steps = [
        ("recorded 0 ", "goto 19\r"),
        ("recorded 19 ", "registers\r"),
        ("gs_base", "go on\ngoto 13\n\x04"),
        ("at event 13", ""),
    ];
    let text = paged(&folder, 10, WAITING_PAGER, &["repl", "orders"], &steps);
    assert!(!text.contains("exit code"), "{text}");
}

#[test]
fn statements_that_are_typed_while_a_question_is_answered_come_next() {
    let folder = Folder::with_shop();
    let steps = [
        ("hindsight> ", "select seq from events limit 20;\r"),
        (
            "(20 rows)",
            "go on\nselect 7 +\n 4 as eleven;\nselect 5 * 5 as square;\nselect 6 *",
        ),
        ("     11", ""),
        ("     25", ""),
        ("select 6 *", " 6 as six;\r"),
        ("  36", ""),
        ("hindsight> ", "\x04"),
    ];
    let text = paged(&folder, 10, WAITING_PAGER, &["sql", "shop"], &steps);
    assert!(!text.contains("error:"), "{text}");
}

/// The lines arrive as if typed by a script, which waits for nothing.
#[test]
fn lines_that_arrive_at_once_run_in_turn() {
    let folder = Folder::with_frozen(&["orders"]);
    let steps = [
        (
            "recorded 0 ",
            "goto 13\rfrob\rgoto 20\rselect 6 * 7 as answer;\rquit\r",
        ),
        ("at event 13", ""),
        ("there is no verb", ""),
        ("at event 20", ""),
        ("     42", ""),
        ("recorded 20 ", ""),
    ];
    let text = typed(&folder, &steps);
    assert!(!text.contains("exit code"), "{text}");
    let lines = [
        "goto 13",
        "frob",
        "goto 20",
        "select 6 * 7 as answer;",
        "quit",
    ];
    assert_eq!(kept_lines(&folder), lines);
}

#[test]
fn several_pasted_lines_run_in_turn_up_to_one_that_fails() {
    let folder = Folder::with_frozen(&["orders"]);
    let pasted = "\x1b[200~goto 13\nselect 7 +\n 4 as eleven;\ngoto 20\nfrob\ngoto 30\x1b[201~\r";
    let steps = [
        ("recorded 0 ", pasted),
        ("at event 13", ""),
        ("     11", ""),
        ("at event 20", ""),
        ("there is no verb", ""),
        ("recorded 20 ", "quit\r"),
    ];
    let text = typed(&folder, &steps);
    assert!(!text.contains("at event 30"), "{text}");
}

#[test]
fn aliases_that_cannot_be_kept_are_told_of() {
    let folder = Folder::with_frozen(&["orders"]);
    std::fs::create_dir(folder.path(".config")).unwrap();
    std::os::unix::fs::symlink("nowhere", folder.path(".config/hindsight")).unwrap();
    let steps = [
        ("recorded 0 ", "alias g = goto\n"),
        ("recorded 0 ", "g 13\n"),
        ("recorded 13 ", "unalias g\n"),
        ("recorded 13 ", "quit\n"),
    ];
    let text = typed_without_editing(&folder, &steps);
    expect![[r#"
        70 events of /home/ada/orders/./orders; help lists the verbs, quit leaves
        note: the module /usr/lib/orders/libc.so.6 cannot be read: open /usr/lib/orders/libc.so.6: No such file or directory (os error 2)
        note: the module /usr/lib/orders/ld-linux-x86-64.so.2 cannot be read: open /usr/lib/orders/ld-linux-x86-64.so.2: No such file or directory (os error 2)
        recorded 0 t28464> alias g = goto
        error: cannot write FOLDER/.config/hindsight/aliases: File exists
        recorded 0 t28464> g 13
        Thread 28464 (orders) at event 13, entry of ordered: ordered at /home/ada/orders/orders.c:49
        ->    49 | struct order *ordered(int id, int pieces, double each, const char *customer) {
        recorded 13 t28464 ordered> unalias g
        error: cannot write FOLDER/.config/hindsight/aliases: File exists
        recorded 13 t28464 ordered> quit
    "#]].assert_eq(&text);
}

#[test]
fn what_is_no_text_ends_the_prompt() {
    let folder = Folder::with_frozen(&["orders"]);
    let steps = [("recorded 0 ", "hex:676f746f20ff0a")];
    let text = typed_without_editing(&folder, &steps);
    expect![[r#"
        70 events of /home/ada/orders/./orders; help lists the verbs, quit leaves
        note: the module /usr/lib/orders/libc.so.6 cannot be read: open /usr/lib/orders/libc.so.6: No such file or directory (os error 2)
        note: the module /usr/lib/orders/ld-linux-x86-64.so.2 cannot be read: open /usr/lib/orders/ld-linux-x86-64.so.2: No such file or directory (os error 2)
        recorded 0 t28464> goto �
        error: cannot use the terminal: stream did not contain valid UTF-8
        --- exit code 1
    "#]].assert_eq(&text);
}
