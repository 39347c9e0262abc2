//! The SQL prompt and scripts: statements on stdin, and typing at a pseudo terminal.

mod common;

use common::Folder;
use expect_test::{Expect, expect};

/// A capable terminal without colours, so that texts can be found unchanged.
const PLAIN: [&str; 2] = ["TERM=xterm-256color", "NO_COLOR=1"];

fn check_script(stdin: &str, expected: Expect) {
    expected.assert_eq(&Folder::with_shop().transcript_with(&["sql", "shop"], stdin));
}

fn typed(folder: &Folder, steps: &[(&str, &str)]) -> String {
    folder.on_terminal(80, &PLAIN, &["sql", "shop"], steps)
}

/// Returns the saved history of the prompt.
fn history(folder: &Folder) -> String {
    std::fs::read_to_string(folder.path(".local/share/hindsight/history")).unwrap()
}

/// Types lines at a terminal that cannot edit, which shows only the typed text and the answers.
fn check_lines(lines: &[&str], expected: Expect) {
    let typed: Vec<String> = lines.iter().map(|line| format!("{line}\n")).collect();
    let steps: Vec<(&str, &str)> = typed
        .iter()
        .map(|line| ("hindsight> ", line.as_str()))
        .collect();
    let folder = Folder::with_shop();
    let text = folder.on_terminal(80, &["TERM=dumb"], &["sql", "shop"], &steps);
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    expected.assert_eq(&text);
}

