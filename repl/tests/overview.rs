//! `info`, `check`, `--help` and `--version`: transcripts on whole, incomplete and damaged recordings, with exit codes.

mod common;

use common::Folder;
use expect_test::{Expect, expect};
use store::control::Control;
use store::synth::Synth;

fn check(folder: &Folder, args: &[&str], expected: Expect) {
    expected.assert_eq(&folder.transcript(args));
}

#[test]
fn info_tells_of_a_closed_recording() {
    check(
        &Folder::with_shop(),
        &["info", "shop"],
        expect![[r#"
            recording  shop.hindsight (closed cleanly)
            program    ./shop
            folder     /home/ada/shop
            started    2026-11-21T07:03:53Z
            lasted     2.9 ms
            ended      with exit code 3
            on         Linux 6.18.44-fc-v669, AMD EPYC
            made by    hindsight 0.1.0, Frida 17.25.2, format 1
            settings   all functions; block when full

            rows       68 calls, 153 events, 7 functions, 6 modules, 2 threads, 6 output, 0 gaps, 7 probes, 0 notes
            lost       nothing
            on disk    13.4 kB (columns 13.0 kB), 197.3 B/call

            modules    /home/ada/shop/shop: 7 functions, build id fe4c0bbbdd8272646f466234c1b6ca9ac32b6b77
                       and 5 more; see the table modules
        "#]],
    );
}

#[test]
fn info_tells_the_same_as_json() {
    check(
        &Folder::with_shop(),
        &["info", "shop", "--json"],
        expect![[r#"
            {
              "argv": [
                "./shop"
              ],
              "bytes_on_disk": {
                "catalog": 0,
                "columns": 13030,
                "log": 0,
                "total": 13414
              },
              "cwd": "/home/ada/shop",
              "detached": false,
              "duration_ns": 2860802,
              "exit_code": 3,
              "exit_signal": null,
              "format_version": 1,
              "frida_version": "17.25.2",
              "hindsight_version": "0.1.0",
              "host": {
                "cpu": "AMD EPYC",
                "kernel": "Linux 6.18.44-fc-v669"
              },
              "id": "ed0925ccbbde51cff462410ccd1c44de",
              "lost": 0,
              "modules": [
                {
                  "build_id": "fe4c0bbbdd8272646f466234c1b6ca9ac32b6b77",
                  "functions": 7,
                  "name": "shop",
                  "path": "/home/ada/shop/shop",
                  "system": false
                },
                {
                  "build_id": "93ac61ec5a8eb1396f9fbd350e3169a558528a40",
                  "functions": 0,
                  "name": "libc.so.6",
                  "path": "/usr/lib/x86_64-linux-gnu/libc.so.6",
                  "system": true
                },
                {
                  "build_id": "289ee39f8c07bd4fa48102dfeeb7e6f9c76158b4",
                  "functions": 0,
                  "name": "libstdc++.so.6.0.30",
                  "path": "/usr/lib/x86_64-linux-gnu/libstdc++.so.6.0.30",
                  "system": true
                },
                {
                  "build_id": "d6e6f9e3af1243eed9bf5efd366dd015a9f22c13",
                  "functions": 0,
                  "name": "libm.so.6",
                  "path": "/usr/lib/x86_64-linux-gnu/libm.so.6",
                  "system": true
                },
                {
                  "build_id": "6f03384c2e3c38887dd3ba5a24b2e18c17e2f0e0",
                  "functions": 0,
                  "name": "libgcc_s.so.1",
                  "path": "/usr/lib/x86_64-linux-gnu/libgcc_s.so.1",
                  "system": true
                },
                {
                  "build_id": "7ebc65e52f2bbea498b4040fa92f7238377aaba9",
                  "functions": 0,
                  "name": "ld-linux-x86-64.so.2",
                  "path": "/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2",
                  "system": true
                }
              ],
              "recording": "shop.hindsight",
              "rows": {
                "calls": 68,
                "events": 153,
                "exceptions": 0,
                "functions": 7,
                "gaps": 0,
                "logpoints": 0,
                "modules": 6,
                "notes": 0,
                "output": 6,
                "pauses": 0,
                "probes": 7,
                "threads": 2,
                "writes": 0
              },
              "settings": {
                "captures": [],
                "filters": [],
                "keep_log": false,
                "on_full": "block"
              },
              "start": "2026-11-21T07:03:53Z",
              "start_unix_ns": 1795244633866551897,
              "state": "closed",
              "torn_bytes": 0,
              "tsc_hz": 2596130184.9232364,
              "unfinished_calls": 0
            }
        "#]],
    );
}

#[test]
fn info_tells_of_losses_and_of_an_incomplete_recording() {
    check(
        &Folder::with_interrupted_app(),
        &["info", "app"],
        expect![[r#"
            recording  app.hindsight (incomplete: its recorder did not close it)
            program    synth
            folder     /
            started    2023-11-14T22:13:20Z
            lasted     5.0 ms
            ended      with exit code 3
            made by    hindsight 0.0.0, format 2
            settings   all functions; block when full

            rows       8 calls, 26 events, 3 functions, 2 modules, 2 threads, 2 output, 1 gaps, 4 probes, 0 notes
            lost       17 events in 1 gap
            on disk    1.7 kB (log 1.4 kB), 217.0 B/call

            modules    /home/me/app: 3 functions, build id 5d1f0c3a
                       and 1 more; see the table modules
        "#]],
    );
}

#[test]
fn info_tells_of_a_recording_without_calls() {
    let folder = Folder::empty();
    let mut synth = Synth::new();
    synth.control(Control::ModuleLoad {
        ticks: 0,
        module: 0,
        path: "/home/me/app".into(),
        build_id: None,
        addr: 0x40_0000,
        size: 0x8000,
        system: false,
    });
    synth
        .record_interrupted(&folder.path("bare.hindsight"))
        .unwrap();
    check(
        &folder,
        &["info", "bare"],
        expect![[r#"
            recording  bare.hindsight (incomplete: its recorder did not close it)
            program    synth
            folder     /
            started    2023-11-14T22:13:20Z
            lasted     0 ns
            ended      out of sight of the recorder
            made by    hindsight 0.0.0, format 2
            settings   all functions; block when full

            rows       0 calls, 1 events, 0 functions, 1 modules, 0 threads, 0 output, 0 gaps, 0 probes, 0 notes
            lost       nothing
            on disk    456 B (log 128 B)

            modules    1; see the table modules
        "#]],
    );
}

#[test]
fn a_whole_recording_passes_the_check() {
    let folder = Folder::with_shop();
    check(
        &folder,
        &["check", "shop"],
        expect![[r#"
        shop.hindsight: whole
          read     5 files, 13.4 kB
          columns  1 part, 68 calls (0 unfinished), 17 other events, 7 functions
    "#]],
    );
    check(
        &folder,
        &["check", "shop", "--json"],
        expect![[r#"
        {
          "bytes": 13414,
          "columns": {
            "calls": 68,
            "events": 153,
            "functions": 7,
            "other_events": 17,
            "parts": 1,
            "unfinished_calls": 0
          },
          "files": 5,
          "findings": [],
          "log": {
            "blocks": 0,
            "controls": 0,
            "frames": 0,
            "lost": 0,
            "records": 0,
            "segments": 0,
            "threads": 0,
            "torn_bytes": 0,
            "unreadable_bytes": 0,
            "watermarks": 0
          },
          "recording": "shop.hindsight",
          "verdict": "whole"
        }
    "#]],
    );
}

#[test]
fn an_incomplete_recording_exits_with_3() {
    let folder = Folder::with_interrupted_app();
    check(
        &folder,
        &["check", "app"],
        expect![[r#"
            app.hindsight: incomplete: the recorder did not close it; what is there is whole
              read     2 files, 1.7 kB
              log      1 segment, 11 frames, 21 records, 2 threads, 17 lost
              note: the recorder did not close the recording
            --- exit code 3
        "#]],
    );
    check(
        &folder,
        &["check", "app", "--json"],
        expect![[r#"
            {
              "bytes": 1736,
              "columns": {
                "calls": 0,
                "events": 0,
                "functions": 0,
                "other_events": 0,
                "parts": 0,
                "unfinished_calls": 0
              },
              "files": 2,
              "findings": [
                {
                  "offset": null,
                  "path": "app.hindsight",
                  "severity": "note",
                  "what": "the recorder did not close the recording"
                }
              ],
              "log": {
                "blocks": 3,
                "controls": 8,
                "frames": 11,
                "lost": 17,
                "records": 21,
                "segments": 1,
                "threads": 2,
                "torn_bytes": 0,
                "unreadable_bytes": 0,
                "watermarks": 0
              },
              "recording": "app.hindsight",
              "verdict": "incomplete"
            }
            --- exit code 3
        "#]],
    );
}

#[test]
fn damage_in_the_columns_is_found_and_named() {
    let folder = Folder::with_shop();
    folder.damage("shop.hindsight/columns/calls-000000.parquet", 100);
    check(
        &folder,
        &["check", "shop"],
        expect![[r#"
        shop.hindsight: damaged
          read     5 files, 13.4 kB
          columns  1 part, 68 calls (0 unfinished), 17 other events, 7 functions
          damage: columns/calls-000000.parquet: the file's checksum differs
        --- exit code 1
    "#]],
    );
    check(
        &folder,
        &["check", "shop", "--json"],
        expect![[r#"
        {
          "bytes": 13414,
          "columns": {
            "calls": 68,
            "events": 153,
            "functions": 7,
            "other_events": 17,
            "parts": 1,
            "unfinished_calls": 0
          },
          "files": 5,
          "findings": [
            {
              "offset": null,
              "path": "shop.hindsight/columns/calls-000000.parquet",
              "severity": "damage",
              "what": "the file's checksum differs"
            }
          ],
          "log": {
            "blocks": 0,
            "controls": 0,
            "frames": 0,
            "lost": 0,
            "records": 0,
            "segments": 0,
            "threads": 0,
            "torn_bytes": 0,
            "unreadable_bytes": 0,
            "watermarks": 0
          },
          "recording": "shop.hindsight",
          "verdict": "damaged"
        }
        --- exit code 1
    "#]],
    );
    check(
        &folder,
        &["info", "shop"],
        expect![[r#"
            --- stderr
            error: shop.hindsight/columns/calls-000000.parquet is damaged at offset 0: the file's checksum differs
            help: run "hindsight check" for a full report and restore the file from a copy
            --- exit code 1
        "#]],
    );
    check(
        &folder,
        &["sql", "shop", "select sum(dur_ns) from calls"],
        expect![[r#"
            --- stderr
            error: shop.hindsight/columns/calls-000000.parquet is damaged at offset 0: the file's checksum differs
            help: run "hindsight check" for a full report and restore the file from a copy
            --- exit code 1
        "#]],
    );
}

#[test]
fn damage_in_the_definitions_is_found_and_named() {
    let folder = Folder::with_shop();
    folder.damage("shop.hindsight/columns/definitions.seg", 700);
    check(
        &folder,
        &["check", "shop"],
        expect![[r#"
        shop.hindsight: damaged
          read     4 files, 11.5 kB
          columns  1 part, 68 calls (0 unfinished), 17 other events, 0 functions
          damage: columns/definitions.seg at offset 632: the frame's checksum differs
        --- exit code 1
    "#]],
    );
    check(
        &folder,
        &["info", "shop"],
        expect![[r#"
        --- stderr
        error: shop.hindsight/columns/definitions.seg is damaged at offset 632: the frame's checksum differs
        help: run "hindsight check" for a full report and restore the file from a copy
        --- exit code 1
    "#]],
    );
}

#[test]
fn a_damaged_manifest_is_refused() {
    let folder = Folder::with_shop();
    folder.damage("shop.hindsight/manifest", 100);
    check(
        &folder,
        &["check", "shop"],
        expect![[r#"
        shop.hindsight: damaged
          read     0 files, 0 B
          damage: manifest at offset 64: the frame's checksum differs
        --- exit code 1
    "#]],
    );
    check(
        &folder,
        &["info", "shop"],
        expect![[r#"
        --- stderr
        error: shop.hindsight/manifest is damaged at offset 64: the frame's checksum differs
        help: run "hindsight check" for a full report and restore the file from a copy
        --- exit code 1
    "#]],
    );
}

#[test]
fn a_missing_file_is_damage() {
    let folder = Folder::with_shop();
    std::fs::remove_file(folder.path("shop.hindsight/columns/events-000000.parquet")).unwrap();
    check(
        &folder,
        &["check", "shop"],
        expect![[r#"
            shop.hindsight: damaged
              read     4 files, 9.3 kB
              columns  1 part, 68 calls (0 unfinished), 17 other events, 7 functions
              damage: columns/events-000000.parquet: open: No such file or directory
            --- exit code 1
        "#]],
    );
    check(
        &folder,
        &["info", "shop"],
        expect![[r#"
            --- stderr
            error: shop.hindsight/columns/events-000000.parquet is damaged at offset 0: there is no such file
            help: run "hindsight check" for a full report and restore the file from a copy
            --- exit code 1
        "#]],
    );
}

#[test]
fn the_version_is_one_line() {
    check(
        &Folder::empty(),
        &["--version"],
        expect![[r#"
        hindsight 0.1.0
    "#]],
    );
}

#[test]
fn each_command_explains_itself() {
    let folder = Folder::empty();
    check(
        &folder,
        &["--help"],
        expect![[r#"
            Records a program while it runs, then answers SQL over everything it did

            Usage: hindsight <COMMAND>

            Commands:
              record       Record a program while it runs
              sql          Ask a recording in SQL
              repl         Go through a recording or a live program, forwards and backwards
              info         Show what a recording holds
              check        Verify every checksum and rule of a recording
              pack         Copy a recording's modules, debug files and sources into it
              setup        Install what recording needs, once
              start        Start a program under control
              attach       Take a running process under control
              detach       Leave the program running and close its recording
              stop         Kill the program and close its recording; the last session ends the daemon
              restart      Start the program again: same arguments, same breakpoints, a new recording
              status       Show the live sessions
              note         Append a note to the recording
              break        Set, list, remove, enable or disable breakpoints [aliases: breakpoint, b]
              logpoint     Log a message wherever the program passes a place
              watch        Stop when a value is written or read
              catch        Stop at C++ throws, Rust panics and signals
              continue     Let the program go on until something stops it [alias: c]
              next         Go to the next line, over calls [alias: n]
              step         Go to the next line, into calls [alias: s]
              finish       Run until the current function has returned [alias: out]
              until        Run until a place is reached in this frame or one further out
              pause        Stop all threads
              await        Wait for the next stop; one that is there already is shown at once
              where        Show where the program stands: source and variables [alias: context]
              backtrace    Show the calls that led here [alias: bt]
              frame        Look at another frame, or show the current one
              up           Look at the caller
              down         Look at what was called
              threads      Show all threads
              thread       Look at another thread, or show the current one
              source       Show source lines; those with code are marked | [aliases: list, l]
              disassemble  Show machine code
              locals       Show the variables of the current frame
              args         Show the arguments of the current function
              print        Show the value of an expression [alias: p]
              display      Show and record the value of an expression at every stop; without one, list what is
                           displayed
              undisplay    Show expressions at stops no more: undisplay 2
              eval         Evaluate an expression with its side effects: x = 3, f(1)
              set          Write a value: set p->len 3
              memory       Show or write memory: memory read &x --count 32, memory write 0x7ffe1234 2a00
              registers    Show the registers of the current frame
              output       Show what the program printed since the last time, and forget it
              help         Print this message or the help of the given subcommand(s)

            Options:
              -h, --help     Print help
              -V, --version  Print version

            Examples:
              hindsight record ./app        run it and write app.hindsight
              hindsight info app            what was recorded
              hindsight sql app             a prompt: SQL, Tab completes, \d lists the tables
              hindsight sql app "select * from calls order by dur_ns desc limit 10"
              hindsight sql app "select * from calls" -o calls.parquet
              hindsight repl app            go through it: goto, step back, print, backtrace
              hindsight start --break parse ./app   control it live: next, step, where, print
              hindsight check app           verify every checksum and rule

            Exit codes:
              0  done
              1  the answer is "damaged", or the command failed
              2  wrong usage: command line, SQL or recording name
              3  check: the recording is incomplete (it was not closed cleanly)
              4  record, start, attach: the program could not be started or attached
            `record` otherwise exits with the recorded program's own status (128 + signal).
        "#]],
    );
    check(
        &folder,
        &["record", "--help"],
        expect![[r#"
            Record a program while it runs

            Runs a program, or attaches to one, and records every call of its functions: arguments, return
            values and times, from all threads, into the folder NAME.hindsight. The program is not recompiled
            and needs no debug information, though with it arguments have names and types.

            Usage: hindsight record [OPTIONS] [PROGRAM]...

            Arguments:
              [PROGRAM]...
                      The program and its arguments

            Options:
              -o, --output <NAME>
                      Where to write [default: the program's name with .hindsight, in this folder]

              -f, --function <PATTERN>
                      Record only functions that match: a name (* and ?), file:GLOB or module:GLOB; may be
                      repeated

              -x, --exclude <PATTERN>
                      Do not record functions that match; may be repeated, wins over --function

                  --on-full <POLICY>
                      What a thread does when the recorder cannot keep up [default: block; drop with --attach]

                      Possible values:
                      - block: The thread waits: nothing is lost
                      - drop:  The thread goes on: what is lost is counted in a gap

                  --snapshot <WHEN>
                      When the program's memory is copied: start, every=TIME or every=N events (as every=100ms,
                      every=5000events; changed pages only) or never [default: start]

                  --regs
                      Keep all general registers at each enter and leave

                  --stack <BYTES>
                      Keep so many bytes of the stack at each enter and leave, 8 to 16384

                  --strings
                      Keep the text behind arguments that are text: char*, &str, String, std::string; of each up
                      to 256 bytes

                  --watch <EXPRESSION>
                      Keep the value of an expression: over global variables at each enter and leave, over a
                      parameter (`q->len`, or `push::q->len`) where its functions are entered; may be repeated

                  --keep-log
                      Keep the raw log after it was turned into columns

                  --portable
                      When the program has ended, copy its modules, debug files and sources into the recording,
                      as hindsight pack does

                  --attach <PID>
                      Attach to this running process instead of starting one

                  --for <SECONDS>
                      With --attach: stop after this many seconds (or 500ms, 2m) and let the process go on

                  --json
                      Print the summary as JSON (on stderr: stdout is the program's)

              -h, --help
                      Print help (see a summary with '-h')

            Examples:
              hindsight record ./app --port 8080            what follows the program is its own
              hindsight record -o run1 -f 'parse*' ./app    only functions that match
              hindsight record -x 'std::*' -x '*alloc*' ./app
              hindsight record --attach 4711 --for 10       look at a running program
              hindsight sql app "select * from calls"       then ask

            Exits with the program's own status (128 + signal), or with 4 if it could not be started.
        "#]],
    );
    check(
        &folder,
        &["sql", "--help"],
        expect![[r#"
            Ask a recording in SQL

            Prints the answer to QUERY, which may be several statements with semicolons between them. Without
            QUERY it opens a prompt, or runs the statements on stdin when that is not a terminal. A recording
            may be asked while it is written.

            Usage: hindsight sql [OPTIONS] <RECORDING> [QUERY]

            Arguments:
              <RECORDING>
                      The recording, with or without .hindsight

              [QUERY]
                      The question, or a command of the prompt like \\d; - reads from stdin

            Options:
              -f, --format <FORMAT>
                      The form of the answer [default: by the name of the output file, else table]

                      Possible values:
                      - table:   Aligned columns, to be read by a person
                      - csv:     Comma-separated values (RFC 4180) with a heading
                      - json:    One JSON array of objects
                      - jsonl:   One JSON object per line
                      - parquet: A Parquet file

                  --json
                      The same as --format json

              -o, --output <FILE>
                      Write the answer to this new file

                  --rows <N>
                      Show at most this many rows of a table, 0 for all [default: 1000 on a terminal, else all]

                  --timing
                      Say how long each answer took

              -h, --help
                      Print help (see a summary with '-h')

            Examples:
              hindsight sql app                             a prompt; Tab completes
              hindsight sql app '\d'                        the tables
              hindsight sql app "select * from calls order by dur_ns desc limit 10"
              hindsight sql app "select function, count(*) from calls group by function"
              hindsight sql app "select * from calls" -o calls.parquet
              hindsight sql app -f jsonl "select * from gaps" | jq .lost
              hindsight sql app < questions.sql             statements from stdin

            Tables: calls, events, functions, modules, threads, output, gaps, probes,
            pauses, logpoints, writes, exceptions, notes.
            Times are nanoseconds since the recording began (ts_ns, dur_ns); seq numbers
            every event of the recording in one order.
        "#]],
    );
    check(
        &folder,
        &["info", "--help"],
        expect![[r#"
        Show what a recording holds

        The program, when and where it ran and how it ended, how much was recorded and lost, size on disk
        and settings.

        Usage: hindsight info [OPTIONS] <RECORDING>

        Arguments:
          <RECORDING>
                  The recording, with or without .hindsight

        Options:
              --json
                  Print the facts as JSON

          -h, --help
                  Print help (see a summary with '-h')

        Examples:
          hindsight info app
          hindsight info app --json | jq .rows.calls
          hindsight info app --json | jq -e '.state == "closed" and .lost == 0'
    "#]],
    );
    check(
        &folder,
        &["check", "--help"],
        expect![[r#"
        Verify every checksum and rule of a recording

        Reads the whole recording. What is merely unusual is shown as a note; damage names file and offset.

        Usage: hindsight check [OPTIONS] <RECORDING>

        Arguments:
          <RECORDING>
                  The recording, with or without .hindsight

        Options:
              --json
                  Print the result as JSON

          -h, --help
                  Print help (see a summary with '-h')

        Examples:
          hindsight check app
          hindsight check app --json | jq .findings
          hindsight check app && cp -r app.hindsight archive/

        Exits with 0 when everything holds, 1 when something is damaged, 3 when the recording was not
        closed.
    "#]],
    );
    check(
        &folder,
        &["setup", "--help"],
        expect![[r#"
        Install what recording needs, once

        Installs the official Frida wheel, pinned by version and digest, into the user's cache. Does nothing
        when it is there already.

        Usage: hindsight setup [OPTIONS]

        Options:
              --json
                  Print the result as JSON

          -h, --help
                  Print help (see a summary with '-h')

        Examples:
          hindsight setup          install Frida into the user's cache
          hindsight setup --json   the same, for scripts

        Needs python3 with pip. `record` does this by itself when it was not done before.
    "#]],
    );
}

#[test]
fn a_full_disk_is_told() {
    let folder = Folder::with_shop();
    for args in [
        &["info", "shop"] as &[_],
        &["check", "shop"],
        &["sql", "shop", "select 1"],
    ] {
        let mut command = folder.command(args);
        let full = std::fs::OpenOptions::new()
            .write(true)
            .open("/dev/full")
            .unwrap();
        let output = command.stdout(full).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(
            said, "error: cannot write to stdout: No space left on device\n",
            "{args:?}"
        );
    }
}

#[test]
fn a_reader_that_leaves_is_no_failure() {
    let folder = Folder::with_shop();
    let endless = "select a.start_seq, b.args from calls a, calls b, calls c";
    for form in ["table", "csv", "json", "jsonl"] {
        let pipe = "\"$0\" sql shop \"$1\" -f $2 | head -c 10 >/dev/null; echo ${PIPESTATUS[0]}";
        let mut command = std::process::Command::new("bash");
        command
            .args(["-c", pipe])
            .arg(common::binary())
            .args([endless, form]);
        folder.at_home(&mut command);
        let output = command.output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "0\n", "{form}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{form}");
    }
}
