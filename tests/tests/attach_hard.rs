//! Goal: attaching is refused before it could do harm, a failure leaves nothing behind, and no signal is lost while the runtime
//! is loaded. Method: programs in a sandbox, in a PID namespace of their own, with memory where ours is to be, and with many
//! signals that they count; the test attaches to them.

use e2e::{
    Ended, Hindsight, Program, Recording, Running, Scratch, Signal, Status, compiled, kill,
    wait_until,
};
use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Attaches, and records for a moment if that is possible.
fn attach(scratch: &Scratch, name: &str, pid: i32) -> Ended {
    let pid = pid.to_string();
    let words = ["record", "-o", name, "--for", "0.1", "--attach", &pid];
    Hindsight::command(scratch, &words).run()
}

fn assert_refused(ended: &Ended, why: &str) {
    assert_eq!(ended.status, Status::Code(4), "{}", ended.errors());
    assert!(ended.errors().contains(why), "{}", ended.errors());
}

/// A program that returns each byte that it gets.
struct Echo {
    child: Child,
    input: ChildStdin,
    output: ChildStdout,
}

impl Echo {
    /// Starts it. It has sent a byte when it is ready.
    fn start(program: &Path) -> Self {
        let mut child = Command::new(program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it was built");
        let input = child.stdin.take().expect("stdin is a pipe");
        let output = child.stdout.take().expect("stdout is a pipe");
        let mut echo = Self {
            child,
            input,
            output,
        };
        assert_eq!(echo.byte(), b'r');
        echo
    }

    fn pid(&self) -> i32 {
        self.child.id().cast_signed()
    }

    fn byte(&mut self) -> u8 {
        let mut byte = [0];
        self.output.read_exact(&mut byte).expect("it is alive");
        byte[0]
    }

    fn assert_echoes(&mut self, byte: u8) {
        self.input.write_all(&[byte]).expect("it reads");
        assert_eq!(self.byte(), byte);
    }

    /// It ends at the end of its input.
    fn assert_ends(self) {
        let Self {
            mut child, input, ..
        } = self;
        drop(input);
        let ended = child.wait().expect("it is our child");
        assert_eq!(Status::from(ended), Status::Code(7));
    }
}

/// What `Echo` runs, with `BEGIN` before.
const ECHO: &str = r#"
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(void) {
  char byte = 'r';
  BEGIN
  do
    if (write(1, &byte, 1) != 1) return 1;
  while (read(0, &byte, 1) == 1);
  syscall(SYS_exit, 7);
}
"#;

fn echo(scratch: &Scratch, begin: &str) -> Echo {
    let source = ECHO.replace("BEGIN", begin);
    Echo::start(&compiled(scratch, "echo.c", &source, &["-g", "-O0"]))
}

#[test]
fn a_program_in_a_sandbox_is_refused_and_lives_on() {
    let scratch = Scratch::new("attach-sandbox");
    let mut echo = echo(
        &scratch,
        "if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0) return 2;",
    );
    let refused = attach(&scratch, "rec", echo.pid());
    assert_refused(&refused, "it is in a sandbox (seccomp)");
    echo.assert_echoes(b'a');
    echo.assert_ends();
}

/// Filters of the same kind as those of a service or a container: some calls are refused, but none that loading takes; and one that
/// refuses to map code.
#[test]
fn filters_decide_whether_a_program_is_attached_to() {
    let scratch = Scratch::new("attach-filters");
    let begin = "struct sock_filter code[] = {
          {0x20, 0, 0, 0}, {0x15, 0, 3, REFUSED}, {0x20, 0, 0, 32}, {0x45, 0, 1, 4}, {0x06, 0, 0, 0x80000000}, {0x06, 0, 0, 0x7fff0000}};
        struct sock_fprog filter = {6, code};
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return 2;
        if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) return 3;";
    for (refused, is_attached) in [("SYS_clone", true), ("SYS_mmap", false)] {
        let mut echo = echo(&scratch, &begin.replace("REFUSED", refused));
        let ended = attach(&scratch, refused, echo.pid());
        match is_attached {
            true => assert_eq!(ended.status, Status::Code(0), "{}", ended.errors()),
            false => assert_refused(&ended, "it is in a sandbox (seccomp)"),
        }
        echo.assert_echoes(b'a');
        echo.assert_ends();
    }
}

