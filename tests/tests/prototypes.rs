//! Goal: calls of the C library's functions have named and typed arguments without debug information, with the texts that
//! these point to. Method: a fixture calls them with known arguments, with debug information and stripped; each shown call is
//! compared with its source. A program of Debian is compared with strace.
//! Of several builds of a program each run takes a part; `WHOLE=1` all.

use e2e::{Comparison, Hindsight, Nesting, Program, Recording, Scratch, fixture_artifact, in_turn};

const FUNCTIONS: [&str; 16] = [
    "open", "write", "lseek", "close", "getenv", "signal", "kill", "socket", "sqrt", "getpid",
    "fcntl", "ioctl", "prctl", "syscall", "sprintf", "snprintf",
];

fn recorded(artifact: &str, options: &[&str]) -> (Scratch, Recording) {
    let scratch = Scratch::new(artifact);
    let program = Program::new(fixture_artifact("prototypes", artifact), scratch.path())
        .env("KEPT_VALUE", "seventeen");
    let both = Comparison::of_program(scratch, &program, options, Nesting::Proper);
    (both.scratch, both.recording)
}

/// The shown arguments and results of the program's calls of `function`.
fn told(recording: &Recording, function: &str) -> Vec<String> {
    let sql = format!(
        "SELECT args, ret FROM calls WHERE function = '{function}' AND start_seq >= \
         (SELECT min(start_seq) FROM calls WHERE args LIKE '%kept.txt%') ORDER BY start_seq"
    );
    let rows = recording.rows(&sql);
    rows.iter()
        .map(|row| {
            let args = row["args"].as_str().expect("arguments are text");
            format!("{args} = {}", row["ret"])
        })
        .collect()
}

/// Checks all calls; `stub` ends the names of the functions.
fn check(recording: &Recording, stub: &str) {
    let told = |function: &str| told(recording, &format!("{function}{stub}"));
    assert_eq!(
        told("open"),
        [
            "path=\"kept.txt\", flags=O_WRONLY|O_CREAT|O_TRUNC, mode=0600 = 3",
            "path=\"no such file\", flags=O_RDONLY = -1"
        ]
    );
    let many = "x".repeat(200);
    assert_eq!(
        told("write"),
        [
            "fd=3, buf=\"one\\ttwo\\n\", n=8 = 8".to_owned(),
            format!("fd=3, buf=\"{many}\"..., n=300 = 300")
        ]
    );
    assert_eq!(told("lseek"), ["fd=3, offset=4, whence=SEEK_SET = 4"]);
    assert_eq!(told("close"), ["fd=3 = 0", "fd=3 = 0"]);
    let getenv = told("getenv");
    assert!(
        getenv[0].starts_with("name=\"KEPT_VALUE\" = "),
        "{getenv:?}"
    );
    let signal = told("signal");
    assert!(
        signal[0].starts_with("sig=SIGUSR1, handler=0x1 = "),
        "{signal:?}"
    );
    let kill = told("kill");
    assert!(kill[0].ends_with(", sig=SIGUSR1 = 0"), "{kill:?}");
    assert_eq!(
        told("socket"),
        ["domain=AF_UNIX, type=SOCK_STREAM|SOCK_CLOEXEC, protocol=0 = 3"]
    );
    check_ellipses(&told);
    let sql = format!("SELECT args, ret_f FROM calls WHERE function = 'sqrt{stub}'");
    let sqrt = recording.row(&sql);
    assert_eq!(
        (&sqrt["args"], &sqrt["ret_f"]),
        (&"x=4.0".into(), &2.0.into())
    );
}

