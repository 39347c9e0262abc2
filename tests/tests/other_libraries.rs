//! Goal: libraries of C are known wherever they lie, whatever their files are called, also if there are two, and what is read of them is
//! what the program has mapped. Method: programs with copies of the system's libraries in a folder of the test, one that loads a second C
//! library, and one whose C library was replaced on disk while it ran. Each prints the same as without recording.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use e2e::{Hindsight, Program, Recording, Scratch, Status, compiled, wait_until};

/// The system's libraries, and where they are copied to. Distributions have called their files so.
const COPIES: [(&str, &str); 3] = [
    ("libc.so.6", "libc-2.31.so"),
    ("ld-linux-x86-64.so.2", "ld-2.31.so"),
    ("libgcc_s.so.1", "libgcc_s-10.so"),
];

/// Copies them to a folder. Their names lead to the files as symbolic links.
fn copy_libraries(scratch: &Scratch) -> PathBuf {
    let folder = scratch.join("libraries");
    fs::create_dir(&folder).expect("the test's folder is writable");
    for (name, file) in COPIES {
        let from = Path::new("/lib/x86_64-linux-gnu").join(name);
        fs::copy(&from, folder.join(file)).expect("it can be copied");
        symlink(file, folder.join(name)).expect("the test's folder is writable");
    }
    folder
}

const CATCHES: &str = r#"
#include <cstdio>
#define OWN __attribute__((noinline, noclone))
OWN int inner(int n) { if (n % 3 == 0) throw n; return n + 1; }
OWN int outer(int n) { return inner(n) * 2; }
int main() {
  int sum = 0;
  for (int n = 0; n < 30; n++) {
    try { sum += outer(n); } catch (int caught) { sum -= caught; }
  }
  std::printf("sum %d\n", sum);
  return 0;
}
"#;

#[test]
fn exceptions_and_output_pass_libraries_of_other_names_in_another_folder() {
    let scratch = Scratch::new("other-names");
    let folder = copy_libraries(&scratch);
    let folder = folder.to_str().expect("UTF-8");
    let linker = format!("-Wl,--dynamic-linker={folder}/ld-linux-x86-64.so.2");
    let path = format!("-Wl,-rpath,{folder},--disable-new-dtags");
    let app = compiled(&scratch, "app.cc", CATCHES, &["-g", "-O1", &linker, &path]);
    let program = Program::new(app, scratch.path());
    let native = program.run();
    assert_eq!(native.status, Status::Code(0), "{}", native.errors());
    let (recorded, recording) = Hindsight::record(&scratch, &[], &program);
    assert_eq!(recorded.status, Status::Code(0), "{}", recorded.errors());
    assert_eq!(recorded.text(), native.text());
    // What they are, although nothing of the kernel's names says so.
    for (_, file) in COPIES {
        let sql = format!("SELECT count(*) FROM modules WHERE name = '{file}' AND system");
        assert_eq!(recording.number(&sql), 1, "{file}");
    }
    assert_eq!(recording.output("stdout"), native.stdout);
    let outputs = "SELECT count(*) FROM events WHERE kind = 'stdout'";
    assert_eq!(recording.number(outputs), 1);
    assert_eq!(recording.calls_of("inner"), 30);
    assert_eq!(recording.unwound_calls_of("inner"), 10);
    assert_eq!(recording.unwound_calls_of("outer"), 10);
    let returned = "SELECT count(*) FROM calls WHERE function LIKE 'outer%' AND ret IS NOT NULL";
    assert_eq!(recording.number(returned), 20);
    assert_eq!(recording.command("check", &[]).status, Status::Code(0));
}

/// A library in another namespace brings a C library of its own, which is unmapped again.
const TWO: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <unistd.h>
__attribute__((noinline, noclone)) static long writes(int fd, const char *text, int length) {
  errno = 0;
  return write(fd, text, length);
}
int main(void) {
  void *handle = dlmopen(LM_ID_NEWLM, "libz.so.1", RTLD_NOW);
  long result = writes(99, "x", 1);
  printf("%d: write %ld errno %d\n", handle != 0, result, errno);
  fflush(stdout);
  if (handle) dlclose(handle);
  writes(1, "alive\n", 6);
  return 0;
}
"#;

fn assert_prints_the_same(scratch: &Scratch, program: &Program) {
    let native = program.run();
    assert_eq!(native.status, Status::Code(0), "{}", native.errors());
    assert_eq!(native.text(), "1: write -1 errno 9\nalive\n");
    let (recorded, recording) = Hindsight::record(scratch, &[], program);
    assert_eq!(recorded.status, Status::Code(0), "{}", recorded.errors());
    assert_eq!(recorded.text(), native.text());
    assert_eq!(recording.output("stdout"), native.stdout);
    assert_eq!(recording.calls_of("writes"), 2);
    assert_eq!(recording.command("check", &[]).status, Status::Code(0));
}