/// What a failure could leave behind.
fn belongings(pid: i32) -> [String; 3] {
    let text = |name: &str| fs::read_to_string(format!("/proc/{pid}/{name}")).expect("it runs");
    let fds = fs::read_dir(format!("/proc/{pid}/fd")).expect("it runs");
    [text("maps"), text("limits"), fds.count().to_string()]
}

/// Its own memory lies where return addresses are to be, and it may not have much more.
#[test]
fn a_failure_leaves_nothing_behind() {
    let scratch = Scratch::new("attach-failure");
    let begin = "struct rlimit limit;
        getrlimit(RLIMIT_AS, &limit);
        limit.rlim_cur = 1ul << 30;
        if (setrlimit(RLIMIT_AS, &limit) != 0) return 2;
        void *at = (void *)SHADOW;
        int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
        if (mmap(at, 4096, PROT_READ, flags, -1, 0) != at) return 3;";
    let mut echo = echo(&scratch, &begin.replace("SHADOW", "0x300000000000ul"));
    let before = belongings(echo.pid());
    let refused = attach(&scratch, "rec", echo.pid());
    assert_refused(&refused, "cannot map the shadow of the stacks");
    assert_eq!(belongings(echo.pid()), before);
    echo.assert_echoes(b'a');
    echo.assert_ends();
}

/// Attaches to a program again and again, then makes it end by a file. Returns what it said.
fn attached_to(scratch: &Scratch, running: Running, times: usize) -> Ended {
    wait_until("its own code", || {
        scratch.join("ready").exists().then_some(())
    });
    for n in 0..times {
        let name = format!("rec{n}");
        let ended = attach(scratch, &name, running.pid());
        assert_eq!(ended.status, Status::Code(0), "{n}: {}", ended.errors());
        let recording = Recording::new(scratch.join(&format!("{name}.hindsight")));
        assert!(recording.calls_of("work") > 0, "{n}");
        fs::remove_dir_all(recording.path()).expect("the recording is closed");
    }
    fs::write(scratch.join("end"), "").expect("the test's folder is writable");
    running.finish()
}

/// A timer's signal brings the address of the number that it raises. It stands for each time that the timer went off meanwhile.
const TICKS: &str = r#"
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
#define INTERVAL 200000l
static volatile long ticks;
__attribute__((noinline)) long work(long n) { return n * 3 + 1; }
static void tick(int signal, siginfo_t *info, void *context) {
  *(volatile long *)info->si_value.sival_ptr += 1 + info->si_overrun;
}
static long now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000000l + time.tv_nsec;
}
int main(void) {
  struct sigaction action = { .sa_sigaction = tick, .sa_flags = SA_SIGINFO | SA_RESTART };
  struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN };
  struct itimerspec every = { { 0, INTERVAL }, { 0, INTERVAL } }, never = { { 0, 0 }, { 0, 0 } };
  timer_t timer;
  long n = 0;
  event.sigev_value.sival_ptr = (void *)&ticks;
  if (sigaction(SIGRTMIN, &action, NULL) || timer_create(CLOCK_MONOTONIC, &event, &timer)) return 2;
  long begun = now();
  if (timer_settime(timer, 0, &every, NULL)) return 3;
  close(open("ready", O_CREAT | O_WRONLY, 0600));
  while (access("end", F_OK) != 0) {
    pause();
    n = work(n);
  }
  long before = ticks, expected = (now() - begun) / INTERVAL, missing = expected - ticks;
  timer_settime(timer, 0, &never, NULL);
  /* The last one may be on its way. */
  if (missing < 50 && before - expected < 50) printf("all ticks\n");
  else printf("%ld ticks missing of %ld\n", missing, expected);
  return n == 0;
}
"#;

#[test]
fn the_signals_of_a_timer_keep_their_values() {
    let scratch = Scratch::new("attach-ticks");
    let program = compiled(&scratch, "ticks.c", TICKS, &["-g", "-O0"]);
    let running = Program::new(program, scratch.path()).start();
    let ended = attached_to(&scratch, running, 20);
    assert_eq!(ended.text(), "all ticks\n", "{}", ended.errors());
    assert_eq!(ended.status, Status::Code(0));
}

