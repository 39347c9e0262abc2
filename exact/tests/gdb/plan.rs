//! Where to look, and how gdb comes there: found by going through the recording once.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use exact::Replay;

/// Positions that are looked at one after the other, from `main` on.
const CONSECUTIVE: u64 = 10_000;
/// Stretches after them, at random.
const STRETCHES: usize = 8;
/// Random positions in each, and instructions from its start to its end.
const EACH: usize = 125;
const LENGTH: u64 = 800;
/// Positions at which memory is compared: among the first, and in each stretch.
const WHOLE_FIRST: usize = 52;
const WHOLE_EACH: usize = 6;
/// How often gdb may come by an address on its way to a stretch.
const TIMES: usize = 300;
/// Addresses that a stretch might start at.
const CANDIDATES: usize = 60;
const AT_ENTRY: u64 = 9;
const AT_RANDOM: u64 = 25;

/// Random numbers (splitmix64).
pub struct Numbers(pub u64);

impl Numbers {
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % end
    }

    /// So many different numbers, in order.
    fn choose(&mut self, count: usize, end: u64) -> BTreeSet<u64> {
        let mut found = BTreeSet::new();
        while found.len() < count {
            found.insert(self.below(end));
        }
        found
    }
}

pub struct Plan {
    /// The position of the first time at `main`.
    pub start: u64,
    pub looked_at: usize,
    main: u64,
    at_random: Vec<u8>,
    /// What getrandom(2) gave, each time.
    random: Vec<Vec<u8>>,
    /// When the program has read the processor's clock before main: where it is, rax and rdx.
    clocks: Vec<[u64; 3]>,
    /// What time(2) gave after that.
    times: Vec<u64>,
    orders: Vec<String>,
}

impl Plan {
    pub fn new(folder: &Path, numbers: &mut Numbers) -> Plan {
        let mut replay = Replay::open(folder).unwrap();
        let bytes_at = |replay: &Replay, address| bytes(replay, address, 16);
        let [entry, random_at] = auxiliary(&replay, [AT_ENTRY, AT_RANDOM]);
        let at_random = bytes_at(&replay, random_at);
        let main = main_of(&mut replay, entry);
        let end = replay.end();
        let start = replay
            .next_stop(&[main], end, &mut |_| true)
            .unwrap()
            .expect("the program comes to main");
        let mut plan = Plan {
            start,
            looked_at: 0,
            main,
            at_random,
            random: Vec::new(),
            clocks: Vec::new(),
            times: Vec::new(),
            orders: Vec::new(),
        };
        plan.first(numbers);
        plan.stretches(&mut replay, numbers);
        plan.random = random(&mut replay);
        plan.clocks = clocks(&mut replay, start);
        plan.times = times(&mut replay);
        plan
    }

    fn look(&mut self, whole: bool) {
        self.orders.push(format!(
            "[\"{}\", 0]",
            if whole { "all" } else { "registers" }
        ));
        self.looked_at += 1;
    }

    fn first(&mut self, numbers: &mut Numbers) {
        let whole = numbers.choose(WHOLE_FIRST, CONSECUTIVE);
        for position in 0..CONSECUTIVE {
            self.look(whole.contains(&position));
            self.orders.push(String::from("[\"one\", 1]"));
        }
    }

    fn stretches(&mut self, replay: &mut Replay, numbers: &mut Numbers) {
        let special = special(replay);
        let from = self.start + CONSECUTIVE;
        let starts = starts(replay, from, &special, numbers);
        replay.goto(from).unwrap();
        let mut alone = BTreeSet::new();
        let (end, stops) = (replay.end(), special.iter().copied().collect::<Vec<_>>());
        let noted = replay.next_stop(&stops, end, &mut |replay| {
            alone.insert(replay.position());
            false
        });
        assert_eq!(noted.unwrap(), None);
        for Start {
            position,
            address,
            times,
        } in starts
        {
            let relative = position - self.start;
            self.orders
                .push(format!("[\"go\", {relative}, {address}, {times}]"));
            self.stretch(position, &alone, numbers);
        }
    }

