//! Lines: scripts, aliases, help, and the answers to mistakes.

use expect_test::expect;

use super::check;
use super::common::Folder;

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
            "alias y = frob",
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
            Thread 4243 (synth-4243) at event 0, module_load: /home/ada/shop/shop: location unknown
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
              at --cmd 7: g 5 --json --frob (exit code 2)
            error: "goto" is a verb and cannot be an alias
            help: choose another name
              at --cmd 8: alias goto = print (exit code 2)
            error: an alias stands for a verb, and "frob" is not one
            help: write: alias NAME = VERB ...; help lists the verbs
              at --cmd 9: alias y = frob (exit code 2)
            error: there is no alias "nothing"
            help: aliases: g, where-5
              at --cmd 10: alias nothing (exit code 2)
            error: there is no verb "g"
            help: help lists the verbs; SQL begins with SELECT, WITH or EXPLAIN
              at --cmd 12: g 5 (exit code 2)
            error: there is no alias "g"
            help: aliases: where-5
              at --cmd 13: unalias g (exit code 2)
            error: unalias takes the name of an alias
            help: alias lists them
              at --cmd 14: unalias (exit code 2)
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
            Thread 4243 (synth-4243) at event 0, module_load: /home/ada/shop/shop: location unknown
            Go to the previous event

            If every instruction is recorded: to the beginning of the previous line, or with -i to the previous
            instruction.

            Usage: step-back [OPTIONS] [COUNT]

            Arguments:
              [COUNT]
                      How many events

            Options:
              -i, --instruction
                      Machine instructions, if every instruction is recorded

                  --json
                      Print the reply as JSON

              -h, --help
                      Print help (see a summary with '-h')

            Give a name to a verb with some of its words

              alias NAME = VERB ...   alias px = print --format hex
              alias, alias NAME       all aliases; one of them
              unalias NAME            forget it

            A prompt keeps its aliases in ~/.config/hindsight/aliases; those of a script end with
            the script. Words after the name are added to its meaning.
            Go to the next call that matches a condition, or to the previous one

              continue where CONDITION
              reverse-continue where CONDITION

            The condition is one of SQL over the columns of calls, or of events:
              continue where dur_ns > 1000000
              continue where kind = 'stdout'
            Leave. A program that was started here is ended and its recording closed;
            one that was started elsewhere or attached to goes on under the daemon.

              quit --keep   let a program that was started here go on too
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
            Thread 4243 (synth-4243) at event 0, module_load: /home/ada/shop/shop: location unknown
            --- stderr
            error: there is no event 4711
            help: events are 0 to 27
              at --cmd 2: goto 4711 (exit code 2)
            error: "soon" is not a place in time
            help: write an event's number, first, last, crash, 50%, 1.5s, @NOTE, output:LINE or EVENT+INSTRUCTIONS
              at --cmd 3: goto soon (exit code 2)
            error: there is no note "nothing"
            help: list them with: notes
              at --cmd 4: goto @nothing (exit code 2)
            error: there is no line 3 of output
            help: the program wrote 0
              at --cmd 5: goto output:3 (exit code 2)
            error: there is no verb "stepp"
            help: did you mean step? help lists the verbs
              at --cmd 6: stepp (exit code 2)
            error: single instructions were not recorded
            help: step goes from event to event; hindsight record --full -- PROGRAM records every instruction
              at --cmd 7: step -i (exit code 1)
            error: zero steps lead nowhere
              at --cmd 8: next 0 (exit code 2)
            error: no recorded function is called nothing
            help: write a function's name, in which * stands for any text, or file:line; SELECT name FROM functions lists them
              at --cmd 9: break nothing (exit code 2)
            error: no frame of thread 4243 is known at event 0: no recorded call is open, and registers are not known
            help: go to an event that shows one: next, or continue
              at --cmd 10: frame 7 (exit code 2)
            error: there is no thread 1
            help: threads: 4242, 4243
              at --cmd 11: thread 1 (exit code 2)
            error: the expression "1 +": expected an expression at position 3
              at --cmd 12: print 1 + (exit code 1)
            error: no variable "nobody" here
            help: the module /home/ada/shop/shop cannot be read: open /home/ada/shop/shop: No such file or directory (os error 2)
              at --cmd 13: print nobody (exit code 1)
            error: set needs a program that runs, and this is a recording
            help: a variable of the session can be set: set $n 3
              at --cmd 14: set x 3 (exit code 1)
            error: memory of a recording cannot be written: what it recorded does not change
              at --cmd 15: memory write 0x10 00 (exit code 1)
            error: there is no verb "frob"
            help: help lists the verbs; SQL begins with SELECT, WITH or EXPLAIN
              at --cmd 16: help frob (exit code 2)
            error: there is no column "nothing"
              1 | select nothing from calls
                |        ^^^^^^^
              at --cmd 17: select nothing from calls (exit code 2)
            --- exit code 2
        "#]],
    );
}
