//! Goal: functions of object files without debug information are recorded beside those with it. Method: programs of which a part is
//! compiled with `-g`; what the program counts or prints says how many calls there are.

use std::path::PathBuf;
use std::process::Command;

use e2e::{Hindsight, Program, Recording, Row, Scratch, compiled, rustc};

const MAIN: &str = r#"
#include <stdio.h>
int ina(int);
int inb(int x) { volatile int y = x * 2; return y; }
int main(void) { printf("%d\n", ina(4)); return 0; }
"#;
const PART: &str = "int inb(int); int ina(int x) { volatile int y = x + 1; return inb(y); }\n";

/// A program whose `ina` has debug information, and whose `main` and `inb` have none.
fn mixed(scratch: &Scratch, flags: &[&str]) -> PathBuf {
    let part = compiled(scratch, "part.c", PART, &["-g", "-c"]);
    let part = part.to_str().expect("its name is text").to_owned();
    let flags = [&[part.as_str()], flags].concat();
    compiled(scratch, "mixed.c", MAIN, &flags)
}

fn functions(recording: &Recording) -> Vec<String> {
    let rows = recording.rows("SELECT function FROM calls ORDER BY start_seq");
    let name = |row: &Row| row["function"].as_str().map(str::to_owned);
    rows.iter().filter_map(name).collect()
}

#[test]
fn a_part_without_debug_information_is_recorded_too() {
    let scratch = Scratch::new("undescribed");
    let program = Program::new(mixed(&scratch, &[]), scratch.path());
    let (ended, recording) = Hindsight::record(&scratch, &[], &program);
    assert_eq!(ended.text(), "10\n");
    assert_eq!(functions(&recording), ["main", "ina", "inb"]);
    // Arguments have names where they are described.
    let row = recording.row("SELECT args FROM calls WHERE function = 'ina'");
    assert_eq!(row["args"], "x=4");
}

#[test]
fn patterns_select_what_is_not_described() {
    for (options, expected) in [
        (["-f", "inb"], ["inb"].as_slice()),
        (["-x", "ina"], ["main", "inb"].as_slice()),
        (["-f", "module:mixed"], ["main", "ina", "inb"].as_slice()),
    ] {
        let scratch = Scratch::new("undescribed-named");
        let program = Program::new(mixed(&scratch, &[]), scratch.path());
        let (_, recording) = Hindsight::record(&scratch, &options, &program);
        let found = functions(&recording);
        let own = found.iter().filter(|name| !name.starts_with('_'));
        assert_eq!(own.collect::<Vec<_>>(), expected, "{options:?}");
    }
}

/// The library's functions are not the program's, though they are in its file.
#[test]
fn a_static_library_is_recorded_only_by_name() {
    for (options, expected) in [
        ([].as_slice(), ["ina"].as_slice()),
        (["-f", "in?"].as_slice(), ["ina", "inb"].as_slice()),
    ] {
        let scratch = Scratch::new("undescribed-static");
        let program = Program::new(mixed(&scratch, &["-static"]), scratch.path());
        let (_, recording) = Hindsight::record(&scratch, options, &program);
        assert_eq!(functions(&recording), expected, "{options:?}");
    }
}

/// Rust's library has debug information, and a program that is compiled without options has none.
#[test]
fn a_rust_program_compiled_without_options_has_its_own_functions() {
    let scratch = Scratch::new("undescribed-rust");
    let source = "#[inline(never)] fn work(n: u64) -> u64 { (0..std::hint::black_box(n)).map(|i| i * n).sum() }\n\
                  fn main() { println!(\"{}\", work(4)); }\n";
    std::fs::write(scratch.join("hello.rs"), source).expect("the folder is writable");
    let status = Command::new(rustc())
        .args(["-O", "hello.rs"])
        .current_dir(scratch.path())
        .status();
    assert!(status.expect("rustc runs").success());
    let program = Program::new(scratch.join("hello"), scratch.path());
    let (ended, recording) = Hindsight::record(&scratch, &[], &program);
    assert_eq!(ended.text(), "24\n");
    let found = functions(&recording);
    for own in ["hello::main", "hello::work"] {
        let times = found.iter().filter(|name| *name == own).count();
        assert_eq!(times, 1, "{own} in {found:?}");
    }
    let named = Scratch::new("undescribed-rust-named");
    let (_, recording) = Hindsight::record(&named, &["-f", "hello::*"], &program);
    assert_eq!(functions(&recording), ["hello::main", "hello::work"]);
}

