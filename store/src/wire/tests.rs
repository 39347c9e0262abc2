//! Shows that records survive encoding, and that nothing a target writes makes the decoder panic or lose its place.

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
    block
}

#[test]
fn every_kind_survives_encoding() {
    let block = one_of_each();
    let decoded: Vec<_> = Records::new(&block).collect::<Result<_, _>>().unwrap();
    let ticks: Vec<_> = decoded.iter().map(|d| d.ticks).collect();
    assert_eq!(ticks, (1..=11).collect::<Vec<_>>());
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
        ThreadExit { tid: 42 }"#]]
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
fn faults_name_their_place_and_reason() {
    let mut block = Vec::new();
    push_fork(&mut block, 1, 1);
    for (word1, fault) in [
        (0, WireFault::UnknownKind(0)),
        (11, WireFault::UnknownKind(11)),
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