/// Arguments that follow from others. Those on the stack are not recorded with a call.
fn check_ellipses(told: &dyn Fn(&str) -> Vec<String>) {
    assert_eq!(
        told("fcntl"),
        [
            "fd=3, cmd=F_SETFD, arg=FD_CLOEXEC = 0",
            "fd=3, cmd=F_GETFD = 1"
        ]
    );
    let ioctl = told("ioctl");
    assert!(
        ioctl[0].starts_with("fd=3, request=FIONREAD, arg=0x"),
        "{ioctl:?}"
    );
    assert_eq!(
        told("prctl"),
        [
            "option=PR_SET_NAME, arg2=\"renamed\" = 0",
            "option=PR_GET_DUMPABLE = 1"
        ]
    );
    let calls = told("syscall");
    assert!(
        calls[0].starts_with("sysno=SYS_umask, arg1=022 = "),
        "{calls:?}"
    );
    assert!(calls[1].starts_with("sysno=SYS_gettid = "), "{calls:?}");
    let sprintf = told("sprintf");
    assert!(
        sprintf[0].ends_with(
            r#", format="%d %s %.2f %.*s", arg2=42, arg3="text", arg4=2.5, arg5=3, arg6="abc" = 16"#
        ),
        "{sprintf:?}"
    );
    let snprintf = told("snprintf");
    assert!(
        snprintf[0].ends_with(
            r#", maxlen=300, format="%s:%d:%d:%d", arg3="a", arg4=1, arg5=2, arg6=? = 7"#
        ),
        "{snprintf:?}"
    );
}

#[test]
fn functions_of_the_c_library_have_prototypes() {
    let options: Vec<&str> = FUNCTIONS.iter().flat_map(|name| ["-f", name]).collect();
    let (_scratch, recording) = recorded("prototypes", &options);
    check(&recording, "");
}

#[test]
fn stubs_of_a_stripped_program_have_them_too() {
    let (_scratch, recording) = recorded("prototypes_stripped", &[]);
    check(&recording, "@plt");
}

/// A debugger at such a call shows its arguments too, also after the entry.
#[test]
fn a_stop_at_a_stub_shows_its_arguments() {
    let (_scratch, recording) = recorded("prototypes_stripped", &[]);
    let seq = |column: &str| {
        recording.number(&format!(
            "SELECT {column} FROM calls WHERE function = 'open@plt' ORDER BY start_seq LIMIT 1"
        ))
    };
    let entry = format!("goto {}", seq("start_seq"));
    let said = recording.prompt(&[&entry, "bt", "info args"]).text();
    assert!(
        said.contains("\"kept.txt\", flags=O_WRONLY|O_CREAT|O_TRUNC)"),
        "{said}"
    );
    assert!(said.contains("#0   open@plt (path=0x"), "{said}");
    assert!(
        said.contains("flags | int    | O_WRONLY|O_CREAT|O_TRUNC"),
        "{said}"
    );
    let root = recording.number("SELECT start_seq FROM calls WHERE function = 'sqrt@plt'");
    let said = recording.prompt(&[&format!("goto {root}"), "bt"]).text();
    assert!(said.contains("#0   sqrt@plt (x=4)"), "{said}");
}

/// A call through a stub to a function that is recorded is one call.
#[test]
fn calls_through_stubs_are_recorded_once() {
    let (_scratch, alone) = recorded("prototypes_stripped", &[]);
    let (_scratch, both) = recorded("prototypes_stripped", &["-f", "open*", "-f", "lseek"]);
    for (name, calls) in [("open", 2), ("lseek", 1)] {
        let count = |recording: &Recording, function: &str| {
            recording.number(&format!(
                "SELECT count(*) FROM calls WHERE function = '{function}'"
            ))
        };
        assert_eq!(count(&alone, &format!("{name}@plt")), calls, "{name}");
        assert_eq!(count(&both, name), calls, "{name}");
        assert_eq!(count(&both, &format!("{name}@plt")), 0, "{name}");
    }
}

/// strcmp is one of several functions, chosen when the program starts: it has no code of its own, and its stubs are recorded.
#[test]
fn a_function_that_is_chosen_at_the_start_is_recorded_by_its_stubs() {
    for artifact in in_turn(["prototypes", "prototypes_stripped"]) {
        for pattern in ["strcmp", "strc*", "libc.so.6:strcmp"] {
            let scratch = Scratch::new(artifact);
            let program = Program::new(fixture_artifact("prototypes", artifact), scratch.path())
                .env("KEPT_VALUE", "seventeen");
            let (ended, recording) =
                Hindsight::record(&scratch, &["-f", pattern, "--strings"], &program);
            let said = ended.errors();
            assert!(!said.contains("matches no function"), "{pattern}: {said}");
            let direct = "SELECT count(*) FROM functions WHERE name = 'strcmp'";
            assert_eq!(recording.number(direct), 0, "{artifact} {pattern}");
            let args = "SELECT args, ret FROM calls WHERE function = 'strcmp@plt' AND args LIKE '%seventeen%'";
            let args = recording.rows(args);
            assert_eq!(args.len(), 1, "{artifact} {pattern}: {args:?}");
            assert_eq!(args[0]["args"], "s1=\"seventeen\", s2=\"seventeen\"");
            assert_eq!(args[0]["ret"], 0);
        }
    }
}