#[test]
fn a_script_runs_to_its_end_and_needs_no_last_semicolon() {
    check_script(
        "select 1 as a;\n\\d gaps\nselect\n  2 as b",
        expect![[r#"
             a
            ---
             1

             column | type  | meaning
            --------+-------+-----------------------------------------------------------
             seq    | int64 | number in the recording's order
             ts_ns  | int64 | time, ns since the recording began
             tid    | int32 | thread that lost them; null when not known
             lost   | int64 | how many events, or copies of memory; null when not known
             reason | text  | why

             b
            ---
             2
        "#]],
    );
}

#[test]
fn a_script_stops_at_its_first_error_and_names_the_line() {
    check_script(
        "select 1 as a;\n\n\\timing off\nselect\n  nope from calls;\nselect 2",
        expect![[r#"
             a
            ---
             1
            times are not shown

            --- stderr
            error: there is no column "nope"
              5 |   nope from calls
                |   ^^^^
            --- exit code 2
        "#]],
    );
}

#[test]
fn a_script_may_change_the_form() {
    check_script(
        "\\format csv\nselect 1 as a; select 2 as b;\nquit\nselect 3",
        expect![[r#"
            the format is csv
            a
            1
            b
            2
        "#]],
    );
}

#[test]
fn an_empty_script_is_no_error() {
    check_script("", expect![[""]]);
    check_script("-- nothing\n\n", expect![[""]]);
}

#[test]
fn a_dash_reads_stdin_too() {
    let transcript =
        Folder::with_shop().transcript_with(&["sql", "shop", "-", "-f", "csv"], "select 1 as a;");
    expect![[r#"
        a
        1
    "#]]
    .assert_eq(&transcript);
}

#[test]
fn the_prompt_answers_and_goes_on_after_errors() {
    let lines = [
        "select 1 as a;",
        "select nope;",
        "\\dt",
        "helo",
        ".tables",
        "\\rows 2",
        "\\x",
        "quit",
    ];
    check_lines(
        &lines,
        expect![[r#"
            shop.hindsight: 153 events in 2.9 ms; \d lists the tables, "help" says more
            hindsight> select 1 as a;
             a
            ---
             1
            (1 row)
            hindsight> select nope;
            error: there is no column "nope"
              1 | select nope
                |        ^^^^
            hindsight> \dt
             table         | holds
            ---------------+----------------------------------------------------------------
             calls         | one row per call of a traced function, in order of its end
             events        | one row per observed fact, numbered by seq
             report        | one row per called function: its time without what recording
                           | cost
             functions     | one row per traced function
             modules       | one row per ELF file that was mapped
             threads       | one row per thread id
             output        | one row per write to stdout or stderr, or 4,096 bytes of it
             gaps          | one row per place where events were lost, or copies of memory
                           | left out
             probes        | one row per function that the filter selects, and per live
                           | probe
             pauses        | one row per stop of a thread
             logpoints     | one row per message of a logpoint
             writes        | one row per change made from outside the program, and per
                           | logged write of its own
             exceptions    | one row per exception, panic or signal that was seen: live, or
                           | as it ended the program
             syscalls      | one row per system call; recorded with --syscalls or --full
             files         | one row per file descriptor, from its opening to its closing;
                           | recorded with --syscalls or --full
             processes     | the recorded process, and one row per process that it made;
                           | how these ended is recorded with --syscalls or --full
             allocations   | one row per block of the heap and per mapping; recorded with
                           | --memory
             locks         | one row per time that a thread wanted a lock, or waited for a
                           | condition or a semaphore; recorded with --locks
             instructions  | one row per instruction that was executed; recorded with
                           | --full
             lines         | one row each time that a thread begins a source line; recorded
                           | with --full
             memory_writes | one row per write to memory, of the program or the kernel;
                           | recorded with --full
             memory_reads  | one row per read of memory; recorded with --full
             notes         | one row per note: recorded ones, and those added since
             runs          | one row per recording that is asked, from its small files
                           | alone
             function that gives a table         | holds
            -------------------------------------+------------------------------------------
             backtrace(seq)                      | one row per frame of the event's thread
                                                 | just after it, the innermost first
             locals(seq)                         | one row per variable in scope of the
                                                 | event's thread just after it
             history('EXPRESSION'[, 'FUNCTION']) | one row per change of a value that the
                                                 | recording shows
             diff_functions('A', 'B')            | one row per function that two recordings
                                                 | have, with what differs
             diff_calls('A', 'B')                | one row per call that differs in two
                                                 | recordings, at most 10,000
            hindsight> helo
            error: there is no command helo
            help: did you mean help?
            hindsight> .tables
             table         | holds
            ---------------+----------------------------------------------------------------
             calls         | one row per call of a traced function, in order of its end
             events        | one row per observed fact, numbered by seq
             report        | one row per called function: its time without what recording
                           | cost
             functions     | one row per traced function
             modules       | one row per ELF file that was mapped
             threads       | one row per thread id
             output        | one row per write to stdout or stderr, or 4,096 bytes of it
             gaps          | one row per place where events were lost, or copies of memory
                           | left out
             probes        | one row per function that the filter selects, and per live
                           | probe
             pauses        | one row per stop of a thread
             logpoints     | one row per message of a logpoint
             writes        | one row per change made from outside the program, and per
                           | logged write of its own
             exceptions    | one row per exception, panic or signal that was seen: live, or
                           | as it ended the program
             syscalls      | one row per system call; recorded with --syscalls or --full
             files         | one row per file descriptor, from its opening to its closing;
                           | recorded with --syscalls or --full
             processes     | the recorded process, and one row per process that it made;
                           | how these ended is recorded with --syscalls or --full
             allocations   | one row per block of the heap and per mapping; recorded with
                           | --memory
             locks         | one row per time that a thread wanted a lock, or waited for a
                           | condition or a semaphore; recorded with --locks
             instructions  | one row per instruction that was executed; recorded with
                           | --full
             lines         | one row each time that a thread begins a source line; recorded
                           | with --full
             memory_writes | one row per write to memory, of the program or the kernel;
                           | recorded with --full
             memory_reads  | one row per read of memory; recorded with --full
             notes         | one row per note: recorded ones, and those added since
             runs          | one row per recording that is asked, from its small files
                           | alone
             function that gives a table         | holds
            -------------------------------------+------------------------------------------
             backtrace(seq)                      | one row per frame of the event's thread
                                                 | just after it, the innermost first
             locals(seq)                         | one row per variable in scope of the
                                                 | event's thread just after it
             history('EXPRESSION'[, 'FUNCTION']) | one row per change of a value that the
                                                 | recording shows
             diff_functions('A', 'B')            | one row per function that two recordings
                                                 | have, with what differs
             diff_calls('A', 'B')                | one row per call that differs in two
                                                 | recordings, at most 10,000
            hindsight> \rows 2
            tables show at most 2 rows
            hindsight> \x
            rows are shown one column per line
            hindsight> quit
        "#]],
    );
}

#[test]
fn help_fits_eighty_columns() {
    check_lines(
        &["help", "\\d calls", "\\q"],
        expect![[r#"
            shop.hindsight: 153 events in 2.9 ms; \d lists the tables, "help" says more
            hindsight> help
            Type SQL; it ends with ; or an empty line. Tab completes tables, columns, SQL
            and, inside quotes, the names of recorded functions.

              \d                the tables, and the functions that give one
              \d TABLE          its columns; \d FUNCTION those of its table
              \format [FORMAT]  table, csv, json or jsonl
              \rows [N]         show at most N rows of a table, 0 for all
              \x [on|off|auto]  show one column per line
              \timing [on|off]  show how long each answer took
              \refresh          see what a live recording recorded meanwhile
              help, \?          this text
              quit, \q, Ctrl-D  leave
              Ctrl-C            stop the question

            Examples:
              select function, count(*) from calls group by function order by 2 desc;
              select start_seq, dur_ns, args from calls where function = 'parse';
              select * from gaps;
            hindsight> \d calls
             column      | type    | meaning
            -------------+---------+--------------------------------------------------------
             start_seq   | int64   | seq of the enter event; the call's id
             end_seq     | int64   | seq of the leave event; null while unfinished, and
                         |         | where only entries are recorded
             function    | text    | name of the function, demangled
             file        | text    | source file of the function
             line        | int64   | source line of the function
             module      | text    | file name of the module that the function lies in
             tid         | int32   | thread id
             depth       | int32   | number of enclosing traced calls
             parent      | int64   | start_seq of the enclosing traced call
             ts_ns       | int64   | time of the enter event, ns since the recording began
             dur_ns      | int64   | ns from enter to leave; -1 while unfinished, null
                         |         | where only entries are recorded
             self_ns     | int64   | dur_ns without the traced calls made; -1 or null as
                         |         | dur_ns
             args        | text    | arguments as text, by the function's parameters, with
                         |         | captured texts and what pointers led to; ? where not
                         |         | captured
             ret         | int64   | integer, address or enumerator that came back in rax,
                         |         | as the return type says, rax itself where nothing
                         |         | describes the function; null for all others, see
                         |         | ret_text
             ret_f       | float64 | floating point return value
             ret_text    | text    | return value as text, structures with their members;
                         |         | null for none and where it is not known
             outs        | text    | what pointers and references among the arguments led
                         |         | to at return, where --pointees kept it
             unwound     | bool    | left by an exception or longjmp
             open_at_end | bool    | not returned when its thread or the process ended;
                         |         | end_seq and dur_ns are then that end's
             tail        | bool    | entered by a tail call in place of another call
             a0          | int64   | rdi at entry, bit pattern
             a1          | int64   | rsi at entry, bit pattern
             a2          | int64   | rdx at entry, bit pattern
             a3          | int64   | rcx at entry, bit pattern
             a4          | int64   | r8 at entry, bit pattern
             a5          | int64   | r9 at entry, bit pattern
             x0          | int64   | low 64 bits of xmm0 at entry; f64(x0) and f32(x0) read
                         |         | it; null if not captured
             x1          | int64   | low 64 bits of xmm1 at entry
             x2          | int64   | low 64 bits of xmm2 at entry
             x3          | int64   | low 64 bits of xmm3 at entry
             x4          | int64   | low 64 bits of xmm4 at entry
             x5          | int64   | low 64 bits of xmm5 at entry
             x6          | int64   | low 64 bits of xmm6 at entry
             x7          | int64   | low 64 bits of xmm7 at entry
             sp          | int64   | address of the stack word that holds the return
                         |         | address
             ret_addr    | int64   | return address: where the caller continues
             rax         | int64   | rax at return, bit pattern; null without a return
             rdx         | int64   | rdx at return, bit pattern
             xr0         | int64   | low 64 bits of xmm0 at return; null if not captured
             xr1         | int64   | low 64 bits of xmm1 at return
             function_id | int32   | number of the function in this recording
             seq         | int64   | start_seq, by the name that other tables have for it
            hindsight> \q
        "#]],
    );
}

#[test]
fn a_narrow_terminal_gets_cut_texts_and_then_records() {
    let folder = Folder::with_shop();
    let question = "select seq, text from output; select * from output where seq = 135";
    let text = folder.on_terminal(
        40,
        &["TERM=dumb", "PAGER=cat"],
        &["sql", "shop", question],
        &[],
    );
    assert!(
        text.lines().all(|line| line.chars().count() <= 40),
        "{text}"
    );
    expect![[r#"
         seq | text
        -----+----------------------------------
          21 | order 1 for Ada: 2.50 €, 0004...
          48 | order 2 for Ada: 5.00 €, 0004...
         107 | order 3 for Ada: 7.50 €, 0004...
         128 | order 4 for Zoë: 3.75 €, 008d...
         135 | an order without items ��\n
         146 | order 6 for 世界: 1.25 €, 01c...
        (6 rows)
        -[ 1 ]------
        seq    | 135
        ts_ns  | 2331935
        tid    | 28177
        stream | stderr
        fd     | 2
        text   | an order without items ��\n
        bytes  | \x616e206f726465722077697468...
        size   | 26
        (1 row)
    "#]]
    .assert_eq(&text);
}

/// Nothing is cut, as in a pipe, although a row is wider than most terminals.
#[test]
fn a_wide_terminal_gets_whole_rows() {
    let folder = Folder::with_shop();
    let question = "select start_seq, function, file, line, module, tid, depth, parent, args, ret, ret_text \
                    from calls where start_seq < 20 order by 1";
    let variables = ["TERM=dumb", "PAGER=cat"];
    let wide = folder.on_terminal(200, &variables, &["sql", "shop", question], &[]);
    let piped = folder.transcript(&["sql", "shop", question]);
    assert_eq!(wide, piped.clone() + "(7 rows)\n");
    assert!(piped.lines().all(|line| line.len() > 120), "{piped}");
    let narrow = folder.on_terminal(80, &variables, &["sql", "shop", question], &[]);
    assert_ne!(narrow, wide);
}

#[test]
fn colour_is_for_terminals_that_want_it() {
    let folder = Folder::with_shop();
    let args = ["sql", "shop", "select null as a"];
    let coloured = folder.on_terminal(80, &["TERM=xterm-256color"], &args, &[]);
    assert!(coloured.contains("\x1b[1ma\x1b[0m"), "{coloured:?}");
    let plain = folder.on_terminal(80, &PLAIN, &args, &[]);
    assert!(!plain.contains('\x1b'), "{plain:?}");
    expect![[r#"
         a
        ------
         NULL
        (1 row)
    "#]]
    .assert_eq(&plain);
}

#[test]
fn tab_completes_and_history_comes_back() {
    let folder = Folder::with_shop();
    let steps = [
        ("hindsight> ", "sel\t7 + 4 as eleven;\r"),
        ("(1 row)", ""),
        ("hindsight> ", "\x1b[A"),
        ("eleven;", "\r"),
        ("(1 row)", ""),
        ("hindsight> ", "\x04"),
    ];
    let text = typed(&folder, &steps);
    assert_eq!(text.matches("     11\n").count(), 2, "{text}");
    let history = history(&folder);
    assert!(history.contains("select 7 + 4 as eleven;"), "{history}");
}

#[test]
fn tab_completes_names_of_tables() {
    let folder = Folder::with_shop();
    let steps = [
        ("hindsight> ", "select count(*) as whole from ca\t"),
        ("from calls", " where a0 > 7;\r"),
        ("(1 row)", ""),
        ("hindsight> ", "\x04"),
    ];
    let text = typed(&folder, &steps);
    assert!(!text.contains("error"), "{text}");
    let history = history(&folder);
    let words: Vec<&str> = history.split_whitespace().collect();
    let asked = words.join(" ");
    let whole = "select count(*) as whole from calls where a0 > 7;";
    assert!(asked.contains(whole), "{history}");
}

#[test]
fn an_interrupt_ends_the_question_and_not_the_prompt() {
    let folder = Folder::with_shop();
    let steps = [
        (
            "hindsight> ",
            "select count(*) from events a, events b, events c, events d, events e, events f;\r",
        ),
        ("until:error: interrupted", "\x03"),
        ("hindsight> ", "select 7 + 4 as eleven;\r"),
        ("     11", ""),
        ("hindsight> ", "\x04"),
    ];
    let text = typed(&folder, &steps);
    assert!(!text.contains("exit code"), "{text}");
}

#[test]
fn statements_that_arrive_at_once_run_in_turn() {
    let folder = Folder::with_shop();
    let steps = [
        (
            "hindsight> ",
            "select 7 +\r 4 as eleven;\rselect 5 * 5 as square;\r\x04",
        ),
        ("     11", ""),
        ("     25", ""),
    ];
    let text = typed(&folder, &steps);
    assert!(!text.contains("error:"), "{text}");
}

#[test]
fn several_pasted_lines_run_in_turn() {
    let folder = Folder::with_shop();
    let pasted =
        "\x1b[200~select 1 as a;\n\\d gaps\nselect\n  nope from calls;\nselect 2 as b;\x1b[201~\r";
    let steps = [
        ("hindsight> ", pasted),
        ("error: ", ""),
        ("hindsight> ", "\x04"),
    ];
    let text = typed(&folder, &steps);
    let (_, answers) = text.split_once("(1 row)").unwrap();
    assert!(answers.contains(" reason | text  | why\n"), "{text}");
    assert!(
        answers.contains("error: there is no column \"nope\"\n  4 |   nope from calls\n"),
        "{text}"
    );
    assert!(!answers.contains("(1 row)"), "{text}");
}
