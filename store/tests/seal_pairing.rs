//! Goal: each way in which calls begin and end gives the rows it should. Method: a synthetic log per way, and the
//! numbered events as text.

mod seal_support;

use expect_test::{Expect, expect};
use seal_support::{TOP, story};
use store::control::Control;
use store::synth::Synth;
use store::wire::{EnterFields, EnterForm, GapReason, Leave};

/// Far from every synthetic stack.
const SIGNAL_STACK: u64 = 0x6000_0000_0000;
/// Two stacks of 64 KiB side by side.
const COROUTINE_1: u64 = 0x5000_0002_0000;
const COROUTINE_2: u64 = COROUTINE_1 - 0x1_0000;

fn check(build: impl FnOnce(&mut Synth), expected: Expect) {
    expected.assert_eq(&story(build));
}

#[test]
fn nested_calls_pair_and_sum_up() {
    check(
        |s| {
            s.thread(1)
                .enter(0, TOP - 8)
                .enter(1, TOP - 64)
                .leave_value(TOP - 64, 5);
            s.enter(1, TOP - 64)
                .leave_value(TOP - 64, 6)
                .leave_value(TOP - 8, 7);
        },
        expect![[r#"
            0 t1 thread_start at 10 [synth-1]
            1 t1 f0 enters at 20 depth 0
            2 t1 f1 enters at 30 depth 1 in 1
            3   2 returns 5 after 10, callees 0
            4 t1 f1 enters at 50 depth 1 in 1
            5   4 returns 6 after 10, callees 0
            6   1 returns 7 after 50, callees 20
        "#]],
    );
}

/// Slots of goroutines are unrelated: one may lie anywhere among those of the other.
#[test]
fn entries_alone_have_no_end_and_leave_the_open_calls_alone() {
    check(
        |s| {
            s.thread(1).enter(0, TOP - 64).enter_only(1, TOP - 128);
            s.enter_only(2, TOP - 8).leave(TOP - 64);
        },
        expect![[r#"
            0 t1 thread_start at 10 [synth-1]
            1 t1 f0 enters at 20 depth 0
            2 t1 f1 enters at 30 depth 0 end not recorded
            3 t1 f2 enters at 40 depth 0 end not recorded
            4   1 returns 0 after 30, callees 0
        "#]],
    );
}

#[test]
fn longjmp_unwinds_what_it_skips_when_the_next_call_shows_it() {
    check(
        |s| {
            s.thread(1)
                .enter(0, TOP - 8)
                .enter(1, TOP - 64)
                .enter(2, TOP - 128);
            // Back in f0, which calls f3 from the same frame.
            s.enter(3, TOP - 64).leave(TOP - 64).leave(TOP - 8);
        },
        expect![[r#"
            0 t1 thread_start at 10 [synth-1]
            1 t1 f0 enters at 20 depth 0
            2 t1 f1 enters at 30 depth 1 in 1
            3 t1 f2 enters at 40 depth 2 in 2
            4   3 unwound after 10, callees 0
            5   2 unwound after 20, callees 10
            6 t1 f3 enters at 50 depth 1 in 1
            7   6 returns 0 after 10, callees 0
            8   1 returns 0 after 50, callees 30
        "#]],
    );
}

#[test]
fn an_exception_unwinds_its_frames_when_the_catcher_returns() {
    check(
        |s| {
            s.thread(1)
                .enter(0, TOP - 8)
                .enter(1, TOP - 64)
                .enter(2, TOP - 128)
                .leave(TOP - 8);
        },
        expect![[r#"
            0 t1 thread_start at 10 [synth-1]
            1 t1 f0 enters at 20 depth 0
            2 t1 f1 enters at 30 depth 1 in 1
            3 t1 f2 enters at 40 depth 2 in 2
            4   3 unwound after 10, callees 0
            5   2 unwound after 20, callees 10
            6   1 returns 0 after 30, callees 20
        "#]],
    );
}

#[test]
fn an_exception_leaves_the_callers_neighbours_alone() {
    check(
        |s| {
            s.thread(1)
                .enter(0, TOP - 8)
                .enter(1, TOP - 64)
                .leave(TOP - 64);
            s.enter(2, TOP - 64).enter(3, TOP - 128); // throws through f2 into f0
            s.enter(1, TOP - 64).leave(TOP - 64).leave(TOP - 8);
        },
        expect![[r#"
            0 t1 thread_start at 10 [synth-1]
            1 t1 f0 enters at 20 depth 0
            2 t1 f1 enters at 30 depth 1 in 1
            3   2 returns 0 after 10, callees 0
            4 t1 f2 enters at 50 depth 1 in 1
            5 t1 f3 enters at 60 depth 2 in 4
            6   5 unwound after 10, callees 0
            7   4 unwound after 20, callees 10
            8 t1 f1 enters at 70 depth 1 in 1
            9   8 returns 0 after 10, callees 0
            10   1 returns 0 after 70, callees 40
        "#]],
    );
}

#[test]
fn a_tail_call_returns_for_the_calls_it_replaced() {
    check(
        |s| {
            s.thread(1)
                .enter(0, TOP - 8)
                .enter(1, TOP - 64)
                .enter_tail(2, TOP - 64);
            s.enter(3, TOP - 128).leave(TOP - 128);
            s.enter_tail(4, TOP - 64)
                .leave_value(TOP - 64, 9)
                .leave(TOP - 8);
        },
        expect![[r#"
            0 t1 thread_start at 10 [synth-1]
            1 t1 f0 enters at 20 depth 0
            2 t1 f1 enters at 30 depth 1 in 1
            3 t1 f2 enters at 40 depth 2 in 2 tail
            4 t1 f3 enters at 50 depth 3 in 3
            5   4 returns 0 after 10, callees 0
            6 t1 f4 enters at 70 depth 3 in 3 tail
            7   6 returns 9 after 10, callees 0
            8   3 returns 9 after 40, callees 20
            9   2 returns 9 after 50, callees 40
            10   1 returns 0 after 70, callees 50
        "#]],
    );
}

#[test]
fn a_tail_call_whose_first_call_is_not_known_stands_alone() {
    check(
        |s| {
            s.thread(1).enter_tail(2, TOP - 64).leave_value(TOP - 64, 9);
        },
        expect![[r#"
            0 t1 thread_start at 10 [synth-1]
            1 t1 f2 enters at 20 depth 0 tail
            2   1 returns 9 after 10, callees 0
        "#]],
    );
}

#[test]
fn a_slot_entered_again_ends_the_call_before() {
    check(
        |s| {
            s.thread(1)
                .enter(0, TOP - 8)
                .enter(0, TOP - 8)
                .leave(TOP - 8);
        },
        expect![[r#"
            0 t1 thread_start at 10 [synth-1]
            1 t1 f0 enters at 20 depth 0
            2   1 unwound after 10, callees 0
            3 t1 f0 enters at 30 depth 0
            4   3 returns 0 after 10, callees 0
        "#]],
    );
}

#[test]
fn a_signal_handler_on_its_own_stack_is_called_by_what_it_interrupts() {
    check(
        |s| {
            s.thread(1).enter(0, TOP - 8).enter(1, TOP - 64);
            s.enter(7, SIGNAL_STACK)
                .enter(8, SIGNAL_STACK - 64)
                .leave(SIGNAL_STACK - 64);
            s.leave(SIGNAL_STACK).leave(TOP - 64).leave(TOP - 8);
        },
        expect![[r#"
            0 t1 thread_start at 10 [synth-1]
            1 t1 f0 enters at 20 depth 0
            2 t1 f1 enters at 30 depth 1 in 1
            3 t1 f7 enters at 40 depth 2 in 2
            4 t1 f8 enters at 50 depth 3 in 3
            5   4 returns 0 after 10, callees 0
            6   3 returns 0 after 30, callees 10
            7   2 returns 0 after 50, callees 30
            8   1 returns 0 after 70, callees 50
        "#]],
    );
}

#[test]
fn a_longjmp_out_of_a_signal_handler_shows_when_the_signal_stack_is_used_again() {
    check(
        |s| {
            s.thread(1)
                .enter(0, TOP - 8)
                .enter(7, SIGNAL_STACK)
                .enter(8, SIGNAL_STACK - 64);
            s.leave(TOP - 8)
                .enter(0, TOP - 8)
                .enter(7, SIGNAL_STACK)
                .leave(SIGNAL_STACK)
                .leave(TOP - 8);
        },
        expect![[r#"
            0 t1 thread_start at 10 [synth-1]
            1 t1 f0 enters at 20 depth 0
            2 t1 f7 enters at 30 depth 1 in 1
            3 t1 f8 enters at 40 depth 2 in 2
            4   1 returns 0 after 30, callees 0
            5 t1 f0 enters at 60 depth 0
            6   3 unwound after 30, callees 0
            7   2 unwound after 40, callees 30
            8 t1 f7 enters at 70 depth 1 in 5
            9   8 returns 0 after 10, callees 0
            10   5 returns 0 after 30, callees 10
        "#]],
    );
}

#[test]
fn coroutines_side_by_side_keep_their_calls() {
    check(
        |s| {
            s.thread(1).enter(0, TOP - 8); // main resumes 1
            s.enter(1, COROUTINE_1).enter(2, COROUTINE_1 - 256); // yields inside f2
            s.enter(3, COROUTINE_2).enter(4, COROUTINE_2 - 256); // 2 yields inside f4
            s.leave_value(COROUTINE_1 - 256, 12)
                .enter(5, COROUTINE_1 - 256);
            s.leave_value(COROUTINE_2 - 256, 14)
                .leave_value(COROUTINE_2, 13);
            s.leave_value(COROUTINE_1 - 256, 15)
                .leave_value(COROUTINE_1, 11)
                .leave(TOP - 8);
        },
        expect![[r#"
            0 t1 thread_start at 10 [synth-1]
            1 t1 f0 enters at 20 depth 0
            2 t1 f1 enters at 30 depth 1 in 1
            3 t1 f2 enters at 40 depth 2 in 2
            4 t1 f3 enters at 50 depth 3 in 3
            5 t1 f4 enters at 60 depth 4 in 4
            6   3 returns 12 after 30, callees 0
            7 t1 f5 enters at 80 depth 2 in 2
            8   5 returns 14 after 30, callees 0
            9   4 returns 13 after 50, callees 30
            10   7 returns 15 after 30, callees 0
            11   2 returns 11 after 90, callees 60
            12   1 returns 0 after 110, callees 90
        "#]],
    );
}

#[test]
fn the_main_stack_does_not_unwind_coroutines() {
    check(
        |s| {
            s.thread(1).enter(0, TOP - 64).enter(1, COROUTINE_1); // yields
            s.leave(TOP - 64).enter(2, TOP - 8).leave(TOP - 8);
            s.leave_value(COROUTINE_1, 3);
        },
        expect![[r#"
            0 t1 thread_start at 10 [synth-1]
            1 t1 f0 enters at 20 depth 0
            2 t1 f1 enters at 30 depth 1 in 1
            3   1 returns 0 after 20, callees 0
            4 t1 f2 enters at 50 depth 0
            5   4 returns 0 after 10, callees 0
            6   2 returns 3 after 40, callees 0
        "#]],
    );
}

#[test]
fn a_call_without_a_hooked_return_ends_with_its_caller() {
    check(
        |s| {
            s.thread(1)
                .enter(0, TOP - 8)
                .enter_noleave(1, TOP - 64)
                .enter(2, TOP - 128);
            s.leave(TOP - 128).leave(TOP - 8);
        },
        expect![[r#"
            0 t1 thread_start at 10 [synth-1]
            1 t1 f0 enters at 20 depth 0
            2 t1 f1 enters at 30 depth 1 in 1
            3 t1 f2 enters at 40 depth 2 in 2
            4   3 returns 0 after 10, callees 0
            5   2 unwound after 30, callees 10
            6   1 returns 0 after 40, callees 30
        "#]],
    );
}

#[test]
fn the_end_of_a_thread_ends_its_calls_on_all_stacks() {
    check(
        |s| {
            s.thread(1)
                .enter(0, TOP - 8)
                .enter(1, COROUTINE_1)
                .enter(2, TOP - 64)
                .thread_exit();
        },
        expect![[r#"
            0 t1 thread_start at 10 [synth-1]
            1 t1 f0 enters at 20 depth 0
            2 t1 f1 enters at 30 depth 1 in 1
            3 t1 f2 enters at 40 depth 1 in 1
            4   2 open at the end after 20, callees 0
            5   3 open at the end after 10, callees 0
            6   1 open at the end after 30, callees 30
            7 t1 thread_exit at 50
        "#]],
    );
}

#[test]
fn a_thread_that_was_killed_ends_where_the_recorder_saw_it() {
    check(
        |s| {
            s.thread(1).enter(0, TOP - 8);
            let ticks = s.ticks() + 5;
            s.control(Control::ThreadEnd {
                ticks,
                ring: 0,
                tenancy: 0,
                tid: 1,
            });
        },
        expect![[r#"
            0 t1 thread_start at 10 [synth-1]
            1 t1 f0 enters at 20 depth 0
            2   1 open at the end after 5, callees 0
            3 t1 thread_exit at 25
        "#]],
    );
}

#[test]
fn a_thread_ends_once() {
    check(
        |s| {
            s.thread(1).thread_exit();
            let ticks = s.ticks() + 5;
            s.control(Control::ThreadEnd {
                ticks,
                ring: 0,
                tenancy: 0,
                tid: 1,
            });
        },
        expect![[r#"
            0 t1 thread_start at 10 [synth-1]
            1 t1 thread_exit at 20
        "#]],
    );
}

#[test]
fn calls_after_the_threads_exit_record_still_pair() {
    check(
        |s| {
            s.thread(1).enter(0, TOP - 8).thread_exit();
            s.enter(1, TOP - 64).leave(TOP - 64);
        },
        expect![[r#"
            0 t1 thread_start at 10 [synth-1]
            1 t1 f0 enters at 20 depth 0
            2   1 open at the end after 10, callees 0
            3 t1 thread_exit at 30
            4 t1 f1 enters at 40 depth 0
            5   4 returns 0 after 10, callees 0
        "#]],
    );
}

#[test]
fn the_end_of_the_process_ends_all_calls() {
    check(
        |s| {
            s.thread(1)
                .enter(0, TOP - 8)
                .thread(2)
                .enter(1, TOP + 0x10_0000 - 8);
            let ticks = s.ticks() + 5;
            s.control(Control::ProcessExit {
                ticks,
                code: None,
                signal: Some(11),
            });
        },
        expect![[r#"
            0 t1 thread_start at 10 [synth-1]
            1 t1 f0 enters at 20 depth 0
            2 t2 thread_start at 30 [synth-2]
            3 t2 f1 enters at 40 depth 0
            4   1 open at the end after 25, callees 0
            5   3 open at the end after 5, callees 0
            6 process_exit at 45 [SIGSEGV]
        "#]],
    );
}

#[test]
fn calls_are_unfinished_when_the_recorder_lets_go() {
    check(
        |s| {
            s.thread(1)
                .enter(0, TOP - 8)
                .enter(1, TOP - 64)
                .enter(2, TOP - 128)
                .leave(TOP - 128);
            let ticks = s.ticks() + 5;
            s.control(Control::Detached { ticks });
        },
        expect![[r#"
            0 t1 thread_start at 10 [synth-1]
            1 t1 f0 enters at 20 depth 0 unfinished
            2 t1 f1 enters at 30 depth 1 in 1 unfinished
            3 t1 f2 enters at 40 depth 2 in 2
            4   3 returns 0 after 10, callees 0
            5 detached at 55
        "#]],
    );
}

#[test]
fn a_return_without_a_call_is_an_event() {
    check(
        |s| {
            s.thread(1)
                .leave_value(TOP - 8, 77)
                .enter(0, TOP - 64)
                .leave_value(TOP - 8, 78);
        },
        expect![[r#"
            0 t1 thread_start at 10 [synth-1]
            1 t1 leave at 20 [value 77]
            2 t1 f0 enters at 30 depth 0
            3   2 unwound after 10, callees 0
            4 t1 leave at 40 [value 78]
        "#]],
    );
}

#[test]
fn what_a_full_ring_dropped_leaves_orphans_and_unwound_calls() {
    check(
        |s| {
            s.thread(1)
                .enter(0, TOP - 8)
                .enter(1, TOP - 64)
                .gap(3, GapReason::RingFull);
            // Lost: leave f1, enter f2, enter f3.
            s.leave_value(TOP - 128, 3)
                .leave_value(TOP - 64, 2)
                .leave(TOP - 8);
        },
        expect![[r#"
            0 t1 thread_start at 10 [synth-1]
            1 t1 f0 enters at 20 depth 0
            2 t1 f1 enters at 30 depth 1 in 1
            3 t1 gap at 40 [ring full] [value 3]
            4 t1 leave at 50 [value 3]
            5   2 returns 2 after 30, callees 0
            6   1 returns 0 after 50, callees 30
        "#]],
    );
}

#[test]
fn a_torn_block_becomes_a_gap_of_unknown_length() {
    check(
        |s| {
            s.thread(1)
                .enter(0, TOP - 8)
                .raw(&[0xff; 24])
                .flush()
                .leave(TOP - 8);
        },
        expect![[r#"
            0 t1 thread_start at 10 [synth-1]
            1 t1 f0 enters at 20 depth 0
            2 t1 gap at 20 [torn]
            3   1 returns 0 after 10, callees 0
        "#]],
    );
}

#[test]
fn everything_else_is_an_event() {
    check(
        |s| {
            s.control(Control::ProcessStart {
                ticks: 1,
                pid: 7,
                argv: vec!["a".into(), "b c".into()],
                exe: "/a".into(),
                cwd: "/".into(),
                attached: false,
            });
            s.control(Control::ModuleLoad {
                ticks: 2,
                module: 3,
                path: "/lib/x.so".into(),
                build_id: Some("beef".into()),
                addr: 0x1000,
                size: 64,
                system: true,
            });
            s.thread(1)
                .output(1, b"out")
                .output(2, b"err")
                .output(3, b"file")
                .fork(99)
                .exec("/bin/true");
            let ticks = s.ticks();
            s.control(Control::ModuleUnload {
                ticks: ticks + 1,
                module: 3,
            });
            s.control(Control::Warning {
                ticks: ticks + 2,
                message: "careful".into(),
            });
            s.control(Control::Note {
                ticks: ticks + 3,
                text: "mine".into(),
            });
            s.control(Control::Gap {
                ticks: ticks + 4,
                tid: 0,
                lost: 12,
                reason: GapReason::NoFreeRing,
            });
            s.control(Control::Skipped {
                module: 3,
                svma: 1,
                name: "f".into(),
                reason: "short".into(),
            });
            s.control(Control::ProcessExit {
                ticks: ticks + 5,
                code: Some(3),
                signal: None,
            });
        },
        expect![[r#"
            0 process_start at 1 [a b c] [value 7]
            1 module_load at 2 [/lib/x.so] [value 3] [beef]
            2 t1 thread_start at 12 [synth-1]
            3 t1 stdout at 22 [out]
            4 t1 stderr at 32 [err]
            5 t1 fork at 52 [value 99]
            6 t1 exec at 62 [/bin/true]
            7 module_unload at 63 [value 3]
            8 warning at 64 [careful]
            9 note at 65 [mine]
            10 gap at 66 [no free ring] [value 12]
            11 process_exit at 67 [value 3]
        "#]],
    );
}

#[test]
fn a_thread_of_unknown_id_keeps_its_rows() {
    let dir = seal_support::folder();
    let mut bytes = Vec::new();
    let fields = EnterFields {
        form: EnterForm::Hooked,
        function_id: 4,
        slot: TOP - 8,
        return_addr: 1,
        args: [0; 6],
        xmm: &[],
    };
    store::wire::push_enter(&mut bytes, 50, &fields);
    let leave = Leave {
        slot: TOP - 8,
        rax: 1,
        rdx: 2,
        xmm: None,
    };
    store::wire::push_leave(&mut bytes, 60, &leave);
    let frames = [store::synth::SynthFrame::Block {
        ring: 3,
        tenancy: 0,
        bytes,
    }];
    let recording = seal_support::record(dir.path(), &frames);
    let rows = seal_support::seal(&recording, Default::default(), u64::MAX);
    assert_eq!(rows.calls.len(), 1);
    assert_eq!((rows.calls[0].tid, rows.calls[0].function_id), (None, 4));
}

#[test]
fn registers_come_through_bit_for_bit() {
    let dir = seal_support::folder();
    let mut synth = Synth::new();
    let xmm = [f64::NAN.to_bits(), u64::MAX, 0, 1.5f64.to_bits()];
    synth.thread(1).enter_full(&EnterFields {
        form: EnterForm::Hooked,
        function_id: (1 << 28) - 1,
        slot: TOP - 8,
        return_addr: 0x7fff_ffff_fff8,
        args: [u64::MAX, 0, 1 << 63, 3, 4, 5],
        xmm: &xmm,
    });
    let ret_xmm = [2.5f64.to_bits(), u64::MAX];
    synth.leave_full(&Leave {
        slot: TOP - 8,
        rax: u64::MAX,
        rdx: 1 << 63,
        xmm: Some(ret_xmm),
    });
    synth.enter(1, TOP - 8).leave(TOP - 8);
    let recording = seal_support::record(dir.path(), &synth.frames());
    let rows = seal_support::seal(&recording, Default::default(), u64::MAX);
    let call = &rows.calls[0];
    assert_eq!(call.function_id, (1 << 28) - 1);
    assert_eq!((call.sp, call.ret_addr), (TOP - 8, 0x7fff_ffff_fff8));
    assert_eq!(call.args, [u64::MAX, 0, 1 << 63, 3, 4, 5]);
    assert_eq!((call.rax, call.rdx), (Some(u64::MAX), Some(1 << 63)));
    assert_eq!(call.xmm[..4], xmm.map(Some));
    assert_eq!(call.xmm[4..], [None; 4]);
    assert_eq!(call.ret_xmm, ret_xmm.map(Some));
    assert_eq!(
        (rows.calls[1].xmm, rows.calls[1].ret_xmm),
        ([None; 8], [None; 2])
    );
}
