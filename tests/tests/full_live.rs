//! Goal: `full` at a live stop records exactly what the thread does next, and the past of the session knows all of it. Method: one program
//! with several modes; gdb steps the same program, and its registers at each instruction are compared with those of the recording. What else
//! the session does (breakpoints, logpoints, traced calls) must come out as without it, and so must the program.

use std::path::{Path, PathBuf};

use e2e::{Live, Program, Recording, Scratch, Status, compiled, wait_until};
use serde_json::Value;

const SOURCE: &str = r#"
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
static unsigned char data[256];
static volatile unsigned long state = 1;
static volatile double sum;
static volatile int handled, stop, other;
__attribute__((noinline)) unsigned long mix(unsigned char *p, int n)
{
    for (int i = 0; i < n; i++) {
        state = state * 6364136223846793005UL + p[i] + 1;
        p[i] ^= state >> 56;
        sum += (double)(state >> 40) * 0.5;
    }
    return state;
}
static void on_signal(int number)
{
    handled += number;
}
__attribute__((noinline)) void begin(void)
{
    __asm__ volatile("" ::: "memory");
}
static void *worker(void *of)
{
    begin();
    for (int i = 0; i < 50; i++)
        mix(data, 16);
    stop = 1;
    return of;
}
static void *ticker(void *of)
{
    while (!stop)
        other++;
    return of;
}
static void *ender(void *of)
{
    begin();
    mix(data, 4);
    return of;
}
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile int reached;
static void *locker(void *of)
{
    begin();
    reached = 1;
    pthread_mutex_lock(&lock);
    mix(data, 4);
    pthread_mutex_unlock(&lock);
    return of;
}
int main(int count, char **words)
{
    const char *mode = count > 1 ? words[1] : "compute";
    if (strcmp(mode, "thread") == 0) {
        pthread_t threads[2];
        pthread_create(&threads[0], 0, ticker, 0);
        pthread_create(&threads[1], 0, worker, 0);
        pthread_join(threads[1], 0);
        pthread_join(threads[0], 0);
    } else if (strcmp(mode, "ends") == 0) {
        for (int i = 0; i < 3; i++) {
            pthread_t thread;
            pthread_create(&thread, 0, ender, 0);
            pthread_join(thread, 0);
        }
    } else if (strcmp(mode, "lock") == 0) {
        pthread_t thread;
        pthread_mutex_lock(&lock);
        pthread_create(&thread, 0, locker, 0);
        while (!reached)
            usleep(1000);
        pthread_mutex_unlock(&lock);
        pthread_join(thread, 0);
    } else if (strcmp(mode, "signal") == 0) {
        signal(SIGUSR1, on_signal);
        begin();
        mix(data, 4);
        raise(SIGUSR1);
        mix(data, 4);
    } else if (strcmp(mode, "calls") == 0) {
        struct timespec now;
        begin();
        for (int i = 0; i < 5; i++) {
            char *page = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            clock_gettime(CLOCK_MONOTONIC, &now);
            page[5000] = (char)now.tv_nsec;
            memset(page, 'x', 100);
            state += getppid() != 0;
            dprintf(1, "pass %d\n", i);
            munmap(page, 8192);
        }
    } else if (strcmp(mode, "loop") == 0) {
        begin();
        while (!stop)
            mix(data, 8);
    } else {
        begin();
        for (int i = 0; i < 20; i++)
            mix(data, 256);
    }
    printf("state %lx sum %.1f handled %d\n", state, sum, handled);
    return 3;
}
"#;

fn program(scratch: &Scratch) -> PathBuf {
    let flags = [
        "-O1",
        "-g",
        "-no-pie",
        "-pthread",
        "-fno-stack-protector",
        "-fcf-protection=none",
    ];
    compiled(scratch, "steps.c", SOURCE, &flags)
}

struct Steps {
    live: Live,
    program: PathBuf,
    mode: &'static str,
}

impl Steps {
    /// A program in a mode, stopped at the entry of `begin`.
    fn at_begin(name: &str, mode: &'static str) -> Steps {
        let live = Live::new(name);
        let program = program(&live.scratch);
        live.start(&["--no-aslr", "--break", "begin"], &program, &[mode]);
        Steps {
            live,
            program,
            mode,
        }
    }

    fn full(&self, what: &str) -> Value {
        self.live.ask(&["full", what])
    }

