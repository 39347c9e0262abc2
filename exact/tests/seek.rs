//! Goal: what a search tells about instructions, reads and writes is complete and right. Method: all writes that it tells are made in
//! their order on a copy of the memory at the start. Each old value, and each value that an instruction read, must be in the copy at
//! that moment, and at the end the copy must be the memory of the program, byte for byte. The instructions are those at which the
//! process stands when it is moved to each of some positions. `SEED` repeats a choice of positions.

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsString;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;

use exact::{Batch, Options, Replay, Seek, record};
use rand::{Rng, SeedableRng};
use tempfile::TempDir;

const PAGE: u64 = 4096;

fn compiled(source: &str, folder: &Path, options: &[&str]) -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests")
        .join(source);
    let program = folder.join(source.replace(['.', '/'], "_"));
    let status = Command::new("gcc")
        .args(["-O1", "-g", "-pthread", "-o"])
        .arg(&program)
        .arg(&path)
        .args(options)
        .arg("-lm")
        .status();
    assert!(
        status.expect("the compiler is installed").success(),
        "{source}"
    );
    program
}

fn recorded(command: &[&str], folder: &Path) {
    let command: Vec<OsString> = command.iter().map(OsString::from).collect();
    let options = Options {
        output: Some(folder.join("output")),
        input: Some(PathBuf::from("/dev/null")),
        ..Options::default()
    };
    let summary =
        record(Path::new(&command[0]), &command, folder, options).expect("it can be recorded");
    assert_eq!(summary.lost, None, "{command:?}");
}

/// Memory as it was at the start, changed by the writes that were told.
struct Image {
    start: Replay,
    pages: BTreeMap<u64, Vec<u8>>,
}

impl Image {
    fn page(&mut self, number: u64) -> &mut Vec<u8> {
        let start = &self.start;
        self.pages.entry(number).or_insert_with(|| {
            let mut bytes = vec![0; PAGE as usize];
            start.read(number * PAGE, &mut bytes);
            bytes
        })
    }

    fn bytes(&mut self, address: u64, length: usize) -> Vec<u8> {
        let mut found = Vec::with_capacity(length);
        while found.len() < length {
            let at = address + found.len() as u64;
            let inside = (at % PAGE) as usize;
            let count = (PAGE as usize - inside).min(length - found.len());
            found.extend_from_slice(&self.page(at / PAGE)[inside..inside + count]);
        }
        found
    }

    fn write(&mut self, address: u64, bytes: &[u8]) {
        let mut done = 0;
        while done < bytes.len() {
            let at = address + done as u64;
            let inside = (at % PAGE) as usize;
            let count = (PAGE as usize - inside).min(bytes.len() - done);
            self.page(at / PAGE)[inside..inside + count]
                .copy_from_slice(&bytes[done..done + count]);
            done += count;
        }
    }

    /// Checks what was read, and makes what was written.
    fn follow(&mut self, batch: &Batch) {
        for access in &batch.accesses {
            let (value, old) = (batch.value(access), batch.old(access));
            let before = if access.is_write { old } else { value };
            let ours = self.bytes(access.address, before.len());
            let who = access
                .instruction
                .map(|number| &batch.instructions[number as usize]);
            assert!(
                ours == before,
                "{access:x?} by {who:x?}: {before:02x?}, and {ours:02x?} is there"
            );
            if access.is_write {
                assert_eq!(value.len() as u64, access.size, "{access:x?} by {who:x?}");
                self.write(access.address, value);
            }
        }
    }
}

fn all(positions: Range<u64>, replay: &mut Replay, report: &mut dyn FnMut(&Batch) -> bool) {
    let seek = Seek {
        instructions: true,
        reads: true,
        writes: true,
        value_bytes: usize::MAX,
        ..Seek::default()
    };
    replay
        .seek(positions, &seek, report)
        .expect("it can be searched");
}

