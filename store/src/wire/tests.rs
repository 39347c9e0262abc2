//! Shows that records survive encoding, and that no target's bytes make the decoder panic or lose its place.

use proptest::prelude::*;

use super::*;

const LEAVE: Leave = Leave {
    slot: 0x7fff_ffff_fff8,
    rax: u64::MAX,
    rdx: 2,
    xmm: None,
};

/// One record of every kind, at ticks 1, 2, 3 and so on.
fn one_of_each() -> Vec<u8> {
    let mut block = Vec::new();
    let enter = EnterFields {
        form: EnterForm::Hooked,
        function_id: 0xfff_ffff,
        slot: 0x7fff_ffff_fff8,
        return_addr: 0x40_1000,
        args: [1, 2, 3, 4, 5, 6],
        xmm: &[7, 8, 9],
    };
    push_thread(&mut block, 1, 42, (0x1000, 0x2000), b"worker");
    push_enter(&mut block, 2, &enter);
    push_enter(
        &mut block,
        3,
        &EnterFields {
            form: EnterForm::Tail,
            xmm: &[],
            ..enter
        },
    );
    push_enter(
        &mut block,
        4,
        &EnterFields {
            form: EnterForm::NoLeave,
            xmm: &[0; 8],
            ..enter
        },
    );
    push_leave(&mut block, 5, &LEAVE);
    push_leave(
        &mut block,
        6,
        &Leave {
            xmm: Some([3, 4]),
            ..LEAVE
        },
    );
    push_output(&mut block, 7, 2, b"oops, 13 long");
    push_gap(&mut block, 8, 99, GapReason::RingFull);
    push_fork(&mut block, 9, 4711);
    push_exec(&mut block, 10, b"/bin/true");
    push_thread_exit(&mut block, 11, 42);
    push_logpoint(&mut block, 12, 0xfff_ffff, &[5, 6]);
    push_logpoint(&mut block, 13, 1, &[]);
    push_condition_error(&mut block, 14, 0xfff_ffff, u64::MAX);
    let section = |addr, bytes| Section { addr, bytes };
    let registers = std::array::from_fn(|at| at as u64);
    push_capture(&mut block, 15, Some(registers), &[]);
    let sections = [
        section(0x1000, &b"abc"[..]),
        section(0, b"gone"),
        section(8, b""),
    ];
    push_capture(&mut block, 16, None, &sections);
    let only = EnterFields {
        form: EnterForm::Only,
        xmm: &[],
        ..enter
    };
    push_enter(&mut block, 17, &only);
    let args = [1, 2, 3, 4, 5, 6];
    push_syscall(&mut block, 18, (257, args), (0x40, 0x80), &sections[..1]);
    push_syscall_end(&mut block, 19, u64::MAX, 0x80, &[]);
    push_exec_failed(&mut block, 20, 13);
    push_frames_left(&mut block, 21, 0x7fff_ffff_ffe0);
    push_ring_wait(&mut block, 22, 20);
    push_stack_switch(&mut block, 23, 0x7fff_ffff_ffe0, Some(0x1000..0x5000));
    block
}

