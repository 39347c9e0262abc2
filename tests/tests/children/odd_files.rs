//! Programs whose files cannot be recorded, or have no path.

use e2e::{Program, Scratch, compiled};

use crate::{Set, assert_same};

/// Programs that cannot be recorded run, and the programs that they start are recorded.
#[test]
fn a_program_that_cannot_be_recorded_runs_by_itself() {
    let scratch = Scratch::new("children_refused");
    let source = "_start: mov $1, %eax\nmov $5, %ebx\nint $0x80\n.globl _start\n";
    std::fs::write(scratch.join("old.s"), source).expect("writable");
    let script = "as --32 old.s -o old.o && ld -m elf_i386 old.o -o old && ./old; echo $?";
    let (native, set) = Set::of_shell(&scratch, script);
    assert_same(&native, &set);
    assert_eq!(set.ended.text(), "5\n");
    let old = set.one("old");
    assert_eq!(
        (old["exit_code"].as_i64(), old["recording"].is_null()),
        (Some(5), true)
    );
    let notes = old["notes"].to_string();
    assert!(notes.contains("32"), "{notes}");
    assert!(
        set.ended
            .errors()
            .contains("1 program not recorded: it is a 32-bit ELF file"),
        "{}",
        set.ended.errors()
    );
}

/// Its path leads to no file, but the process still has it.
#[test]
fn a_program_without_a_file_at_its_path_is_recorded() {
    let scratch = Scratch::new("children_deleted");
    let source = "__attribute__((noinline)) int work(int i) { return i + 1; }\n\
                  int main(void) { return work(work(work(0))); }\n";
    let worker = compiled(&scratch, "worker.c", source, &["-g"]);
    let script = r#"
import os, sys
content = open(sys.argv[1], 'rb').read()
def run(file, name):
    pid = os.fork()
    if pid == 0:
        os.execve(file, [name], os.environ)
    print(name, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
with open('copy', 'wb') as copy:
    copy.write(content)
os.chmod('copy', 0o755)
file = os.open('copy', os.O_RDONLY)
os.unlink('copy')
run(file, 'deleted')
file = os.memfd_create('content')
os.write(file, content)
run(file, 'of_memory')
"#;
    let worker = worker.to_str().expect("paths of tests are text");
    let program = Program::new("/usr/bin/python3", scratch.path()).args(["-c", script, worker]);
    let native = program.run();
    assert_eq!(native.text(), "deleted 3\nof_memory 3\n");
    let set = Set::of(&scratch, &program);
    assert_same(&native, &set);
    set.assert_whole();
    for name in ["deleted", "of_memory"] {
        let recording = set.recording(set.one(name));
        let count = "SELECT count(*) FROM calls WHERE function = 'work'";
        assert_eq!(recording.number(count), 3, "{name}");
    }
}
