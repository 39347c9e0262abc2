//! Verbs that do not exist or would change the program, and unreadable scripts and aliases.

use expect_test::expect;

use super::check;
use super::common::Folder;

#[test]
fn what_would_change_the_program_is_refused() {
    check(
        "orders",
        &[
            "goto 19",
            "set sold 3",
            "set order->pieces 3",
            "eval sold = 3",
            "eval settle(order)",
            "memory write &sold 00",
            "logpoint settle x",
            "catch panic",
            "catch throw",
            "pause",
            "until settle",
            "await",
            "stop",
            "detach",
            "restart",
            "start ./orders",
            "attach 1",
            "status",
            "watch sold --read",
            "watch sold --access",
            "step -i",
            "next -i",
            "goto live",
        ],
        expect![[r#"
            Thread 28464 (orders) at event 19, pause: breakpoint 3: settle at /home/ada/orders/orders.c:36
            ->    36 |   int discount = order->pieces > 3;
            --- stderr
            error: set needs a program that runs, and this is a recording
            help: a variable of the session can be set: set $n 3
              at --cmd 2: set sold 3 (exit code 1)
            error: set needs a program that runs, and this is a recording
            help: a variable of the session can be set: set $n 3
              at --cmd 3: set order->pieces 3 (exit code 1)
            error: assigning to sold needs a program that runs, and this is a recording
            help: a variable of the session can be set: set $n 3
              at --cmd 4: eval sold = 3 (exit code 1)
            error: settle cannot be called: this recording has calls, not every instruction
            help: record every instruction, and call it there: hindsight rerun RECORDING --full
              at --cmd 5: eval settle(order) (exit code 1)
            error: memory of a recording cannot be written: what it recorded does not change
              at --cmd 6: memory write &sold 00 (exit code 1)
            error: logpoint needs a program that runs, and this is a recording
            help: or a recording of every instruction: hindsight record --full -- PROGRAM
              at --cmd 7: logpoint settle x (exit code 1)
            error: catch needs a program that runs, and this is a recording
            help: calls that an exception or a panic left: continue where unwound; or: break __cxa_throw, if it was recorded
              at --cmd 8: catch panic (exit code 1)
            error: catch needs a program that runs, and this is a recording
            help: calls that an exception or a panic left: continue where unwound; or: break __cxa_throw, if it was recorded
              at --cmd 9: catch throw (exit code 1)
            error: pause needs a program that runs, and this is a recording
              at --cmd 10: pause (exit code 1)
            error: until needs a program that runs, and this is a recording
            help: or a recording of every instruction: hindsight record --full -- PROGRAM
              at --cmd 11: until settle (exit code 1)
            error: await needs a program that runs, and this is a recording
              at --cmd 12: await (exit code 1)
            error: stop needs a program that runs, and this is a recording
            help: close ends the session of a recording, quit leaves its prompt
              at --cmd 13: stop (exit code 1)
            error: detach needs a program that runs, and this is a recording
            help: close ends the session of a recording, quit leaves its prompt
              at --cmd 14: detach (exit code 1)
            error: restart needs a program that runs, and this is a recording
            help: record the program again: hindsight rerun RECORDING
              at --cmd 15: restart (exit code 1)
            error: cannot start ./orders: No such file or directory
            help: name a program by its path, or one in PATH by its name
              at --cmd 16: start ./orders (exit code 4)
            error: attach needs a program that runs, and this is a recording
            help: in a shell: hindsight attach PID
              at --cmd 17: attach 1 (exit code 1)
            error: status needs a program that runs, and this is a recording
            help: where tells the moment, info proc the process
              at --cmd 18: status (exit code 1)
            error: a watch of a recording stops where the value changes, and takes no condition or option
            help: watch it: watch sold; or see all changes: history sold
              at --cmd 19: watch sold --read (exit code 1)
            error: a watch of a recording stops where the value changes, and takes no condition or option
            help: watch it: watch sold; or see all changes: history sold
              at --cmd 20: watch sold --access (exit code 1)
            error: single instructions were not recorded
            help: step goes from event to event; hindsight record --full -- PROGRAM records every instruction
              at --cmd 21: step -i (exit code 1)
            error: single instructions were not recorded
            help: step goes from event to event; hindsight record --full -- PROGRAM records every instruction
              at --cmd 22: next -i (exit code 1)
            error: "live" is not a place in time
            help: write an event's number, first, last, crash, 50%, 1.5s, @NOTE, output:LINE or EVENT+INSTRUCTIONS
              at --cmd 23: goto live (exit code 2)
            --- exit code 2
        "#]],
    );
}

#[test]
fn verbs_that_are_none_are_told() {
    check(
        "orders",
        &[
            "frob",
            "stpe",
            "help frob",
            "help stpe",
            "quit now",
            "alias",
            "alias nothing",
            "alias x",
            "alias a b",
            "alias x! = print",
            "alias y =",
            "unalias x",
            "goto --frob",
            "where more",
        ],
        expect![[r#"
            --- stderr
            error: there is no verb "frob"
            help: help lists the verbs; SQL begins with SELECT, WITH or EXPLAIN
              at --cmd 1: frob (exit code 2)
            error: there is no verb "stpe"
            help: did you mean step? help lists the verbs
              at --cmd 2: stpe (exit code 2)
            error: there is no verb "frob"
            help: help lists the verbs; SQL begins with SELECT, WITH or EXPLAIN
              at --cmd 3: help frob (exit code 2)
            error: there is no verb "stpe"
            help: did you mean step? help lists the verbs
              at --cmd 4: help stpe (exit code 2)
            error: quit does not take "now"
            help: write: quit, or quit --keep to keep the program running
              at --cmd 5: quit now (exit code 2)
            error: there is no alias "nothing"
            help: make one: alias NAME = VERB ...
              at --cmd 7: alias nothing (exit code 2)
            error: there is no alias "x"
            help: make one: alias NAME = VERB ...
              at --cmd 8: alias x (exit code 2)
            error: "x!" cannot be an alias
            help: a name is letters, digits, - and _
              at --cmd 10: alias x! = print (exit code 2)
            error: an alias stands for a verb, and "" is not one
            help: write: alias NAME = VERB ...; help lists the verbs
              at --cmd 11: alias y = (exit code 2)
            error: there is no alias "x"
            help: aliases: a
              at --cmd 12: unalias x (exit code 2)
            error: unexpected argument '--frob' found
            help: write: goto [OPTIONS] <PLACE>...
              at --cmd 13: goto --frob (exit code 2)
            error: unexpected argument 'more' found
            help: write: where [OPTIONS]
              at --cmd 14: where more (exit code 2)
            --- exit code 2
        "#]],
    );
}

#[test]
fn scripts_that_cannot_be_read_are_told() {
    let folder = Folder::with_frozen(&["shop"]);
    std::fs::write(folder.path("look.txt"), b"goto 5\ngoto \xff\ngoto 6\n").unwrap();
    expect![[r#"
        Thread 28155 (shop) at event 5, module_load: /usr/lib/x86_64-linux-gnu/libgcc_s.so.1: location unknown
        --- stderr
        error: cannot read the lines: stream did not contain valid UTF-8
        --- exit code 1
    "#]].assert_eq(&folder.transcript(&["repl", "shop", "--script", "look.txt"]));
    expect![[r#"
        --- stderr
        error: cannot read none.txt: No such file or directory
        --- exit code 1
    "#]]
    .assert_eq(&folder.transcript(&["repl", "shop", "--script", "none.txt"]));
    expect![[r#"
        Thread 28155 (shop) at event 5, module_load: /usr/lib/x86_64-linux-gnu/libgcc_s.so.1: location unknown
        --- stderr
        error: there is no verb "frob"
        help: help lists the verbs; SQL begins with SELECT, WITH or EXPLAIN
          at stdin:2: frob (exit code 2)
        --- exit code 2
    "#]].assert_eq(&folder.transcript_with(&["repl", "shop"], "goto 5\nfrob\n"));
}

#[test]
fn aliases_that_cannot_be_read_are_told() {
    let folder = Folder::with_frozen(&["shop"]);
    std::fs::create_dir_all(folder.path(".config/hindsight")).unwrap();
    let file = folder.path(".config/hindsight/aliases");
    let mut told = String::new();
    for text in ["g goto\n", "# mine\n\ng = frob\n", "goto = print\n"] {
        std::fs::write(&file, text).unwrap();
        told += &folder.repl("shop", &["where"]);
    }
    expect![[r#"
        --- stderr
        error: FOLDER/.config/hindsight/aliases:1: "g goto" is not NAME = VERB ...
        help: correct the line or remove it
        --- exit code 2
        --- stderr
        error: FOLDER/.config/hindsight/aliases:3: an alias stands for a verb, and "frob" is not one
        help: correct the line or remove it
        --- exit code 2
        --- stderr
        error: FOLDER/.config/hindsight/aliases:1: "goto" is a verb and cannot be an alias
        help: correct the line or remove it
        --- exit code 2
    "#]]
    .assert_eq(&told);
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir(&file).unwrap();
    expect![[r#"
        --- stderr
        error: cannot read FOLDER/.config/hindsight/aliases: Is a directory
        --- exit code 1
    "#]]
    .assert_eq(&folder.repl("shop", &["where"]));
}
