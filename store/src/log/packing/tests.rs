//! Goal: a packed block says exactly what the raw one says, and no bytes harm their reader. Method: made-up words,
//! made-up runs of programs, and packed blocks that were changed.

use proptest::prelude::*;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::{CONTEXT_SHIFT, Packer, PackingFault, RAW, SAME_RDX, TICKS_SHIFT, Unpacker, Word};
use crate::format::PACKED_MAX_LEN;
use crate::wire::{
    EnterFields, EnterForm, Leave, WORD_LEN, push_enter, push_exec, push_leave, push_output,
    push_thread,
};

const SLOT: u64 = 0x7ffc_1234_5678;
const CALL_BYTES: usize = 13 * WORD_LEN;

fn words(bytes: &[u8]) -> &[Word] {
    let (words, rest) = bytes.as_chunks();
    assert!(rest.is_empty());
    words
}

fn from_values(values: &[u64]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect()
}

/// Packs everything possible, unpacks and compares it. Returns the number of bytes, raw and packed.
fn there_and_back(block: &[u8]) -> (usize, usize) {
    let (mut packer, mut unpacker) = (Packer::default(), Unpacker::default());
    let (mut raw, mut packed_len) = (0, 0);
    loop {
        let packed = packer.pack(words(&block[raw..]));
        if packed.taken == 0 {
            return (raw, packed_len);
        }
        let end = raw + packed.taken * WORD_LEN;
        assert_eq!(unpacker.unpack(packed.payload), Ok(&block[raw..end]));
        (raw, packed_len) = (end, packed_len + packed.payload.len());
    }
}

fn enter(block: &mut Vec<u8>, ticks: u64, function_id: u32, slot: u64, args: [u64; 6]) {
    let fields = EnterFields {
        form: EnterForm::Hooked,
        function_id,
        slot,
        return_addr: 0x5555_0000_1000 + u64::from(function_id) * 64,
        args,
        xmm: &[],
    };
    push_enter(block, ticks, &fields);
}

fn leave(block: &mut Vec<u8>, ticks: u64, slot: u64, rax: u64) {
    let leave = Leave {
        slot,
        rax,
        rdx: 3,
        xmm: None,
    };
    push_leave(block, ticks, &leave);
}

/// One function called in a loop, with two arguments and a result that differ each time.
fn tight_loop(calls: u64) -> Vec<u8> {
    let mut block = Vec::new();
    for call in 0..calls {
        let value = call.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        enter(
            &mut block,
            (1 << 50) | (call * 90),
            1,
            SLOT,
            [call, value, 5, 6, 7, 8],
        );
        leave(&mut block, (1 << 50) | (call * 90 + 40), SLOT, value);
    }
    block
}

/// A run of a program that calls, returns, unwinds, writes, and is moved between processors whose clocks differ.
fn made_up_run(seed: u64, records: usize) -> Vec<u8> {
    let mut random = StdRng::seed_from_u64(seed);
    let mut block = Vec::new();
    let mut ticks: u64 = random.random();
    let mut open = Vec::new();
    push_thread(&mut block, ticks, 7, (1 << 40, 1 << 41), b"main");
    for _ in 0..records {
        ticks = match random.random_range(0..100) {
            0 => random.random(),
            1 => ticks.wrapping_sub(5000),
            _ => ticks.wrapping_add(random.random_range(20..100_000)),
        };
        let slot = SLOT - open.len() as u64 * 48;
        let small = [1, 2, slot, 0, 9, random.random_range(0..3)];
        match random.random_range(0..20) {
            0..8 => {
                enter(&mut block, ticks, random.random_range(0..150), slot, small);
                open.push(slot);
            }
            8..16 => {
                let slot = open.pop().unwrap_or(SLOT);
                leave(&mut block, ticks, slot, random.random_range(0..4));
            }
            16 => {
                let xmm: Vec<u64> = (0..random.random_range(0..9)).collect();
                let fields = EnterFields {
                    form: [EnterForm::Tail, EnterForm::NoLeave][random.random_range(0..2)],
                    function_id: random.random_range(0..1 << 28),
                    slot,
                    return_addr: random.random_range(0..1 << 48),
                    args: random.random(),
                    xmm: &xmm,
                };
                push_enter(&mut block, ticks, &fields);
            }
            17 => {
                let xmm = Some([1.5f64.to_bits(), random.random()]);
                let leave = Leave {
                    slot: open.pop().unwrap_or(SLOT),
                    rax: 0,
                    rdx: 0,
                    xmm,
                };
                push_leave(&mut block, ticks, &leave);
            }
            18 => open.truncate(random.random_range(0..=open.len())),
            _ => {
                let bytes = vec![b'x'; random.random_range(0..200)];
                push_output(&mut block, ticks, 1, &bytes);
            }
        }
    }
    block
}