/// Follows all writes of a recording.
fn complete(folder: &Path) {
    let mut replay = Replay::open(folder).expect("the recording can be opened");
    let end = replay.end();
    let mut image = Image {
        start: Replay::open(folder).expect("the recording can be opened"),
        pages: BTreeMap::new(),
    };
    let (mut next, mut accesses) = (0, 0);
    let mut visited = BTreeMap::new();
    let mut random = random();
    let began = std::time::Instant::now();
    all(0..end, &mut replay, &mut |batch| {
        image.follow(batch);
        accesses += batch.accesses.len();
        for executed in &batch.executed {
            assert_eq!(executed.position, next);
            next += 1;
            if random.random_ratio(1, (end / 100) as u32) {
                let instruction = &batch.instructions[executed.instruction as usize];
                visited.insert(executed.position, (executed.tid, instruction.address));
            }
        }
        true
    });
    println!(
        "{next} instructions, {accesses} reads and writes in {:?}",
        began.elapsed()
    );
    assert_eq!((next, replay.position()), (end, end));
    for range in replay.mapped().expect("its memory is known") {
        for page in range.start / PAGE..range.end / PAGE {
            let mut theirs = vec![0; PAGE as usize];
            if replay.read(page * PAGE, &mut theirs) == theirs.len() {
                let ours = image.page(page);
                let differs = (0..)
                    .zip(ours.iter().zip(&theirs))
                    .find(|(_, (a, b))| a != b);
                assert_eq!(differs.map(|(at, _): (u64, _)| page * PAGE + at), None);
            }
        }
    }
    for (position, (tid, address)) in visited {
        replay.goto(position).expect("a position");
        let registers = replay.registers().expect("registers");
        // A call of a thread that waits counts when it returns.
        if replay.thread() == tid {
            assert_eq!(registers.rip, address, "at {position}");
        }
    }
}

fn random() -> rand::rngs::StdRng {
    let named = |name: &str| -> Option<u64> { std::env::var(name).ok()?.parse().ok() };
    // A failed test is run again with the seed of the run.
    let seed = named("SEED").or_else(|| named("PROPTEST_RNG_SEED"));
    let seed = seed.unwrap_or_else(|| rand::rng().random());
    println!("SEED={seed}");
    rand::rngs::StdRng::seed_from_u64(seed)
}

fn complete_compiled(source: &str, options: &[&str]) {
    let folder = TempDir::new().expect("a folder");
    let program = compiled(source, folder.path(), options);
    recorded(&[program.to_str().expect("a path in text")], folder.path());
    complete(folder.path());
}

#[test]
fn writes_by_instructions_and_the_kernel() {
    complete_compiled("programs/writes.c", &[]);
}

/// What was read downwards begins where the search ended.
#[test]
fn searches_that_go_down_and_end_early_read_what_was_there() {
    let folder = TempDir::new().expect("a folder");
    let program = compiled("programs/backwards.c", folder.path(), &["-no-pie"]);
    recorded(&[program.to_str().expect("a path in text")], folder.path());
    let output = fs::read_to_string(folder.path().join("output")).expect("the output is there");
    let words: Vec<&str> = output.split_whitespace().collect();
    assert_eq!((words[1], words[3]), ("250", "270"));
    let address = |word: &str| u64::from_str_radix(word.trim_start_matches("0x"), 16);
    let area = address(words[0]).expect("an address");
    let other = address(words[2]).expect("an address");
    let mut replay = Replay::open(folder.path()).expect("it can be opened");
    let end = replay.end();
    let seek = Seek {
        reads: true,
        ..Seek::default()
    };
    let mut found = Vec::new();
    let mut report = |batch: &Batch| {
        for access in &batch.accesses {
            let by = access
                .instruction
                .map(|number| &batch.instructions[number as usize].code);
            let is_search = by.is_some_and(|code| *code == [0xf2, 0xae] || *code == [0xf3, 0xa6]);
            if is_search && access.size < 60 {
                let value = batch.value(access).to_vec();
                found.push((access.address, access.size, value));
            }
        }
        true
    };
    replay
        .seek(0..end, &seek, &mut report)
        .expect("it can be searched");
    let bytes = |first: u64| -> Vec<u8> { (first..300).map(|at| at as u8).collect() };
    let mut differs = bytes(270);
    differs[0] = 77;
    let expected = [
        (area + 250, 50, bytes(250)),
        (area + 270, 30, bytes(270)),
        (other + 270, 30, differs),
    ];
    for one in expected {
        assert!(found.contains(&one), "{one:x?} of {found:x?}");
    }
}

#[test]
fn instructions_of_every_kind() {
    complete_compiled("gdb/truth.c", &[]);
}

#[test]
fn instructions_with_unusual_operands() {
    complete_compiled(
        "programs/operands.c",
        &["-no-pie", "-mxsave", "-mxsavec", "-mxsaveopt"],
    );
}

#[test]
fn an_interpreter_and_a_database() {
    let folder = TempDir::new().expect("a folder");
    let script = "local t = {} for i = 1, 9000 do t[i % 90] = (t[i % 90] or 0) + i // 3 end local s = ('x'):rep(5000) assert(#s:gsub('x', 'yz') == 10000)";
    recorded(&["/usr/bin/lua5.4", "-e", script], folder.path());
    complete(folder.path());
    let queries = "create table t (a integer primary key, b text); insert into t select value, hex(value) from generate_series(1, 800); select count(*), max(b) from t where b like '3%';";
    recorded(&["/usr/bin/sqlite3", ":memory:", queries], folder.path());
    complete(folder.path());
}