#[test]
fn a_second_c_library_does_not_take_the_place_of_the_first() {
    let scratch = Scratch::new("second-libc");
    let app = compiled(&scratch, "app.c", TWO, &["-g", "-O1"]);
    assert_prints_the_same(&scratch, &Program::new(app, scratch.path()));
}

/// Its C library is there before that of the program.
const AUDITOR: &str = r#"
#define _GNU_SOURCE
#include <link.h>
#include <unistd.h>
unsigned la_version(unsigned version) { return getpid() > 0 ? version : 0; }
"#;

#[test]
fn the_c_library_of_an_auditor_does_not_take_the_place_of_the_programs() {
    let scratch = Scratch::new("auditor-libc");
    let app = compiled(&scratch, "app.c", TWO, &["-g", "-O1"]);
    let auditor = compiled(&scratch, "auditor.c", AUDITOR, &["-shared", "-fPIC"]);
    let program = Program::new(app, scratch.path()).env("LD_AUDIT", auditor);
    assert_prints_the_same(&scratch, &program);
}

const WAITS: &str = r#"
#include <stdio.h>
#include <unistd.h>
static volatile long rounds;
__attribute__((noinline, noclone)) long work(long n) { rounds = rounds + n; return rounds; }
int main(void) {
  FILE *begun = fopen("begun", "w");
  if (begun) fclose(begun);
  while (access("stop", F_OK) != 0) {
    work(1);
    usleep(1000);
  }
  puts(rounds > 0 ? "done" : "nothing done");
  return 21;
}
"#;
/// It calls itself the C library, and has functions of that, but elsewhere.
const OTHER_LIBC: &str = r#"
asm(".text\n.skip 0x20000, 0xcc\n");
#define OTHER(name) __attribute__((noinline)) int name(int n) { volatile int kept = n; for (int i = 0; i < n; i++) kept += i; return kept; }
OTHER(pthread_key_create)
OTHER(pthread_key_delete)
OTHER(pthread_setspecific)
OTHER(dl_iterate_phdr)
OTHER(_dl_find_object)
OTHER(__errno_location)
OTHER(write)
OTHER(fork)
OTHER(abort)
"#;

#[test]
fn a_program_is_attached_to_after_its_c_library_was_replaced_on_disk() {
    let scratch = Scratch::new("replaced-libc");
    let folder = scratch.join("libraries");
    fs::create_dir(&folder).expect("the test's folder is writable");
    let library = folder.join("libc.so.6");
    fs::copy("/lib/x86_64-linux-gnu/libc.so.6", &library).expect("it can be copied");
    let flags = [
        "-shared",
        "-fPIC",
        "-nostdlib",
        "-fno-builtin",
        "-Wl,-soname,libc.so.6",
    ];
    let other = compiled(&scratch, "other.c", OTHER_LIBC, &flags);
    let app = compiled(&scratch, "app.c", WAITS, &["-g", "-O1"]);
    let running = Program::new(app, scratch.path())
        .env("LD_LIBRARY_PATH", &folder)
        .start();
    wait_until("the program's work", || {
        scratch.join("begun").exists().then_some(())
    });
    fs::rename(other, &library).expect("both are in the test's folder");
    let pid = running.pid().to_string();
    let args = ["record", "-o", "rec", "--attach", &pid, "--for", "1s"];
    let ended = Hindsight::command(&scratch, &args).run();
    assert_eq!(ended.status, Status::Code(0), "{}", ended.errors());
    fs::write(scratch.join("stop"), "").expect("the test's folder is writable");
    let native = running.finish();
    assert_eq!(native.status, Status::Code(21), "{}", native.errors());
    assert_eq!(native.text(), "done\n");
    let recording = Recording::new(scratch.join("rec.hindsight"));
    assert!(recording.calls_of("work") > 100);
    assert_eq!(recording.command("check", &[]).status, Status::Code(0));
}

#[test]
fn a_program_is_attached_to_after_it_was_built_again() {
    let scratch = Scratch::new("replaced-program");
    let app = compiled(&scratch, "app.c", WAITS, &["-g", "-O1"]);
    let running = Program::new(&app, scratch.path()).start();
    wait_until("the program's work", || {
        scratch.join("begun").exists().then_some(())
    });
    let longer = WAITS.replace(
        "int main",
        "long more(long n) { return work(n) * 3; }\nint main",
    );
    let again = compiled(&scratch, "again.c", &longer, &["-g", "-O0"]);
    fs::rename(again, &app).expect("both are in the test's folder");
    let pid = running.pid().to_string();
    let args = ["record", "-o", "rec", "--attach", &pid, "--for", "1s"];
    let ended = Hindsight::command(&scratch, &args).run();
    assert_eq!(ended.status, Status::Code(0), "{}", ended.errors());
    fs::write(scratch.join("stop"), "").expect("the test's folder is writable");
    let native = running.finish();
    assert_eq!(native.status, Status::Code(21), "{}", native.errors());
    assert_eq!(native.text(), "done\n");
    let recording = Recording::new(scratch.join("rec.hindsight"));
    assert!(recording.calls_of("work") > 100);
}