    /// Random positions of a stretch.
    fn stretch(&mut self, from: u64, alone: &BTreeSet<u64>, numbers: &mut Numbers) {
        let mut positions = numbers.choose(EACH - 1, LENGTH);
        positions.insert(LENGTH);
        let whole = numbers.choose(WHOLE_EACH, EACH as u64);
        let mut here = from;
        for (index, position) in (0..).zip(positions.into_iter().map(|offset| from + offset)) {
            for at in alone.range(here..position) {
                self.steps(at - here);
                self.orders.push(String::from("[\"one\", 1]"));
                here = at + 1;
            }
            self.steps(position - here);
            here = position;
            self.look(whole.contains(&index));
        }
    }

    fn steps(&mut self, count: u64) {
        if count > 0 {
            self.orders.push(format!("[\"steps\", {count}]"));
        }
    }

    /// The fields for the script.
    pub fn json(&self) -> String {
        let hex = |bytes: &Vec<u8>| {
            bytes
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect::<String>()
        };
        let random: Vec<String> = self.random.iter().map(hex).collect();
        let (at_random, orders) = (hex(&self.at_random), self.orders.join(", "));
        let (main, clocks, times) = (self.main, &self.clocks, &self.times);
        let chance = format!(
            "\"at_random\": {at_random:?}, \"random\": {random:?}, \"clocks\": {clocks:?}, \"times\": {times:?}"
        );
        format!("\"main\": {main}, {chance}, \"orders\": [{orders}]}}")
    }
}

fn bytes(replay: &Replay, address: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    let count = replay.read(address, &mut bytes);
    bytes.truncate(count);
    bytes
}

fn word(replay: &Replay, address: u64) -> u64 {
    u64::from_le_bytes(bytes(replay, address, 8).try_into().unwrap())
}

/// Values of the auxiliary vector, at the start.
fn auxiliary<const N: usize>(replay: &Replay, keys: [u64; N]) -> [u64; N] {
    let mut at = replay.registers().unwrap().rsp + 8;
    for _ in 0..2 {
        while word(replay, at) != 0 {
            at += 8;
        }
        at += 8;
    }
    let find = |key| {
        let mut at = at;
        while word(replay, at) != key {
            assert_ne!(word(replay, at), 0, "the key is there");
            at += 16;
        }
        word(replay, at + 8)
    };
    keys.map(find)
}

/// What the program's first instructions pass to the C library.
fn main_of(replay: &mut Replay, entry: u64) -> u64 {
    let end = replay.end();
    let mut position = replay
        .next_stop(&[entry], end, &mut |_| true)
        .unwrap()
        .expect("the program begins");
    loop {
        let registers = replay.registers().unwrap();
        let code = bytes(replay, registers.rip, 2);
        if code == [0xff, 0x15] || code[0] == 0xe8 {
            return registers.rdi;
        }
        position += 1;
        replay.goto(position).unwrap();
    }
}

/// Addresses at which an instruction could be a system call, push the flags or repeat, whatever else is there.
fn special(replay: &Replay) -> BTreeSet<u64> {
    let mut found = BTreeSet::new();
    for (_, file) in replay
        .files()
        .filter(|(_, file)| file.protection & libc::PROT_EXEC as u32 != 0)
    {
        let code = bytes(replay, file.start, (file.end - file.start) as usize);
        for (address, window) in (file.start..).zip(code.windows(4)) {
            let behind = |index: usize| {
                if window[index] & 0xf0 == 0x40 {
                    window[index + 1]
                } else {
                    window[index]
                }
            };
            let string = matches!(behind(1), 0xa4..=0xa7 | 0xaa..=0xaf);
            if window[0] == 0x9c
                || window[..2] == [0x0f, 0x05]
                || matches!(window[0], 0xf2 | 0xf3) && string
            {
                found.extend([address, address - 1, address - 2]);
            }
        }
    }
    found
}

/// Where a stretch starts, and how often gdb comes by that address on its way.
struct Start {
    position: u64,
    address: u64,
    times: usize,
}

