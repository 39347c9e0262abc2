//! Goal: recording may begin and end at any moment of a run, and the program does not notice. Method: programs whose threads
//! wait in the kernel, get signals, leave calls by longjmp and change their mappings are recorded in parts, up to 1,000 of them. Output and
//! exit code are those without recording; every recording runs again to its last instruction with the values that are in it, and from
//! one part into another and back.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use exact::{
    Gap, Hints, Hook, MappedFile, Options, Outline, Replay, Traced, When, outline, record, trace,
    verify,
};
use tempfile::TempDir;

fn compiled(name: &str, folder: &Path) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/programs")
        .join(name);
    let program = folder.join(name.replace('.', "_"));
    let status = Command::new("gcc")
        .args(["-O1", "-g", "-pthread", "-o"])
        .args([&program, &source])
        .arg("-lm")
        .status();
    assert!(status.expect("gcc is installed").success(), "{name}");
    program
}

fn after(milliseconds: u64, instructions: u64, times: usize) -> When {
    When::After {
        time: Duration::from_millis(milliseconds),
        instructions,
        times,
    }
}

/// Records parts of a program's run, compares it with a native run, and runs the recording again to its end.
fn same(command: &[&str], when: When) -> (TempDir, Outline) {
    let folder = TempDir::new().expect("a folder");
    let native = Command::new(command[0])
        .args(&command[1..])
        .output()
        .expect("it can be started");
    let words: Vec<OsString> = command.iter().map(OsString::from).collect();
    let output = folder.path().join("output");
    let options = Options {
        when,
        output: Some(output.clone()),
        input: Some(PathBuf::from("/dev/null")),
        ..Options::default()
    };
    let summary =
        record(Path::new(command[0]), &words, folder.path(), options).expect("it can be recorded");
    assert_eq!(summary.lost, None, "{command:?}");
    assert_eq!(summary.code, native.status.code(), "{summary:?}");
    let written = fs::read(&output).expect("the output is there");
    assert_eq!(
        String::from_utf8_lossy(&written),
        String::from_utf8_lossy(&native.stdout),
        "{command:?}"
    );
    let outline = outline(folder.path()).expect("the recording can be read");
    assert_eq!(outline.end, summary.instructions);
    assert!(outline.before.is_some());
    let verdict = verify(folder.path(), &mut |_, _| true).expect("it can be run again");
    assert_eq!(verdict.contradiction, None, "{command:?}");
    assert!(verdict.whole, "{verdict:?}");
    (folder, outline)
}

/// The address of a function in the program that was mapped.
fn address(program: &Path, name: &str) -> impl FnMut(&[MappedFile]) -> Vec<u64> + Send + use<> {
    let symbols = Command::new("nm")
        .arg(program)
        .output()
        .expect("nm is installed");
    let text = String::from_utf8_lossy(&symbols.stdout).into_owned();
    let line = text
        .lines()
        .find(|line| line.ends_with(&format!(" {name}")));
    let word = line.and_then(|line| line.split(' ').next());
    let offset = u64::from_str_radix(word.expect("the function is there"), 16).expect("a number");
    let program = program.to_string_lossy().into_owned();
    move |files| {
        let first = files.iter().find(|file| file.path == program);
        first.map(|file| file.start + offset).into_iter().collect()
    }
}

#[test]
fn threads_wait_when_recording_begins() {
    let folder = TempDir::new().expect("a folder");
    let program = compiled("blocked.c", folder.path());
    let program = program.to_str().expect("a path in text");
    for milliseconds in [5, 20, 40] {
        let (_folder, outline) = same(&[program], after(milliseconds, u64::MAX, 1));
        assert_eq!(outline.gaps, []);
        assert!(outline.threads.len() >= 6, "{:?}", outline.threads);
        let (before, file) = outline.before.expect("it has run before");
        assert!(before >= milliseconds * 1_000_000);
        assert_eq!(file, program);
    }
}

#[test]
fn threads_are_made_and_ask_for_the_time_when_recording_begins() {
    let folder = TempDir::new().expect("a folder");
    let program = compiled("births.c", folder.path());
    let program = program.to_str().expect("a path in text");
    for milliseconds in [1, 2, 3] {
        same(&[program, "40"], after(milliseconds, u64::MAX, 1));
    }
    same(&[program, "100"], after(1, 1000, 100));
}

