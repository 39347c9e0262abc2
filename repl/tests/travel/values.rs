//! Values over time: watches and histories.

use expect_test::expect;

use super::check;
use super::common::Folder;

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
            "watch",
            "watch remove --all",
            "unwatch",
        ],
        expect![[r#"
            Thread 4243 (synth-4243) at event 0, module_load: /home/ada/shop/shop: location unknown
            Nothing is watched.
            Watch 1: $rbx (everywhere)
             ID | Expression | Hits | Where
            ----+------------+------+------------
              1 | $rbx       |    0 | everywhere
            Breakpoint 2: price (1 function)
            Watch 3: $rip (everywhere)
             ID | Expression | Hits | Where
            ----+------------+------+------------
              1 | $rbx       |    0 | everywhere
              3 | $rip       |    0 | everywhere
            1 breakpoint removed
            Watch 1 removed: $rbx
            Thread 4243 (synth-4243) at event 0, module_load: /home/ada/shop/shop: location unknown
            Thread 4242 (synth-4242) at event 9, pause: step in price at /src/shop.c:13: 0x555555555051
            Watch 3: $rip was 93824992235592, is 93824992235601
             ID | Expression | Hits | Where
            ----+------------+------+------------
              3 | $rip       |    1 | everywhere
            Watch 3 removed: $rip
            Nothing was watched.
            --- stderr
            error: the recording shows no change of a watched expression after event 0
            help: look at what it shows: history EXPRESSION; or: goto last
              at --cmd 5: continue (exit code 2)
            error: the recording shows no change of a watched expression after event 0
            help: look at what it shows: history EXPRESSION; or: goto last
              at --cmd 6: continue (exit code 2)
            error: the recording shows no change of a watched expression after event 0
            help: look at what it shows: history EXPRESSION; or: goto last
              at --cmd 7: continue (exit code 2)
            error: the recording shows no change of a watched expression before event 0
            help: look at what it shows: history EXPRESSION; or: goto first
              at --cmd 8: reverse-continue (exit code 2)
            error: the recording shows no change of a watched expression before event 0
            help: look at what it shows: history EXPRESSION; or: goto first
              at --cmd 12: continue back (exit code 2)
            --- exit code 2
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
            Thread 4243 (synth-4243) at event 0, module_load: /home/ada/shop/shop: location unknown
            Watch 1: $rbx (everywhere)
            Thread 4243 (synth-4243) at event 27, the program was killed by SIGSEGV: location unknown
            Thread 4243 (synth-4243) at event 0, module_load: /home/ada/shop/shop: location unknown
            --- stderr
            error: the expression "1 +": expected an expression at position 3
              at --cmd 2: watch 1 + (exit code 1)
            error: no variable "nobody" here (the module /home/ada/shop/shop cannot be read: open /home/ada/shop/shop: No such file or directory)
              at --cmd 3: watch nobody (exit code 1)
            error: no register "nothing"
            help: known are rax to r15, rip, rflags, xmm0 to xmm15, ymm, zmm, k0 to k7, st0 to st7, mxcsr, fctrl, fs_base and gs_base
              at --cmd 4: watch $nothing (exit code 1)
            error: a watch of a recording stops where the value changes, and takes no condition or option
            help: watch it: watch $rbx; or see all changes: history $rbx
              at --cmd 5: watch $rbx --read (exit code 1)
            error: a watch of a recording stops where the value changes, and takes no condition or option
            help: watch it: watch $rbx; or see all changes: history $rbx
              at --cmd 6: watch $rbx --condition=1 (exit code 1)
            error: there is no watch 7
            help: list them with: watch
              at --cmd 7: unwatch 7 (exit code 2)
            error: "x" is not a number
            help: write list in place of remove to see the numbers, or add remove for a function of that name
              at --cmd 8: unwatch x (exit code 2)
            error: write the numbers, or --all
              at --cmd 9: watch remove 1 --all (exit code 2)
            error: the recording shows no change of a watched expression after event 27
            help: look at what it shows: history EXPRESSION; or: goto last
              at --cmd 12: continue (exit code 2)
            error: the recording shows no change of a watched expression before event 0
            help: look at what it shows: history EXPRESSION; or: goto first
              at --cmd 14: reverse-continue (exit code 2)
            --- exit code 2
        "#]],
    );
}

#[test]
fn histories_tell_every_change() {
    check(
        &[
            "goto 9",
            "history $rbx",
            "history $rbx --limit 1 --full",
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
            Thread 4243 (synth-4243) at event 0, module_load: /home/ada/shop/shop: location unknown
            Thread 4242 (synth-4242) at event 9, pause: step in price at /src/shop.c:13: 0x555555555051
             Event | Thread | Value | Place
            -------+--------+-------+-------
                 6 |   4242 | 4101  | 
                22 |   4243 | 4101  | 
             Event | Thread | Value | Place
            -------+--------+-------+-------
                 6 |   4242 | 4101  | 
            (1 more: --skip 1, or --limit 0 for all)
            $rbx is 4101 since it was first seen, at event 6.
            This is up to event 9; $rbx changes later; the last change that was seen is at event 22: goto last
             seq |  tid | old  | new
            -----+------+------+------
               6 | 4242 | NULL | 4101
              22 | 4243 | NULL | 4101
            --- stderr
            error: no variable "nobody" here (the module /home/ada/shop/shop cannot be read: open /home/ada/shop/shop: No such file or directory)
              at --cmd 6: history nobody (exit code 1)
            error: the following required arguments were not provided: <EXPRESSION>...
            help: write: history <EXPRESSION>...
              at --cmd 7: history (exit code 2)
            error: no variable "nobody" here (the module /home/ada/shop/shop cannot be read: open /home/ada/shop/shop: No such file or directory)
            help: name the function too for one of its variables: history('count', 'line')
              at --cmd 9: select * from history('nobody') (exit code 2)
            error: no recorded function is called nothing
            help: SELECT name FROM functions lists them
              at --cmd 10: select * from history('count', 'nothing') (exit code 2)
            error: cannot compute the answer: nothing is known of price: the module /home/ada/shop/shop cannot be read: open /home/ada/shop/shop: No such file or directory
              at --cmd 11: select * from history('count', 'price') (exit code 1)
            error: the expression "1 +": expected an expression at position 3
              at --cmd 12: select * from history('1 +') (exit code 2)
            error: history takes an expression, and the function whose variables it is about: history('total') or history('count', 'line')
              at --cmd 13: select * from history(1) (exit code 2)
            error: history takes an expression, and the function whose variables it is about: history('total') or history('count', 'line')
              at --cmd 14: select * from history('a', 'b', 'c') (exit code 2)
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
            "hits": 0,
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
                "hits": 0,
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
            "message": "the recording shows no change of a watched expression after event 25"
          },
          "id": 1,
          "success": false
        }
        {
          "error": {
            "code": "NO_EVENT",
            "hint": "look at what it shows: history EXPRESSION; or: goto last",
            "message": "the recording shows no change of a watched expression after event 25"
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
                "hits": 0,
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
            "seq": 25,
            "text": "x"
          },
          "success": true
        }
        --- exit code 2
    "#]]
    .assert_eq(&folder.transcript(&args));
}
