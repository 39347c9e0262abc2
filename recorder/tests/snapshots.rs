//! Goal: snapshots hold what memory held.
//! Method: a program that changes memory of every kind writes a log of its contents. The snapshots taken at its stops,
//! and at regular times, are compared with that.

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use debuginfo::{Machine, Register};
use e2e::{Scratch, fixture_artifact};
use recorder::{Observer, OnFull, RecordOptions, SnapshotTimes, Surroundings, Target, live::*};
use store::{
    Recording,
    memory::{Memory, PAGE_LEN, Seen},
};

struct Quiet;
impl Observer for Quiet {}

fn options(scratch: &Scratch, snapshots: SnapshotTimes) -> RecordOptions {
    options_of("memory", scratch, snapshots)
}

fn options_of(fixture: &str, scratch: &Scratch, snapshots: SnapshotTimes) -> RecordOptions {
    let program = fixture_artifact(fixture, fixture);
    RecordOptions {
        output: Some(scratch.join("rec.hindsight")),
        include: Vec::new(),
        exclude: Vec::new(),
        on_full: OnFull::Block,
        snapshots,
        keep_log: false,
        max_size: None,
        surroundings: Surroundings::default(),
        captures: recorder::Captures::default(),
        guardian: None,
        labels: Default::default(),
        target: Target::Spawn {
            argv: vec![program.into_os_string()],
        },
    }
}

/// Returns the program's log: address and bytes of each block.
fn written(file: &Path) -> Vec<(u64, Vec<u8>)> {
    let bytes = std::fs::read(file).expect("the program wrote it");
    let mut rest = &bytes[..];
    let word = |rest: &mut &[u8]| {
        let (word, behind) = rest.split_first_chunk().expect("eight bytes");
        *rest = behind;
        u64::from_le_bytes(*word)
    };
    let mut blocks = Vec::new();
    while !rest.is_empty() {
        let (addr, len) = (word(&mut rest), word(&mut rest));
        let (block, behind) = rest.split_at(len as usize);
        blocks.push((addr, block.to_vec()));
        rest = behind;
    }
    blocks
}

/// Reads memory as of a snapshot.
fn read(memory: &mut Memory, id: u32, addr: u64, len: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut page = addr / PAGE_LEN * PAGE_LEN;
    while page < addr + len as u64 {
        match memory.page(id, page).expect("the recording is whole") {
            Seen::Bytes(seen) => bytes.extend(seen),
            Seen::Zeroes => bytes.extend([0; PAGE_LEN as usize]),
            Seen::Uncovered => panic!("snapshot {id} does not cover {page:#x}"),
        }
        page += PAGE_LEN;
    }
    let from = (addr % PAGE_LEN) as usize;
    bytes[from..from + len].to_vec()
}

/// Waits for the stop at the program's entry: a thread resumes only once its stop was shown.
fn await_entry(live: &Live) {
    let stop = live.wait(0, Duration::from_secs(60));
    assert!(matches!(stop, Waited::Stopped(_)), "{stop:?}");
}

#[test]
fn a_stop_keeps_all_memory_as_it_is() {
    let scratch = Scratch::new("snapshots");
    let live = Live::start(
        LiveOptions {
            record: options(&scratch, SnapshotTimes::AtPauses),
            stop_on_entry: true,
            stdio: Stdio::Piped {
                cwd: scratch.path().to_path_buf(),
                env: Vec::new(),
            },
            first: FirstProbes::default(),
        },
        Arc::new(Quiet),
    )
    .expect("the program can be started");
    await_entry(&live);
    let spec = ProbeSpec {
        location: Location::Function("staged".to_owned()),
        action: Action::Break {
            all_threads: false,
            once: false,
        },
        condition: None,
        hit_count: 0,
    };
    live.add_probe(spec).expect("there is such a function");
    let mut runtime = None;
    let mut sp = 0;
    for _ in 0..4 {
        let after = live
            .resume(live.pid(), Motion::Continue, false)
            .expect("it is stopped");
        let stop = live.wait(after, Duration::from_secs(60));
        assert!(matches!(stop, Waited::Stopped(_)), "{stop:?}");
        let machine = live.machine(live.pid()).expect("it is stopped");
        let rsp = Register::by_name("rsp").expect("a register");
        (sp, _) = machine.register(rsp).expect("it is stopped");
        runtime = runtime.or_else(|| runtime_of(live.pid()));
    }
    live.resume(live.pid(), Motion::Continue, false)
        .expect("it is stopped");
    let deadline = Instant::now() + Duration::from_secs(60);
    let outcome = live.outcome(deadline).expect("the recording is whole");
    let recording = Recording::open(&outcome.recording).expect("it was just closed");
    let mut memory = Memory::open(&recording).expect("its snapshots are whole");
    // The start, the entry, four stops.
    assert_eq!(memory.len(), 6);
    for stage in 0..4 {
        let blocks = written(&scratch.join(&format!("stage.{stage}")));
        assert_eq!(blocks.len(), 7);
        for (addr, bytes) in blocks {
            let seen = read(&mut memory, stage + 2, addr, bytes.len());
            assert!(seen == bytes, "stage {stage}, block at {addr:#x}");
        }
    }
    // All return addresses are the program's. (Below the stack pointer are leftovers of our code.)
    let runtime = runtime.expect("the runtime is mapped");
    let stack = memory
        .regions(5)
        .iter()
        .find(|region| region.name == "[stack]");
    let stack = stack.expect("it has a stack").clone();
    let bytes = read(&mut memory, 5, stack.addr, stack.len as usize);
    let (words, _) = bytes[(sp - stack.addr) as usize..].as_chunks();
    let ours = words
        .iter()
        .filter(|word| runtime.contains(&u64::from_le_bytes(**word)));
    assert_eq!(ours.count(), 0);
    // Unchanged pages are not stored again.
    let lens = memory
        .paths()
        .map(|path| path.metadata().expect("it is there").len());
    let lens: Vec<u64> = lens.collect();
    assert!(
        lens[1..].iter().all(|len| *len < lens[0] + (200 << 10)),
        "{lens:?}"
    );
}

