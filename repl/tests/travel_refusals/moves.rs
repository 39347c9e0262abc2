//! Moves without a target, places that do not exist, and invalid counts.

use expect_test::expect;
use store::synth::Synth;

use super::{SLOT, check, made};

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
            Thread 28464 (orders) at event 0, process_start: /home/ada/orders/./orders: location unknown
            Thread 28464 (orders) at event 69, the program was killed by SIGKILL: location unknown
            Thread 28464 (orders) at event 6, pause: entry in _start: _start
            Thread 28464 (orders) at event 68, main was left by an exception or longjmp: location unknown
            Thread 28464 (orders) at event 66, pause: breakpoint 3: settle at /home/ada/orders/orders.c:36
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
            error: nothing after event 66 stops here
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
        Thread 100 (synth-100) at event 3, return from tail: location unknown
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
            Thread 28155 (shop) at event 152, the program has ended with exit code 3: location unknown
            --- stderr
            error: there is no note "x"
            help: the recording has no notes
              at --cmd 1: goto @x (exit code 2)
            error: there is no event 153
            help: events are 0 to 152
              at --cmd 3: goto 153 (exit code 2)
            error: "18446744073709551616" is not a place in time
            help: write an event's number, first, last, crash, 50%, 1.5s, @NOTE, output:LINE or EVENT+INSTRUCTIONS
              at --cmd 4: goto 18446744073709551616 (exit code 2)
            error: unexpected argument '-1' found
            help: write: goto [OPTIONS] <PLACE>...
              at --cmd 6: goto -1 (exit code 2)
            error: the following required arguments were not provided: <PLACE>...
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
            Thread 28464 (orders) at event 19, pause: breakpoint 3: settle at /home/ada/orders/orders.c:36
            ->    36 |   int discount = order->pieces > 3;
            --- stderr
            error: zero steps lead nowhere
              at --cmd 2: step 0 (exit code 2)
            error: zero steps lead nowhere
              at --cmd 3: next 0 (exit code 2)
            error: invalid value 'x' for '[COUNT]': write a number
              at --cmd 4: step x (exit code 2)
            error: unexpected argument '-1' found
            help: write: next [OPTIONS] [COUNT]
              at --cmd 5: next -1 (exit code 2)
            error: invalid value 'x' for '[COUNT]': write a number
              at --cmd 6: step back x (exit code 2)
            error: invalid value 'x' for '--limit <N>': write a number
              at --cmd 7: calls --limit x (exit code 2)
            error: invalid value 'x' for '--tail <N>': write a number
              at --cmd 8: output --tail x (exit code 2)
            error: invalid value 'x' for '--limit <N>': write a number
              at --cmd 9: backtrace --limit x (exit code 2)
            error: there is no thread 7
            help: threads: 28464, 28553
              at --cmd 10: backtrace --thread 7 (exit code 2)
            error: invalid value 'x' for '--context <LINES>': write a number
              at --cmd 11: where --context x (exit code 2)
            --- exit code 2
        "#]],
    );
}
