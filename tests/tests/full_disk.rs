//! Goal: a disk that becomes full ends a recording of every instruction, and not the program; what was recorded until then is a recording
//! like any other. Method: programs that read many random bytes are recorded on a small file system.

use std::path::Path;

use e2e::{Ended, Hindsight, Program, Recording, Scratch, Status, fixture_artifact};

/// Runs `$@` with a file system of 24 MiB at `small`, which only it can see, and keeps the files there in `kept`.
const ON_SMALL_DISK: &str = "mount -t tmpfs -o size=24m tmpfs small || exit 90; \"$0\" \"$@\"; status=$?; \
     cp -a small kept; exit $status";

struct Filled {
    scratch: Scratch,
    ended: Ended,
    recording: Recording,
}

/// Records a program in a folder that is too small for it: it ends as without recording.
fn filled(name: &str, options: &[&str], program: &Path, args: &[&str]) -> Filled {
    let scratch = Scratch::new(name);
    std::fs::create_dir(scratch.join("small")).expect("the test's folder is writable");
    let program = Program::new(program, scratch.path()).args(args);
    let native = program.run();
    let ended = Hindsight::record_command(&scratch, "small/rec", options, &program)
        .wrapped(
            "/usr/bin/unshare".as_ref(),
            ["-rm", "/bin/sh", "-c", ON_SMALL_DISK],
        )
        .run();
    assert_ne!(
        ended.status,
        Status::Code(90),
        "a tmpfs cannot be mounted: {}",
        ended.errors()
    );
    assert_eq!(native.text(), ended.text(), "{}", ended.errors());
    assert_eq!(native.status, ended.status, "{}", ended.errors());
    let recording = Recording::new(scratch.join("kept/rec.hindsight"));
    Filled {
        scratch,
        ended,
        recording,
    }
}

impl Filled {
    /// The summary says what has happened, once and in plain words; the recording opens, runs again and says it too.
    fn is_a_recording(&self) {
        let errors = self.ended.errors();
        let said = "the disk was full at instruction ";
        assert_eq!(errors.matches(said).count(), 1, "{errors}");
        let words = ["went on unrecorded", "free some space", " instructions, "];
        assert!(words.iter().all(|word| errors.contains(word)), "{errors}");
        let checked = self.recording.command("check", &["--replay", "--json"]);
        assert_eq!(checked.status, Status::Code(0), "{}", checked.text());
        let report = checked.result();
        let instructions = report["replay"]["instructions"].as_i64().expect("a number");
        assert!(instructions > 10_000, "{report}");
        let warnings = self
            .recording
            .rows("SELECT text FROM events WHERE kind = 'warning'");
        let is_told = |row: &e2e::Row| {
            let text = row["text"].as_str().unwrap_or_default();
            text.contains(said) && text.contains("went on unrecorded")
        };
        assert_eq!(
            warnings.iter().filter(|row| is_told(row)).count(),
            1,
            "{warnings:?}"
        );
        for spare in ["spare.log", "spare.events"] {
            let path = self.recording.path().join("instructions").join(spare);
            assert!(!path.exists(), "{}", path.display());
        }
    }

    fn ends_with(&self, code: i64) {
        let last = self
            .recording
            .row("SELECT value FROM events WHERE kind = 'process_exit'");
        assert_eq!(last["value"].as_i64(), Some(code), "{last:?}");
    }
}

#[test]
fn a_program_goes_on_when_the_disk_is_full() {
    let input = Scratch::new("full_disk_input");
    let random = input.join("random");
    let wanted: Vec<u8> = {
        use std::io::Read;
        let mut source = std::fs::File::open("/dev/urandom").expect("there are random bytes");
        let mut bytes = vec![0; 64 << 20];
        source.read_exact(&mut bytes).expect("they can be read");
        bytes
    };
    std::fs::write(&random, wanted).expect("the test's folder is writable");
    let name = random.to_str().expect("a path");
    let filled = filled(
        "full_disk_sum",
        &["--full"],
        "/usr/bin/sha256sum".as_ref(),
        &[name],
    );
    filled.is_a_recording();
    filled.ends_with(0);
    let read = filled
        .recording
        .prompt(&["goto last", "step-back", "x/i $rip"]);
    assert_eq!(read.status, Status::Code(0), "{}", read.errors());
    drop(filled.scratch);
}

#[test]
fn threads_that_run_and_wait_go_on_when_the_disk_is_full() {
    let program = fixture_artifact("filling", "filling");
    let filled = filled("full_disk_threads", &["--full"], &program, &["200"]);
    assert!(filled.ended.text().contains("rang: yes"));
    filled.is_a_recording();
    filled.ends_with(5);
    let calls = filled.recording.calls_of("read_block");
    assert!((10..600).contains(&calls), "{calls}");
}

#[test]
fn parts_end_when_the_disk_is_full() {
    let program = fixture_artifact("filling", "filling");
    let filled = filled(
        "full_disk_parts",
        &["--full=read_block"],
        &program,
        &["200"],
    );
    filled.is_a_recording();
    filled.ends_with(5);
}

/// Reports and exports name the file that the disk has no room for, and leave none of them behind.
#[test]
fn nothing_is_left_of_what_did_not_fit() {
    let scratch = Scratch::new("no-room");
    std::fs::create_dir(scratch.join("small")).expect("the test's folder is writable");
    for (name, n) in [("a", "5"), ("b", "6")] {
        let program = Program::new(fixture_artifact("fib", "fib"), scratch.path()).args([n]);
        Hindsight::recorded(&scratch, name, &[], &program);
    }
    let script = "mount -t tmpfs -o size=16k tmpfs small || exit 90
         head -c 100000 /dev/zero > small/full
         \"$0\" compare a b --junit small/one.xml
         \"$0\" export a --to small/lake
         \"$0\" sql a 'select * from events' -o small/events.csv
         ls small >&2";
    let ended = Program::new("/usr/bin/unshare", scratch.path())
        .args(["-rm", "/bin/sh", "-c", script])
        .args([Hindsight::path()])
        .env("XDG_DATA_HOME", scratch.join("data"))
        .run();
    assert_eq!(ended.status, Status::Code(0), "{}", ended.errors());
    let told = ended.errors();
    for file in [
        "small/one.xml",
        "small/lake/unfinished-a",
        "small/events.csv",
    ] {
        let error = format!("cannot write {file}: No space left on device");
        assert!(told.contains(&error), "{file}: {told}");
    }
    let left = told.lines().last();
    assert_eq!(left, Some("full"), "{told}");
}