    /// What the program prints by itself.
    fn native(&self) -> String {
        let ended = Program::new(&self.program, self.live.scratch.path())
            .args([self.mode])
            .run();
        assert_eq!(ended.status, Status::Code(3));
        ended.text()
    }

    /// Lets it run to its end, which is that without a debugger.
    fn ends_as_it_would(&self) {
        assert_eq!(self.live.run_to_end(), 3);
        assert_eq!(self.live.output(), self.native());
    }
}

/// The recording that a reply of `full` names.
fn recorded(reply: &Value) -> Recording {
    let path = reply["recorded"]["recording"].as_str();
    Recording::new(PathBuf::from(path.unwrap_or_else(|| panic!("{reply:#}"))))
}

fn count(reply: &Value) -> i64 {
    reply["recorded"]["instructions"]
        .as_i64()
        .unwrap_or_else(|| panic!("{reply:#}"))
}

const REGISTERS: [&str; 18] = [
    "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11", "r12", "r13",
    "r14", "r15", "rip", "eflags",
];
/// CF, PF, AF, ZF, SF, DF and OF.
const FLAGS: u64 = 0xcd5;
/// The stack lies elsewhere where the environment differs.
const NEAR: u64 = 1 << 16;
/// Bytes of the frames above the first one.
const FRAMES: u64 = 0x140;

/// Registers with addresses of the stack counted from the first stack pointer.
fn relative(rows: &[Vec<u64>]) -> Vec<Vec<u64>> {
    let base = rows[0][7];
    let of = |(index, value): (usize, &u64)| match index {
        17 => value & FLAGS,
        // Arguments and the environment lie elsewhere.
        _ if (base + FRAMES..base + NEAR).contains(value) => 0,
        _ if value.abs_diff(base) < NEAR => value.wrapping_sub(base),
        _ => *value,
    };
    rows.iter()
        .map(|row| row.iter().enumerate().map(of).collect())
        .collect()
}

fn gdb_steps(program: &Path, folder: &Path, wanted: i64) -> Vec<Vec<u64>> {
    let names = REGISTERS.map(|name| match name {
        "eflags" => "$eflags".to_owned(),
        name => format!("(unsigned long)${name}"),
    });
    let names = names.join(", ");
    let format = ["%lx"; REGISTERS.len() - 1].join(" ") + " %x";
    let script = format!(
        "set width 0\nset confirm off\nbreak *begin\nrun compute > /dev/null\ndelete\nset $i = 0\n\
         while $i < {wanted}\nprintf \"row {format}\\n\", {names}\nstepi\nset $i = $i + 1\nend\nkill\n"
    );
    let file = folder.join("steps.gdb");
    std::fs::write(&file, script).expect("the folder is writable");
    let words = ["-batch", "-nx", "-q", "-x"].map(PathBuf::from);
    let ended = Program::new("/usr/bin/gdb", folder)
        .args(words.iter().chain([&file, &program.to_owned()]))
        .run();
    let text = ended.text();
    let rows = text.lines().filter_map(|line| line.strip_prefix("row "));
    let hex = |word: &str| u64::from_str_radix(word, 16).expect("a number");
    rows.map(|row| row.split(' ').map(hex).collect()).collect()
}

#[test]
fn the_next_instructions_are_those_that_gdb_steps() {
    const WANTED: i64 = 400;
    let steps = Steps::at_begin("full-live-gdb", "compute");
    let reply = steps.full("400");
    assert_eq!(count(&reply), WANTED, "{reply:#}");
    assert_eq!(reply["recorded"]["ended"], Value::Null, "{reply:#}");
    let recording = recorded(&reply);
    let columns = REGISTERS.map(|name| format!("reg(seq || '+' || step, '{name}') AS {name}"));
    let sql = format!(
        "SELECT position, {} FROM instructions ORDER BY position",
        columns.join(", ")
    );
    let rows = recording.rows(&sql);
    assert_eq!(rows.len() as i64, WANTED);
    let number = |value: &Value| match value {
        Value::String(text) => u64::from_str_radix(text.trim_start_matches("0x"), 16)
            .unwrap_or_else(|_| panic!("{value}")),
        value => value
            .as_u64()
            .unwrap_or_else(|| value.as_i64().expect("a number") as u64),
    };
    let own: Vec<Vec<u64>> = rows
        .iter()
        .map(|row| REGISTERS.iter().map(|name| number(&row[*name])).collect())
        .collect();
    let theirs = gdb_steps(&steps.program, steps.live.scratch.path(), WANTED);
    assert_eq!(theirs.len() as i64, WANTED);
    let (own, theirs) = (relative(&own), relative(&theirs));
    for (position, (own, theirs)) in own.iter().zip(&theirs).enumerate() {
        assert_eq!(own, theirs, "at instruction {position}");
    }
    steps.ends_as_it_would();
}