/// Starts of stretches, at addresses of random positions to which the program does not come too often.
fn starts(
    replay: &mut Replay,
    from: u64,
    special: &BTreeSet<u64>,
    numbers: &mut Numbers,
) -> Vec<Start> {
    let end = replay
        .end()
        .checked_sub(from + LENGTH)
        .expect("the program runs long enough");
    let mut hits: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for position in numbers
        .choose(CANDIDATES, end)
        .into_iter()
        .map(|offset| from + offset)
    {
        replay.goto(position).unwrap();
        hits.insert(replay.registers().unwrap().rip, Vec::new());
    }
    hits.retain(|address, _| !special.contains(address));
    replay.goto(from).unwrap();
    loop {
        let stops: Vec<u64> = hits.keys().copied().collect();
        let mut often = None;
        let noted = replay.next_stop(&stops, from + end, &mut |replay| {
            let (address, position) = (replay.registers().unwrap().rip, replay.position());
            let hits = hits.get_mut(&address).expect("it is a stop");
            hits.push(position);
            often = (hits.len() > TIMES).then_some(address);
            often.is_some()
        });
        if noted.unwrap().is_none() {
            break;
        }
        hits.remove(&often.expect("it has stopped there"));
    }
    let mut all: Vec<(u64, u64)> = hits
        .iter()
        .flat_map(|(address, hits)| hits.iter().map(|hit| (*hit, *address)))
        .collect();
    let mut chosen: Vec<(u64, u64)> = Vec::new();
    while chosen.len() < STRETCHES && !all.is_empty() {
        let (position, address) = all.swap_remove(numbers.below(all.len() as u64) as usize);
        if chosen
            .iter()
            .all(|(other, _)| other.abs_diff(position) > LENGTH)
        {
            chosen.push((position, address));
        }
    }
    chosen.sort_unstable();
    assert_eq!(
        chosen.len(),
        STRETCHES,
        "there are enough addresses that the program seldom comes to"
    );
    let mut here = from;
    let starts = chosen.into_iter().map(|(position, address)| {
        let times = hits[&address]
            .iter()
            .filter(|hit| (here + 1..=position).contains(hit))
            .count();
        here = position + LENGTH;
        Start {
            position,
            address,
            times,
        }
    });
    starts.collect()
}

/// The positions of entries that begin so, up to `end`, and have this in them.
fn positions(replay: &Replay, end: u64, kind: &str, part: &str) -> Vec<u64> {
    let entries = replay.entries(0, end);
    let found = entries
        .iter()
        .filter(|entry| entry.starts_with(kind) && entry.contains(part));
    let at = found.map(|entry| {
        entry
            .split("at: ")
            .nth(1)
            .and_then(|text| text.split([',', ' ']).next())
            .unwrap()
    });
    at.map(|at| u64::from_str_radix(at, 16).unwrap()).collect()
}

/// What all calls of getrandom(2) gave.
fn random(replay: &mut Replay) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    for at in positions(
        replay,
        replay.end(),
        "SystemCall",
        &format!("number: {:x},", libc::SYS_getrandom),
    ) {
        replay.goto(at).unwrap();
        let (buffer, length) = (
            replay.registers().unwrap().rdi,
            replay.registers().unwrap().rsi,
        );
        replay.goto(at + 1).unwrap();
        found.push(bytes(replay, buffer, length as usize));
    }
    found
}

/// What all calls of time(2) gave.
fn times(replay: &mut Replay) -> Vec<u64> {
    let calls = positions(
        replay,
        replay.end(),
        "SystemCall",
        &format!("number: {:x},", libc::SYS_time),
    );
    let results = calls.into_iter().map(|at| {
        replay.goto(at + 1).unwrap();
        replay.registers().unwrap().rax
    });
    results.collect()
}

/// The registers after each rdtsc before main.
fn clocks(replay: &mut Replay, main: u64) -> Vec<[u64; 3]> {
    const RDTSC: [u8; 2] = [0x0f, 0x31];
    let mut found = Vec::new();
    for at in positions(replay, main, "Chance", "") {
        replay.goto(at).unwrap();
        if bytes(replay, replay.registers().unwrap().rip, 2) == RDTSC {
            replay.goto(at + 1).unwrap();
            let registers = replay.registers().unwrap();
            found.push([registers.rip, registers.rax, registers.rdx]);
        }
    }
    found
}