/// A call by a base class's pointer goes through a thunk, which is in no source.
#[test]
fn what_compilers_make_is_no_call() {
    let source = r#"
#include <cstdio>
struct A { virtual ~A() {} virtual int a() { return 1; } long x = 0; };
struct B { virtual ~B() {} virtual int b() { return 2; } long y = 0; };
struct C : A, B { __attribute__((noinline)) int b() override { volatile int n = 3; return n; } };
__attribute__((noinline)) int ask(B *b) { return b->b(); }
int main() { C c; printf("%d\n", ask(&c)); return 0; }
"#;
    let scratch = Scratch::new("undescribed-thunks");
    let program = compiled(&scratch, "thunks.cc", source, &["-g", "-O1"]);
    let program = Program::new(program, scratch.path());
    let (ended, recording) = Hindsight::record(&scratch, &["-x", "*::~*"], &program);
    assert_eq!(ended.text(), "3\n");
    assert_eq!(functions(&recording), ["main", "ask", "C::b"]);
}

/// A helper in assembler may have conventions of its own if nothing describes its frame. It is recorded on request.
#[test]
fn assembler_without_unwind_tables_is_left_alone() {
    let assembler = r#"
    .text
    .globl is_low
    .type is_low, @function
is_low:
    nopl 8(%rax,%rax)
    cmp $500, %edi
    ret
    .size is_low, . - is_low
    .section .note.GNU-stack, "", @progbits
"#;
    let source = r#"
#include <stdio.h>
__attribute__((noinline)) int low(int x) {
    unsigned char below;
    asm volatile("call is_low; setl %0" : "=r"(below) : "D"(x) : "cc", "memory");
    return below;
}
int main(void) {
    int sum = 0;
    for (int i = 0; i < 1000; i++) sum += low(i);
    printf("%d\n", sum);
    return 0;
}
"#;
    let scratch = Scratch::new("undescribed-assembler");
    let part = compiled(&scratch, "is_low.s", assembler, &["-c"]);
    let part = part.to_str().expect("its name is text");
    let options = ["-g", "-O1", "-mno-red-zone", part];
    let program = compiled(&scratch, "helped.c", source, &options);
    let program = Program::new(program, scratch.path());
    for (options, expected) in [(&[][..], 0), (&["-f", "is_low"][..], 1000)] {
        let kept = Scratch::new("undescribed-recorded");
        let (ended, recording) = Hindsight::record(&kept, options, &program);
        assert_eq!(ended.text(), "500\n");
        assert_eq!(recording.calls_of("is_low"), expected, "{options:?}");
    }
}

/// Assembler with unwind tables: `order` returns in the flags, `flags` takes them.
const PASSING_FLAGS: &str = r#"
    .macro begin name
    .globl \name
    .type \name, @function
\name:
    .cfi_startproc
    nopl 8(%rax,%rax)
    .endm
    .macro end name
    ret
    .cfi_endproc
    .size \name, . - \name
    .endm
    begin order
    cmp %rsi, %rdi
    end order
    begin flags
    pushfq
    pop %rax
    end flags
    .section .note.GNU-stack, "", @progbits
"#;

const CALLS_WITH_FLAGS: &str = r#"
#include <stdio.h>
#define COMPUTED 0x8d5
static unsigned long returned(long a, long b) {
    unsigned long found;
    asm volatile("call order; pushfq; pop %0" : "=r"(found) : "D"(a), "S"(b) : "cc", "memory");
    return found & COMPUTED;
}
static unsigned long taken(unsigned long given) {
    unsigned long found;
    asm volatile("push %1; popfq; call flags" : "=&a"(found) : "r"(given) : "cc", "memory");
    return found & COMPUTED;
}
int main(void) {
    static const long values[] = {0, 1, -1, 0x10, ~0UL >> 1, ~(~0UL >> 1)};
    static const unsigned long single[] = {1, 4, 0x10, 0x40, 0x80, 0x800};
    for (int i = 0; i < 36; i++) printf("%lx ", returned(values[i / 6], values[i % 6]));
    for (int i = 0; i < 64; i++) {
        unsigned long given = 0;
        for (int j = 0; j < 6; j++) given |= i >> j & 1 ? single[j] : 0;
        printf("%lx ", taken(given | 2) ^ given);
    }
    return 0;
}
"#;