#[test]
fn recording_begins_and_ends_a_thousand_times() {
    let folder = TempDir::new().expect("a folder");
    let program = compiled("blocked.c", folder.path());
    let program = program.to_str().expect("a path in text");
    let (_folder, outline) = same(&[program, "2000"], after(1, 2000, 1000));
    let is_whole = |gap: &&Gap| gap.nanoseconds.is_some();
    let whole = outline.gaps.iter().filter(is_whole).count();
    assert!(whole > 300, "{whole}");
}

#[test]
fn mappings_change_between_parts_and_nothing_is_left() {
    let folder = TempDir::new().expect("a folder");
    let program = compiled("left.c", folder.path());
    let program = program.to_str().expect("a path in text");
    let (_folder, outline) = same(&[program, "200"], after(1, 1000, 10));
    assert_eq!(outline.gaps.len(), 10);
    assert_eq!(outline.gaps[9].nanoseconds, None);
}

#[test]
fn every_call_of_a_function_is_recorded() {
    let folder = TempDir::new().expect("a folder");
    let program = compiled("left.c", folder.path());
    let chosen = address(&program, "chosen");
    let (recording, outline) = same(
        &[program.to_str().expect("a path in text")],
        When::Calls(Box::new(chosen)),
    );
    let base = outline.mappings[0].file.start;
    let mut choose = address(&program, "chosen");
    let entry = choose(&[outline.mappings[0].file.clone()])[0];
    assert!(entry > base);
    let mut calls = Vec::new();
    // Calls are told apart by their stack pointers: setjmp returns where a call was that longjmp has left.
    let mut returns = BTreeMap::new();
    let hook = Hook {
        address: entry,
        vectors: 0,
    };
    trace(
        recording.path(),
        &[hook],
        &Hints::default(),
        &mut |traced| {
            match *traced {
                Traced::Enter { arguments, .. } => calls.push(arguments[0]),
                Traced::Leave {
                    position, results, ..
                } => drop(returns.insert(position, results[0])),
                _ => {}
            }
            true
        },
    )
    .expect("it can be traced");
    calls.sort_unstable();
    let mut expected: Vec<u64> = (0..3).flat_map(|thread| thread..thread + 40).collect();
    expected.sort_unstable();
    assert_eq!(calls, expected);
    let returning = expected.iter().filter(|number| *number % 3 != 0);
    returns.retain(|_, result| *result > 1);
    assert_eq!(returns.len(), returning.clone().count());
    let sum = returns.values().sum::<u64>();
    assert_eq!(sum, returning.map(|number| number * 2).sum::<u64>());
    // A part begins with a call of the function, or with a thread that was on its way into one.
    let mut replay = Replay::open(recording.path()).expect("the recording can be opened");
    for gap in outline.gaps.iter().filter(|gap| gap.nanoseconds.is_some()) {
        replay.goto(gap.at + 1).expect("the part can be reached");
        let here = replay.registers().expect("registers");
        let standing = replay.others();
        let mut places = standing.iter().filter_map(|tid| replay.registers_of(*tid));
        assert!(here.rip == entry || places.any(|other| other.rip == entry));
    }
    let gap = outline.gaps[outline.gaps.len() / 2];
    replay.goto(gap.at + 1).expect("the part can be reached");
    let first = replay.registers().expect("registers");
    replay.goto(gap.at).expect("the part before can be reached");
    let last = replay.registers().expect("registers");
    assert_ne!(first.rip, last.rip);
    replay
        .goto(gap.at + 1)
        .expect("the part can be reached again");
    assert_eq!(
        format!("{first:?}"),
        format!("{:?}", replay.registers().expect("registers"))
    );
}

