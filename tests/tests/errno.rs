//! Goal: functions of the C library that the runtime replaces fail as they do without it: the same result, the same errno. Method: a
//! program makes each of them fail; its output natively and recorded.
//! Of several builds of a program each run takes a part; `WHOLE=1` all.

use e2e::{Hindsight, Program, Scratch, compiled, in_turn};

const FAILING: &str = r#"
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
static int nothing(void *a) { (void)a; return 0; }
#define TRY(call) (errno = 0, result = (long)(call), printf("%s: %ld %d\n", #call, result, errno))
int main(void) {
    long result;
    char *none[] = {0};
    struct iovec piece = {"x", 1};
    struct sigaction usual = {.sa_handler = SIG_DFL}, old;
    stack_t small = {.ss_sp = &result, .ss_size = 8};
    struct rlimit limit = {2, 1};
    TRY(write(77, "x", 1));
    TRY(writev(77, &piece, 1));
    TRY(sigaction(SIGKILL, &usual, &old));
    TRY(sigaction(SIGKILL, &usual, NULL));
    TRY(sigaction(SIGSEGV, NULL, NULL));
    TRY(signal(SIGSTOP, SIG_DFL));
    TRY(signal(32, SIG_DFL));
    TRY(sigaltstack(&small, NULL));
    TRY(setrlimit(RLIMIT_NOFILE, &limit));
    TRY(setrlimit(99, &limit));
    TRY(getrlimit(99, &limit));
    TRY(prlimit(0, 99, NULL, &limit));
    TRY(prctl(-1, 0, 0, 0, 0));
    TRY(mlockall(64));
    TRY(syscall(-1));
    TRY(syscall(SYS_prctl, -1, 0, 0, 0, 0));
    TRY(execve("/no/such/program", none, none));
    TRY(execveat(AT_FDCWD, "/no/such/program", none, none, 0));
    TRY(fexecve(77, none, none));
    TRY(posix_spawn(NULL, "/no/such/program", NULL, NULL, none, none));
    TRY(posix_spawnp(NULL, "/no/such/program", NULL, NULL, none, none));
    TRY(pthread_setname_np(pthread_self(), "much too long a name"));
    TRY(clone(nothing, NULL, CLONE_VM | CLONE_THREAD, NULL));
    return 0;
}
"#;

/// The dynamic linker has a function of the same name with an errno of its own: recorded programs called that one.
#[test]
fn functions_that_fail_set_errno() {
    for linked in in_turn(["-pie", "-static"]) {
        let scratch = Scratch::new(&format!("errno{linked}"));
        let program = compiled(&scratch, "failing.c", FAILING, &["-g", "-O1", "-w", linked]);
        let program = Program::new(program, scratch.path());
        let native = program.run().text();
        assert_eq!(native.lines().count(), 23, "{native}");
        for options in [&[][..], &["-f", "module:*"], &["--syscalls"]] {
            let kept = Scratch::new("errno-recorded");
            let (recorded, _) = Hindsight::record(&kept, options, &program);
            assert_eq!(recorded.text(), native, "{linked} {options:?}");
        }
    }
}
