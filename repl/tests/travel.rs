//! `hindsight repl` on a made-up debugging session: moves, looks, refusals, JSON and scripts, as transcripts.

mod common;

use common::Folder;
use expect_test::{Expect, expect};

/// Runs lines through `--cmd`.
fn check(lines: &[&str], expected: Expect) {
    let folder = Folder::with_debugged();
    let mut args = vec!["repl", "debugged"];
    for line in lines {
        args.extend(["--cmd", line]);
    }
    expected.assert_eq(&folder.transcript(&args));
}

#[test]
fn moves_say_where_they_lead() {
    check(
        &[
            "goto first",
            "step",
            "continue",
            "next",
            "continue",
            "step back",
            "reverse-continue",
            "finish",
            "reverse-finish",
            "goto 50%",
            "goto @why is order",
            "goto last",
        ],
        expect![[r#"
            Thread 4242 (synth-4242) at event 0, module_load: /home/ada/shop/shop: not known where
            Thread 4242 (synth-4242) at event 1, thread_start: synth-4242: not known where
            Thread 4242 (synth-4242) at event 6, pause: breakpoint 1 in price at /src/shop.c:12: 0x555555555048
            Thread 4242 (synth-4242) at event 7, write: items: 0x555555555048
            Thread 4242 (synth-4242) at event 9, pause: step in price at /src/shop.c:13: 0x555555555051
            Thread 4242 (synth-4242) at event 8, resume: next: somewhere in price
            Thread 4242 (synth-4242) at event 6, pause: breakpoint 1 in price at /src/shop.c:12: 0x555555555048
            Thread 4242 (synth-4242) at event 12, return from price: 0x401234
            Thread 4242 (synth-4242) at event 14, logpoint: order 1 of Ada: 2.5: 0x555555555048
            Thread 4242 (synth-4242) at event 2, note: why is order 3 free?: not known where
            Thread 4242 (synth-4242) at event 27, process_exit: not known where
            --- stderr
            error: thread 4242 is in no recorded call here
              at --cmd 9: reverse-finish (exit code 2)
            --- exit code 2
        "#]],
    );
}

#[test]
fn runs_stop_at_logpoints_unless_something_is_watched() {
    check(
        &[
            "goto 9",
            "continue",
            "registers rip rsp",
            "backtrace",
            "continue",
            "reverse-continue",
            "reverse-continue",
            "watch $rbx",
            "continue",
            "step 0",
            "step back 0",
            "next 0",
            "next back 0",
        ],
        expect![[r#"
            Thread 4242 (synth-4242) at event 9, pause: step in price at /src/shop.c:13: 0x555555555051
            Thread 4242 (synth-4242) at event 14, logpoint: order 1 of Ada: 2.5: 0x555555555048
             Register | Value                                  | Symbol
            ----------+----------------------------------------+--------
             rip      | 0x555555555048                         | 
             rsp      | 0x7f0000008008 <stale: as of event 12> | 
            *#0   0x555555555048 ()
              (the rest is not known: the module /home/ada/shop/shop cannot be read: open /home/ada/shop/shop: No such file or directory (os error 2))
            Thread 4243 (synth-4243) at event 16, logpoint: order 2 of Archibal...: 5.0: 0x555555555048
            Thread 4242 (synth-4242) at event 14, logpoint: order 1 of Ada: 2.5: 0x555555555048
            Thread 4242 (synth-4242) at event 9, pause: step in price at /src/shop.c:13: 0x555555555051
            Watch 1: $rbx (everywhere)
            --- stderr
            error: the recording shows no change of what is watched behind event 9
            help: look at what it shows: history EXPRESSION; or: goto last
              at --cmd 9: continue (exit code 2)
            error: zero steps lead nowhere
              at --cmd 10: step 0 (exit code 2)
            error: zero steps lead nowhere
              at --cmd 11: step back 0 (exit code 2)
            error: zero steps lead nowhere
              at --cmd 12: next 0 (exit code 2)
            error: zero steps lead nowhere
              at --cmd 13: next back 0 (exit code 2)
            --- exit code 2
        "#]],
    );
}

#[test]
fn registers_stay_known_while_a_thread_is_held() {
    check(
        &[
            "continue",
            "registers rbx rip xmm1",
            "step",
            "registers rbx rip",
            "step",
            "registers rbx rip",
            "goto last",
            "registers rbx rip",
        ],
        expect![[r#"
            Thread 4242 (synth-4242) at event 6, pause: breakpoint 1 in price at /src/shop.c:12: 0x555555555048
             Register | Value                            | Symbol
            ----------+----------------------------------+--------
             rbx      | 0x1005                           | 
             rip      | 0x555555555048                   | 
             xmm1     | 101112131415161718191a1b1c1d1e1f | 
            Thread 4242 (synth-4242) at event 7, write: items: 0x555555555048
             Register | Value          | Symbol
            ----------+----------------+--------
             rbx      | 0x1005         | 
             rip      | 0x555555555048 | 
            Thread 4242 (synth-4242) at event 8, resume: next: somewhere in price
             Register | Value                                 | Symbol
            ----------+---------------------------------------+--------
             rbx      | 0x1005 <stale: as of event 6>         | 
             rip      | 0x555555555048 <stale: as of event 6> | 
            Thread 4242 (synth-4242) at event 27, process_exit: not known where
             Register | Value                            | Symbol
            ----------+----------------------------------+--------
             rbx      | <unknown: the process has ended> | 
             rip      | <unknown: the process has ended> | 
        "#]],
    );
}

#[test]
fn memory_is_known_where_it_was_seen() {
    check(
        &[
            "continue",
            "memory read 0x7f0000007fc0 --count 16",
            "memory read 0x7f0000007f00 --count 16",
            "memory read 0x10",
            "step",
            "memory read 0x7f0000007fc0 --count 80",
        ],
        expect![[r##"
            Thread 4242 (synth-4242) at event 6, pause: breakpoint 1 in price at /src/shop.c:12: 0x555555555048
            0x00007f0000007fc0  00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f  ................
            Thread 4242 (synth-4242) at event 7, write: items: 0x555555555048
            0x00007f0000007fc0  00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f  ................
            0x00007f0000007fd0  10 11 12 13 14 15 16 17 18 19 1a 1b 1c 1d 1e 1f  ................
            0x00007f0000007fe0  20 21 22 23 24 25 26 27 28 29 2a 2b 04 00 00 00   !"#$%&'()*+....
            0x00007f0000007ff0  30 31 32 33 34 35 36 37 38 39 3a 3b 3c 3d 3e 3f  0123456789:;<=>?
            0x00007f0000008000  34 12 40 00 00 00 00 00                          4.@.....
            (stale: as of event 5; it may have changed since)
            (ends here: unknown: not captured)
            --- stderr
            error: memory at 0x7f0000007f00 cannot be read: unknown: not captured
              at --cmd 3: memory read 0x7f0000007f00 --count 16 (exit code 1)
            error: memory at 0x10 cannot be read: unknown: not captured
              at --cmd 4: memory read 0x10 (exit code 1)
            --- exit code 1
        "##]],
    );
}

#[test]
fn calls_notes_threads_and_breakpoints_are_listed() {
    check(
        &[
            "goto 5",
            "calls",
            "notes",
            "threads",
            "break price",
            "break",
            "reverse-continue",
            "delete 1",
            "delete 1",
            "output",
        ],
        expect![[r#"
            Thread 4242 (synth-4242) at event 5, entry of price: somewhere in price
            * price  5..12  70 ns
             Event | Note
            -------+----------------------
                 2 | why is order 3 free?
                 ID | Name       | State   | Location
            --------+------------+---------+--------------------
             * 4242 | synth-4242 | running | somewhere in price
            Breakpoint 1: price (1 function)
             ID | Location | Functions
            ----+----------+-----------
              1 | price    |         1
            1 breakpoint removed
            The program had written nothing up to here.
            --- stderr
            error: nothing before event 5 stops here
            help: set a breakpoint: break FUNCTION; or: goto first
              at --cmd 7: reverse-continue (exit code 2)
            error: there is no breakpoint 1
            help: list them with: break
              at --cmd 9: delete 1 (exit code 2)
            --- exit code 2
        "#]],
    );
}

#[test]
fn mistakes_are_answered_with_the_next_step() {
    check(
        &[
            "goto 4711",
            "goto soon",
            "goto @nothing",
            "goto output:3",
            "stepp",
            "step -i",
            "next 0",
            "break nothing",
            "frame 7",
            "thread 1",
            "print 1 +",
            "print nobody",
            "set x 3",
            "memory write 0x10 00",
            "help frob",
            "select nothing from calls",
        ],
        expect![[r#"
            --- stderr
            error: there is no event 4711
            help: events are 0 to 27
              at --cmd 1: goto 4711 (exit code 2)
            error: "soon" is no place in time
            help: write an event's number, first, last, 50%, 1.5s, @NOTE or output:LINE
              at --cmd 2: goto soon (exit code 2)
            error: there is no note "nothing"
            help: list them with: notes
              at --cmd 3: goto @nothing (exit code 2)
            error: there is no line 3 of output
            help: the program wrote 0
              at --cmd 4: goto output:3 (exit code 2)
            error: there is no verb "stepp"
            help: did you mean step? help lists the verbs
              at --cmd 5: stepp (exit code 2)
            error: single instructions were not recorded
            help: step goes from event to event
              at --cmd 6: step -i (exit code 1)
            error: zero steps lead nowhere
              at --cmd 7: next 0 (exit code 2)
            error: no recorded function is called nothing
            help: write a function's name, in which * stands for any text, or file:line; SELECT name FROM functions lists them
              at --cmd 8: break nothing (exit code 2)
            error: no frame of thread 4242 is known at event 0: no recorded call is open, and registers are not known
            help: go to an event that shows one: next, or continue
              at --cmd 9: frame 7 (exit code 2)
            error: there is no thread 1
            help: threads: 4242, 4243
              at --cmd 10: thread 1 (exit code 2)
            error: the expression "1 +": expected an expression at position 3
              at --cmd 11: print 1 + (exit code 1)
            error: no variable "nobody" here
            help: the module /home/ada/shop/shop cannot be read: open /home/ada/shop/shop: No such file or directory (os error 2)
              at --cmd 12: print nobody (exit code 1)
            error: set needs a program that runs: this is a recording, and what it recorded does not change
              at --cmd 13: set x 3 (exit code 1)
            error: memory of a recording cannot be written: what it recorded does not change
              at --cmd 14: memory write 0x10 00 (exit code 1)
            error: there is no verb "frob"
            help: help lists the verbs; SQL begins with SELECT, WITH or EXPLAIN
              at --cmd 15: help frob (exit code 2)
            error: there is no column "nothing"
              1 | select nothing from calls
                |        ^^^^^^^
              at --cmd 16: select nothing from calls (exit code 2)
            --- exit code 2
        "#]],
    );
}

#[test]
fn json_is_that_of_live_control() {
    let folder = Folder::with_debugged();
    let args = [
        "repl", "debugged", "--json", "--cmd", "goto 5", "--cmd", "goto 999",
    ];
    expect![[r#"
        {
          "id": 1,
          "result": {
            "recording": "debugged.hindsight",
            "session": 0,
            "status": "stopped",
            "stop": {
              "address": "not known",
              "function": "somewhere in price",
              "number": 5,
              "reason": "event",
              "seq": 5,
              "thread": 4242,
              "thread_name": "synth-4242",
              "what": "entry of price"
            },
            "timed_out": false
          },
          "success": true
        }
        {
          "error": {
            "code": "NO_EVENT",
            "hint": "events are 0 to 27",
            "message": "there is no event 999"
          },
          "id": 1,
          "success": false
        }
        --- stderr
          at --cmd 2: goto 999 (exit code 2)
        --- exit code 2
    "#]]
    .assert_eq(&folder.transcript(&args));
}

#[test]
fn scripts_have_comments_aliases_and_sql() {
    let folder = Folder::with_debugged();
    std::fs::write(
        folder.path("look.txt"),
        "# where does it stop?\nalias g goto\ng 5\n\nSELECT seq, kind FROM events WHERE kind = 'pause' ORDER BY seq;\nquit\nnot reached\n",
    )
    .unwrap();
    let args = ["repl", "debugged", "--script", "look.txt"];
    expect![[r#"
        Thread 4242 (synth-4242) at event 5, entry of price: somewhere in price
         seq | kind
        -----+-------
           6 | pause
           9 | pause
          22 | pause
          25 | pause
    "#]]
    .assert_eq(&folder.transcript(&args));
}

#[test]
fn aliases_are_named_listed_and_refused() {
    check(
        &[
            "alias g = goto",
            "alias where-5 = print 5",
            "alias",
            "alias g",
            "g 5",
            "g 5 --json --frob",
            "alias goto = print",
            "alias x = frob",
            "alias nothing",
            "unalias g",
            "g 5",
            "unalias g",
            "unalias",
            "help where-5",
            "alias pauses = SELECT count(*) AS n FROM events WHERE kind = 'pause'",
            "pauses AND seq > 6",
        ],
        expect![[r#"
            g = goto
            where-5 = print 5
            g = goto
            Thread 4242 (synth-4242) at event 5, entry of price: somewhere in price
            where-5 = print 5
             n
            ---
             3
            --- stderr
            error: unexpected argument '--frob' found
            help: write: goto --json <PLACE>...
              at --cmd 6: g 5 --json --frob (exit code 2)
            error: "goto" is a verb and cannot be an alias
            help: choose another name
              at --cmd 7: alias goto = print (exit code 2)
            error: an alias stands for a verb, and "frob" is none
            help: write: alias NAME = VERB ...; help lists the verbs
              at --cmd 8: alias x = frob (exit code 2)
            error: there is no alias "nothing"
            help: aliases: g, where-5
              at --cmd 9: alias nothing (exit code 2)
            error: there is no verb "g"
            help: help lists the verbs; SQL begins with SELECT, WITH or EXPLAIN
              at --cmd 11: g 5 (exit code 2)
            error: there is no alias "g"
            help: aliases: where-5
              at --cmd 12: unalias g (exit code 2)
            error: unalias takes the name of an alias
            help: alias lists them
              at --cmd 13: unalias (exit code 2)
            --- exit code 2
        "#]],
    );
}

#[test]
fn watches_stop_where_a_value_has_changed() {
    check(
        &[
            "watch",
            "watch $rbx",
            "watch list",
            "continue",
            "continue",
            "continue",
            "reverse-continue",
            "break price",
            "watch $rip",
            "watch",
            "continue back",
            "delete 2",
            "unwatch 1",
            "goto first",
            "continue",
            "watch remove --all",
            "unwatch",
        ],
        expect![[r#"
            Nothing is watched.
            Watch 1: $rbx (everywhere)
             ID | Expression | Where
            ----+------------+------------
              1 | $rbx       | everywhere
            Breakpoint 2: price (1 function)
            Watch 3: $rip (everywhere)
             ID | Expression | Where
            ----+------------+------------
              1 | $rbx       | everywhere
              3 | $rip       | everywhere
            1 breakpoint removed
            Watch 1 removed: $rbx
            Thread 4242 (synth-4242) at event 0, module_load: /home/ada/shop/shop: not known where
            Thread 4242 (synth-4242) at event 9, pause: step in price at /src/shop.c:13: 0x555555555051
            Watch 3: $rip was 93824992235592, is 93824992235601
            Watch 3 removed: $rip
            Nothing was watched.
            --- stderr
            error: the recording shows no change of what is watched behind event 0
            help: look at what it shows: history EXPRESSION; or: goto last
              at --cmd 4: continue (exit code 2)
            error: the recording shows no change of what is watched behind event 0
            help: look at what it shows: history EXPRESSION; or: goto last
              at --cmd 5: continue (exit code 2)
            error: the recording shows no change of what is watched behind event 0
            help: look at what it shows: history EXPRESSION; or: goto last
              at --cmd 6: continue (exit code 2)
            error: the recording shows no change of what is watched before event 0
            help: look at what it shows: history EXPRESSION; or: goto first
              at --cmd 7: reverse-continue (exit code 2)
            error: the recording shows no change of what is watched before event 0
            help: look at what it shows: history EXPRESSION; or: goto first
              at --cmd 11: continue back (exit code 2)
            --- exit code 2
        "#]],
    );
}

#[test]
fn help_tells_of_verbs_of_all_kinds() {
    check(
        &[
            "help step back",
            "help alias",
            "help continue where",
            "help quit",
        ],
        expect![[r#"
            Go to the event before

            Usage: step-back [OPTIONS] [COUNT]

            Arguments:
              [COUNT]
                      How many events

            Options:
                  --json
                      Print the reply as JSON

              -h, --help
                      Print help

            Give a name to a verb with some of its words

              alias NAME = VERB ...   alias px = print --format hex
              alias, alias NAME       all aliases; one of them
              unalias NAME            forget it

            What is made at a prompt is kept in ~/.config/hindsight/aliases; what a script makes
            ends with it. What stands behind the name in a line is added to the meaning.
            Go to the next call of which a condition is true, or to the one before

              continue where CONDITION
              reverse-continue where CONDITION

            The condition is one of SQL over the columns of calls: continue where dur_ns > 1000000
            Leave. A program that was started here is ended and its recording closed;
            one that was started elsewhere or attached to goes on under the daemon.

              quit --keep   let a program that was started here go on too
        "#]],
    );
}

#[test]
fn mistakes_about_watches_are_answered() {
    check(
        &[
            "watch 1 +",
            "watch nobody",
            "watch $nothing",
            "watch $rbx --read",
            "watch $rbx --condition=1",
            "unwatch 7",
            "unwatch x",
            "watch remove 1 --all",
            "watch $rbx",
            "goto last",
            "continue",
            "goto first",
            "reverse-continue",
        ],
        expect![[r#"
            Watch 1: $rbx (everywhere)
            Thread 4242 (synth-4242) at event 27, process_exit: not known where
            Thread 4242 (synth-4242) at event 0, module_load: /home/ada/shop/shop: not known where
            --- stderr
            error: the expression "1 +": expected an expression at position 3
              at --cmd 1: watch 1 + (exit code 1)
            error: no variable "nobody" here (the module /home/ada/shop/shop cannot be read: open /home/ada/shop/shop: No such file or directory)
              at --cmd 2: watch nobody (exit code 1)
            error: no register "nothing"
            help: known are rax to r15, rip, rflags, xmm0 to xmm15, fs_base and gs_base
              at --cmd 3: watch $nothing (exit code 1)
            error: --read needs a program that runs: a recording shows changes of values
            help: write: watch EXPRESSION
              at --cmd 4: watch $rbx --read (exit code 2)
            error: --condition=1 needs a program that runs: a recording shows changes of values
            help: write: watch EXPRESSION
              at --cmd 5: watch $rbx --condition=1 (exit code 2)
            error: there is no watch 7
            help: list them with: watch
              at --cmd 6: unwatch 7 (exit code 2)
            error: invalid value 'x' for '[ID]': invalid digit found in string
              at --cmd 7: unwatch x (exit code 2)
            error: the argument '[ID]' cannot be used with '--all'
            help: write: unwatch [ID]
              at --cmd 8: watch remove 1 --all (exit code 2)
            error: the recording shows no change of what is watched behind event 27
            help: look at what it shows: history EXPRESSION; or: goto last
              at --cmd 11: continue (exit code 2)
            error: the recording shows no change of what is watched before event 0
            help: look at what it shows: history EXPRESSION; or: goto first
              at --cmd 13: reverse-continue (exit code 2)
            --- exit code 2
        "#]],
    );
}

#[test]
fn the_prompt_says_that_it_is_a_recording() {
    let folder = Folder::with_debugged();
    let text = folder.on_terminal(
        80,
        &["TERM=dumb"],
        &["repl", "debugged"],
        &[
            ("recorded 0 t4242> ", "goto 5\n"),
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
    // What is kept is there the next time, in scripts too.
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
            ("recorded ", "goto 5\r"),
            ("at event 5", ""),
            ("recorded 5 ", "quit\r"),
        ],
    );
    assert!(!text.contains("exit code"), "{text}");
}

#[test]
fn histories_tell_every_change() {
    check(
        &[
            "goto 9",
            "history $rbx",
            "last-write $rbx",
            "history nobody",
            "history",
            "select seq, tid, old, new from history('$rbx') order by seq",
            "select * from history('nobody')",
            "select * from history('count', 'nothing')",
            "select * from history('count', 'price')",
            "select * from history('1 +')",
            "select * from history(1)",
            "select * from history('a', 'b', 'c')",
        ],
        expect![[r#"
            Thread 4242 (synth-4242) at event 9, pause: step in price at /src/shop.c:13: 0x555555555051
             Event | Thread | Value | Place
            -------+--------+-------+-------
                 6 |   4242 | 4101  | 
                22 |   4243 | 4101  | 
            $rbx is 4101 since it was first seen, at event 6.
             seq |  tid | old  | new
            -----+------+------+------
               6 | 4242 | NULL | 4101
              22 | 4243 | NULL | 4101
            --- stderr
            error: no variable "nobody" here (the module /home/ada/shop/shop cannot be read: open /home/ada/shop/shop: No such file or directory)
              at --cmd 4: history nobody (exit code 1)
            error: the following required arguments were not provided:
            help: write: history <EXPRESSION>...
              at --cmd 5: history (exit code 2)
            error: no variable "nobody" here (the module /home/ada/shop/shop cannot be read: open /home/ada/shop/shop: No such file or directory); a variable of a function is asked for with the function: history('count', 'line')
              at --cmd 7: select * from history('nobody') (exit code 2)
            error: no recorded function is called nothing; SELECT name FROM functions lists them
              at --cmd 8: select * from history('count', 'nothing') (exit code 2)
            error: cannot compute the answer: nothing is known of price: the module /home/ada/shop/shop cannot be read: open /home/ada/shop/shop: No such file or directory
              at --cmd 9: select * from history('count', 'price') (exit code 1)
            error: the expression "1 +": expected an expression at position 3
              at --cmd 10: select * from history('1 +') (exit code 2)
            error: history takes an expression, and the function whose variables it is about: history('total') or history('count', 'line')
              at --cmd 11: select * from history(1) (exit code 2)
            error: history takes an expression, and the function whose variables it is about: history('total') or history('count', 'line')
              at --cmd 12: select * from history('a', 'b', 'c') (exit code 2)
            --- exit code 2
        "#]],
    );
}

#[test]
fn watches_and_histories_have_json() {
    let folder = Folder::with_debugged();
    let args = [
        "repl",
        "debugged",
        "--json",
        "--cmd",
        "watch $rbx",
        "--cmd",
        "watch",
        "--cmd",
        "continue",
        "--cmd",
        "continue",
        "--cmd",
        "unwatch 1",
        "--cmd",
        "note x",
    ];
    expect![[r#"
        {
          "id": 1,
          "result": {
            "expression": "$rbx",
            "id": 1
          },
          "success": true
        }
        {
          "id": 1,
          "result": {
            "watches": [
              {
                "expression": "$rbx",
                "id": 1
              }
            ]
          },
          "success": true
        }
        {
          "error": {
            "code": "NO_EVENT",
            "hint": "look at what it shows: history EXPRESSION; or: goto last",
            "message": "the recording shows no change of what is watched behind event 0"
          },
          "id": 1,
          "success": false
        }
        {
          "error": {
            "code": "NO_EVENT",
            "hint": "look at what it shows: history EXPRESSION; or: goto last",
            "message": "the recording shows no change of what is watched behind event 0"
          },
          "id": 1,
          "success": false
        }
        {
          "id": 1,
          "result": {
            "watches": [
              {
                "expression": "$rbx",
                "id": 1
              }
            ]
          },
          "success": true
        }
        {
          "id": 1,
          "result": {
            "added": true,
            "seq": 0,
            "text": "x"
          },
          "success": true
        }
        --- stderr
          at --cmd 3: continue (exit code 2)
          at --cmd 4: continue (exit code 2)
        --- exit code 2
    "#]]
    .assert_eq(&folder.transcript(&args));
}

#[test]
fn notes_are_kept_beside_the_recording() {
    let folder = Folder::with_debugged();
    let run = |lines: &[&str]| {
        let mut args = vec!["repl", "debugged"];
        for line in lines {
            args.extend(["--cmd", line]);
        }
        folder.transcript(&args)
    };
    expect![[r#"
        Thread 4242 (synth-4242) at event 9, pause: step in price at /src/shop.c:13: 0x555555555051
        Note at event 9: the price is wrong
         Event | Note
        -------+----------------------
             2 | why is order 3 free?
             9 | the price is wrong
        --- stderr
        error: the following required arguments were not provided:
        help: write: note TEXT
          at --cmd 4: note (exit code 2)
        --- exit code 2
    "#]]
    .assert_eq(&run(&[
        "goto 9",
        "note the price is wrong",
        "notes",
        "note",
    ]));
    expect![[r#"
        Thread 4242 (synth-4242) at event 9, pause: step in price at /src/shop.c:13: 0x555555555051
        Thread 4242 (synth-4242) at event 5, entry of price: somewhere in price
        Note at event 5: before it
         Event | Note
        -------+----------------------
             2 | why is order 3 free?
             5 | before it
             9 | the price is wrong
         seq | text                 | later
        -----+----------------------+-------
           2 | why is order 3 free? | NULL
           5 | before it            | true
           9 | the price is wrong   | true
         count(*)
        ----------
                1
    "#]]
    .assert_eq(&run(&[
        "goto @the price",
        "goto 5",
        "note before it",
        "notes",
        "select seq, text, added_unix_ns > 0 as later from notes order by seq",
        "select count(*) from events where kind = 'note'",
    ]));
    assert!(folder.transcript(&["check", "debugged"]).contains("whole"));
}

#[test]
fn notes_are_refused_where_they_cannot_be_kept() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::with_debugged();
    let note = ["repl", "debugged", "--cmd", "note more", "--cmd", "notes"];
    folder.transcript(&["repl", "debugged", "--cmd", "goto 3", "--cmd", "note kept"]);
    let dir = folder.path("debugged.hindsight");
    let mode = |mode| std::fs::set_permissions(&dir, PermissionsExt::from_mode(mode)).unwrap();
    mode(0o500);
    expect![[r#"
         Event | Note
        -------+----------------------
             2 | why is order 3 free?
             3 | kept
        --- stderr
        error: nothing was added to the recording: debugged.hindsight is read-only
        help: copy the recording and open the copy, or make it writable with: chmod u+w
          at --cmd 1: note more (exit code 1)
        --- exit code 1
    "#]]
    .assert_eq(&folder.transcript(&note));
    mode(0o700);
    let long = format!("note {}", "x".repeat(5000));
    expect![[r#"
        --- stderr
        error: nothing was added to the recording: its 5000 bytes are too many for a note
        help: write at most 4096
          at --cmd 1: note xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx (exit code 1)
        --- exit code 1
    "#]].assert_eq(&folder.transcript(&["repl", "debugged", "--cmd", &long]));
    let name = "debugged.hindsight/notes";
    let before = std::fs::read(folder.path(name)).unwrap();
    folder.damage(name, before.len() - 1);
    let damaged = std::fs::read(folder.path(name)).unwrap();
    expect![[r#"
        --- stderr
        error: debugged.hindsight/notes is damaged at offset 64: the frame's checksum differs
        help: run "hindsight check" for a full report and restore the file from a copy
          at --cmd 1: note more (exit code 1)
        error: debugged.hindsight/notes is damaged at offset 64: the frame's checksum differs
        help: run "hindsight check" for a full report and restore the file from a copy
          at --cmd 2: notes (exit code 1)
        --- exit code 1
    "#]]
    .assert_eq(&folder.transcript(&note));
    assert_eq!(std::fs::read(folder.path(name)).unwrap(), damaged);
    expect![[r#"
        debugged.hindsight: damaged
          read     7 files, 25.4 kB
          columns  1 part, 1 call (0 unfinished), 26 other events, 1 function
          damage: notes at offset 64: the frame's checksum differs
        --- exit code 1
    "#]]
    .assert_eq(&folder.transcript(&["check", "debugged"]));
    let sql = |question: &str| folder.transcript(&["sql", "debugged", question]);
    expect![[r#"
        --- stderr
        error: debugged.hindsight/notes is damaged at offset 64: the frame's checksum differs; run "hindsight check" for a full report and restore the file from a copy
        --- exit code 2
    "#]].assert_eq(&sql("select * from notes"));
    assert!(sql("select count(*) from events").contains("28"));
}

#[test]
fn packing_says_what_is_missing() {
    let folder = Folder::with_debugged();
    expect![[r#"
        debugged.hindsight: 0 modules and 0 source files packed, 0 B
        not packed: the module /home/ada/shop/shop cannot be read: open /home/ada/shop/shop: No such file or directory (os error 2)
        --- exit code 1
    "#]].assert_eq(&folder.transcript(&["pack", "debugged"]));
    expect![[r#"
        {
          "bytes": 0,
          "debug_files": 0,
          "missing": [
            {
              "path": "/home/ada/shop/shop",
              "why": "the module /home/ada/shop/shop cannot be read: open /home/ada/shop/shop: No such file or directory (os error 2)"
            }
          ],
          "modules": 0,
          "recording": "debugged.hindsight",
          "sources": 0
        }
        --- exit code 1
    "#]].assert_eq(&folder.transcript(&["pack", "debugged", "--json"]));
    expect![[r#"
        --- stderr
        error: there is no recording nothing
        help: did you mean debugged.hindsight?
        --- exit code 2
    "#]]
    .assert_eq(&folder.transcript(&["pack", "nothing"]));
    folder.damage("debugged.hindsight/modules/index", 70);
    expect![[r#"
        --- stderr
        error: debugged.hindsight/modules/index is damaged at offset 64: the frame's checksum differs
        help: run "hindsight check" for a full report and restore the file from a copy
        --- exit code 1
    "#]].assert_eq(&folder.transcript(&["pack", "debugged"]));
    expect![[r#"
        Thread 4242 (synth-4242) at event 6, pause: breakpoint 1 in price at /src/shop.c:12: 0x555555555048
        --- stderr
        error: no variable "sold" here
        help: the module /home/ada/shop/shop cannot be read: open /home/ada/shop/shop: No such file or directory (os error 2); of its copy: debugged.hindsight/modules/index is damaged at offset 64: the frame's checksum differs; run "hindsight check" for a full report and restore the file from a copy
          at --cmd 2: print sold (exit code 1)
        --- exit code 1
    "#]].assert_eq(&folder.transcript(&[
        "repl",
        "debugged",
        "--cmd",
        "continue",
        "--cmd",
        "print sold",
    ]));
}

#[test]
fn places_in_time_have_many_forms() {
    check(
        &[
            "goto 0%",
            "goto 100%",
            "goto 25%",
            "goto 101%",
            "goto -1%",
            "goto 0s",
            "goto 1s",
            "goto 120ns",
            "goto 1.5",
            "goto output:0",
            "goto output:x",
            "goto @",
            "goto 1_0",
        ],
        expect![[r#"
            Thread 4242 (synth-4242) at event 0, module_load: /home/ada/shop/shop: not known where
            Thread 4242 (synth-4242) at event 27, process_exit: not known where
            Thread 4242 (synth-4242) at event 7, write: items: 0x555555555048
            Thread 4242 (synth-4242) at event 0, module_load: /home/ada/shop/shop: not known where
            Thread 4242 (synth-4242) at event 27, process_exit: not known where
            Thread 4242 (synth-4242) at event 12, return from price: 0x401234
            Thread 4242 (synth-4242) at event 10, write: $xmm0: 0x555555555051
            --- stderr
            error: 101% is not between 0% and 100% of the recording
              at --cmd 4: goto 101% (exit code 2)
            error: unexpected argument '-1' found
            help: write: goto [OPTIONS] <PLACE>...
              at --cmd 5: goto -1% (exit code 2)
            error: "1.5" is no place in time
            help: write an event's number, first, last, 50%, 1.5s, @NOTE or output:LINE
              at --cmd 9: goto 1.5 (exit code 2)
            error: "output:0" is no place in time
            help: write an event's number, first, last, 50%, 1.5s, @NOTE or output:LINE
              at --cmd 10: goto output:0 (exit code 2)
            error: "output:x" is no place in time
            help: write an event's number, first, last, 50%, 1.5s, @NOTE or output:LINE
              at --cmd 11: goto output:x (exit code 2)
            error: "@" is no place in time
            help: write an event's number, first, last, 50%, 1.5s, @NOTE or output:LINE
              at --cmd 12: goto @ (exit code 2)
            --- exit code 2
        "#]],
    );
}