#[test]
fn the_past_is_exact_until_the_program_moves_on() {
    let steps = Steps::at_begin("full-live-past", "compute");
    let reply = steps.full("5000");
    let live = &steps.live;
    let here = live.print("state");
    let rip = live.print("$rip");
    let back = live.ask(&["step-back", "-i", "1"]);
    assert_eq!(back["status"], "stopped", "{back:#}");
    assert_ne!(live.print("$rip"), rip);
    live.ask(&["step", "-i"]);
    assert_eq!(live.print("$rip"), rip);
    assert_eq!(live.print("state"), here);
    live.ask(&["goto", "first"]);
    live.ask(&["step", "-i"]);
    assert_eq!(live.print("state"), "1");
    live.ask(&["goto", "last"]);
    let wrote = live.ask(&["last-write", "state"]);
    assert!(wrote.to_string().contains("mix"), "{wrote:#}");
    live.ask(&["goto", "live"]);
    assert_eq!(live.print("state"), here);
    // Each value of `state` in the order in which it was written; the last one is that of now.
    let address = live.print("&state");
    let mut words = address.split_whitespace();
    let digits = words.find_map(|word| word.strip_prefix("0x"));
    let at = u64::from_str_radix(digits.expect("an address"), 16);
    let sql = format!(
        "SELECT count(*) FROM memory_writes WHERE addr = {} AND function = 'mix'",
        at.expect("an address")
    );
    let recording = recorded(&reply);
    assert!(recording.number(&sql) > 100);
    let check = recording.command("check", &["--replay"]);
    assert_eq!(
        check.status,
        Status::Code(0),
        "{}{}",
        check.text(),
        check.errors()
    );
    assert!(steps.full("off")["is_whole"] == true);
    let failure = live.refused(&["full", "off"]);
    assert_eq!(failure["code"], "NOT_ALLOWED", "{failure:#}");
    // Once it has moved on, the past is that of the whole session.
    steps.full("50");
    steps.ends_as_it_would();
    let back = live.ask(&["goto", "last"]);
    let whole = live.recording();
    assert_eq!(
        back["recording"],
        whole.path().to_str().expect("text"),
        "{back:#}"
    );
}

#[test]
fn a_breakpoint_ends_it_and_logpoints_and_calls_go_on() {
    let steps = Steps::at_begin("full-live-break", "compute");
    let live = &steps.live;
    live.ask(&["logpoint", "mix", "n={n}"]);
    live.ask(&["break", "mix", "--hit-count", "3"]);
    let reply = steps.full("1000000");
    let stop = &reply["stop"];
    assert_eq!(stop["hits"], 3, "{reply:#}");
    assert!(reply["recorded"]["ended"].is_string(), "{reply:#}");
    assert!(count(&reply) > 2 * 256 * 5, "{reply:#}");
    let own = recorded(&reply);
    let sql = "SELECT count(*) FROM calls WHERE function = 'mix'";
    assert_eq!(own.number(sql), 2);
    live.ask(&["breakpoint", "remove", "3"]);
    steps.ends_as_it_would();
    let session = live.recording();
    assert_eq!(session.number(sql), 20);
    assert_eq!(session.number("SELECT count(*) FROM logpoints"), 20);
}

#[test]
fn the_end_of_the_program_ends_it() {
    let steps = Steps::at_begin("full-live-end", "signal");
    let reply = steps.full("100000000");
    assert_eq!(reply["status"], "ended", "{reply:#}");
    assert_eq!(reply["exit"]["code"], 3, "{reply:#}");
    assert_eq!(steps.live.output(), steps.native());
    let recording = recorded(&reply);
    assert_eq!(reply["recorded"]["incomplete"], Value::Null, "{reply:#}");
    let why = reply["recorded"]["ended"].as_str().expect("a reason");
    assert!(why.contains("exits with code 3"), "{why}");
    // The signal's handler is part of it.
    let sql = "SELECT count(DISTINCT addr) FROM instructions WHERE function = 'on_signal'";
    assert!(recording.number(sql) >= 3);
    let row = recording.row("SELECT value(max(seq), 'handled') AS handled FROM events");
    assert_eq!(row["handled"], "10", "{row:?}");
}