/// Its child sends it signals: numbered ones that queue, and two that do not, each when the last one has come. It takes them only
/// where it waits.
const QUEUED: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
static struct { volatile int sent[3], seen[3], wrong, sender, is_over; } *shared;
__attribute__((noinline)) int work(int n) { return n + 1; }
static void come(int signal, siginfo_t *info, void *context) {
  if (signal == SIGRTMIN + 1) { shared->is_over = 1; return; }
  int kind = signal == SIGRTMIN ? 0 : signal == SIGUSR1 ? 1 : 2;
  if (kind == 2 && info->si_code != SI_USER) return;
  shared->seen[kind] = work(shared->seen[kind]);
  if (info->si_pid != shared->sender) shared->wrong++;
  if (kind == 0 && info->si_value.sival_int != shared->seen[0]) shared->wrong++;
}
static int is_all(void) {
  for (int kind = 0; kind < 3; kind++)
    if (shared->seen[kind] != shared->sent[kind]) return 0;
  return 1;
}
static void send_all(pid_t to) {
  const int plain[] = { 0, SIGUSR1, SIGCHLD };
  shared->sender = getpid();
  while (access("end", F_OK) != 0 && getppid() == to) {
    if (sigqueue(to, SIGRTMIN, (union sigval) { .sival_int = shared->sent[0] + 1 }) == 0)
      shared->sent[0]++;
    for (int kind = 1; kind < 3; kind++)
      if (shared->seen[kind] == shared->sent[kind]) {
        shared->sent[kind]++;
        kill(to, plain[kind]);
      }
    usleep(100);
  }
  for (int n = 0; n < 20000 && !is_all(); n++) usleep(1000);
  sigqueue(to, SIGRTMIN + 1, (union sigval) { .sival_int = 0 });
}
int main(void) {
  const int signals[] = { SIGRTMIN, SIGRTMIN + 1, SIGUSR1, SIGCHLD };
  struct sigaction action = { .sa_sigaction = come, .sa_flags = SA_SIGINFO };
  sigset_t all, none;
  sigemptyset(&none);
  sigfillset(&all);
  sigfillset(&action.sa_mask);
  sigprocmask(SIG_SETMASK, &all, NULL);
  for (int n = 0; n < 4; n++) sigaction(signals[n], &action, NULL);
  shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  pid_t self = getpid(), child = fork();
  if (child == 0) {
    send_all(self);
    _exit(0);
  }
  close(open("ready", O_CREAT | O_WRONLY, 0600));
  while (!shared->is_over) sigsuspend(&none);
  waitpid(child, NULL, 0);
  sigprocmask(SIG_SETMASK, NULL, &none);
  if (sigismember(&none, SIGUSR1) != 1) return 2;
  if (is_all() && !shared->wrong) printf("all signals\n");
  else for (int kind = 0; kind < 3; kind++)
    printf("%d of %d, %d wrong\n", shared->seen[kind], shared->sent[kind], shared->wrong);
  return 0;
}
"#;

#[test]
fn signals_that_come_meanwhile_arrive() {
    let scratch = Scratch::new("attach-queued");
    let program = compiled(&scratch, "queued.c", QUEUED, &["-g", "-O0"]);
    let running = Program::new(program, scratch.path()).start();
    let ended = attached_to(&scratch, running, 10);
    assert_eq!(ended.text(), "all signals\n", "{}", ended.errors());
    assert_eq!(ended.status, Status::Code(0));
}

/// The child of a process, once it runs `program`.
fn child_of(parent: i32, program: &str) -> i32 {
    let is_child = |pid: &i32| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let exe = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
        status.contains(&format!("PPid:\t{parent}\n")) && exe.ends_with(program)
    };
    wait_until("the child", || {
        let entries = fs::read_dir("/proc").expect("there is a /proc");
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        names
            .filter_map(|name| name.parse::<i32>().ok())
            .find(is_child)
    })
}

#[test]
fn a_program_in_another_pid_namespace_is_refused_and_lives_on() {
    let scratch = Scratch::new("attach-namespace");
    let unshare = Path::new("/usr/bin/unshare");
    let allowed = Program::new("/bin/true", scratch.path()).wrapped(unshare, ["-fp"]);
    let allowed = allowed.run();
    assert_eq!(
        allowed.status,
        Status::Code(0),
        "only root may make a PID namespace: {}",
        allowed.errors()
    );
    let program = Program::new("/bin/sleep", scratch.path()).args(["1000"]);
    let running = program.wrapped(unshare, ["-fp"]).start();
    let pid = child_of(running.pid(), "sleep");
    assert_refused(&attach(&scratch, "rec", pid), "PID namespace of its own");
    kill(pid, Signal::KILL);
    // unshare(1) ends with its child; not all versions repeat its signal.
    let _ = running.finish();
}