#[test]
fn a_run_of_a_program_comes_back_whole() {
    for seed in 0..200 {
        let block = made_up_run(seed, 30 * seed as usize);
        assert_eq!(there_and_back(&block).0, block.len(), "seed {seed}");
    }
}

#[test]
fn a_call_of_a_loop_takes_two_heads_and_the_words_that_change() {
    let calls = 10_000;
    let block = tight_loop(calls);
    let (raw, packed) = there_and_back(&block);
    assert_eq!(raw, block.len());
    let per_call = packed as f64 / calls as f64;
    assert!((40.0..41.0).contains(&per_call), "{per_call} bytes a call");
}

/// A leaf function leaves rdx as it was; of a nested call, the outer rdx comes back after the inner one.
#[test]
fn an_rdx_that_the_call_left_alone_takes_no_word() {
    let calls = 10_000;
    let mut block = Vec::new();
    let pass = |block: &mut Vec<u8>, ticks, slot, rdx| {
        push_leave(
            block,
            ticks,
            &Leave {
                slot,
                rax: 1,
                rdx,
                xmm: None,
            },
        );
    };
    for call in 0..calls {
        let (ticks, inner) = ((1 << 50) | (call * 90), SLOT - 48);
        enter(&mut block, ticks, 1, SLOT, [0, 0, call, 0, 0, 0]);
        enter(&mut block, ticks + 10, 2, inner, [0, 0, !call, 0, 0, 0]);
        pass(&mut block, ticks + 20, inner, !call);
        pass(&mut block, ticks + 30, SLOT, call);
    }
    let (raw, packed) = there_and_back(&block);
    assert_eq!(raw, block.len());
    let per_round = packed as f64 / calls as f64;
    assert!(
        (48.0..49.0).contains(&per_round),
        "{per_round} bytes for two calls"
    );
}

#[test]
fn what_ends_inside_a_record_or_is_none_is_left() {
    let block = tight_loop(3);
    for end in 0..block.len() / WORD_LEN {
        let whole = [0, 9, 13, 22, 26, 35].into_iter().rfind(|len| *len <= end);
        let (raw, _) = there_and_back(&block[..end * WORD_LEN]);
        assert_eq!(Some(raw / WORD_LEN), whole, "{end} words");
    }
    for bad_word1 in [0, 0x9f, 0x91, 0x13, 0x33, 0x14, !0] {
        let mut block = tight_loop(2);
        block.extend(from_values(&[5, bad_word1, 0, 0, 0, 0, 0, 0, 0, 0, 0]));
        block.extend(tight_loop(1));
        assert_eq!(there_and_back(&block).0, 2 * CALL_BYTES, "{bad_word1:x}");
    }
}

/// Longer than a piece, so no packed block may hold it; shorter ones are allowed.
#[test]
fn long_bytes_are_left_and_short_ones_taken() {
    for (len, is_taken) in [(0, true), (4096, true), (PACKED_MAX_LEN, false)] {
        let mut block = tight_loop(1);
        push_exec(&mut block, 9, &vec![b'a'; len]);
        let expected = if is_taken { block.len() } else { CALL_BYTES };
        assert_eq!(there_and_back(&block).0, expected, "{len} bytes");
    }
}

proptest! {
    #[test]
    fn any_words_come_back_as_far_as_they_are_taken(values: Vec<u64>) {
        there_and_back(&from_values(&values));
    }

    /// Words that are often records, with repeating numbers.
    #[test]
    fn any_records_come_back(
        records in prop::collection::vec((any::<u64>(), 0u64..0x300, 0u64..4, 2usize..18), 0..100)
    ) {
        let values: Vec<u64> = records
            .iter()
            .flat_map(|(ticks, tag, value, len)| {
                let mut record = vec![*value; *len];
                record[0] = *ticks;
                record[1] = tag | value << 20;
                record
            })
            .collect();
        there_and_back(&from_values(&values));
    }

    #[test]
    fn any_bytes_unpack_to_what_they_promise_or_to_an_error(values: Vec<u64>, len in 0u64..4096) {
        let mut payload = from_values(&[len, 0]);
        payload.extend(from_values(&values));
        if let Ok(bytes) = Unpacker::default().unpack(&payload) {
            prop_assert_eq!(bytes.len() as u64, len);
        }
    }
}

