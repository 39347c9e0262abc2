//! Goal: each thread's calls are its own, whatever the C library's block of the thread has held before or holds now, and the program
//! gets the keys for thread-specific data that it would get unrecorded. Method: programs whose threads follow one another on one
//! stack, use keys, or leave glibc's block.

use e2e::{Comparison, Hindsight, Nesting, Program, Scratch, Status, compiled};

const SAME_STACK: &str = r#"
#include <pthread.h>
#include <stdio.h>
__attribute__((noinline, noclone)) long work(long x) { __asm__ volatile("" : "+r"(x)); return x + 1; }
static void *quiet(void *unused) { return unused; }
static void *busy(void *times) {
    long sum = 0;
    for (long i = 0; i < *(long *)times; i++)
        sum = work(sum);
    return (void *)sum;
}
int main(void) {
    long times = 200000, sum = 0;
    for (int i = 0; i < 8; i++) {
        pthread_t one;
        void *got;
        pthread_create(&one, 0, quiet, 0);
        pthread_join(one, 0);
        pthread_create(&one, 0, busy, &times);
        pthread_join(one, &got);
        sum += (long)got;
    }
    printf("%ld\n", sum);
    return 0;
}
"#;

/// What the C library frees at a thread's end is a thread's first recorded call. The next thread has the same stack and block.
#[test]
fn threads_that_follow_one_another_on_a_stack_are_told_apart() {
    let scratch = Scratch::new("same_stack");
    let path = compiled(&scratch, "app.c", SAME_STACK, &["-g", "-O1", "-pthread"]);
    let program = Program::new(path, scratch.path());
    for (name, options) in [
        ("memory", &["--memory", "-f", "work"][..]),
        ("free", &["-f", "work", "-f", "free"]),
        ("calls", &["--syscalls", "-f", "work"]),
    ] {
        let ended = Hindsight::record_command(&scratch, name, options, &program).run();
        assert_eq!(ended.text(), "1600000\n", "{name}: {}", ended.errors());
        let recording = e2e::Recording::new(scratch.join(&format!("{name}.hindsight")));
        let of_work = "SELECT count(*) AS calls, count(DISTINCT tid) AS threads FROM calls WHERE function = 'work'";
        let row = recording.row(of_work);
        assert_eq!(row["calls"], 1_600_000, "{name}");
        assert_eq!(row["threads"], 8, "{name}");
        let gone = "SELECT count(*) FROM calls c JOIN threads t ON t.tid = c.tid \
                    WHERE c.function = 'work' AND (c.ts_ns < t.start_ts_ns OR c.ts_ns > t.end_ts_ns)";
        assert_eq!(
            recording.number(gone),
            0,
            "{name}: calls outside their threads' lives"
        );
        assert_eq!(recording.number("SELECT count(*) FROM gaps"), 0, "{name}");
    }
}

const KEYS: &str = r#"
#include <pthread.h>
#include <stdio.h>
__attribute__((noinline, noclone)) long work(long x) { __asm__ volatile("" : "+r"(x)); return x + 1; }
static pthread_key_t keys[40];
static void *in_thread(void *unused) {
    long sum = 0;
    for (int i = 0; i < 40; i++)
        pthread_setspecific(keys[i], (void *)(long)(work(i) * 3));
    for (int i = 0; i < 40; i++)
        sum += work((long)pthread_getspecific(keys[i]));
    printf("sum %ld\n", sum);
    return unused;
}
int main(void) {
    pthread_t one;
    for (int i = 0; i < 40; i++)
        pthread_key_create(&keys[i], 0);
    for (int i = 0; i < 31; i++)
        printf("%u ", keys[i]);
    printf("\n");
    in_thread(0);
    for (int i = 0; i < 3; i++) {
        pthread_create(&one, 0, in_thread, 0);
        pthread_join(one, 0);
    }
    return 0;
}
"#;

#[test]
fn the_program_gets_its_own_keys() {
    let scratch = Scratch::new("own_keys");
    let path = compiled(&scratch, "app.c", KEYS, &["-g", "-O1", "-pthread"]);
    let program = Program::new(path, scratch.path());
    let both = Comparison::of_program(scratch, &program, &[], Nesting::Proper);
    let calls = "SELECT count(*) FROM calls WHERE function = 'work'";
    assert_eq!(both.recording.number(calls), 4 * 80);
}

const OWN_BLOCK: &str = r#"
#include <asm/prctl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
__attribute__((noinline, noclone)) long work(long x) { __asm__ volatile("" : "+r"(x)); return x + 1; }
static long arch_prctl(long code, void *at) {
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(SYS_arch_prctl), "D"(code), "S"(at) : "rcx", "r11", "memory");
    return result;
}
int main(void) {
    void *own;
    char *page = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    long sum = work(0);
    arch_prctl(ARCH_GET_FS, &own);
    arch_prctl(ARCH_SET_FS, page);
    for (int i = 0; i < 10; i++)
        sum = work(sum);
    arch_prctl(ARCH_SET_FS, own);
    for (int i = 0; i < 31; i++)
        sum = work(sum);
    printf("%ld\n", sum);
    return 0;
}
"#;

/// Its calls meanwhile are not recorded, and the recording says that some are missing.
#[test]
fn a_thread_that_leaves_its_block_for_a_while_goes_on() {
    let scratch = Scratch::new("own_block");
    let flags = ["-g", "-O1", "-fno-stack-protector"];
    let path = compiled(&scratch, "app.c", OWN_BLOCK, &flags);
    let program = Program::new(path, scratch.path());
    let (ended, recording) = Hindsight::record(&scratch, &["-f", "work"], &program);
    assert_eq!(ended.status, Status::Code(0), "{}", ended.errors());
    assert_eq!(ended.text(), "42\n");
    let calls = recording.number("SELECT count(*) FROM calls WHERE function = 'work'");
    assert_eq!(calls, 32);
}