#[test]
fn system_calls_and_the_clock_are_part_of_it() {
    let steps = Steps::at_begin("full-live-calls", "calls");
    let reply = steps.full("6000");
    assert_eq!(count(&reply), 6000, "{reply:#}");
    assert_eq!(reply["recorded"]["incomplete"], Value::Null, "{reply:#}");
    let recording = recorded(&reply);
    let names =
        "SELECT count(*) FROM syscalls WHERE name IN ('mmap', 'write', 'munmap', 'clock_gettime')";
    assert!(recording.number(names) >= 3, "{reply:#}");
    steps.ends_as_it_would();
}

#[test]
fn a_thread_that_is_not_the_first_is_recorded_alone() {
    let steps = Steps::at_begin("full-live-thread", "thread");
    let live = &steps.live;
    let tid = live.session()["stop"]["thread"].as_i64().expect("a thread");
    let reply = steps.full("3000");
    assert_eq!(count(&reply), 3000, "{reply:#}");
    let other = live.print("other");
    assert_eq!(reply["stop"]["thread"], tid, "{reply:#}");
    let recording = recorded(&reply);
    let sql = format!("SELECT count(*) FROM instructions WHERE tid = {tid}");
    assert_eq!(recording.number(&sql), 3000);
    // All others stand still, at their stops.
    assert_eq!(live.print("other"), other);
    let threads = live.ask(&["threads"]);
    let states = threads["threads"].as_array().expect("threads");
    assert_eq!(states.len(), 3, "{threads:#}");
    live.ask(&["breakpoint", "remove", "1"]);
    assert_eq!(live.run_to_end(), 3);
    assert_eq!(live.output(), steps.native());
}

/// The runtime takes part in the end of a thread, and that is no part of the program.
#[test]
fn a_thread_is_recorded_up_to_its_end() {
    let steps = Steps::at_begin("full-live-ends", "ends");
    let live = &steps.live;
    let tid = live.session()["stop"]["thread"].as_i64().expect("a thread");
    let reply = steps.full("on");
    let why = reply["recorded"]["ended"].as_str().expect("a reason");
    assert!(why.contains("the thread ends"), "{reply:#}");
    assert_eq!(reply["recorded"]["incomplete"], Value::Null, "{reply:#}");
    assert!(count(&reply) > 100, "{reply:#}");
    let recording = recorded(&reply);
    let (mixed, left) = (
        "SELECT count(*) FROM instructions WHERE function = 'mix'",
        "SELECT count(*) FROM instructions WHERE function LIKE '%deallocate_tsd%'",
    );
    assert!(recording.number(mixed) > 20 && recording.number(left) > 5);
    live.ask(&["breakpoint", "remove", "1"]);
    steps.ends_as_it_would();
    // The session notes the end as always, once.
    let ended = format!("SELECT count(*) FROM events WHERE kind = 'thread_exit' AND tid = {tid}");
    assert_eq!(live.recording().number(&ended), 1);
}

#[test]
fn a_thread_that_waits_for_another_one_says_so() {
    let steps = Steps::at_begin("full-live-lock", "lock");
    let live = &steps.live;
    let reply = steps.full("1000000");
    let why = reply["recorded"]["ended"].as_str().expect("a reason");
    assert!(why.contains("all other threads are stopped"), "{reply:#}");
    assert!(count(&reply) > 5, "{reply:#}");
    // It is before the call: what it has done so far is known.
    assert_eq!(live.print("reached"), "1");
    live.ask(&["step-back", "-i"]);
    live.ask(&["goto", "live"]);
    assert_eq!(live.run_to_end(), 3);
    assert_eq!(live.output(), steps.native());
}

