//! Goal: long queries over millions of calls stay within the memory limit, show on a terminal that they go on, and end at
//! Ctrl-C. Method: `hindsight` on a synthetic recording.

mod common;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::Folder;
use store::seal::{Ending, SealOptions, Sealer};
use store::synth::Synth;

/// Each round has four calls.
const ROUNDS: u64 = 500_000;
const FUNCTIONS: u64 = 200;
const STACK: u64 = 0x7f00_0000_8000;
/// How long a query computes before it is interrupted, in ticks of its processor time: 100 are a second.
const BUSY_TICKS: u64 = 100;
/// How long an interrupted command still computes. Its processor time does not depend on what else runs.
const SOON_TICKS: u64 = 200;
/// By then it has ended on any machine, or it hangs.
const PATIENCE: Duration = Duration::from_secs(120);

/// Makes a folder with the recording `large.hindsight`.
fn large() -> Folder {
    let folder = Folder::empty();
    let recording = rounds().record(&folder.path("large.hindsight")).unwrap();
    let sealer = Sealer::own(&recording, SealOptions::default()).unwrap();
    sealer.finish(Ending::Close, |_| {}).unwrap();
    folder
}

fn rounds() -> Synth {
    let mut synth = Synth::new();
    let name =
        |n| format!("library::of_templates::Container<Element{n}>::a_member_with_a_long_name");
    let ids: Vec<u32> = (0..FUNCTIONS).map(|n| synth.function(&name(n))).collect();
    synth.thread(1);
    for n in 0..ROUNDS {
        let id = |k: u64| ids[((n * 7 + k * 13) % FUNCTIONS) as usize];
        synth.enter(id(0), STACK);
        for k in 1..4 {
            synth.enter(id(k), STACK - 64).leave(STACK - 64);
        }
        synth.leave(STACK);
        if n % 1000 == 999 {
            synth.watermark();
        }
    }
    synth
}

const CALLERS: &str = "select c.function, p.function, count(*) from calls c join calls p on c.parent = p.start_seq \
                       group by 1, 2 order by 1, 2";

#[test]
fn a_join_of_millions_of_calls_spills() {
    let folder = large();
    let asked = |memory: &str| folder.transcript(&["sql", "large", "--memory", memory, CALLERS]);
    let roomy = asked("2GB");
    assert!(roomy.lines().count() > FUNCTIONS as usize, "{roomy}");
    for memory in ["64MB", "128MB"] {
        assert_eq!(asked(memory), roomy, "{memory}");
    }
    // An operator that cannot spill is reported in plain words.
    let question =
        "select args, function, start_seq from calls order by args, start_seq limit 1900000";
    let text = folder.transcript(&["sql", "large", "--memory", "10MB", question]);
    assert!(text.contains("too many first rows to keep"), "{text}");
    assert!(!text.contains("TopK"), "{text}");
}

/// The fields of `stat` behind the name of a process (proc_pid_stat(5)), the state first.
fn stat(pid: u32) -> Vec<String> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let behind = stat.rsplit(')').next().unwrap_or_default();
    behind.split_whitespace().map(str::to_owned).collect()
}

/// The processor time of a process, also of one that has ended and was not waited for.
fn ticks(pid: u32) -> u64 {
    let fields = stat(pid);
    let field = |at: usize| fields.get(at).and_then(|text| text.parse::<u64>().ok());
    field(11).unwrap_or(0) + field(12).unwrap_or(0)
}

/// Whether a child has ended. It is not waited for yet.
fn is_over(pid: u32) -> bool {
    stat(pid).first().is_none_or(|state| state == "Z")
}

fn files(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names
        .filter(|name| {
            name.contains("parquet") || name.contains("csv") || name.starts_with(".hindsight-")
        })
        .collect()
}

#[test]
fn an_interrupt_ends_a_sort_of_millions_of_rows_at_once() {
    let large = large();
    for (file, by, signal) in [
        ("one.parquet", "dur_ns", "INT"),
        ("other.parquet", "args", "INT"),
        ("third.parquet", "dur_ns", "KILL"),
        ("rows.csv", "args", "INT"),
    ] {
        let question = format!("select * from calls order by {by}");
        let mut child = large
            .command(&["sql", "large", &question, "-o", file])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let pid = child.id();
        while ticks(pid) < BUSY_TICKS {
            assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
            std::thread::yield_now();
        }
        let busy = ticks(pid);
        let interrupted = Command::new("kill")
            .args([&format!("-{signal}"), &pid.to_string()])
            .status();
        assert!(interrupted.unwrap().success());
        let since = Instant::now();
        while !is_over(pid) {
            assert!(since.elapsed() < PATIENCE, "{by}: it goes on");
            std::thread::sleep(Duration::from_millis(1));
        }
        let computed = ticks(pid);
        let ended = child.wait_with_output().unwrap();
        assert!(!ended.status.success(), "{by}");
        assert!(computed < busy + SOON_TICKS, "{by}: {busy} {computed}");
        let told = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert!(signal == "KILL" || told.contains("interrupted"), "{told}");
        assert_eq!(files(&large.path("")), Vec::<String>::new());
    }
}

#[test]
fn what_takes_long_shows_on_a_terminal_that_it_goes_on() {
    let large = large();
    let join = "select g.function, count(*) from calls c join calls p on c.parent = p.start_seq \
                join calls g on p.start_seq = g.start_seq join calls h on g.start_seq = h.start_seq \
                group by 1 limit 1";
    let rows = "select start_seq, dur_ns from calls";
    for (args, shown) in [
        (
            &["sql", "large", join][..],
            &[" read, ", " s; Ctrl-C stops it"][..],
        ),
        (
            &["sql", "large", rows, "-o", "rows.csv"],
            &[" read, ", " s; Ctrl-C stops it"],
        ),
        (&["report", "large"], &["adding up [", "% "]),
    ] {
        let text = large.on_slow_terminal(args);
        let has_all = shown.iter().all(|part| text.contains(part));
        assert!(has_all && !text.contains("exit code"), "{args:?}: {text}");
    }
}

/// What was sealed for a reader is not kept, so each command seals anew.
#[test]
fn opening_what_is_not_sealed_shows_how_far_it_is() {
    let folder = Folder::empty();
    let path = folder.path("large.hindsight");
    rounds().record_interrupted(&path).unwrap();
    for args in [
        &["sql", "large", "select count(*) from modules"][..],
        &["info", "large"],
        &["report", "large"],
        &["repl", "large", "--cmd", "where"],
    ] {
        let text = folder.on_slow_terminal(args);
        assert!(text.contains("sealing ["), "{args:?}: {text}");
    }
}
