//! Goal: a recording opens where the program's files are missing or different: what needs them names them, and all else
//! works; a packed recording needs none of them. Method: a program with a library is compiled for the test, recorded, and
//! deleted.

use std::fs;

use e2e::{Hindsight, Program, Recording, Scratch, fixture_source};

/// A program with a library, compiled from sources in the test's folder.
struct Made {
    scratch: Scratch,
}

impl Made {
    fn new(name: &str) -> Self {
        let scratch = Scratch::new(name);
        fs::create_dir(scratch.join("src")).expect("the folder is ours");
        for file in ["main.c", "shape.c", "shape.h"] {
            let from = fixture_source("shared_library").join(file);
            fs::copy(from, scratch.join("src").join(file)).expect("it is copied");
        }
        let made = Self { scratch };
        made.compile_library("-O0");
        made.shell("gcc -O0 -g -o app $PWD/src/main.c -L. -lshape -Wl,-rpath,'$ORIGIN'");
        made
    }

    fn compile_library(&self, options: &str) {
        self.shell(&format!(
            "gcc {options} -g -shared -fPIC -Wl,--build-id -o libshape.so $PWD/src/shape.c"
        ));
    }

    fn shell(&self, command: &str) {
        let ended = Program::new("/bin/sh", self.scratch.path())
            .args(["-ec", command])
            .run();
        assert_eq!(
            ended.status.as_shell_code(),
            0,
            "{command}: {}",
            ended.errors()
        );
    }

    fn record(&self, options: &[&str]) -> Recording {
        let program = Program::new(self.scratch.join("app"), self.scratch.path());
        Hindsight::recorded(&self.scratch, "rec", options, &program)
    }

    fn take_everything_away(&self) {
        self.shell("rm -r app libshape.so* src");
    }
}

/// Commands that inspect a call of the library and one of the program.
const LOOKS: [&str; 8] = [
    "break each",
    "continue",
    "print count",
    "where",
    "delete",
    "break visit",
    "continue",
    "print n",
];

fn assert_rest_works(recording: &Recording, why: &str) {
    let ended = recording.prompt(&LOOKS);
    let (told, errors) = (ended.text(), ended.errors());
    assert!(errors.contains(why), "{errors}{told}");
    assert!(errors.contains("libshape.so"), "{errors}");
    assert!(!told.contains(" = 500"), "{told}");
    // The program itself is there.
    assert!(told.ends_with(" = 0\n"), "{told}{errors}");
    assert_eq!(recording.calls_of("area"), 500);
    let history = recording.try_rows("SELECT * FROM history('count', 'each')");
    let refused = history.expect_err("nothing is known of it").errors();
    assert!(refused.contains(why), "{refused}");
    let known = recording.rows("SELECT * FROM history('n', 'visit')");
    assert_eq!(known.len(), 500);
}

#[test]
fn a_library_that_is_missing_is_named_and_all_else_works() {
    let made = Made::new("library-missing");
    let recording = made.record(&[]);
    made.shell("rm libshape.so");
    assert_rest_works(&recording, "cannot be read");
}

/// A variable of the missing library may have that name: the C library's one is not meant.
#[test]
fn names_of_a_missing_library_are_not_those_of_system_libraries() {
    let made = Made::new("library-names");
    let recording = made.record(&[]);
    let look = |name: &str| {
        [
            "break visit".to_owned(),
            "continue".to_owned(),
            format!("print {name}"),
        ]
    };
    for (name, known) in [
        ("getpid", false),
        ("libc.so.6::getpid", true),
        ("libc::puts", true),
    ] {
        let whole = recording.prompt(&look(name).each_ref().map(String::as_str));
        let told = whole.text();
        assert_eq!(told.contains(" = 0x"), known, "{told}{}", whole.errors());
    }
    made.shell("rm libshape.so");
    let ended = recording.prompt(&look("getpid").each_ref().map(String::as_str));
    let (told, errors) = (ended.text(), ended.errors());
    assert!(!told.contains(" = 0x"), "{told}");
    assert!(errors.contains("libshape.so"), "{errors}");
}

#[test]
fn a_library_that_was_compiled_anew_is_named_and_all_else_works() {
    let made = Made::new("library-anew");
    let recording = made.record(&[]);
    made.compile_library("-O2");
    assert_rest_works(&recording, "is another one now: its build id is");
}

