//! Goal: third-party programs run unchanged under the recorder. Method: SQLite and Lua with debug information, Debian's
//! stripped gzip and sort; same output, sound recordings.

use e2e::{
    Comparison, Hindsight, Nesting, Program, Scratch, Status, fixture_artifact, gdb_count_at,
};

#[test]
fn sqlite_gives_the_same_answers() {
    let both = Comparison::of("sqlite", "sqlite", &["500"]);
    assert_eq!(both.recording.calls_of("sqlite3_open"), 1);
    assert_eq!(both.recording.calls_of("sqlite3_exec"), 16);
    let rows = both
        .recording
        .number("SELECT count(*) FROM calls WHERE function = 'triple'");
    // One for each of the 500 rows whose name has a 9 and that was sold more than five times.
    assert_eq!(rows, 68, "callbacks from the engine are calls too");
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

/// Records one of the system's own programs. Without symbols, only the entries of its procedure linkage table are
/// traced; everything must still work. gdb counts the calls of `stub` in the unchanged program.
fn stripped_program(path: &str, args: &[&str], input: &str, stub: &str) -> Vec<u8> {
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
    assert_eq!(recording.command("check", &[]).status, Status::Code(0));
    let facts = recording.row(
        "SELECT count(*) AS calls, count(DISTINCT function) AS functions, \
         count(*) FILTER (WHERE function NOT LIKE '%@plt') AS others, \
         count(*) FILTER (WHERE end_seq IS NULL) AS unfinished FROM calls",
    );
    let number = |name: &str| facts[name].as_i64().expect("a number");
    assert!(
        number("calls") > 50 && number("functions") > 10,
        "{facts:?}"
    );
    assert_eq!(
        (number("others"), number("unfinished")),
        (0, 0),
        "{facts:?}"
    );
    let probe = format!("SELECT svma FROM probes WHERE function = '{stub}' AND state = 'armed'");
    let svma = recording.number(&probe).cast_unsigned();
    let oracle = gdb_count_at(&program, svma);
    assert!(oracle > 10, "gdb sees {oracle} calls of {stub}");
    let calls = format!("SELECT count(*) FROM calls WHERE function = '{stub}'");
    assert_eq!(
        recording.number(&calls),
        oracle,
        "calls of {stub} as gdb counts them"
    );
    assert!(
        recording.output("stdout") == native.stdout,
        "the output is in the recording"
    );
    native.stdout
}

#[test]
fn gzip_compresses_and_restores() {
    let input = text(60_000);
    let packed = stripped_program("/usr/bin/gzip", &["-6", "-n"], &input, "read@plt");
    assert!(packed.len() < input.len());
}

#[test]
fn sort_sorts_with_two_threads() {
    let input = text(150_000);
    let sorted = stripped_program(
        "/usr/bin/sort",
        &["--parallel=2", "-S", "8M"],
        &input,
        "strcmp@plt",
    );
    let mut wanted: Vec<&str> = input.lines().collect();
    wanted.sort_unstable();
    assert!(sorted == format!("{}\n", wanted.join("\n")).into_bytes());
}

/// A stripped library still has the names of its exported functions, and a stripped program those that a library calls
/// back.
#[test]
fn exported_functions_of_stripped_files_are_traced() {
    let scratch = Scratch::new("stripped_library");
    let artifact = fixture_artifact("shared_library", "stripped/shared_library");
    let program = Program::new(artifact, scratch.path());
    let native = program.run();
    let (recorded, recording) = Hindsight::record(&scratch, &[], &program);
    assert_eq!(native.text(), recorded.text(), "{}", recorded.errors());
    assert_eq!(recording.command("check", &[]).status, Status::Code(0));
    let rows = recording.rows(
        "SELECT module, function, count(*) AS calls FROM calls GROUP BY module, function ORDER BY module, function",
    );
    let calls: Vec<_> = rows
        .iter()
        .map(|row| {
            let text = |name: &str| row[name].as_str().expect("a name").to_owned();
            (text("module"), text("function"), row["calls"].as_i64())
        })
        .collect();
    let wanted = [
        ("libshape.so", "area", 500),
        ("libshape.so", "each", 1),
        ("libshape.so", "unit@plt", 500),
        ("shared_library", "area@plt", 500),
        ("shared_library", "each@plt", 1),
        ("shared_library", "unit", 500),
    ];
    for (module, function, count) in wanted {
        let found = (module.to_owned(), function.to_owned(), Some(count));
        assert!(calls.contains(&found), "{found:?} is not in {calls:?}");
    }
    let names: Vec<&str> = calls.iter().map(|(_, name, _)| name.as_str()).collect();
    for hidden in ["visit", "helper", "main"] {
        assert!(
            !names.contains(&hidden),
            "nothing names {hidden}: {calls:?}"
        );
    }
}

/// System libraries can be traced on request.
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
