//! Goal: a record of a change of stacks tells adjacent stacks apart, and who resumed a coroutine. Method: a synthetic log
//! per way, and the numbered events as text.

mod seal_support;

use std::ops::Range;

use expect_test::{Expect, expect};
use seal_support::{TOP, story};
use store::synth::Synth;

/// Two adjacent stacks, as in the example of makecontext(3).
const FIRST: Range<u64> = 0x5000_0002_0000..0x5000_0002_4000;
const SECOND: Range<u64> = 0x5000_0002_4000..0x5000_0002_8000;

fn check(build: impl FnOnce(&mut Synth), expected: Expect) {
    expected.assert_eq(&story(build));
}

#[test]
fn calls_on_adjacent_stacks_stay_open() {
    check(
        |s| {
            s.thread(1)
                .enter(0, TOP - 8)
                .stack_switch(TOP - 64, Some(FIRST))
                .enter(1, FIRST.end - 8)
                .stack_switch(FIRST.end - 64, Some(SECOND))
                .enter(2, SECOND.end - 8)
                .stack_switch(SECOND.end - 64, Some(FIRST));
            s.enter(3, FIRST.end - 80)
                .leave(FIRST.end - 80)
                .leave(FIRST.end - 8)
                .stack_switch(FIRST.end - 64, Some(SECOND))
                .leave(SECOND.end - 8)
                .leave(TOP - 8);
        },
        expect![[r#"
            0 t1 thread_start at 10 [synth-1]
            1 t1 f0 enters at 20 depth 0
            2 t1 f1 enters at 40 depth 1 in 1
            3 t1 f2 enters at 60 depth 2 in 2
            4 t1 f3 enters at 80 depth 2 in 2
            5   4 returns 0 after 10, callees 0
            6   2 returns 0 after 60, callees 10
            7   3 returns 0 after 60, callees 0
            8   1 returns 0 after 110, callees 60
        "#]],
    );
}

/// The main function calls nothing between two coroutines: neither has called the other.
#[test]
fn a_coroutine_has_the_caller_that_resumed_it() {
    check(
        |s| {
            s.thread(1)
                .enter(0, TOP - 8)
                .stack_switch(TOP - 64, Some(FIRST))
                .enter(1, FIRST.end - 8)
                .stack_switch(FIRST.end - 64, None)
                .stack_switch(TOP - 64, Some(SECOND))
                .enter(2, SECOND.end - 8);
            s.leave(SECOND.end - 8).leave(TOP - 8);
        },
        expect![[r#"
            0 t1 thread_start at 10 [synth-1]
            1 t1 f0 enters at 20 depth 0
            2 t1 f1 enters at 40 depth 1 in 1 unfinished
            3 t1 f2 enters at 70 depth 1 in 1
            4   3 returns 0 after 10, callees 0
            5   1 returns 0 after 70, callees 10
        "#]],
    );
}

/// A coroutine is made anew on the stack of one that was left, of another size.
#[test]
fn a_stack_that_is_used_again_ends_the_calls_before() {
    check(
        |s| {
            s.thread(1)
                .enter(0, TOP - 8)
                .stack_switch(TOP - 64, Some(FIRST))
                .enter(1, FIRST.end - 8)
                .stack_switch(FIRST.end - 64, None)
                .stack_switch(TOP - 64, Some(FIRST.start..SECOND.end))
                .enter(2, SECOND.end - 8)
                .leave(SECOND.end - 8)
                .leave(TOP - 8);
        },
        expect![[r#"
            0 t1 thread_start at 10 [synth-1]
            1 t1 f0 enters at 20 depth 0
            2 t1 f1 enters at 40 depth 1 in 1
            3   2 unwound after 30, callees 0
            4 t1 f2 enters at 70 depth 1 in 1
            5   4 returns 0 after 10, callees 0
            6   1 returns 0 after 70, callees 40
        "#]],
    );
}

/// A call that began in one thread returns in another.
#[test]
fn a_coroutine_goes_on_in_another_thread() {
    const OTHER_TOP: u64 = TOP + (1 << 30);
    check(
        |s| {
            s.thread(1)
                .enter(0, TOP - 8)
                .stack_switch(TOP - 64, Some(FIRST))
                .enter(1, FIRST.end - 8)
                .stack_switch(FIRST.end - 64, None)
                .leave(TOP - 8);
            s.thread(2)
                .enter(2, OTHER_TOP - 8)
                .stack_switch(OTHER_TOP - 64, Some(FIRST))
                .leave(FIRST.end - 8)
                .enter(3, FIRST.end - 16)
                .leave(FIRST.end - 16)
                .stack_switch(FIRST.end - 64, None)
                .leave(OTHER_TOP - 8);
        },
        expect![[r#"
            0 t1 thread_start at 10 [synth-1]
            1 t1 f0 enters at 20 depth 0
            2 t1 f1 enters at 40 depth 1 in 1
            3   1 returns 0 after 40, callees 0
            4 t2 thread_start at 70 [synth-2]
            5 t2 f2 enters at 80 depth 0
            6   2 returns 0 after 60, callees 0
            7 t2 f3 enters at 110 depth 1 in 5
            8   7 returns 0 after 10, callees 0
            9   5 returns 0 after 60, callees 10
        "#]],
    );
}