fn assert_whole(recording: &Recording) {
    let ended = recording.prompt(&LOOKS);
    let told = ended.text();
    assert_eq!(ended.errors(), "", "{told}");
    assert!(told.contains(" = 500\n"), "{told}");
    assert!(
        told.contains("long each(long count, visitor visit)"),
        "its source: {told}"
    );
    assert!(told.ends_with(" = 0\n"), "{told}");
    let check = recording.command("check", &[]);
    assert_eq!(check.status.as_shell_code(), 0, "{}", check.text());
}

#[test]
fn the_summary_has_the_size_of_what_is_packed() {
    let made = Made::new("portable-summary");
    let program = Program::new(made.scratch.join("app"), made.scratch.path());
    for options in [&["--portable"][..], &["--portable", "--full"]] {
        let name = format!("rec{}", options.len());
        let ended = Hindsight::record_command(&made.scratch, &name, options, &program).run();
        let errors = ended.errors();
        assert!(errors.contains("; packed files: "), "{errors}");
    }
}

#[test]
fn a_portable_recording_needs_no_file_of_the_program() {
    let made = Made::new("portable");
    let recording = made.record(&["--portable"]);
    made.take_everything_away();
    assert_whole(&recording);
}

#[test]
fn debug_information_in_separate_files_is_packed() {
    let made = Made::new("portable-separate");
    made.shell(
        "for f in app libshape.so; do objcopy --only-keep-debug $f $f.debug; strip $f; \
         objcopy --add-gnu-debuglink=$f.debug $f; done",
    );
    let recording = made.record(&[]);
    let packed = recording.command("pack", &["--json"]);
    assert!(
        packed.text().contains("\"missing\": []"),
        "{}{}",
        packed.text(),
        packed.errors()
    );
    made.shell("rm *.debug");
    made.take_everything_away();
    assert_whole(&recording);
    // Nothing is left to be copied, and nothing is lost.
    let again = recording.command("pack", &[]);
    assert_eq!(
        again.status.as_shell_code(),
        0,
        "{}{}",
        again.text(),
        again.errors()
    );
    assert_whole(&recording);
}

#[test]
fn what_cannot_be_packed_is_named() {
    let made = Made::new("portable-part");
    let recording = made.record(&[]);
    made.shell("rm libshape.so");
    let packed = recording.command("pack", &[]);
    assert_eq!(packed.status.as_shell_code(), 1, "{}", packed.text());
    assert!(
        packed.text().contains("not packed: the module "),
        "{}",
        packed.text()
    );
    made.shell("rm app");
    let ended = recording.prompt(&["break visit", "continue", "print n"]);
    assert!(
        ended.text().ends_with(" = 0\n"),
        "{}{}",
        ended.text(),
        ended.errors()
    );
}

#[test]
fn a_recording_that_is_read_only_is_not_packed() {
    let made = Made::new("portable-frozen");
    let recording = made.record(&[]);
    made.shell("chmod a-w rec.hindsight");
    let packed = recording.command("pack", &[]);
    made.shell("chmod u+w rec.hindsight");
    assert_eq!(packed.status.as_shell_code(), 1, "{}", packed.text());
    assert!(
        packed.errors().contains("is read-only"),
        "{}",
        packed.errors()
    );
    assert!(!recording.path().join("modules").exists());
}

#[test]
fn a_damaged_copy_is_found_and_not_used() {
    let made = Made::new("portable-damaged");
    let recording = made.record(&["--portable"]);
    let rows = recording.rows("SELECT module_id, name FROM modules WHERE name = 'libshape.so'");
    assert_eq!(rows.len(), 1);
    made.shell(
        "f=$(ls rec.hindsight/modules/*/libshape.so); printf x | dd of=$f conv=notrunc 2>/dev/null",
    );
    let check = recording.command("check", &[]);
    assert_eq!(check.status.as_shell_code(), 1, "{}", check.text());
    assert!(
        check.text().contains("its checksum differs"),
        "{}",
        check.text()
    );
    // The library itself is still there.
    let ended = recording.prompt(&["break each", "continue", "print count"]);
    assert!(
        ended.text().ends_with(" = 500\n"),
        "{}{}",
        ended.text(),
        ended.errors()
    );
}