#[test]
fn a_changed_bit_harms_nobody() {
    let block = made_up_run(3, 60);
    let mut packer = Packer::default();
    let payload = packer.pack(words(&block)).payload.to_vec();
    let mut unpacker = Unpacker::default();
    for bit in 0..payload.len() * 8 {
        let mut changed = payload.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        if let Ok(bytes) = unpacker.unpack(&changed) {
            assert_eq!(changed[..WORD_LEN], (bytes.len() as u64).to_le_bytes());
        }
    }
    for cut in 0..payload.len() {
        assert!(unpacker.unpack(&payload[..cut]).is_err(), "cut at {cut}");
    }
    assert_eq!(unpacker.unpack(&payload), Ok(&block[..]));
}

#[test]
fn each_fault_has_its_name() {
    let unpack = |values: &[u64]| {
        let mut unpacker = Unpacker::default();
        unpacker.unpack(&from_values(values)).map(<[u8]>::len)
    };
    let head = |context: u64, mask: u64, count: u64| {
        mask | context << CONTEXT_SHIFT | count << TICKS_SHIFT
    };
    let too_long = PACKED_MAX_LEN as u64 + 8;
    assert_eq!(unpack(&[]), Err(PackingFault::Short));
    assert_eq!(unpack(&[0, 0]), Ok(0));
    assert_eq!(unpack(&[too_long, 0]), Err(PackingFault::Length(too_long)));
    assert_eq!(unpack(&[12, 0]), Err(PackingFault::Length(12)));
    assert_eq!(unpack(&[72, 0]), Err(PackingFault::Short));
    // The context is still empty, so word 1 belongs to no record.
    assert_eq!(
        unpack(&[72, 0, head(0, 0, 0)]),
        Err(PackingFault::Record(2))
    );
    assert_eq!(unpack(&[72, 0, head(0, 1, 0), 1]), Ok(72));
    assert_eq!(unpack(&[72, 0, head(0, 1, 0)]), Err(PackingFault::Short));
    assert_eq!(
        unpack(&[72, 0, head(0, 1, 0), 3]),
        Err(PackingFault::Record(2))
    );
    assert_eq!(unpack(&[32, 0, head(64, 1, 0), 3]), Ok(32));
    assert_eq!(unpack(&[32, 0, head(64, SAME_RDX | 1, 0), 3]), Ok(32));
    assert_eq!(
        unpack(&[32, 0, head(64, 1, 0), 1]),
        Err(PackingFault::Record(2))
    );
    assert_eq!(
        unpack(&[32, 0, head(64, 9, 0), 3, 4]),
        Err(PackingFault::Record(2))
    );
    assert_eq!(unpack(&[64, 0, head(0, 1, 0), 1]), Err(PackingFault::Long));
    assert_eq!(
        unpack(&[72, 0, head(0, 1, 0), 1, 0]),
        Err(PackingFault::Long)
    );
    assert_eq!(
        unpack(&[72, 0, head(128, 1, 0), 1]),
        Err(PackingFault::Context(2))
    );
    assert_eq!(unpack(&[8, 0, head(RAW, 0, 1), 7]), Ok(8));
    assert_eq!(
        unpack(&[8, 0, head(RAW, 0, 0), 7]),
        Err(PackingFault::Context(2))
    );
    assert_eq!(
        unpack(&[8, 0, head(RAW, 1, 1), 7]),
        Err(PackingFault::Context(2))
    );
    assert_eq!(unpack(&[8, 0, head(RAW, 0, 1)]), Err(PackingFault::Short));
    assert_eq!(
        unpack(&[8, 0, head(RAW, 0, 1 << 39), 7]),
        Err(PackingFault::Long)
    );
}

/// The most memory that few bytes can demand: heads alone, each of which stands for the longest record.
#[test]
fn nothing_unpacks_to_more_than_a_block_may_hold() {
    let longest = 0x80 | 1u64;
    let mut values = vec![PACKED_MAX_LEN as u64, 0, 1, longest];
    values.resize(1 << 20, 0);
    let mut unpacker = Unpacker::default();
    let unpacked = unpacker.unpack(&from_values(&values));
    assert_eq!(unpacked, Err(PackingFault::Long));
    assert!(unpacker.out.capacity() * WORD_LEN <= 4 * PACKED_MAX_LEN);
}
