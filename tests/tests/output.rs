//! Goal: input and output pass through a recorded program unchanged, and output is in the recording too.
//! Method: modes of one fixture, natively and recorded, through pipes and through a terminal made by script(1).
//! Of several builds of a program each run takes a part; `WHOLE=1` all.

use e2e::{
    Comparison, Hindsight, Nesting, Program, Scratch, Status, compiled, fixture_artifact, in_turn,
    split_own_lines, wait_until,
};

/// Both streams in the recording are the program's real output.
fn assert_captured(both: &Comparison) {
    assert!(
        both.recording.output("stdout") == both.native.stdout,
        "stdout was not recorded byte for byte"
    );
    assert!(
        both.recording.output("stderr") == both.native.stderr,
        "stderr was not recorded byte for byte"
    );
}

#[test]
fn large_output_is_recorded_byte_for_byte() {
    assert_captured(&Comparison::of("stdio", "stdio", &["big"]));
}

#[test]
fn gathered_writes_are_recorded() {
    assert_captured(&Comparison::of("stdio", "stdio", &["writev"]));
}

#[test]
fn buffered_unbuffered_and_direct_writes_keep_their_order() {
    assert_captured(&Comparison::of("stdio", "stdio", &["mixed"]));
}

/// A way of printing after which the program ends with this code.
fn ending(way: &str, code: i32) -> Comparison {
    Comparison::of_with("stdio", "stdio", &[way], Nesting::Proper, |p| {
        p.ending(code)
    })
}

#[test]
fn what_was_never_flushed_is_not_invented() {
    assert_captured(&ending("lost", 4));
}

#[test]
fn what_a_write_wrote_before_a_signal_ended_it_is_recorded() {
    for way in ["cut", "cut_parts"] {
        let scratch = Scratch::new(way);
        let told = scratch.join("told");
        let program = Program::new(fixture_artifact("stdio", "stdio"), scratch.path())
            .args([way.as_ref(), told.as_os_str()]);
        let (ended, recording) = Hindsight::record(&scratch, &[], &program);
        let wanted = Status::Code(Status::Signal(15).as_shell_code());
        assert_eq!(ended.status, wanted, "{}", ended.errors());
        // The reader may still be reading.
        let got: usize = wait_until("the reader has told what it got", || {
            std::fs::read_to_string(&told).ok()?.trim().parse().ok()
        });
        assert!((100_000..1 << 20).contains(&got), "{way}: {got}");
        assert_eq!(recording.output("stdout").len(), got, "{way}");
    }
}

#[test]
fn a_closed_standard_output_stays_closed() {
    assert_captured(&ending("closed", 11));
}

#[test]
fn iostreams_and_rust_streams_are_recorded() {
    assert_captured(&Comparison::of("stdio", "streams", &[]));
    assert_captured(&Comparison::of("stdio", "rust_lines", &[]));
}

#[test]
fn standard_input_arrives_whole() {
    let input: Vec<u8> = (0..300_000u32).map(|i| (i * 7 % 251) as u8).collect();
    let both = Comparison::of_with("stdio", "stdio", &["cat"], Nesting::Proper, |p| {
        p.stdin(input.clone()).ending(55)
    });
    assert!(both.native.stdout == input);
    assert_captured(&both);
}

#[test]
fn pipes_are_not_terminals() {
    assert_eq!(
        Comparison::of("stdio", "stdio", &["tty"]).native.text(),
        "tty 0 0 0\n"
    );
}

#[test]
fn a_terminal_is_seen_as_one() {
    let scratch = Scratch::new("terminal");
    let program = Program::new(fixture_artifact("stdio", "stdio"), scratch.path()).args(["tty"]);
    let record = Hindsight::record_command(&scratch, "rec", &[], &program);
    for run in [&program, &record] {
        let in_terminal = run.in_terminal().run();
        assert!(
            in_terminal.text().contains("tty 1 1 1"),
            "{}",
            in_terminal.text()
        );
    }
}

#[test]
fn the_summary_is_on_standard_error_and_names_the_recording() {
    let scratch = Scratch::new("summary");
    let program = Program::new(fixture_artifact("fib", "fib"), scratch.path()).args(["5"]);
    let (ended, _) = Hindsight::record(&scratch, &[], &program);
    let (_, own) = split_own_lines(&ended.stderr);
    assert!(
        own.iter().any(|l| l.contains("rec.hindsight")),
        "{}",
        ended.errors()
    );
    assert_eq!(ended.text(), program.run().text());
}

#[test]
fn without_a_name_the_recording_is_called_like_the_program_and_never_overwrites() {
    let scratch = Scratch::new("names");
    let program = Program::new(fixture_artifact("fib", "fib"), scratch.path()).args(["5"]);
    for _ in 0..2 {
        let ended = program.wrapped(Hindsight::path(), ["record", "--"]).run();
        assert_eq!(ended.status, e2e::Status::Code(0), "{}", ended.errors());
    }
    let names: Vec<String> = std::fs::read_dir(scratch.path())
        .expect("the test's folder")
        .map(|e| {
            e.expect("an entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    assert!(names.contains(&"fib.hindsight".to_owned()), "{names:?}");
    assert_eq!(
        names.iter().filter(|n| n.ends_with(".hindsight")).count(),
        2,
        "{names:?}"
    );
}

/// The kernel reads nothing of what is written to /dev/null, and reports an error where it must read what is not there. A handler
/// of the program's sees no fault.
const UNREADABLE: &str = r#"#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>
static void fault(int number) { _exit(number); }
int main(int count, char **arguments) {
  if (count > 1) signal(SIGSEGV, fault);
  char *missing = (char *)8;
  long bad = write(1, missing, 4);
  dup2(open("/dev/null", O_WRONLY), 1);
  long one = write(1, missing, 4);
  struct iovec parts[2] = {{"ok", 2}, {missing, 3}};
  long two = writev(1, parts, 2);
  char *page = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  munmap(page + 4096, 4096);
  page[4095] = 'x';
  long three = write(1, page + 4095, 4096);
  int became = execve(missing, 0, 0), named = prctl(PR_SET_NAME, missing, 0, 0, 0);
  fprintf(stderr, "%ld %ld %ld %ld %d %d\n", bad, one, two, three, became, named);
  return 0;
}
"#;

#[test]
fn what_cannot_be_read_is_not_recorded_and_does_no_harm() {
    let scratch = Scratch::new("unreadable-output");
    for flags in in_turn([&["-w", "-g"][..], &["-w", "-g", "-static"]]) {
        let app = compiled(&scratch, "app.c", UNREADABLE, flags);
        for arguments in [&[][..], &["handler"]] {
            let app = Program::new(&app, scratch.path()).args(arguments);
            let native = app.run();
            assert_eq!(native.errors(), "-1 4 5 4096 -1 -1\n");
            let (ended, recording) = Hindsight::record(&scratch, &[], &app);
            let (theirs, _) = split_own_lines(&ended.stderr);
            assert_eq!(
                String::from_utf8_lossy(&theirs),
                native.errors(),
                "{flags:?} {arguments:?}"
            );
            assert_eq!(ended.status, Status::Code(0), "{flags:?} {arguments:?}");
            assert_eq!(
                recording.output("stdout"),
                b"okx",
                "{flags:?} {arguments:?}"
            );
            std::fs::remove_dir_all(recording.path()).expect("it is ours");
        }
    }
}