#[test]
fn every_kind_survives_encoding() {
    let block = one_of_each();
    let decoded: Vec<_> = Records::new(&block).collect::<Result<_, _>>().unwrap();
    let ticks: Vec<_> = decoded.iter().map(|d| d.ticks).collect();
    assert_eq!(ticks, (1..=23).collect::<Vec<_>>());
    let shown: Vec<_> = decoded.iter().map(|d| format!("{:?}", d.record)).collect();
    expect_test::expect![[r#"
        Thread { tid: 42, stack_low: 4096, stack_high: 8192, name: [119, 111, 114, 107, 101, 114] }
        Enter(Enter { form: Hooked, function_id: 268435455, slot: 140737488355320, return_addr: 4198400, args: [1, 2, 3, 4, 5, 6], xmm: [7, 8, 9] })
        Enter(Enter { form: Tail, function_id: 268435455, slot: 140737488355320, return_addr: 4198400, args: [1, 2, 3, 4, 5, 6], xmm: [] })
        Enter(Enter { form: NoLeave, function_id: 268435455, slot: 140737488355320, return_addr: 4198400, args: [1, 2, 3, 4, 5, 6], xmm: [0, 0, 0, 0, 0, 0, 0, 0] })
        Leave(Leave { slot: 140737488355320, rax: 18446744073709551615, rdx: 2, xmm: None })
        Leave(Leave { slot: 140737488355320, rax: 18446744073709551615, rdx: 2, xmm: Some([3, 4]) })
        Output { fd: 2, bytes: [111, 111, 112, 115, 44, 32, 49, 51, 32, 108, 111, 110, 103] }
        Gap { lost: 99, reason: RingFull }
        Fork { child_pid: 4711 }
        Exec { path: [47, 98, 105, 110, 47, 116, 114, 117, 101] }
        ThreadExit { tid: 42 }
        Logpoint { probe: 268435455, words: [5, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0] }
        Logpoint { probe: 1, words: [] }
        ConditionError { probe: 268435455, addr: 18446744073709551615 }
        Capture(Capture { registers: Some([0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0, 0, 0, 11, 0, 0, 0, 0, 0, 0, 0, 12, 0, 0, 0, 0, 0, 0, 0, 13, 0, 0, 0, 0, 0, 0, 0, 14, 0, 0, 0, 0, 0, 0, 0, 15, 0, 0, 0, 0, 0, 0, 0]), sections: [] })
        Capture(Capture { registers: None, sections: [0, 16, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 97, 98, 99, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 103, 111, 110, 101, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0] })
        Enter(Enter { form: Only, function_id: 268435455, slot: 140737488355320, return_addr: 4198400, args: [1, 2, 3, 4, 5, 6], xmm: [] })
        Syscall(Syscall { number: 257, arguments: [1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0], addr: 64, stack: 128, memory: [0, 16, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 97, 98, 99, 0, 0, 0, 0, 0] })
        SyscallEnd(SyscallEnd { result: 18446744073709551615, stack: 128, memory: [] })
        ExecFailed { error: 13 }
        FramesLeft { stack: 140737488355296 }
        RingWait { since: 20 }
        StackSwitch { from: 140737488355296, low: 4096, end: 20480 }"#]]
    .assert_eq(&shown.join("\n"));
}

#[test]
fn a_block_cut_anywhere_yields_the_whole_records_before_the_cut() {
    let block = one_of_each();
    let starts: Vec<usize> = Records::new(&block).map(|d| d.unwrap().offset).collect();
    for cut in 0..block.len() {
        let whole = starts.iter().filter(|start| **start < cut).count();
        let mut records = Records::new(&block[..cut]);
        let read = records.by_ref().take_while(Result::is_ok).count();
        let at_boundary = starts.contains(&cut);
        assert_eq!(read, if at_boundary { whole } else { whole.max(1) - 1 });
        assert_eq!(records.next(), None, "an error ends the block");
    }
}

#[test]
fn captures_are_read_back_without_what_was_not_there() {
    let block = one_of_each();
    let captures: Vec<Capture<'_>> = Records::new(&block)
        .filter_map(|decoded| match decoded.unwrap().record {
            Record::Capture(capture) => Some(capture),
            _ => None,
        })
        .collect();
    let [first, second] = captures[..] else {
        panic!("two captures were written");
    };
    let numbers = std::array::from_fn(|at| at as u64);
    assert_eq!(
        (first.registers(), first.sections().count()),
        (Some(numbers), 0)
    );
    let memory: Vec<(u64, &[u8])> = second.sections().map(|s| (s.addr, s.bytes)).collect();
    assert_eq!(
        (second.registers(), memory),
        (None, vec![(0x1000, &b"abc"[..]), (8, b"")])
    );
}

#[test]
fn faults_name_their_place_and_reason() {
    let mut block = Vec::new();
    push_fork(&mut block, 1, 1);
    for (word1, fault) in [
        (0, WireFault::UnknownKind(0)),
        (0x9f, WireFault::XmmCount { kind: 15, count: 9 }),
        (0x1d, WireFault::XmmCount { kind: 13, count: 1 }),
        (100 << LEN_SHIFT | 1 << 8 | 13, WireFault::Capture),
        (300 << LEN_SHIFT | 13, WireFault::Torn(13)),
        (0x1b, WireFault::XmmCount { kind: 11, count: 1 }),
        (0x1c, WireFault::XmmCount { kind: 12, count: 1 }),
        (65 << LOG_COUNT_SHIFT | 11, WireFault::LogCount(65)),
        (u64::MAX << 8 | 11, WireFault::LogCount((1 << 28) - 1)),
        (64 << LOG_COUNT_SHIFT | 11, WireFault::Torn(11)),
        (0x91, WireFault::XmmCount { kind: 1, count: 9 }),
        (0x13, WireFault::XmmCount { kind: 3, count: 1 }),
        (0x16, WireFault::XmmCount { kind: 6, count: 1 }),
    ] {
        let mut bad = block.clone();
        bad.extend_from_slice(&[0; 8]);
        bad.extend_from_slice(&u64::to_le_bytes(word1));
        bad.extend_from_slice(&[0; 200]);
        let last = Records::new(&bad).last().unwrap();
        assert_eq!(last, Err(WireError { offset: 16, fault }));
    }
}

#[test]
fn a_length_beyond_any_block_is_torn() {
    for kind in [KIND_OUTPUT, KIND_EXEC] {
        let mut block = vec![0; 8];
        block.extend_from_slice(&(u64::MAX << LEN_SHIFT | u64::from(kind)).to_le_bytes());
        block.extend_from_slice(&[0; 64]);
        let first = Records::new(&block).next().unwrap();
        let fault = WireFault::Torn(kind);
        assert_eq!(first, Err(WireError { offset: 0, fault }));
    }
}

#[test]
fn a_logpoint_takes_64_words() {
    let words: Vec<u64> = (0..LOG_MAX_VALUES as u64).collect();
    let mut block = Vec::new();
    push_logpoint(&mut block, 1, 2, &words);
    push_fork(&mut block, 2, 3);
    let decoded: Vec<_> = Records::new(&block).collect::<Result<_, _>>().unwrap();
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let logpoint = Record::Logpoint {
        probe: 2,
        words: &bytes,
    };
    assert_eq!(decoded[0].record, logpoint);
    assert_eq!(decoded[1].offset, block.len() - FORK_WORDS * WORD_LEN);
}

proptest! {
    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let mut end = 0;
        for decoded in Records::new(&bytes) {
            let offset = decoded.map_or_else(|e| e.offset, |d| d.offset);
            prop_assert!(offset >= end && offset < bytes.len());
            end = offset;
        }
    }

    #[test]
    fn flipped_bits_never_panic(at in 0usize..4000, value in any::<u8>()) {
        let mut block = one_of_each();
        let at = at % block.len();
        block[at] = value;
        for decoded in Records::new(&block).flatten() {
            let shown = format!("{:?}", decoded.record);
            prop_assert!(!shown.is_empty());
        }
    }
}