/// Returns where the code that runs at each traced call is mapped.
fn runtime_of(pid: i32) -> Option<std::ops::Range<u64>> {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).ok()?;
    let line = maps
        .lines()
        .find(|line| line.contains("r-xp") && line.contains("/runtime-"))?;
    let (start, end) = line.split(' ').next()?.split_once('-')?;
    let parse = |text| u64::from_str_radix(text, 16).ok();
    Some(parse(start)?..parse(end)?)
}

/// Bytes that the program itself could not read have no value.
#[test]
fn pages_that_cannot_be_read_are_not_covered() {
    let scratch = Scratch::new("snapshots-short");
    let live = Live::start(
        LiveOptions {
            record: options_of("short_file", &scratch, SnapshotTimes::AtPauses),
            stop_on_entry: true,
            stdio: Stdio::Piped {
                cwd: scratch.path().to_path_buf(),
                env: Vec::new(),
            },
            first: FirstProbes::default(),
        },
        Arc::new(Quiet),
    )
    .expect("the program can be started");
    await_entry(&live);
    let spec = ProbeSpec {
        location: Location::Function("mapped".to_owned()),
        action: Action::Break {
            all_threads: false,
            once: false,
        },
        condition: None,
        hit_count: 0,
    };
    live.add_probe(spec).expect("there is such a function");
    let mut places = Vec::new();
    for _ in 0..2 {
        let after = live
            .resume(live.pid(), Motion::Continue, false)
            .expect("it is stopped");
        let stop = live.wait(after, Duration::from_secs(60));
        assert!(matches!(stop, Waited::Stopped(_)), "{stop:?}");
        let machine = live.machine(live.pid()).expect("it is stopped");
        let argument = |name: &str| {
            let register = Register::by_name(name).expect("a register");
            machine.register(register).expect("it is stopped").0
        };
        places.push((argument("rdi"), argument("rsi")));
    }
    live.resume(live.pid(), Motion::Continue, false)
        .expect("it is stopped");
    let deadline = Instant::now() + Duration::from_secs(60);
    let outcome = live.outcome(deadline).expect("the recording is whole");
    let recording = Recording::open(&outcome.recording).expect("it was just closed");
    let mut memory = Memory::open(&recording).expect("its snapshots are whole");
    assert_eq!(memory.len(), 4, "the start, the entry, two stops");
    assert_eq!(places[0], places[1]);
    let (cut, shorter) = places[0];
    let mut seen = |id, addr| memory.page(id, addr).expect("the recording is whole");
    let whole = Seen::Bytes(vec![0x5a; PAGE_LEN as usize]);
    for (id, expected) in [(2, &whole), (3, &Seen::Uncovered)] {
        assert_eq!(seen(id, cut), whole, "snapshot {id}");
        assert_eq!(&seen(id, cut + PAGE_LEN), expected, "snapshot {id}");
        assert_eq!(seen(id, shorter), whole, "snapshot {id}");
        assert_eq!(
            seen(id, shorter + PAGE_LEN),
            Seen::Uncovered,
            "snapshot {id}"
        );
    }
}

/// The last of many periodic snapshots holds the program's memory too.
#[test]
fn memory_is_copied_at_regular_times() {
    let scratch = Scratch::new("snapshots-every");
    let interval = SnapshotTimes::Every(Duration::from_millis(2));
    let options = RecordOptions {
        target: Target::Spawn {
            argv: vec![
                fixture_artifact("steady", "steady").into_os_string(),
                scratch.join("steady").into_os_string(),
                "100000".into(),
            ],
        },
        ..options(&scratch, interval)
    };
    let outcome = recorder::record(options, &Quiet).expect("it can be recorded");
    let recording = Recording::open(&outcome.recording).expect("it was just closed");
    let mut memory = Memory::open(&recording).expect("its snapshots are whole");
    assert!(memory.len() > 3, "{} snapshots", memory.len());
    let last = memory.len() as u32 - 1;
    let stack = memory
        .regions(last)
        .iter()
        .find(|region| region.name == "[stack]");
    let stack = stack.expect("it has a stack").clone();
    // The program's arguments are at the high end of its stack.
    let top = read(&mut memory, last, stack.addr, stack.len as usize);
    let argument = scratch.join("steady").into_os_string();
    let argument = argument.as_encoded_bytes();
    assert!(top.windows(argument.len()).any(|window| window == argument));
}