/// Assembler takes arguments and returns results in the flags, too: each of CF, PF, AF, ZF, SF and OF arrives both ways.
/// With `--regs` every call takes the runtime's slow side.
#[test]
fn assembler_that_passes_flags_runs_the_same() {
    for linked in [&[][..], &["-static"]] {
        let scratch = Scratch::new(&format!("undescribed-flags{}", linked.concat()));
        let part = compiled(&scratch, "passing.s", PASSING_FLAGS, &["-c"]);
        let part = part.to_str().expect("its name is text");
        let options = [&["-g", "-O1", "-mno-red-zone", part][..], linked].concat();
        let program = compiled(&scratch, "flags.c", CALLS_WITH_FLAGS, &options);
        let program = Program::new(program, scratch.path());
        let native = program.run().text();
        assert!(native.ends_with(&"0 ".repeat(64)), "{native}");
        for options in [
            &["-f", "order", "-f", "flags"][..],
            &["-f", "module:*"],
            &["-f", "module:*", "--regs"],
        ] {
            let kept = Scratch::new("undescribed-recorded");
            let (recorded, recording) = Hindsight::record(&kept, options, &program);
            assert_eq!(recorded.text(), native, "{options:?} {linked:?}");
            let calls = ["order", "flags"].map(|name| recording.calls_of(name));
            assert_eq!(calls, [36, 64], "{options:?} {linked:?}");
        }
    }
}

/// A symbol between functions that the debug information describes. A pattern selects it, though no entry describes it.
#[test]
fn assembler_in_a_c_file_is_recorded_by_name() {
    let source = r#"
#include <stdio.h>
asm(".text\n.globl twice\n.type twice, @function\ntwice: .cfi_startproc\n lea (%rdi,%rdi), %rax\n nop\n ret\n"
    ".cfi_endproc\n.size twice, . - twice\n");
long twice(long x);
int main(void) {
    long sum = 0;
    for (int i = 0; i < 10; i++) sum += twice(i);
    printf("%ld\n", sum);
    return 0;
}
"#;
    let scratch = Scratch::new("undescribed-between");
    let program = compiled(&scratch, "between.c", source, &["-g", "-O1"]);
    let program = Program::new(program, scratch.path());
    for (options, expected) in [
        (&[][..], 0),
        (&["-f", "twice"][..], 10),
        (&["-f", "module:between"][..], 10),
    ] {
        let kept = Scratch::new("undescribed-recorded");
        let (recorded, recording) = Hindsight::record(&kept, options, &program);
        assert_eq!(recorded.text(), "90\n");
        assert!(
            !recorded.errors().contains("matches no function"),
            "{}",
            recorded.errors()
        );
        assert_eq!(recording.calls_of("twice"), expected, "{options:?}");
    }
}

/// What compilers and the C library put into a program is not the program's.
#[test]
fn helpers_of_the_compiler_are_no_calls() {
    let source = r#"
#include <stdio.h>
#include <stdlib.h>
static void bye(void) { fflush(stdout); }
__attribute__((noinline)) unsigned __int128 f(unsigned __int128 a, unsigned __int128 b) { return a / b; }
int main(void) {
    atexit(bye);
    printf("%d\n", (int)f((unsigned __int128)7 << 100, (unsigned __int128)1 << 100));
    return 0;
}
"#;
    let scratch = Scratch::new("undescribed-helpers");
    let program = compiled(&scratch, "helpers.c", source, &["-g", "-O1"]);
    let program = Program::new(program, scratch.path());
    let (ended, recording) = Hindsight::record(&scratch, &[], &program);
    assert_eq!(ended.text(), "7\n");
    assert_eq!(functions(&recording), ["main", "f", "bye"]);
}
