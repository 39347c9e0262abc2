//! Goal: programs that others wrote run unchanged under the recorder. Method: SQLite and Lua with debug information, Debian's
//! stripped gzip and sort; same output, sound recordings.

use e2e::{Comparison, Hindsight, Nesting, Program, Scratch};

#[test]
fn sqlite_gives_the_same_answers() {
    let both = Comparison::of("sqlite", "sqlite", &["500"]);
    assert_eq!(both.recording.calls_of("sqlite3_open"), 1);
    assert_eq!(both.recording.calls_of("sqlite3_exec"), 16);
    let rows = both
        .recording
        .number("SELECT count(*) FROM calls WHERE function = 'triple'");
    assert!(rows > 0, "callbacks from the engine are calls too");
    assert!(
        both.recording
            .number("SELECT count(DISTINCT function) FROM calls")
            > 500
    );
}

#[test]
fn lua_gives_the_same_answers() {
    let both = Comparison::of("lua", "lua", &[]);
    assert!(
        both.recording.unwound_calls_of("lua_error")
            + both.recording.unwound_calls_of("luaD_throw")
            >= 200
    );
    assert_eq!(both.recording.calls_of("host"), 1);
}

fn text(lines: u32) -> String {
    let mut seed = 12345u32;
    let mut out = String::new();
    for _ in 0..lines {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        out.push_str(&format!("{:08x} the quick brown fox {}\n", seed, seed % 97));
    }
    out
}

/// Records one of the system's own programs; without symbols little is traced, but all of it must still work.
fn stripped_program(path: &str, args: &[&str], input: &str) -> Vec<u8> {
    let scratch = Scratch::new("stripped");
    let program = Program::new(path, scratch.path()).args(args).stdin(input);
    let native = program.run();
    let (recorded, recording) = Hindsight::record(&scratch, &[], &program);
    assert!(
        native.stdout == recorded.stdout,
        "{path}: {}",
        recorded.errors()
    );
    assert_eq!(native.status, recorded.status);
    assert_eq!(recording.number("SELECT count(*) FROM gaps"), 0);
    assert!(
        recording.output("stdout") == native.stdout,
        "the output is in the recording"
    );
    native.stdout
}

#[test]
fn gzip_compresses_and_restores() {
    let input = text(60_000);
    let packed = stripped_program("/usr/bin/gzip", &["-6", "-n"], &input);
    assert!(packed.len() < input.len());
}

#[test]
fn sort_sorts_with_two_threads() {
    let input = text(150_000);
    let sorted = stripped_program("/usr/bin/sort", &["--parallel=2", "-S", "8M"], &input);
    let mut wanted: Vec<&str> = input.lines().collect();
    wanted.sort_unstable();
    assert!(sorted == format!("{}\n", wanted.join("\n")).into_bytes());
}

/// System libraries can be traced when asked for.
#[test]
fn functions_of_the_c_library_can_be_traced_by_module() {
    let scratch = Scratch::new("libc");
    let program =
        Program::new(e2e::fixture_artifact("sqlite", "sqlite"), scratch.path()).args(["50"]);
    let both = Comparison::of_program(
        scratch,
        &program,
        &["-f", "module:sqlite", "-f", "malloc", "-f", "free"],
        Nesting::Proper,
    );
    assert!(
        both.recording
            .number("SELECT count(DISTINCT function) FROM calls")
            > 300
    );
}