#[test]
fn it_goes_on_until_it_is_ended() {
    let steps = Steps::at_begin("full-live-on", "loop");
    let live = &steps.live;
    let reply = live.ask(&["full", "on", "--timeout", "1"]);
    assert_eq!(reply["timed_out"], true, "{reply:#}");
    assert_eq!(reply["recorded"], Value::Null, "{reply:#}");
    let reply = steps.full("off");
    assert_eq!(reply["status"], "stopped", "{reply:#}");
    assert!(count(&reply) > 1000, "{reply:#}");
    let state = live.print("state");
    live.ask(&["step-back", "-i"]);
    live.ask(&["step", "-i"]);
    assert_eq!(live.print("state"), state);
    live.ask(&["goto", "live"]);
    live.ask(&["set", "stop", "1"]);
    assert_eq!(live.run_to_end(), 3);
}

#[test]
fn words_that_make_no_sense_are_refused() {
    let steps = Steps::at_begin("full-live-words", "loop");
    for words in ["0", "many", "-5"] {
        let failure = steps.live.refused(&["full", "--", words]);
        assert_eq!(failure["code"], "BAD_REQUEST", "{failure:#}");
        assert!(
            failure["hint"].to_string().contains("full 10000"),
            "{failure:#}"
        );
    }
}

#[test]
fn a_watchpoint_ends_it() {
    let steps = Steps::at_begin("full-live-watch", "compute");
    steps.live.ask(&["watch", "sum"]);
    let reply = steps.full("1000000");
    assert_eq!(reply["stop"]["reason"], "watch", "{reply:#}");
    let recording = recorded(&reply);
    let instructions = count(&reply);
    assert!((10..1000).contains(&instructions), "{reply:#}");
    // The last instruction is the write, and the recording knows what it wrote.
    let sql = "SELECT count(*) FROM memory_writes WHERE size = 8 AND function = 'mix'";
    assert!(recording.number(sql) >= 2, "{reply:#}");
    let sum = steps.live.print("sum");
    let row = recording.row("SELECT value(max(seq), 'sum') AS sum FROM events");
    assert_eq!(row["sum"], sum.as_str(), "{row:?}");
    steps.live.ask(&["breakpoint", "remove", "--all"]);
    steps.ends_as_it_would();
}

const THROWS: &str = r#"
#include <cstdio>
#include <stdexcept>
__attribute__((noinline)) int thrower(int i) {
  if (i % 3 == 0) throw std::runtime_error("third");
  return i;
}
__attribute__((noinline)) int work(int n) {
  int sum = 0;
  for (int i = 1; i < n; i++) {
    try { sum += thrower(i); } catch (const std::exception &) { sum += 100; }
  }
  return sum;
}
int main() { std::printf("%d\n", work(20)); return 3; }
"#;

/// The runtime stands in for the functions that unwinders ask.
#[test]
fn a_throw_ends_it_and_is_named() {
    let live = Live::new("full-live-throw");
    let program = compiled(&live.scratch, "throws.cc", THROWS, &["-O1", "-g"]);
    live.start(&["--no-aslr", "--break", "work"], &program, &[]);
    let reply = live.ask(&["full", "100000"]);
    let why = reply["recorded"]["ended"].as_str().expect("a reason");
    let asked = ["_dl_find_object", "dl_iterate_phdr"];
    assert!(asked.iter().any(|name| why.contains(name)), "{reply:#}");
    let recording = recorded(&reply);
    let sql = "SELECT count(DISTINCT position) FROM instructions WHERE function = 'thrower'";
    assert!(recording.number(sql) > 5, "{reply:#}");
    live.ask(&["breakpoint", "remove", "1"]);
    assert_eq!(live.run_to_end(), 3);
    let ended = Program::new(&program, live.scratch.path()).run();
    assert_eq!(live.output(), ended.text());
}