#[test]
fn signals_faults_and_code_that_changes() {
    complete_compiled("programs/signals.c", &[]);
}

#[test]
fn threads_that_race() {
    complete_compiled("programs/turns.c", &[]);
}

/// An item without the number of the batch's table: position, thread, address of the instruction, and of the memory.
type Plain = (u64, i32, Option<u64>, u64, u64, bool, Vec<u8>, Vec<u8>);

#[derive(Default, PartialEq, Debug)]
struct Collected {
    executed: Vec<(u64, i32, u64)>,
    accesses: Vec<Plain>,
}

fn collected(replay: &mut Replay, positions: Range<u64>, seek: &Seek) -> Collected {
    let mut found = Collected::default();
    replay
        .seek(positions, seek, &mut |batch| {
            let address = |number: u32| batch.instructions[number as usize].address;
            found.executed.extend(
                batch
                    .executed
                    .iter()
                    .map(|one| (one.position, one.tid, address(one.instruction))),
            );
            found.accesses.extend(batch.accesses.iter().map(|one| {
                (
                    one.position,
                    one.tid,
                    one.instruction.map(address),
                    one.address,
                    one.size,
                    one.is_write,
                    batch.old(one).to_vec(),
                    batch.value(one).to_vec(),
                )
            }));
            true
        })
        .expect("it can be searched");
    found
}

/// What only one of two searches has found.
fn difference(found: &Collected, wanted: &Collected) -> String {
    fn only<T: PartialEq + std::fmt::Debug>(these: &[T], those: &[T]) -> String {
        let only = these.iter().filter(|one| !those.contains(one)).take(5);
        only.map(|one| format!("{one:x?} ")).collect()
    }
    format!(
        "found {} {}missed {} {}",
        only(&found.executed, &wanted.executed),
        only(&found.accesses, &wanted.accesses),
        only(&wanted.executed, &found.executed),
        only(&wanted.accesses, &found.accesses)
    )
}

#[test]
fn parts_are_those_of_the_whole() {
    let folder = TempDir::new().expect("a folder");
    let program = compiled("gdb/truth.c", folder.path(), &[]);
    recorded(&[program.to_str().expect("a path in text")], folder.path());
    let mut replay = Replay::open(folder.path()).expect("the recording can be opened");
    let end = replay.end();
    let everything = Seek {
        instructions: true,
        reads: true,
        writes: true,
        ..Seek::default()
    };
    let whole = collected(&mut replay, 0..end, &everything);
    let mut random = random();
    for round in 0..12 {
        let length = [1, 10, 500, 50_000][round % 4];
        let start = random.random_range(0..end - length);
        let positions = start..start + length;
        let (instructions, reads, writes) = [
            (true, true, true),
            (true, false, false),
            (false, true, false),
            (false, false, true),
        ][random.random_range(0..4)];
        // Some code that is executed, and memory that is used.
        let at = whole.executed[random.random_range(0..whole.executed.len())].2;
        let code = (round % 3 == 1).then(|| vec![at..at + 40]);
        let used = whole.accesses[random.random_range(0..whole.accesses.len())].3;
        let memory = (round % 3 == 2).then(|| vec![used & !63..used + 64]);
        let seek = Seek {
            instructions,
            reads,
            writes,
            code: code.clone(),
            memory: memory.clone(),
            ..everything.clone()
        };
        let has = |ranges: &Option<Vec<Range<u64>>>, start: u64, end: u64| {
            ranges
                .as_ref()
                .is_none_or(|ranges| ranges[0].start < end && start < ranges[0].end)
        };
        let wanted = Collected {
            executed: whole
                .executed
                .iter()
                .filter(|(position, _, address)| {
                    instructions
                        && positions.contains(position)
                        && has(&code, *address, address + 1)
                })
                .copied()
                .collect(),
            accesses: whole
                .accesses
                .iter()
                .filter(
                    |(position, _, instruction, address, size, is_write, _, _)| {
                        [reads, writes][usize::from(*is_write)]
                            && positions.contains(position)
                            && instruction.map_or(code.is_none(), |at| has(&code, at, at + 1))
                            && has(&memory, *address, address + size)
                    },
                )
                .cloned()
                .collect(),
        };
        let found = collected(&mut replay, positions.clone(), &seek);
        assert!(
            found == wanted,
            "{positions:?} {seek:?}: {}",
            difference(&found, &wanted)
        );
        // The process is an ordinary one afterwards.
        assert_eq!(replay.position(), positions.end);
        replay.goto(start).expect("a position");
        let rip = replay.registers().expect("registers").rip;
        assert_eq!(rip, whole.executed[start as usize].2);
    }
}