/// A function of the program itself may be chosen so, too.
#[test]
fn a_chosen_function_of_the_program_is_recorded_by_its_stub() {
    let scratch = Scratch::new("chosen");
    let program = Program::new(fixture_artifact("ifunc", "ifunc"), scratch.path());
    let recording = Hindsight::recorded(&scratch, "rec", &["-f", "chosen"], &program);
    let calls = "SELECT count(*) FROM calls WHERE function = 'chosen@plt'";
    assert_eq!(recording.number(calls), 500);
}

/// The stubs of a stripped C++ program have readable names, and are chosen by them.
#[test]
fn stubs_of_stripped_cxx_have_readable_names() {
    let scratch = Scratch::new("stripped_cxx");
    let stripped = scratch.join("program");
    let source = fixture_artifact("containers_cxx", "containers_cxx_O0");
    let strip = Program::new("/usr/bin/strip", scratch.path()).args([
        "-o",
        stripped.to_str().expect("text"),
        source.to_str().expect("text"),
    ]);
    assert_eq!(strip.run().status.as_shell_code(), 0);
    let program = Program::new(&stripped, scratch.path());
    let recording = Hindsight::recorded(&scratch, "rec", &[], &program);
    let count = |pattern: &str| {
        recording.number(&format!(
            "SELECT count(*) FROM functions WHERE name LIKE '{pattern}@plt'"
        ))
    };
    assert_eq!(count("\\_Z%"), 0);
    // Of one object and of an array.
    assert_eq!((count("operator new"), count("operator new[]")), (1, 1));
}

#[test]
fn texts_of_frequent_functions_are_kept_on_request() {
    let (_scratch, recording) = recorded("prototypes_stripped", &["--strings"]);
    check(&recording, "@plt");
    assert_eq!(
        told(&recording, "strcmp@plt"),
        ["s1=\"seventeen\", s2=\"seventeen\" = 0"]
    );
}

#[test]
fn a_program_of_debian_opens_what_strace_sees() {
    let scratch = Scratch::new("prototypes-cat");
    std::fs::write(scratch.path().join("read me.txt"), "some text\n").expect("a file");
    let program = Program::new("/bin/cat", scratch.path()).args(["read me.txt"]);
    let log = scratch.path().join("strace.txt");
    let strace = Program::new("/usr/bin/strace", scratch.path())
        .args([
            "-e",
            "trace=write,openat",
            "-o",
            log.to_str().expect("text"),
        ])
        .args(["/bin/cat", "read me.txt"])
        .run();
    assert_eq!(strace.text(), "some text\n");
    let seen = std::fs::read_to_string(&log).expect("strace has written its log");
    let (_, recording) = Hindsight::record(&scratch, &["-f", "open", "-f", "write"], &program);
    let open = recording
        .row("SELECT args, ret FROM calls WHERE function = 'open' AND args LIKE '%read me.txt%'");
    assert_eq!(open["args"], "path=\"read me.txt\", flags=O_RDONLY");
    assert!(seen.contains(&format!(
        "openat(AT_FDCWD, \"read me.txt\", O_RDONLY) = {}",
        open["ret"]
    )));
    let write = recording
        .row("SELECT args, ret FROM calls WHERE function = 'write' AND args LIKE 'fd=1,%'");
    assert_eq!(write["args"], "fd=1, buf=\"some text\\n\", n=10");
    assert!(seen.contains("write(1, \"some text\\n\", 10)"), "{seen}");
}