/// The registers at the first calls of a function, as gdb shows them.
fn by_gdb(program: &Path, function: &str, calls: usize) -> Vec<[u64; 17]> {
    let script = program.with_extension("gdb");
    let shown = "rax rbx rcx rdx rsi rdi rbp rsp r8 r9 r10 r11 r12 r13 r14 r15 rip"
        .split(' ')
        .map(|name| format!("(unsigned long)${name}"))
        .collect::<Vec<_>>()
        .join(", ");
    let text = format!(
        "set exec-wrapper env -i\nbreak *{function}\nrun > /dev/null\nset $n = 0\n\
         while $n < {calls}\nprintf \"AT{}\\n\", {shown}\nset $n = $n + 1\ncontinue\nend\nkill\n",
        " %lx".repeat(17)
    );
    fs::write(&script, text).expect("the folder can be written");
    let output = Command::new("gdb")
        .args(["-q", "-nx", "-batch", "-x"])
        .args([&script, program])
        .output()
        .expect("gdb is installed");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines = text.lines().filter_map(|line| line.strip_prefix("AT "));
    let numbers = |line: &str| {
        let words = line.split(' ');
        let words = words.map(|word| u64::from_str_radix(word, 16).expect("a number"));
        words.collect::<Vec<u64>>().try_into().expect("17 of them")
    };
    lines.map(numbers).collect()
}

#[test]
fn parts_begin_with_the_registers_that_gdb_shows() {
    const CALLS: usize = 300;
    let folder = TempDir::new().expect("a folder");
    let program = compiled("writes.c", folder.path());
    let options = Options {
        when: When::Calls(Box::new(address(&program, "sell"))),
        fixed_addresses: true,
        environment: Some(Vec::new()),
        input: Some(PathBuf::from("/dev/null")),
        output: Some(PathBuf::from("/dev/null")),
        ..Options::default()
    };
    let words = [program.clone().into_os_string()];
    record(&program, &words, folder.path(), options).expect("it can be recorded");
    let outline = outline(folder.path()).expect("the recording can be read");
    let parts = outline.gaps.iter().filter(|gap| gap.nanoseconds.is_some());
    let begins = std::iter::once(0).chain(parts.map(|gap| gap.at + 1));
    let expected = by_gdb(&program, "sell", CALLS);
    assert_eq!(expected.len(), CALLS);
    let mut replay = Replay::open(folder.path()).expect("the recording can be opened");
    for (at, expected) in begins.zip(expected) {
        replay.goto(at).expect("the part can be reached");
        let r = replay.registers().expect("registers");
        let found = [
            r.rax, r.rbx, r.rcx, r.rdx, r.rsi, r.rdi, r.rbp, r.rsp, r.r8, r.r9, r.r10, r.r11,
            r.r12, r.r13, r.r14, r.r15, r.rip,
        ];
        assert_eq!(found, expected, "at {at}: {found:x?} {expected:x?}");
    }
}

#[test]
fn programs_of_the_system() {
    let folder = TempDir::new().expect("a folder");
    let numbers: Vec<String> = (0..60_000u64)
        .map(|i| (i * 7919 % 100_003).to_string())
        .collect();
    let file = folder.path().join("numbers");
    fs::write(&file, numbers.join("\n") + "\n").expect("the folder can be written");
    let file = file.to_str().expect("a path in text");
    let gzip = ["/bin/gzip", "-9", "-c", "-n", file];
    same(&gzip, after(5, 100_000, 3));
    let perl = [
        "/usr/bin/perl",
        "-e",
        "my %h; $h{$_ % 100} += $_ for 1..2000000; print join(',', map { $h{$_} } sort keys %h), \"\\n\"",
    ];
    same(&perl, after(20, u64::MAX, 1));
    same(&perl, after(10, 100_000, 5));
    let bash = [
        "/bin/bash",
        "-c",
        "for i in 1 2 3 4 5; do echo $i; ls / | wc -l; done; exit 3",
    ];
    same(&bash, after(3, 1000, 10));
}

#[test]
fn a_program_that_ends_before() {
    let folder = TempDir::new().expect("a folder");
    let options = Options {
        when: after(60_000, u64::MAX, 1),
        ..Options::default()
    };
    let words = ["/bin/sh", "-c", "exit 4"].map(OsString::from);
    let error = record(Path::new("/bin/sh"), &words, folder.path(), options);
    let error = error.expect_err("nothing can be recorded");
    assert!(
        matches!(error, exact::Error::Nothing { code: Some(4), .. }),
        "{error}"
    );
}
