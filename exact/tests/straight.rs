//! Goal: a write is told at the instruction that made it, wherever translated code is cut. Method: a program writes 128 numbers without a
//! branch. Just before each position that is told the number is not there, and just after it is; so it is with stops set at any of the
//! instructions, which cut the code at other places. Another program adds one to a number in each of 60,000 instructions.

mod recorded;

use exact::Replay;
use tempfile::TempDir;

use recorded::recorded;

const NUMBERS: u64 = 128;
/// A block has at most so many instructions.
const BLOCK: u64 = 96;

fn number(replay: &Replay, address: u64) -> u64 {
    let mut bytes = [0; 4];
    assert_eq!(replay.read(address, &mut bytes), 4);
    u64::from(u32::from_le_bytes(bytes))
}

/// Numbers that are looked at: some, and all where a block may end.
fn chosen() -> impl Iterator<Item = u64> {
    (0..NUMBERS).filter(|index| index % 5 == 0 || (BLOCK - 6..BLOCK + 2).contains(index))
}

/// The instruction that wrote each of these numbers: its position and its address.
fn writers(replay: &mut Replay, numbers: u64) -> Vec<(u64, u64)> {
    let end = replay.end();
    let mut found = Vec::new();
    for index in chosen() {
        let address = numbers + 4 * index;
        let last = replay.last_write(address, 4, end).expect("a search");
        let at = last.unwrap_or_else(|| panic!("number {index} was written"));
        replay.goto(at).expect("a position");
        assert_eq!(number(replay, address), 0, "before number {index}");
        let rip = replay.registers().expect("registers").rip;
        replay.goto(at + 1).expect("a position");
        assert_eq!(number(replay, address), index + 1, "after number {index}");
        found.push((at, rip));
    }
    found
}

#[test]
fn a_write_is_told_at_its_instruction_wherever_code_is_cut() {
    let folder = TempDir::new().expect("a folder");
    let source = include_str!("programs/straight.c");
    let [numbers, straight] = recorded(source, folder.path());
    let mut replay = Replay::open(folder.path()).expect("the recording can be opened");
    let found = writers(&mut replay, numbers);
    let first = found[0].0;
    let expected = chosen().map(|index| first + index);
    assert!(expected.eq(found.iter().map(|(at, _)| *at)), "{found:?}");
    for every in [1, 3] {
        let stops: Vec<u64> = found.iter().step_by(every).map(|(_, rip)| *rip).collect();
        let end = replay.end();
        replay.goto(end).expect("the end");
        let last = replay.previous_stop(&stops, &mut |_| false);
        assert_eq!(last.expect("a search"), None);
        assert_eq!(writers(&mut replay, numbers), found, "every {every}th");
        // Forwards, too.
        let (at, _) = found[every];
        replay.goto(at - 1).expect("a position");
        let index = chosen().nth(every).expect("there are more");
        let next = replay.next_write(numbers + 4 * index, 4, end);
        assert_eq!(next.expect("a search"), Some(at));
    }
    // A call writes where it returns to.
    let end = replay.end();
    replay.goto(0).expect("the start");
    let entry = replay.next_stop(&[straight], end, &mut |_| true);
    let entry = entry.expect("a search").expect("it is called");
    let slot = replay.registers().expect("registers").rsp;
    let last = replay.last_write(slot, 8, entry).expect("a search");
    assert_eq!(last, Some(entry - 1));
}

/// How many instructions of the longer program add to its number.
const LONG: u64 = 60_000;

#[test]
fn each_of_many_instructions_without_a_branch_is_a_position() {
    let folder = TempDir::new().expect("a folder");
    let source = include_str!("programs/long_straight.c");
    let [address, straight] = recorded(source, folder.path());
    let mut replay = Replay::open(folder.path()).expect("the recording can be opened");
    let end = replay.end();
    replay.goto(0).expect("the start");
    let entry = replay.next_stop(&[straight], end, &mut |_| true);
    let entry = entry.expect("a search").expect("it is called");
    replay.goto(entry).expect("a position");
    let first = replay.next_write(address, 8, end).expect("a search");
    let first = first.expect("the number is written");
    let last = replay.last_write(address, 8, end).expect("a search");
    assert_eq!(last, Some(first + LONG - 1));
    // Forwards and backwards, where blocks end and elsewhere.
    for done in [
        0,
        1,
        BLOCK - 1,
        BLOCK,
        BLOCK + 1,
        31_234,
        LONG - 1,
        LONG,
        4 * BLOCK,
        7,
    ] {
        replay.goto(first + done).expect("a position");
        assert_eq!(number(&replay, address), done);
    }
    let some = 31_234;
    let before = replay
        .last_write(address, 8, first + some)
        .expect("a search");
    assert_eq!(before, Some(first + some - 1));
    replay.goto(first + some).expect("a position");
    let next = replay.next_write(address, 8, end).expect("a search");
    assert_eq!(next, Some(first + some));
}
