//! Goal: compilers, which are among the largest programs, produce the same files while all their functions are recorded.
//! They are rearranged after linking (BOLT), into parts that are jumped into, and have hundreds of thousands of
//! functions. Method: compile natively and recorded, and compare the output byte for byte. Of LLVM's programs, and of
//! rustc and Cargo, each run takes one; `WHOLE=1` all.

use e2e::{Hindsight, Scratch, in_turn, lua_source, rustc};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Records that do not fit are dropped: the test is about the compiler's output.
const EVERYTHING: [&str; 4] = ["-f", "module:*", "--on-full", "drop"];

const HELLO: &str = "use std::collections::BTreeMap;
fn main() {
    let counts: BTreeMap<char, usize> = \"never break a program\".chars().fold(BTreeMap::new(), |mut counts, c| {
        *counts.entry(c).or_default() += 1;
        counts
    });
    println!(\"{counts:?}\");
}
";

/// Each uses all processors and much memory: one at a time.
fn alone() -> MutexGuard<'static, ()> {
    static RUNS: Mutex<()> = Mutex::new(());
    RUNS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs a command in the test's folder for as long as it takes: on a busy machine that is minutes.
fn run(scratch: &Scratch, program: &Path, args: &[&str]) -> Output {
    let done = Command::new(program)
        .args(args)
        .current_dir(scratch.path())
        .output()
        .expect("it can be started");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(
        done.status.success(),
        "{} {args:?}: {said}",
        program.display()
    );
    done
}

/// Many calls were recorded, and each function that is not armed has a reason.
const SOUND: &str = "SELECT (SELECT count(*) FROM calls) > 10000 \
    AND (SELECT count(*) FROM probes WHERE state = 'skipped') > 0 \
    AND (SELECT count(*) FROM probes WHERE state <> 'armed' AND coalesce(reason, '') = '') = 0 AS sound";

/// Runs the program natively and recorded; `made` is its output file, which must be the same.
fn makes_the_same(scratch: &Scratch, program: &Path, args: &[&str], made: &str) {
    let native = run(scratch, program, args);
    let wanted = fs::read(scratch.join(made)).expect("it was made");
    fs::remove_file(scratch.join(made)).expect("the file is ours");
    let program = program.to_str().expect("UTF-8");
    let words = [
        &["record", "-o", "rec"],
        &EVERYTHING[..],
        &["--", program],
        args,
    ]
    .concat();
    let recorded = run(scratch, Hindsight::path(), &words);
    assert_eq!(native.stdout, recorded.stdout);
    let found = fs::read(scratch.join(made)).expect("it was made while being recorded");
    assert!(wanted == found, "{made} has other bytes");
    run(scratch, Hindsight::path(), &["check", "rec"]);
    let asked = ["sql", "rec", "--format", "csv", SOUND];
    let answer = run(scratch, Hindsight::path(), &asked);
    assert!(
        String::from_utf8_lossy(&answer.stdout).contains("true"),
        "{answer:?}"
    );
}

/// One of them in each run.
#[test]
fn rustc_and_cargo_make_the_same_programs() {
    let _alone = alone();
    let ways: [fn(); 2] = [program_of_rust, crate_by_cargo];
    for way in in_turn(ways) {
        way();
    }
}

fn program_of_rust() {
    let scratch = Scratch::new("rustc");
    fs::write(scratch.join("hello.rs"), HELLO).expect("the folder is ours");
    makes_the_same(&scratch, &rustc(), &["-O", "hello.rs"], "hello");
}

/// One of them in each run.
#[test]
fn clang_and_opt_make_the_same_files() {
    let _alone = alone();
    let ways: [fn(); 3] = [object_of_c, optimised_text, object_of_cxx];
    for way in in_turn(ways) {
        way();
    }
}

fn object_of_c() {
    let scratch = Scratch::new("clang");
    let source = lua_source().join("lstring.c");
    let source = source.to_str().expect("UTF-8");
    let args = ["-O2", "-c", "-o", "lstring.o", source];
    makes_the_same(&scratch, Path::new("/usr/bin/clang"), &args, "lstring.o");
}

/// The optimiser alone, from the text of a program's intermediate form to that of another.
fn optimised_text() {
    let scratch = Scratch::new("opt");
    let source = lua_source().join("lstring.c");
    let source = source.to_str().expect("UTF-8");
    let emitted = ["-O0", "-Xclang", "-disable-O0-optnone", "-S", "-emit-llvm"];
    let args = [&emitted[..], &["-o", "lstring.ll", source]].concat();
    run(&scratch, Path::new("/usr/bin/clang"), &args);
    let args = ["-O2", "-S", "lstring.ll", "-o", "better.ll"];
    makes_the_same(&scratch, Path::new("/usr/bin/opt"), &args, "better.ll");
}

fn object_of_cxx() {
    let scratch = Scratch::new("clang++");
    let source =
        "template <int N> struct Sum { static constexpr int value = N + Sum<N - 1>::value; };
template <> struct Sum<0> { static constexpr int value = 0; };
struct Shape { virtual ~Shape() = default; virtual int area() const { return Sum<50>::value; } };
int of(const Shape &shape) { return shape.area(); }
int main() { return of(Shape()); }
";
    fs::write(scratch.join("shape.cc"), source).expect("the folder is ours");
    let args = ["-O2", "-c", "-o", "shape.o", "shape.cc"];
    makes_the_same(&scratch, Path::new("/usr/bin/clang++"), &args, "shape.o");
}

/// Cargo starts the compiler through a script that records it too, when it compiles the crate.
fn crate_by_cargo() {
    let scratch = Scratch::new("cargo");
    fs::create_dir(scratch.join("src")).expect("the folder is ours");
    fs::write(scratch.join("src/main.rs"), HELLO).expect("the folder is ours");
    let manifest =
        "[package]\nname = \"hello\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n";
    fs::write(scratch.join("Cargo.toml"), manifest).expect("the folder is ours");
    let cargo = rustc().with_file_name("cargo");
    let cargo = cargo.to_str().expect("UTF-8");
    let wrapper = scratch.join("recorded");
    let hindsight = Hindsight::path().display();
    let script = format!(
        "#!/bin/sh
case \"$*\" in
*--crate-name\\ hello*) exec {hindsight} record --on-full drop -o \"{}/compiler\" -f 'module:*' -- \"$@\" ;;
*) exec \"$@\" ;;
esac
",
        scratch.path().display()
    );
    fs::write(&wrapper, script).expect("the folder is ours");
    fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755)).expect("the file is ours");
    let build = |wrapper: &str, words: &[&str]| {
        let done = Command::new(words[0])
            .args(&words[1..])
            .args(["build", "--release", "--offline", "--quiet"])
            .env("RUSTC", rustc())
            .env("RUSTC_WRAPPER", wrapper)
            .env_remove("CARGO_TARGET_DIR")
            .current_dir(scratch.path())
            .output()
            .expect("it can be started");
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{words:?}: {said}");
        let made = fs::read(scratch.join("target/release/hello")).expect("it was made");
        fs::remove_dir_all(scratch.join("target")).expect("the folder is ours");
        made
    };
    let native = build("", &[cargo]);
    let recorder = Hindsight::path().to_str().expect("UTF-8");
    let record = [
        &[recorder, "record", "-o", "rec"],
        &EVERYTHING[..],
        &["--", cargo],
    ]
    .concat();
    let wrapper = wrapper.to_str().expect("UTF-8");
    assert!(native == build(wrapper, &record), "hello has other bytes");
    for recording in ["rec", "compiler"] {
        run(&scratch, Hindsight::path(), &["check", recording]);
    }
}
