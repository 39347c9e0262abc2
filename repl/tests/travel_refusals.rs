//! What `hindsight repl` refuses in a recording, and with which words: each sentence that can be reached, once.

mod common;

use common::Folder;
use expect_test::{Expect, expect};
use store::control::Control;
use store::seal::{Ending, SealOptions, Sealer};
use store::synth::Synth;

fn check(recording: &str, lines: &[&str], expected: Expect) {
    let folder = Folder::with_frozen(&["orders", "shop"]);
    expected.assert_eq(&folder.repl(recording, lines));
}

/// Where the stack of made-up threads ends.
const SLOT: u64 = 0x7f00_0000_8000;

/// A folder with a made-up recording `made.hindsight`, closed and sealed.
fn made(synth: &Synth) -> Folder {
    let folder = Folder::empty();
    let recording = synth.record(&folder.path("made.hindsight")).unwrap();
    let sealer = Sealer::own(&recording, SealOptions::default()).unwrap();
    sealer.finish(Ending::Close, |_| {}).unwrap();
    folder
}

#[test]
fn moves_end_where_the_recording_does() {
    check(
        "orders",
        &[
            "goto first",
            "step back",
            "next back",
            "goto last",
            "step",
            "next",
            "goto 6",
            "next back",
            "finish",
            "reverse-finish",
            "continue back",
            "goto 68",
            "next",
            "goto 66",
            "continue",
        ],
        expect![[r#"
            Thread 28464 (orders) at event 0, process_start: /home/ada/orders/./orders: not known where
            Thread 28464 (orders) at event 69, process_exit: not known where
            Thread 28464 (orders) at event 6, pause: entry in _start: _start
            Thread 28464 (orders) at event 68, main was left by an exception or longjmp: not known where
            Thread 28464 (orders) at event 66, pause: breakpoint 3 in settle at /home/ada/orders/orders.c:36: settle at /home/ada/orders/orders.c:36
            ->    36 |   int discount = order->pieces > 3;
            --- stderr
            error: this is the first event of the recording
              at --cmd 2: step back (exit code 2)
            error: thread 28464 has no earlier event
              at --cmd 3: next back (exit code 2)
            error: this is the last event of the recording
            help: go back with: step back
              at --cmd 5: step (exit code 2)
            error: thread 28464 has no later event
              at --cmd 6: next (exit code 2)
            error: thread 28464 has no earlier event
              at --cmd 8: next back (exit code 2)
            error: thread 28464 is in no recorded call here
              at --cmd 9: finish (exit code 2)
            error: thread 28464 is in no recorded call here
              at --cmd 10: reverse-finish (exit code 2)
            error: nothing before event 6 stops here
            help: set a breakpoint: break FUNCTION; or: goto first
              at --cmd 11: continue back (exit code 2)
            error: thread 28464 has no later event
              at --cmd 13: next (exit code 2)
            error: nothing behind event 66 stops here
            help: set a breakpoint: break FUNCTION; or: goto last
              at --cmd 15: continue (exit code 2)
            --- exit code 2
        "#]],
    );
}

#[test]
fn calls_that_have_not_ended_have_no_end_to_go_to() {
    let mut synth = Synth::new();
    let (outer, inner) = (synth.function("outer"), synth.function("inner"));
    synth
        .thread(100)
        .at(10)
        .enter(outer, SLOT)
        .output(1, b"begun\n");
    synth
        .enter(inner, SLOT - 64)
        .output(1, b"working\n")
        .watermark();
    expect![[r#"
        Thread 100 (synth-100) at event 4, stdout "working\n": somewhere in inner
        * outer  1..  (not ended)
        *   inner  3..  (not ended)
        Thread 100 (synth-100) at event 3, entry of inner: somewhere in inner
        Thread 100 (synth-100) at event 4, stdout "working\n": somewhere in inner
        Thread 100 (synth-100) at event 2, stdout "begun\n": somewhere in outer
        * outer  1..  (not ended)
            inner  3..  (not ended)
        Thread 100 (synth-100) at event 3, entry of inner: somewhere in inner
         function | start_seq | end_seq | dur_ns
        ----------+-----------+---------+--------
         outer    |         1 |    NULL |     -1
         inner    |         3 |    NULL |     -1
        --- stderr
        error: the call of inner has not ended in this recording
        help: its last event: goto last
          at --cmd 3: finish (exit code 2)
        error: the call of inner that begins at event 3 has not ended in this recording
        help: go into it with: step
          at --cmd 7: next (exit code 2)
        --- exit code 2
    "#]]
    .assert_eq(&made(&synth).repl(
        "made",
        &[
            "goto output:2",
            "calls",
            "finish",
            "reverse-finish",
            "next",
            "goto output:1",
            "next",
            "calls",
            "continue where dur_ns < 0",
            "SELECT function, start_seq, end_seq, dur_ns FROM calls ORDER BY 2",
        ],
    ));
}

#[test]
fn a_call_in_place_of_one_that_was_not_recorded_returns_nobody_knows_where() {
    let mut synth = Synth::new();
    let tail = synth.function("tail");
    synth
        .thread(100)
        .at(10)
        .enter_tail(tail, SLOT)
        .output(1, b"x\n")
        .leave(SLOT)
        .thread_exit();
    expect![[r#"
        Thread 100 (synth-100) at event 2, stdout "x\n": somewhere in tail
        *#0   somewhere in tail
          (the rest is not known: where it returns to is not known)
        Thread 100 (synth-100) at event 3, return from tail: not known where
        --- stderr
        error: this is the outermost frame
          at --cmd 3: up (exit code 2)
        --- exit code 2
    "#]]
    .assert_eq(&made(&synth).repl("made", &["goto output:1", "backtrace", "up", "finish"]));
}

#[test]
fn places_that_are_not_there_are_told() {
    check(
        "shop",
        &[
            "goto @x",
            "notes",
            "goto 153",
            "goto 18446744073709551616",
            "goto 1e3s",
            "goto -1",
            "goto",
            "goto output:99",
        ],
        expect![[r#"
            The recording has no notes.
            Thread 28155 (shop) at event 152, process_exit: not known where
            --- stderr
            error: there is no note "x"
            help: the recording has no notes
              at --cmd 1: goto @x (exit code 2)
            error: there is no event 153
            help: events are 0 to 152
              at --cmd 3: goto 153 (exit code 2)
            error: "18446744073709551616" is no place in time
            help: write an event's number, first, last, 50%, 1.5s, @NOTE or output:LINE
              at --cmd 4: goto 18446744073709551616 (exit code 2)
            error: unexpected argument '-1' found
            help: write: goto [OPTIONS] <PLACE>...
              at --cmd 6: goto -1 (exit code 2)
            error: the following required arguments were not provided:
            help: write: goto <PLACE>...
              at --cmd 7: goto (exit code 2)
            error: there is no line 99 of output
            help: the program wrote 6
              at --cmd 8: goto output:99 (exit code 2)
            --- exit code 2
        "#]],
    );
}

#[test]
fn frames_have_a_first_and_a_last() {
    check(
        "orders",
        &[
            "goto 19",
            "down",
            "frame 3",
            "up 2",
            "up",
            "frame x",
            "goto 6",
            "frame 1",
            "up",
            "goto 3",
            "frame",
            "up",
            "backtrace",
            "where",
            "source",
            "source 12",
            "locals",
            "args",
            "disassemble",
            "print $rip",
        ],
        expect![[r#"
            Thread 28464 (orders) at event 19, pause: breakpoint 3 in settle at /home/ada/orders/orders.c:36: settle at /home/ada/orders/orders.c:36
            ->    36 |   int discount = order->pieces > 3;
            *#2   0x7f0be8e8c24a
            Thread 28464 (orders) at event 6, pause: entry in _start: _start
            Thread 28464 (orders) at event 3, module_load: /usr/lib/orders/ld-linux-x86-64.so.2: not known where
              (the rest is not known: no recorded call is open, and registers are not known)
            $rip = <unknown: not captured>
            --- stderr
            error: this is the innermost frame
              at --cmd 2: down (exit code 2)
            error: there is no frame 3
            help: frames are 0 to 2
              at --cmd 3: frame 3 (exit code 2)
            error: this is the outermost frame
              at --cmd 5: up (exit code 2)
            error: invalid value 'x' for '[N]': invalid digit found in string
              at --cmd 6: frame x (exit code 2)
            error: there is no frame 1
            help: frame 0 is the only one
              at --cmd 8: frame 1 (exit code 2)
            error: this is the outermost frame
              at --cmd 9: up (exit code 2)
            error: no frame of thread 28464 is known at event 3: no recorded call is open, and registers are not known
            help: go to an event that shows one: next, or continue
              at --cmd 11: frame (exit code 2)
            error: this is the outermost frame
              at --cmd 12: up (exit code 2)
            error: no frame of thread 28464 is known at event 3: no recorded call is open, and registers are not known
            help: go to an event that shows one: next, or continue
              at --cmd 14: where (exit code 2)
            error: no frame of thread 28464 is known at event 3: no recorded call is open, and registers are not known
            help: go to an event that shows one: next, or continue
              at --cmd 15: source (exit code 2)
            error: no frame of thread 28464 is known at event 3: no recorded call is open, and registers are not known
            help: go to an event that shows one: next, or continue
              at --cmd 16: source 12 (exit code 2)
            error: no frame of thread 28464 is known at event 3: no recorded call is open, and registers are not known
            help: go to an event that shows one: next, or continue
              at --cmd 17: locals (exit code 2)
            error: no frame of thread 28464 is known at event 3: no recorded call is open, and registers are not known
            help: go to an event that shows one: next, or continue
              at --cmd 18: args (exit code 2)
            error: no frame of thread 28464 is known at event 3: no recorded call is open, and registers are not known
            help: go to an event that shows one: next, or continue
              at --cmd 19: disassemble (exit code 2)
            --- exit code 2
        "#]],
    );
}

#[test]
fn frames_of_which_only_the_function_is_known_have_no_variables() {
    check(
        "orders",
        &[
            "goto 26",
            "locals",
            "args",
            "print text",
            "print sold",
            "print 1 +",
            "source 12",
            "registers rbp",
            "up",
            "locals",
            "goto 34",
            "locals",
            "print order",
            "set order 1",
            "history order",
            "watch order",
        ],
        expect![[r#"
            Thread 28464 (orders) at event 26, stdout "order 1 for Ada: 17.00\n": somewhere in say
            sold = 0 <stale: as of event 18>
             Register | Value                                  | Symbol
            ----------+----------------------------------------+--------
             rbp      | 0x7fff2dc3dcc0 <stale: as of event 19> | 
            *#1   settle at /home/ada/orders/orders.c:45
            ->    45 |   say(line);
             Name     | Type           | Value
            ----------+----------------+------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------
             order    | struct order * | 0x55a5866573d0 <stale: as of event 19>
             line     | char [64]      | "\000\000\000\000\000\000\000\000\331\363sx\245U\000\000\310\035tx\245U\000\000F\000tx\245U\000\000\000\000\000\000\000\000\364?\000\000\000\000\002\000\000\000\300\320sw\245U\000\000F\000tx\245U" <stale: as of event 19>
             discount | int            | 21925 <stale: as of event 19>
             sum      | double         | 6.9015600572187e-310 <stale: as of event 19>
            Thread 28464 (orders) at event 34, price was left by an exception or longjmp: somewhere in settle
            Watch 1: order (everywhere)
            --- stderr
            error: where in say the thread was at this event is not known
            help: go to the next event or the one before: step, or step back
              at --cmd 2: locals (exit code 1)
            error: where in say the thread was at this event is not known
            help: go to the next event or the one before: step, or step back
              at --cmd 3: args (exit code 1)
            error: no variable "text" here
            help: where in say the thread was at this event is not known, and so its variables are not: step, or step back
              at --cmd 4: print text (exit code 1)
            error: the expression "1 +": expected an expression at position 3
              at --cmd 6: print 1 + (exit code 1)
            error: no source file is looked at
            help: write file:line
              at --cmd 7: source 12 (exit code 2)
            error: where in settle the thread was at this event is not known
            help: go to the next event or the one before: step, or step back
              at --cmd 12: locals (exit code 1)
            error: order is a type
            help: to convert to it, write (order)(value)
              at --cmd 13: print order (exit code 1)
            error: set needs a program that runs: this is a recording, and what it recorded does not change
              at --cmd 14: set order 1 (exit code 1)
            error: order is a type
            help: to convert to it, write (order)(value)
              at --cmd 15: history order (exit code 1)
            --- exit code 1
        "#]],
    );
}

#[test]
fn what_a_missing_module_holds_is_told_with_its_name() {
    check(
        "orders",
        &[
            "goto 44",
            "where",
            "locals",
            "print sold",
            "print errno_of_nobody",
            "memory read $rip --count 4",
            "disassemble",
            "disassemble --count 1",
            "source",
            "backtrace",
            "memory read 0x7f0be8eefeec",
        ],
        expect![[r#"
            Thread 28464 (orders) at event 44, pause: signal 2 in __pthread_kill_implementation at ./nptl/nptl/pthread_kill.c:44: 0x7f0be8eefeec
            Thread 28464 (orders) at event 44, pause: signal 2 in __pthread_kill_implementation at ./nptl/nptl/pthread_kill.c:44: 0x7f0be8eefeec

            No source: no line is known here; look at the code: hindsight disassemble

            No variables are known here.
            sold = 4
            *#0   0x7f0be8eefeec ()
                   (calls that were not recorded may lie between)
             #1   somewhere in main in orders.hindsight/modules/000000/orders
             #2   0x7f0be8e8c24a ()
              (the rest is not known: the module /usr/lib/orders/libc.so.6 cannot be read: open /usr/lib/orders/libc.so.6: No such file or directory (os error 2))
            --- stderr
            error: no variables are known here
            help: the module /usr/lib/orders/libc.so.6 cannot be read: open /usr/lib/orders/libc.so.6: No such file or directory (os error 2)
              at --cmd 3: locals (exit code 1)
            error: no variable "errno_of_nobody" here
            help: the module /usr/lib/orders/libc.so.6 cannot be read: open /usr/lib/orders/libc.so.6: No such file or directory (os error 2)
              at --cmd 5: print errno_of_nobody (exit code 1)
            error: memory at 0x7f0be8eefeec cannot be read: unknown: the module /usr/lib/orders/libc.so.6 cannot be read: open /usr/lib/orders/libc.so.6: No such file or directory
              at --cmd 6: memory read $rip --count 4 (exit code 1)
            error: cannot disassemble at 0x7f0be8eefeec: no function is known at 0x7f0be8eefeec
            help: ask for a number of instructions from an address instead
              at --cmd 7: disassemble (exit code 1)
            error: cannot disassemble at 0x7f0be8eefeec: unknown: the module /usr/lib/orders/libc.so.6 cannot be read: open /usr/lib/orders/libc.so.6: No such file or directory
              at --cmd 8: disassemble --count 1 (exit code 1)
            error: no line is known at 0x7f0be8eefeec
            help: look at its code: hindsight disassemble
              at --cmd 9: source (exit code 2)
            error: memory at 0x7f0be8eefeec cannot be read: unknown: the module /usr/lib/orders/libc.so.6 cannot be read: open /usr/lib/orders/libc.so.6: No such file or directory
              at --cmd 11: memory read 0x7f0be8eefeec (exit code 1)
            --- exit code 1
        "#]],
    );
}

#[test]
fn registers_and_memory_have_bounds() {
    check(
        "orders",
        &[
            "goto 19",
            "registers rxx",
            "registers eax",
            "registers",
            "memory read &sold --count 0",
            "memory read &sold --count 5000000",
            "memory read sold",
            "memory read nobody",
            "memory read 0",
            "memory read 0xfffffffffffffffc --count 8",
            "memory read",
            "disassemble --count 0",
            "disassemble --count 100001",
            "disassemble 0x10",
            "disassemble 0x10 --count 1",
            "disassemble nobody",
            "disassemble &sold --count 1",
        ],
        expect![[r#"
            Thread 28464 (orders) at event 19, pause: breakpoint 3 in settle at /home/ada/orders/orders.c:36: settle at /home/ada/orders/orders.c:36
            ->    36 |   int discount = order->pieces > 3;
             Register | Value          | Symbol
            ----------+----------------+-----------
             rax      | 0x55a5866573d0 | 
             rbx      | 0x7fff2dc3de18 | 
             rcx      | 0x7f0be9038c60 | 
             rdx      | 0x55a578740046 | 
             rsi      | 0x18           | 
             rdi      | 0x55a5866573d0 | 
             rbp      | 0x7fff2dc3dcc0 | 
             rsp      | 0x7fff2dc3dc60 | 
             r8       | 0x7f0be9038c60 | 
             r9       | 0x7f0be90556d0 | 
             r10      | 0x7f0be8e77dd0 | 
             r11      | 0x20           | 
             r12      | 0x0            | 
             r13      | 0x7fff2dc3de28 | 
             r14      | 0x55a578741dc8 | 
             r15      | 0x7f0be9084020 | 
             rip      | 0x55a57873f2df | settle+12
             rflags   | 0x206          | 
             fs_base  | 0x7f0be8e62800 | 
             gs_base  | 0x0            | 
               0x55a578742070  add [rax],al
            --- stderr
            error: there is no register rxx
            help: registers are rax to r15, rip, rflags, fs_base, gs_base, xmm0 to xmm15
              at --cmd 2: registers rxx (exit code 2)
            error: there is no register eax
            help: registers are rax to r15, rip, rflags, fs_base, gs_base, xmm0 to xmm15
              at --cmd 3: registers eax (exit code 2)
            error: 0 bytes cannot be read at once: ask for 1 to 4194304
              at --cmd 5: memory read &sold --count 0 (exit code 2)
            error: 5000000 bytes cannot be read at once: ask for 1 to 4194304
              at --cmd 6: memory read &sold --count 5000000 (exit code 2)
            error: sold is no address: int is no pointer
            help: for where it lies, write &sold
              at --cmd 7: memory read sold (exit code 1)
            error: no variable "nobody" here
            help: the module /usr/lib/orders/libc.so.6 cannot be read: open /usr/lib/orders/libc.so.6: No such file or directory (os error 2)
              at --cmd 8: memory read nobody (exit code 1)
            error: memory at 0x0 cannot be read: unknown: not captured
              at --cmd 9: memory read 0 (exit code 1)
            error: memory at 0xfffffffffffffffc cannot be read: unknown: not captured
              at --cmd 10: memory read 0xfffffffffffffffc --count 8 (exit code 1)
            error: that is no place in memory
            help: hindsight memory read ADDRESS, or memory write ADDRESS BYTES
              at --cmd 11: memory read (exit code 2)
            error: ask for 1 to 100000 instructions, not 0
              at --cmd 12: disassemble --count 0 (exit code 2)
            error: ask for 1 to 100000 instructions, not 100001
              at --cmd 13: disassemble --count 100001 (exit code 2)
            error: cannot disassemble at 0x10: no function is known at 0x10
            help: ask for a number of instructions from an address instead
              at --cmd 14: disassemble 0x10 (exit code 1)
            error: cannot disassemble at 0x10: unknown: not captured
              at --cmd 15: disassemble 0x10 --count 1 (exit code 1)
            error: no variable "nobody" here
            help: the module /usr/lib/orders/libc.so.6 cannot be read: open /usr/lib/orders/libc.so.6: No such file or directory (os error 2)
              at --cmd 16: disassemble nobody (exit code 1)
            --- exit code 1
        "#]],
    );
}

#[test]
fn low_halves_are_no_whole_registers() {
    check(
        "orders",
        &[
            "goto 13",
            "print $xmm0",
            "print $xmm2",
            "print $nothing",
            "print $rbx",
            "print $rflags",
        ],
        expect![[r#"
            Thread 28464 (orders) at event 13, entry of ordered: ordered at /home/ada/orders/orders.c:49
            ->    49 | struct order *ordered(int id, int pieces, double each, const char *customer) {
            $xmm0 = <unknown: only its low half was captured>
            $xmm2 = 8388608 <stale: as of event 6>
            $rbx = 0 <stale: as of event 6>
            $rflags = 518 <stale: as of event 6>
            --- stderr
            error: no register "nothing"
            help: known are rax to r15, rip, rflags, xmm0 to xmm15, fs_base and gs_base
              at --cmd 4: print $nothing (exit code 1)
            --- exit code 1
        "#]],
    );
}

#[test]
fn sources_that_are_not_there_are_told() {
    check(
        "orders",
        &[
            "goto 19",
            "source nofile.c:1",
            "source orders.c:9999",
            "source nobody",
            "source --function nobody",
            "source 0x10",
            "break nobody",
            "break orders.c",
            "break nofile.c:3",
            "delete 4",
            "delete x",
            "thread 7",
            "thread x",
        ],
        expect![[r#"
            Thread 28464 (orders) at event 19, pause: breakpoint 3 in settle at /home/ada/orders/orders.c:36: settle at /home/ada/orders/orders.c:36
            ->    36 |   int discount = order->pieces > 3;
            --- stderr
            error: No source file nofile.c in any loaded module; compile it with -g, or wait until its library is loaded
            help: the module /usr/lib/orders/libc.so.6 cannot be read: open /usr/lib/orders/libc.so.6: No such file or directory (os error 2)
              at --cmd 2: source nofile.c:1 (exit code 2)
            error: /home/ada/orders/orders.c has no line 9999: it has 77 lines
            help: ask for a line from 1 to 77
              at --cmd 3: source orders.c:9999 (exit code 2)
            error: no loaded module has a function nobody
            help: write function, file:line or 0xADDRESS
              at --cmd 4: source nobody (exit code 2)
            error: no loaded module has a function nobody
            help: write function, file:line or 0xADDRESS
              at --cmd 5: source --function nobody (exit code 2)
            error: no line is known at 0x10
            help: look at its code: hindsight disassemble
              at --cmd 6: source 0x10 (exit code 2)
            error: no recorded function is called nobody
            help: write a function's name, in which * stands for any text, or file:line; SELECT name FROM functions lists them
              at --cmd 7: break nobody (exit code 2)
            error: no recorded function is called orders.c
            help: write a function's name, in which * stands for any text, or file:line; SELECT name FROM functions lists them
              at --cmd 8: break orders.c (exit code 2)
            error: no recorded function is called nofile.c:3
            help: write a function's name, in which * stands for any text, or file:line; SELECT name FROM functions lists them
              at --cmd 9: break nofile.c:3 (exit code 2)
            error: there is no breakpoint 4
            help: list them with: break
              at --cmd 10: delete 4 (exit code 2)
            error: invalid value 'x' for '[ID]': invalid digit found in string
              at --cmd 11: delete x (exit code 2)
            error: there is no thread 7
            help: threads: 28464, 28553
              at --cmd 12: thread 7 (exit code 2)
            error: invalid value 'x' for '[ID]': invalid digit found in string
              at --cmd 13: thread x (exit code 2)
            --- exit code 2
        "#]],
    );
}

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
            "catch signal",
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
            Thread 28464 (orders) at event 19, pause: breakpoint 3 in settle at /home/ada/orders/orders.c:36: settle at /home/ada/orders/orders.c:36
            ->    36 |   int discount = order->pieces > 3;
            --- stderr
            error: set needs a program that runs: this is a recording, and what it recorded does not change
              at --cmd 2: set sold 3 (exit code 1)
            error: set needs a program that runs: this is a recording, and what it recorded does not change
              at --cmd 3: set order->pieces 3 (exit code 1)
            error: eval needs a program that runs: this is a recording, and what it recorded does not change
              at --cmd 4: eval sold = 3 (exit code 1)
            error: eval needs a program that runs: this is a recording, and what it recorded does not change
              at --cmd 5: eval settle(order) (exit code 1)
            error: memory of a recording cannot be written: what it recorded does not change
              at --cmd 6: memory write &sold 00 (exit code 1)
            error: logpoint needs a program that runs: this is a recording, and what it recorded does not change
              at --cmd 7: logpoint settle x (exit code 1)
            error: catch needs a program that runs: this is a recording, and what it recorded does not change
              at --cmd 8: catch signal (exit code 1)
            error: catch needs a program that runs: this is a recording, and what it recorded does not change
              at --cmd 9: catch throw (exit code 1)
            error: pause needs a program that runs: this is a recording, and what it recorded does not change
              at --cmd 10: pause (exit code 1)
            error: until needs a program that runs: this is a recording, and what it recorded does not change
              at --cmd 11: until settle (exit code 1)
            error: await needs a program that runs: this is a recording, and what it recorded does not change
              at --cmd 12: await (exit code 1)
            error: stop needs a program that runs: this is a recording, and what it recorded does not change
              at --cmd 13: stop (exit code 1)
            error: detach needs a program that runs: this is a recording, and what it recorded does not change
              at --cmd 14: detach (exit code 1)
            error: restart needs a program that runs: this is a recording, and what it recorded does not change
              at --cmd 15: restart (exit code 1)
            error: cannot start ./orders: No such file or directory
              at --cmd 16: start ./orders (exit code 4)
            error: attach needs a program that runs: this is a recording, and what it recorded does not change
              at --cmd 17: attach 1 (exit code 1)
            error: status needs a program that runs: this is a recording, and what it recorded does not change
              at --cmd 18: status (exit code 1)
            error: --read needs a program that runs: a recording shows changes of values
            help: write: watch EXPRESSION
              at --cmd 19: watch sold --read (exit code 2)
            error: --access needs a program that runs: a recording shows changes of values
            help: write: watch EXPRESSION
              at --cmd 20: watch sold --access (exit code 2)
            error: single instructions were not recorded
            help: step goes from event to event
              at --cmd 21: step -i (exit code 1)
            error: single instructions were not recorded
            help: step goes from event to event
              at --cmd 22: next -i (exit code 1)
            error: "live" is no place in time
            help: write an event's number, first, last, 50%, 1.5s, @NOTE or output:LINE
              at --cmd 23: goto live (exit code 2)
            --- exit code 2
        "#]],
    );
}

#[test]
fn counts_that_are_none_are_refused() {
    check(
        "orders",
        &[
            "goto 19",
            "step 0",
            "next 0",
            "step x",
            "next -1",
            "step back x",
            "calls --limit x",
            "output --tail x",
            "backtrace --limit x",
            "backtrace --thread 7",
            "where --context x",
        ],
        expect![[r#"
            Thread 28464 (orders) at event 19, pause: breakpoint 3 in settle at /home/ada/orders/orders.c:36: settle at /home/ada/orders/orders.c:36
            ->    36 |   int discount = order->pieces > 3;
            --- stderr
            error: zero steps lead nowhere
              at --cmd 2: step 0 (exit code 2)
            error: zero steps lead nowhere
              at --cmd 3: next 0 (exit code 2)
            error: invalid value 'x' for '[COUNT]': invalid digit found in string
              at --cmd 4: step x (exit code 2)
            error: unexpected argument '-1' found
            help: write: next [OPTIONS] [COUNT]
              at --cmd 5: next -1 (exit code 2)
            error: invalid value 'x' for '[COUNT]': invalid digit found in string
              at --cmd 6: step back x (exit code 2)
            error: invalid value 'x' for '--limit <N>': invalid digit found in string
              at --cmd 7: calls --limit x (exit code 2)
            error: invalid value 'x' for '--tail <N>': invalid digit found in string
              at --cmd 8: output --tail x (exit code 2)
            error: invalid value 'x' for '--limit <N>': invalid digit found in string
              at --cmd 9: backtrace --limit x (exit code 2)
            error: there is no thread 7
            help: threads: 28464, 28553
              at --cmd 10: backtrace --thread 7 (exit code 2)
            error: invalid value 'x' for '--context <LINES>': invalid digit found in string
              at --cmd 11: where --context x (exit code 2)
            --- exit code 2
        "#]],
    );
}

#[test]
fn expressions_that_mean_nothing_are_told() {
    check(
        "orders",
        &[
            "goto 19",
            "print",
            "print 1 +",
            "print sold +",
            "print order->nobody",
            "print order.id.x",
            "print nobody",
            "print solt",
            "print counts",
            "print settle(order)",
            "print sold = 3",
            "print *sold",
            "print shop[9]",
            "print --format frob sold",
            "history",
            "history 1 +",
            "history nobody",
            "last-write",
            "last-write nobody",
            "watch nobody",
            "unwatch 3",
            "history $nothing",
        ],
        expect![[r#"
            Thread 28464 (orders) at event 19, pause: breakpoint 3 in settle at /home/ada/orders/orders.c:36: settle at /home/ada/orders/orders.c:36
            ->    36 |   int discount = order->pieces > 3;
            shop[9] = 111 'o'
            Watch 1: nobody (in settle)
            --- stderr
            error: the following required arguments were not provided:
            help: write: print <EXPRESSION>...
              at --cmd 2: print (exit code 2)
            error: the expression "1 +": expected an expression at position 3
              at --cmd 3: print 1 + (exit code 1)
            error: the expression "sold +": expected an expression at position 6
              at --cmd 4: print sold + (exit code 1)
            error: struct order has no member nobody
            help: it has id, pieces, each, customer
              at --cmd 5: print order->nobody (exit code 1)
            error: int has no members
              at --cmd 6: print order.id.x (exit code 1)
            error: no variable "nobody" here
            help: the module /usr/lib/orders/libc.so.6 cannot be read: open /usr/lib/orders/libc.so.6: No such file or directory (os error 2)
              at --cmd 7: print nobody (exit code 1)
            error: no variable "solt" here
            help: the module /usr/lib/orders/libc.so.6 cannot be read: open /usr/lib/orders/libc.so.6: No such file or directory (os error 2)
              at --cmd 8: print solt (exit code 1)
            error: no variable "counts" here
            help: the module /usr/lib/orders/libc.so.6 cannot be read: open /usr/lib/orders/libc.so.6: No such file or directory (os error 2)
              at --cmd 9: print counts (exit code 1)
            error: settle cannot be called here
            help: only what is in memory can be looked at
              at --cmd 10: print settle(order) (exit code 1)
            error: the expression "sold = 3": "=" assigns and is not allowed here; to compare, write "==" at position 5
              at --cmd 11: print sold = 3 (exit code 1)
            error: int is no pointer
            help: to look at that address, convert it: *(char*)...
              at --cmd 12: print *sold (exit code 1)
            error: invalid value 'frob' for '--format <FORMAT>'
              at --cmd 14: print --format frob sold (exit code 2)
            error: the following required arguments were not provided:
            help: write: history <EXPRESSION>...
              at --cmd 15: history (exit code 2)
            error: the expression "1 +": expected an expression at position 3
              at --cmd 16: history 1 + (exit code 1)
            error: no variable "nobody" here
              at --cmd 17: history nobody (exit code 1)
            error: the following required arguments were not provided:
            help: write: last-write <EXPRESSION>...
              at --cmd 18: last-write (exit code 2)
            error: no variable "nobody" here
              at --cmd 19: last-write nobody (exit code 1)
            error: there is no watch 3
            help: list them with: watch
              at --cmd 21: unwatch 3 (exit code 2)
            error: no register "nothing"
            help: known are rax to r15, rip, rflags, xmm0 to xmm15, fs_base and gs_base
              at --cmd 22: history $nothing (exit code 1)
            --- exit code 1
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
            "alias x =",
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
            help: write: quit, or quit --keep to let the program go on
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
            error: an alias stands for a verb, and "" is none
            help: write: alias NAME = VERB ...; help lists the verbs
              at --cmd 11: alias x = (exit code 2)
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
fn answers_may_be_empty() {
    check(
        "shop",
        &[
            "notes",
            "break",
            "watch",
            "output",
            "unwatch",
            "delete",
            "history $xmm5",
            "last-write $xmm5",
            "alias",
            "threads",
            "calls",
        ],
        expect![[r#"
            The recording has no notes.
            There are no breakpoints; runs through time stop where the recording did.
            Nothing is watched.
            The program had written nothing up to here.
            Nothing was watched.
            0 breakpoints removed
            The recording shows no value of $xmm5: it is known at no stop, at no copy of memory, at no capture, and at no entry of this function.
            The recording shows no value of $xmm5 up to here.
             ID | Name | State | Location
            ----+------+-------+----------
              main  8..151  167.45 us
        "#]],
    );
    let folder = Folder::with_debugged();
    expect![[r#"
        Thread 4242 (synth-4242) at event 27, process_exit: not known where
             ID | Name       | State   | Location
        --------+------------+---------+-----------------
         * 4243 | synth-4243 | running | not known where
        Thread 4243 is in no recorded call at event 27.
        The program had written nothing up to here.
        --- stderr
        error: no frame of thread 4243 is known at event 27: unknown: the process has ended
        help: go to an event that shows one: next, or continue
          at --cmd 4: args (exit code 2)
        --- exit code 2
    "#]]
    .assert_eq(&folder.repl(
        "debugged",
        &["goto last", "thread 4243", "calls", "args", "output"],
    ));
}

#[test]
fn a_recording_without_events_is_refused() {
    let folder = made(&Synth::new());
    expect![[r#"
        --- stderr
        error: the recording has no events
        help: record a program that does something
        --- exit code 1
    "#]]
    .assert_eq(&folder.repl("made", &["where"]));
}

#[test]
fn a_recording_without_threads_has_none_to_look_at() {
    let mut synth = Synth::new();
    synth.control(Control::ProcessStart {
        ticks: 1,
        pid: 4242,
        argv: vec!["shop".into()],
        exe: "/nowhere/shop".into(),
        cwd: "/".into(),
        attached: false,
    });
    let folder = made(&synth);
    expect![[r#"
         ID | Name | State | Location
        ----+------+-------+----------
          (the rest is not known: no recorded call is open, and registers are not known)
         Register | Value                   | Symbol
        ----------+-------------------------+--------
         rip      | <unknown: not captured> | 
        1 = 1
        Thread 0 is in no recorded call at event 0.
        --- stderr
        error: no thread is looked at
          at --cmd 1: thread (exit code 2)
        error: no frame of thread 0 is known at event 0: no recorded call is open, and registers are not known
        help: go to an event that shows one: next, or continue
          at --cmd 3: where (exit code 2)
        error: no variable "sold" here
          at --cmd 7: history sold (exit code 1)
        error: thread 0 has no later event
          at --cmd 9: next (exit code 2)
        error: thread 0 is in no recorded call here
          at --cmd 10: finish (exit code 2)
        error: cannot compute the answer: there is no thread 0
          at --cmd 11: SELECT value(0, 'sold') (exit code 1)
        error: cannot compute the answer: there is no thread 0
          at --cmd 12: SELECT reg(0, 'rip') (exit code 1)
        --- exit code 1
    "#]].assert_eq(&folder.repl(
        "made",
        &[
            "thread",
            "threads",
            "where",
            "backtrace",
            "registers rip",
            "print 1",
            "history sold",
            "calls",
            "next",
            "finish",
            "SELECT value(0, 'sold')",
            "SELECT reg(0, 'rip')",
        ],
    ));
}

#[test]
fn damaged_files_are_named() {
    let damaged = |file: &str, offset: usize, lines: &[&str]| {
        let folder = Folder::with_frozen(&["orders"]);
        folder.damage(&format!("orders.hindsight/{file}"), offset);
        folder.repl("orders", lines)
    };
    // What a stop saw, in its file's middle and where the file says which stops it has.
    let lines = [
        "goto 19",
        "registers rip",
        "print sold",
        "locals",
        "backtrace",
        "goto 13",
        "args",
    ];
    expect![[r#"
        --- stderr
        error: orders.hindsight/columns/states-000000.parquet is damaged at offset 0: the file's checksum differs
        help: run "hindsight check" for a full report and restore the file from a copy
        --- exit code 1
    "#]].assert_eq(&damaged("columns/states-000000.parquet", 3940, &lines));
    expect![[r#"
        --- stderr
        error: orders.hindsight/columns/states-000000.parquet is damaged at offset 0: the file's checksum differs
        help: run "hindsight check" for a full report and restore the file from a copy
        --- exit code 1
    "#]].assert_eq(&damaged("columns/states-000000.parquet", 40, &lines));
    // A copied page of memory.
    let lines = [
        "goto 19",
        "print sold",
        "print *order",
        "memory read &sold --count 4",
        "history sold",
        "args",
    ];
    expect![[r#"
        Thread 28464 (orders) at event 19, pause: breakpoint 3 in settle at /home/ada/orders/orders.c:36: settle at /home/ada/orders/orders.c:36
        ->    36 |   int discount = order->pieces > 3;
        sold = <orders.hindsight/memory/000002.mem is damaged at offset 64: the frame's checksum differs; run "hindsight check" for a full report and restore the file from a copy>
        *order = {id = 1, pieces = 2, each = 4.5, customer = 0x55a578740042 "Ada"}
         Event | Thread | Value | Place
        -------+--------+-------+--------
             4 |  28464 | 0     | 
            29 |  28464 | 4     | main
            65 |  28464 | 46    | settle
         Name  | Type           | Value
        -------+----------------+----------------
         order | struct order * | 0x55a5866573d0
        --- stderr
        error: memory at 0x55a578742070 cannot be read: orders.hindsight/memory/000002.mem is damaged at offset 64: the frame's checksum differs; run "hindsight check" for a full report and restore the file from a copy
          at --cmd 4: memory read &sold --count 4 (exit code 1)
        --- exit code 1
    "#]].assert_eq(&damaged("memory/000002.mem", 142, &lines));
    // The copy of the program.
    let lines = ["goto 19", "print sold", "calls", "output"];
    expect![[r#"
        Thread 28464 (orders) at event 19, pause: breakpoint 3 in settle at /home/ada/orders/orders.c:36: 0x55a57873f2df
        * main  12..68  0.29 s  (unwound)
        *   settle  17..28  0.18 s
              price  23..24  570 ns
              say  25..27  15.61 us
        The program had written nothing up to here.
        --- stderr
        error: no variable "sold" here
        help: the module /home/ada/orders/orders cannot be read: open /home/ada/orders/orders: No such file or directory (os error 2); of its copy: the module orders.hindsight/modules/000000/orders cannot be read: open orders.hindsight/modules/000000/orders: not an ELF file; name a compiled program or library
          at --cmd 2: print sold (exit code 1)
        --- exit code 1
    "#]].assert_eq(&damaged("modules/000000/orders", 1, &lines));
}

#[test]
fn scripts_that_cannot_be_read_are_told() {
    let folder = Folder::with_frozen(&["shop"]);
    std::fs::write(folder.path("look.txt"), b"goto 5\ngoto \xff\ngoto 6\n").unwrap();
    expect![[r#"
        Thread 28155 (shop) at event 5, module_load: /usr/lib/x86_64-linux-gnu/libgcc_s.so.1: not known where
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
        Thread 28155 (shop) at event 5, module_load: /usr/lib/x86_64-linux-gnu/libgcc_s.so.1: not known where
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
        error: FOLDER/.config/hindsight/aliases:3: an alias stands for a verb, and "frob" is none
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

#[test]
fn a_folder_for_what_is_not_sealed_is_needed() {
    let folder = Folder::with_frozen(&["shop"]);
    let mut command = folder.command(&["repl", "shop", "--cmd", "where"]);
    let output = command.env("TMPDIR", "/nowhere/at/all").output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    let (before, name) = told.split_once("hindsight-replay-").unwrap();
    // A name that nobody else has.
    expect![[r#"
        error: cannot make a folder for what is not sealed yet: No such file or directory at path "/nowhere/at/all/hindsight-replay-NAME"
        help: set TMPDIR to a folder that can be written to
    "#]].assert_eq(&format!("{before}hindsight-replay-NAME{}", &name[6..]));
    assert_eq!(output.status.code(), Some(1));
}