const FULL_OF_MAPPINGS: &str = r#"
#include <sys/mman.h>
__attribute__((noinline)) int work(int n) {
  int sum = 0;
  for (int i = 0; i < n; i++) sum += i * i;
  return sum;
}
int main(void) {
  // All that a jump of 32 bits reaches, on both sides.
  unsigned long step = 1UL << 24, at = (unsigned long)&main & -step;
  for (unsigned long far = step; far < 3UL << 30; far += step) {
    mmap((void *)(at - far), step, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    mmap((void *)(at + far), step, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  }
  return work(100) == 328350 ? 3 : 4;
}
"#;

#[test]
fn code_without_room_near_it_is_recorded() {
    let live = Live::new("full-live-far");
    let options = ["-O1", "-g"];
    let program = compiled(&live.scratch, "far.c", FULL_OF_MAPPINGS, &options);
    live.start(&["--no-aslr", "--break", "work"], &program, &[]);
    let reply = live.ask(&["full", "200"]);
    let recording = recorded(&reply);
    let sql = "SELECT count(*) FROM instructions WHERE function = 'work'";
    assert_eq!(recording.number(sql), 200, "{reply:#}");
    assert_eq!(live.run_to_end(), 3);
}

const SLEEPER: &str = r#"
#include <unistd.h>
static volatile int n;
__attribute__((noinline)) void after(void)
{
    n = n + 1;
}
int main(void)
{
    n = 7;
    if (write(1, "asleep\n", 7) != 7)
        return 1;
    usleep(4000000);
    after();
    return n;
}
"#;

/// A thread that sleeps in the kernel has no next instruction that can be recorded: the past stays that of the session.
#[test]
fn a_thread_that_sleeps_in_the_kernel_is_refused() {
    let live = Live::new("full-live-asleep");
    let program = compiled(&live.scratch, "sleeper.c", SLEEPER, &["-O1", "-g"]);
    let begun = live.start(&["--break", "main"], &program, &[]);
    let folder = begun["recording"].as_str().expect("a path");
    let name = folder.strip_suffix(".hindsight").expect("a recording");
    let steps = format!("{name}-full.hindsight");
    live.ask(&["continue", "--no-wait"]);
    // Between the output and the sleep there are a few instructions.
    wait_until("the program to sleep", || {
        (live.output() == "asleep\n").then_some(())
    });
    std::thread::sleep(std::time::Duration::from_millis(300));
    live.ask(&["pause"]);
    for what in ["on", "100"] {
        let failure = live.refused(&["full", what]);
        let message = failure["message"].as_str().expect("a message");
        assert_eq!(
            message,
            "no instruction can be recorded here: the thread waits in a system call, which the kernel will restart (restart_syscall)"
        );
        let hint = "set a breakpoint behind this place, continue to it, and record the next ones: full 10000";
        assert_eq!(failure["hint"], hint, "{failure:#}");
        assert!(!Path::new(&steps).exists(), "{steps}");
        // No recorded instructions are the past.
        let off = live.refused(&["full", "off"]);
        assert_eq!(off["message"], "no instructions are recorded", "{off:#}");
    }
    assert_eq!(live.print("n"), "7");
    live.ask(&["break", "after"]);
    let stop = live.ask(&["continue"]);
    assert_eq!(stop["stop"]["function"], "after", "{stop:#}");
    assert_eq!(count(&live.ask(&["full", "3"])), 3);
    assert!(Path::new(&steps).exists(), "{steps}");
    assert_eq!(live.run_to_end(), 8);
}

const UNKNOWN_CALL: &str = r#"
__asm__(".text\n.globl odd\n.type odd,@function\nodd: syscall\nret\n.size odd,.-odd\n");
static volatile int n;
int main(void)
{
    n = 7;
    __asm__ volatile("mov $219, %%eax\n\tcall odd" : : : "rax", "rcx", "r11", "memory");
    n = n + 1;
    return n;
}
"#;

#[test]
fn nothing_recorded_is_no_past() {
    let live = Live::new("full-live-nothing");
    let flags = ["-O1", "-g", "-mno-red-zone"];
    let program = compiled(&live.scratch, "unknown.c", UNKNOWN_CALL, &flags);
    let begun = live.start(&["--break", "odd"], &program, &[]);
    let folder = begun["recording"].as_str().expect("a path");
    let name = folder.strip_suffix(".hindsight").expect("a recording");
    let failure = live.refused(&["full", "10"]);
    assert_eq!(
        failure["message"],
        "no instruction was recorded: it is not known what system call 219 writes"
    );
    let hint =
        "set a breakpoint behind this place, continue to it, and record the next ones: full 10000";
    assert_eq!(failure["hint"], hint, "{failure:#}");
    assert!(!Path::new(&format!("{name}-full.hindsight")).exists());
    let off = live.refused(&["full", "off"]);
    assert_eq!(off["message"], "no instructions are recorded", "{off:#}");
    assert_eq!(live.print("n"), "7");
    assert_eq!(live.run_to_end(), 8);
}