/// A search that ends with an instruction that is met by traps has all of it: of string instructions, and those that save state.
#[test]
fn the_last_instruction_of_a_part_is_whole() {
    let folder = TempDir::new().expect("a folder");
    let program = compiled("gdb/truth.c", folder.path(), &[]);
    recorded(&[program.to_str().expect("a path in text")], folder.path());
    let mut replay = Replay::open(folder.path()).expect("the recording can be opened");
    let end = replay.end();
    let seek = Seek {
        reads: true,
        writes: true,
        ..Seek::default()
    };
    let whole = collected(&mut replay, 0..end, &seek).accesses;
    let is_long = |access: &&Plain| access.2.is_some() && !access.4.is_power_of_two();
    let mut met = HashSet::new();
    let long = whole
        .iter()
        .filter(is_long)
        .filter(|access| met.insert(access.2));
    let positions: Vec<u64> = long.map(|access| access.0).take(40).collect();
    assert!(positions.len() > 5, "{positions:?}");
    for position in positions {
        let wanted: Vec<Plain> = whole
            .iter()
            .filter(|access| access.0 == position)
            .cloned()
            .collect();
        let found = collected(&mut replay, position..position + 1, &seek).accesses;
        assert!(found == wanted, "{found:x?} {wanted:x?}");
    }
}

#[test]
fn writes_to_some_bytes_are_those_of_the_whole() {
    let folder = TempDir::new().expect("a folder");
    let program = compiled("programs/signals.c", folder.path(), &[]);
    recorded(&[program.to_str().expect("a path in text")], folder.path());
    let mut replay = Replay::open(folder.path()).expect("the recording can be opened");
    let end = replay.end();
    let writes = Seek {
        writes: true,
        ..Seek::default()
    };
    let whole = collected(&mut replay, 0..end, &writes);
    let mut random = random();
    for round in 0..20 {
        let used = &whole.accesses[random.random_range(0..whole.accesses.len())];
        let length = [8, 1, 32, 4096, 3][round % 5];
        let start = if length < 8 {
            used.3
        } else {
            used.3 & !(length - 1)
        };
        let memory = start..start + length;
        let positions = [0..end, used.0..end, 0..used.0 + 1, used.0..used.0 + 1][round % 4].clone();
        // Those that save the processor's state may leave parts of it alone.
        let saves = |access: &Plain| access.2.is_some() && access.4 > 512;
        let wanted: Vec<Plain> = whole
            .accesses
            .iter()
            .filter(|access| !saves(access))
            .filter(|(position, _, _, address, size, ..)| {
                positions.contains(position)
                    && *address < memory.end
                    && memory.start < address + size
            })
            .cloned()
            .collect();
        let seek = Seek {
            memory: Some(vec![memory.clone()]),
            ..writes.clone()
        };
        let mut found = collected(&mut replay, positions.clone(), &seek);
        found.accesses.retain(|access| !saves(access));
        assert!(
            found.accesses == wanted,
            "{memory:x?} {positions:?}:\n{:x?}\n{wanted:x?}",
            found.accesses
        );
        assert_eq!(replay.position(), positions.end);
    }
}

#[test]
fn a_search_ends_when_nobody_wants_more() {
    let folder = TempDir::new().expect("a folder");
    let program = compiled("programs/turns.c", folder.path(), &[]);
    recorded(&[program.to_str().expect("a path in text")], folder.path());
    let mut replay = Replay::open(folder.path()).expect("the recording can be opened");
    let end = replay.end();
    let seek = Seek {
        instructions: true,
        ..Seek::default()
    };
    let mut batches = 0;
    replay
        .seek(0..end, &seek, &mut |_| {
            batches += 1;
            batches < 2
        })
        .expect("it can be searched");
    assert_eq!(batches, 2);
    assert!(replay.position() < end);
    // One thread alone.
    let tid = replay.schedule()[1].1;
    let mut wrong = 0;
    let one = Seek {
        tid: Some(tid),
        ..seek
    };
    let mut count = 0;
    replay
        .seek(0..end, &one, &mut |batch| {
            wrong += batch.executed.iter().filter(|one| one.tid != tid).count();
            count += batch.executed.len();
            true
        })
        .expect("it can be searched");
    assert_eq!(wrong, 0);
    assert!(count > 1_000_000, "{count}");
}

#[test]
fn a_compressor() {
    let folder = TempDir::new().expect("a folder");
    let text: String = (0..2000u64)
        .map(|number| format!("{number}: {} of {}\n", number * number, number % 7))
        .collect();
    let file = folder.path().join("text");
    fs::write(&file, text).expect("the folder can be written");
    let file = file.to_str().expect("a path in text");
    recorded(&["/bin/gzip", "-6", "-c", "-n", file], folder.path());
    complete(folder.path());
}
