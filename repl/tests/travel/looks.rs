//! Verbs that show state: registers, memory, calls, threads and breakpoints, as text and JSON.

use expect_test::expect;

use super::check;
use super::common::Folder;

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
            Thread 4243 (synth-4243) at event 0, module_load: /home/ada/shop/shop: location unknown
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
            Thread 4242 (synth-4242) at event 27, the program was killed by SIGSEGV: location unknown
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
            Thread 4243 (synth-4243) at event 0, module_load: /home/ada/shop/shop: location unknown
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
              at --cmd 4: memory read 0x7f0000007f00 --count 16 (exit code 1)
            error: memory at 0x10 cannot be read: unknown: not captured
              at --cmd 5: memory read 0x10 (exit code 1)
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
            "break list",
            "reverse-continue",
            "delete 1",
            "delete 1",
            "output",
        ],
        expect![[r#"
            Thread 4243 (synth-4243) at event 0, module_load: /home/ada/shop/shop: location unknown
            Thread 4242 (synth-4242) at event 5, entry of price: somewhere in price
            * price  5..12  70 ns
             Event | Note
            -------+----------------------
                 2 | why is order 3 free?
                 ID | Name       | State   | Location
            --------+------------+---------+--------------------
             * 4242 | synth-4242 | running | somewhere in price
            Breakpoint 1: price (1 function)
             ID | Location | Hits | Functions
            ----+----------+------+-----------
              1 | price    |    0 |         1
            1 breakpoint removed
            The program had written nothing up to here.
            --- stderr
            error: nothing before event 5 stops here
            help: set a breakpoint: break FUNCTION; or: goto first
              at --cmd 8: reverse-continue (exit code 2)
            error: there is no breakpoint 1
            help: list them with: break list
              at --cmd 10: delete 1 (exit code 2)
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
        --- exit code 2
    "#]]
    .assert_eq(&folder.transcript(&args));
}
