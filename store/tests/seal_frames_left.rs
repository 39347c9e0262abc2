//! Goal: a record of frames that were left ends the calls below its stack pointer, and no others. Method: a synthetic log
//! per way, and the numbered events as text.

mod seal_support;

use expect_test::{Expect, expect};
use seal_support::{TOP, story};
use store::synth::Synth;

/// Far from the thread's main stack.
const COROUTINE: u64 = 0x5000_0002_0000;

fn check(build: impl FnOnce(&mut Synth), expected: Expect) {
    expected.assert_eq(&story(build));
}

#[test]
fn calls_that_the_unwinder_leaves_end_there() {
    check(
        |s| {
            s.thread(1)
                .enter(0, TOP - 8)
                .enter(1, TOP - 64)
                .enter(2, TOP - 128)
                .frames_left(TOP - 48);
            // f0 calls f3 with arguments on the stack, so that its slot is below that of f1.
            s.enter(3, TOP - 80).leave(TOP - 80).leave(TOP - 8);
        },
        expect![[r#"
            0 t1 thread_start at 10 [synth-1]
            1 t1 f0 enters at 20 depth 0
            2 t1 f1 enters at 30 depth 1 in 1
            3 t1 f2 enters at 40 depth 2 in 2
            4   3 unwound after 10, callees 0
            5   2 unwound after 20, callees 10
            6 t1 f3 enters at 60 depth 1 in 1
            7   6 returns 0 after 10, callees 0
            8   1 returns 0 after 60, callees 30
        "#]],
    );
}

/// Coroutines switch by longjmp: the calls on the stack that is left go on later.
#[test]
fn calls_on_another_stack_stay_open_when_frames_are_left() {
    check(
        |s| {
            s.thread(1)
                .enter(0, TOP - 8)
                .enter(1, TOP - 64)
                .enter(2, COROUTINE - 8)
                .frames_left(TOP - 100);
            s.enter(3, TOP - 128)
                .leave(TOP - 128)
                .leave(COROUTINE - 8)
                .leave(TOP - 64)
                .leave(TOP - 8);
        },
        expect![[r#"
            0 t1 thread_start at 10 [synth-1]
            1 t1 f0 enters at 20 depth 0
            2 t1 f1 enters at 30 depth 1 in 1
            3 t1 f2 enters at 40 depth 2 in 2
            4 t1 f3 enters at 60 depth 2 in 2
            5   4 returns 0 after 10, callees 0
            6   3 returns 0 after 40, callees 0
            7   2 returns 0 after 60, callees 50
            8   1 returns 0 after 80, callees 60
        "#]],
    );
}
