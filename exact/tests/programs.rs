//! Goal: programs behave as without recording, and every recording runs again to its end. Method: small programs and some of the
//! system are run natively and recorded; output and exit code are compared, and the recording is run again, forwards and to random
//! positions, which must show the same registers each time they are reached.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use exact::{Hints, Hook, Options, Replay, Traced, record, trace, verify};
use rand::{Rng, SeedableRng};
use tempfile::TempDir;

fn compiled(name: &str, folder: &Path) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/programs")
        .join(name);
    let program = folder.join(name.replace('.', "_"));
    let compiler = if name.ends_with(".cc") { "g++" } else { "gcc" };
    let status = Command::new(compiler)
        .args(["-O1", "-g", "-pthread", "-o"])
        .arg(&program)
        .arg(&source)
        .arg("-lm")
        .status();
    assert!(
        status.expect("the compiler is installed").success(),
        "{name}"
    );
    program
}

/// Records a program; returns what it wrote, and its exit code.
fn recorded(command: &[OsString], folder: &Path) -> (String, Option<i32>) {
    let output = folder.join("output");
    let options = Options {
        output: Some(output.clone()),
        input: Some(PathBuf::from("/dev/null")),
        ..Options::default()
    };
    let program = PathBuf::from(&command[0]);
    let summary = record(&program, command, folder, options).expect("it can be recorded");
    assert_eq!(summary.lost, None, "{command:?}");
    let text = fs::read(&output).expect("the output is there");
    (String::from_utf8_lossy(&text).into_owned(), summary.code)
}

fn native(command: &[OsString], folder: &Path) -> (String, Option<i32>) {
    let path = folder.join("native");
    let output = fs::File::create(&path).expect("the folder can be written");
    let errors = output.try_clone().expect("a descriptor can be copied");
    let mut native = Command::new(&command[0]);
    let input = fs::File::open("/dev/null").expect("it is always there");
    let status = native
        .args(&command[1..])
        .stdin(input)
        .stdout(output)
        .stderr(errors)
        .status();
    let text = fs::read(&path).expect("the output is there");
    (
        String::from_utf8_lossy(&text).into_owned(),
        status.expect("it can be started").code(),
    )
}

fn random() -> rand::rngs::StdRng {
    let named = |name: &str| -> Option<u64> { std::env::var(name).ok()?.parse().ok() };
    // A failed test is run again with the seed of the run.
    let seed = named("SEED").or_else(|| named("PROPTEST_RNG_SEED"));
    let seed = seed.unwrap_or_else(|| rand::rng().random());
    println!("SEED={seed}");
    rand::rngs::StdRng::seed_from_u64(seed)
}

/// The x87, SSE and later registers without XSTATE_BV. A processor may report a register as used although it holds its initial value,
/// and need not do so each time (Intel, volume 1, 13.6).
fn extended(replay: &Replay) -> Vec<u8> {
    let mut state = replay.extended().expect("registers");
    state[512..520].fill(0);
    state
}

/// Goes to random positions and back to them, and to the end.
fn runs_again(folder: &Path) {
    let mut random = random();
    let mut replay = Replay::open(folder).expect("the recording can be opened");
    let end = replay.end();
    assert!(end > 10_000, "{end}");
    let mut places: Vec<u64> = (0..4).map(|_| random.random_range(0..end)).collect();
    let mut first = Vec::new();
    for place in &places {
        replay.goto(*place).expect("the position can be reached");
        assert_eq!(replay.position(), *place);
        let registers = format!("{:?}", replay.registers().expect("registers"));
        first.push((*place, replay.thread(), registers, extended(&replay)));
    }
    replay.goto(end).expect("the end can be reached");
    places.reverse();
    for (place, thread, registers, vectors) in first.iter().rev() {
        replay
            .goto(*place)
            .expect("the position can be reached again");
        assert_eq!(replay.thread(), *thread);
        assert_eq!(
            &format!("{:?}", replay.registers().expect("registers")),
            registers,
            "at {place}"
        );
        assert_eq!(&extended(&replay), vectors, "at {place}");
    }
}

fn same(command: &[&str]) {
    same_except(command, str::to_owned);
}

/// `decided` drops from an output what another run could print differently.
fn same_except(command: &[&str], decided: impl Fn(&str) -> String) {
    let folder = TempDir::new().expect("a folder");
    let command: Vec<OsString> = command.iter().map(OsString::from).collect();
    let (native, code) = native(&command, folder.path());
    let (printed, recorded) = recorded(&command, folder.path());
    assert_eq!(
        (decided(&printed), recorded),
        (decided(&native), code),
        "{command:?}"
    );
    runs_again(folder.path());
    let verdict = exact::verify(folder.path(), &mut |_, _| true).expect("it can be compared");
    assert_eq!(verdict.contradiction, None, "{command:?}");
    assert!(verdict.whole && verdict.registers > 0, "{verdict:?}");
}

fn same_compiled(name: &str) {
    let folder = TempDir::new().expect("a folder");
    let program = compiled(name, folder.path());
    same(&[program.to_str().expect("a path in text")]);
}

#[test]
fn exceptions_and_threads() {
    same_compiled("unwinding.cc");
}

#[test]
fn signals_faults_children_and_code_that_changes() {
    same_compiled("signals.c");
}

#[test]
fn threads_that_race_and_are_interrupted() {
    for _ in 0..5 {
        same_compiled("turns.c");
    }
}

/// Threads that have ended leave their place among ours to later ones, and no other thread does.
#[test]
fn thousands_of_threads_one_after_another() {
    let folder = TempDir::new().expect("a folder");
    let source = "#include <pthread.h>\n#include <stdio.h>\nstatic void *twice(void *n) { return (void *)((long)n * 2); }\n\
        int main(void) { long sum = 0; for (long i = 0; i < 4500; i++) { pthread_t t; void *found; pthread_create(&t, 0, twice, (void *)i);\n\
        pthread_join(t, &found); sum += (long)found; } printf(\"%ld\\n\", sum); return 3; }\n";
    fs::write(folder.path().join("births.c"), source).expect("the folder can be written");
    let program = folder.path().join("births");
    let built = Command::new("gcc")
        .args(["-O2", "-pthread", "-o"])
        .arg(&program)
        .arg(folder.path().join("births.c"))
        .status();
    assert!(built.expect("gcc can be started").success());
    assert_eq!(
        recorded(&[program.into_os_string()], folder.path()),
        (String::from("20245500\n"), Some(3))
    );
    let verdict = verify(folder.path(), &mut |_, _| true).expect("it can be run again");
    assert_eq!(verdict.contradiction, None);
    assert!(verdict.whole, "{verdict:?}");
}

/// A second signal of the same kind, which comes while the first one is brought to its handler, waits until that has ended.
#[test]
fn signals_that_come_faster_than_they_are_handled() {
    let folder = TempDir::new().expect("a folder");
    let command = [compiled("ticking.c", folder.path()).into_os_string()];
    for _ in 0..20 {
        assert_eq!(
            recorded(&command, folder.path()),
            (String::from("79999800000 ticks\n"), Some(3))
        );
        let verdict = verify(folder.path(), &mut |_, _| true).expect("it can be run again");
        assert_eq!(verdict.contradiction, None);
        assert!(verdict.whole && verdict.memory > 0, "{verdict:?}");
    }
}

/// Builds a program, records it, and runs it again; returns what it printed.
fn of_source(source: &str, arguments: &[&str]) -> String {
    let folder = TempDir::new().expect("a folder");
    let (file, program) = (folder.path().join("one.c"), folder.path().join("one"));
    fs::write(&file, source).expect("the folder can be written");
    let mut compiler = Command::new("gcc");
    compiler.args(["-O1", "-pthread", "-o"]).arg(&program);
    let built = compiler.arg(&file).status();
    assert!(built.expect("gcc can be started").success());
    let command: Vec<OsString> = [program.into_os_string()]
        .into_iter()
        .chain(arguments.iter().map(OsString::from))
        .collect();
    let (printed, code) = recorded(&command, folder.path());
    assert_eq!(code, Some(0), "{printed}");
    let verdict = verify(folder.path(), &mut |_, _| true).expect("it can be run again");
    assert_eq!(verdict.contradiction, None);
    assert!(verdict.whole, "{verdict:?}");
    printed
}

/// It fires less often: the program would do nothing but handle its signals. What the program has set stays as it is in its memory.
#[test]
fn a_timer_that_fires_all_the_time_leaves_time_to_the_program() {
    let source = "#include <signal.h>\n#include <stdio.h>\n#include <sys/time.h>\n\
        static volatile long ticks; static void tick(int s) { (void)s; ticks++; }\n\
        int main(void) { struct sigaction a = {.sa_handler = tick, .sa_flags = SA_RESTART}; sigaction(SIGALRM, &a, 0);\n\
        struct itimerval often = {{0, 5}, {0, 5}}, before = {{7, 7}, {7, 7}}; setitimer(ITIMER_REAL, &often, &before);\n\
        long old = before.it_interval.tv_sec + before.it_value.tv_usec;\n\
        volatile long sum = 0; for (long i = 0; i < 3000000 || ticks < 3; i++) sum += i;\n\
        long set = often.it_interval.tv_usec; often.it_interval.tv_usec = often.it_value.tv_usec = 0; setitimer(ITIMER_REAL, &often, 0);\n\
        printf(\"%ld %ld\\n\", old, set); return 0; }\n";
    assert_eq!(of_source(source, &[]), "0 5\n");
}

/// A thread that waits without the kernel, and asks it all the time, lets others go on.
#[test]
fn threads_that_wait_for_others_by_asking_the_clock() {
    let source = "#include <pthread.h>\n#include <sched.h>\n#include <stdio.h>\n#include <time.h>\n#include <unistd.h>\n\
        static volatile int done;\n\
        static void *work(void *n) { volatile long sum = 0; for (long i = 0; i < 3000000; i++) sum += i; done = 1; return n; }\n\
        int main(int count, char **words) { pthread_t t; pthread_create(&t, 0, work, 0); struct timespec now; long asked = 0;\n\
        for (; !done; asked++) { if (count > 1) sched_yield(); else clock_gettime(CLOCK_MONOTONIC, &now); }\n\
        pthread_join(t, 0); puts(asked < 20000 ? \"seldom\" : \"often\"); return words == 0; }\n";
    assert_eq!(of_source(source, &[]), "seldom\n");
    assert_eq!(of_source(source, &["yields"]), "seldom\n");
}

/// Registers that copies of a process do not get are not there: programs do without them.
#[test]
fn registers_that_must_be_asked_for_are_refused() {
    let source = "#define _GNU_SOURCE\n#include <errno.h>\n#include <stdio.h>\n#include <sys/syscall.h>\n#include <unistd.h>\n\
        int main(void) { errno = 0; long got = syscall(SYS_arch_prctl, 0x1023, 18); printf(\"%ld %d\\n\", got, errno == EOPNOTSUPP); return 0; }\n";
    assert_eq!(of_source(source, &[]), "-1 1\n");
}

/// The kernel would write into memory at any moment: it is refused as by a kernel without it.
#[test]
fn asynchronous_input_is_refused() {
    let source = "#define _GNU_SOURCE\n#include <errno.h>\n#include <stdio.h>\n#include <sys/syscall.h>\n#include <unistd.h>\n\
        int main(void) { unsigned long context = 0; long got = syscall(SYS_io_setup, 4, &context); printf(\"%ld %d\\n\", got, errno == ENOSYS); return 0; }\n";
    assert_eq!(of_source(source, &[]), "-1 1\n");
}

/// The base of gs is ours while a program is recorded; the program's is none.
#[test]
fn the_base_of_gs_is_told_as_the_program_has_it() {
    let source = "#define _GNU_SOURCE\n#include <stdio.h>\n#include <sys/syscall.h>\n#include <unistd.h>\n\
        int main(void) { unsigned long base = 9; long got = syscall(SYS_arch_prctl, 0x1004, &base); printf(\"%ld %lx\\n\", got, base); return 0; }\n";
    assert_eq!(of_source(source, &[]), "0 0\n");
}

/// The number of the processor is the limit of a segment, and another one when the thread has moved.
#[test]
fn what_tells_of_the_kernel_s_tables_is_noted() {
    let source = "#define _GNU_SOURCE\n#include <sched.h>\n#include <stdio.h>\n#include <string.h>\n\
        int main(void) { unsigned sum = 0, limit; unsigned short task; struct __attribute__((packed)) { unsigned short limit; unsigned long base; } table; cpu_set_t all, one; sched_getaffinity(0, sizeof all, &all);\n\
        for (int i = 0; i < 64; i++) { if (!CPU_ISSET(i % 8, &all)) continue; CPU_ZERO(&one); CPU_SET(i % 8, &one); sched_setaffinity(0, sizeof one, &one);\n\
        __asm__ volatile(\"lsl %1, %0\" : \"=r\"(limit) : \"r\"(0x7b)); sum = sum * 3 + (limit & 0xfff);\n\
        __asm__ volatile(\"str %0\" : \"=m\"(task)); __asm__ volatile(\"sgdt %0\" : \"=m\"(table)); sum += table.base != 0; }\n\
        puts(task ? \"task\" : \"none\"); return sum == 1; }\n";
    let printed = of_source(source, &[]);
    assert!(["task\n", "none\n"].contains(&&*printed), "{printed}");
}

/// The kernel says in a lock that somebody waits, and who has it, while a thread waits; and that its owner has ended.
#[test]
fn the_kernel_writes_into_locks_while_threads_wait_and_end() {
    let source = "#define _GNU_SOURCE\n#include <pthread.h>\n#include <stdio.h>\n#include <unistd.h>\n#include <errno.h>\n\
        static pthread_mutex_t heir, robust; static int count;\n\
        static void *add(void *unused) { pthread_mutex_lock(&heir); count++; pthread_mutex_unlock(&heir); return 0; }\n\
        static void *leave(void *unused) { pthread_mutex_lock(&robust); return 0; }\n\
        int main(void) { pthread_mutexattr_t a; pthread_mutexattr_init(&a); pthread_mutexattr_setprotocol(&a, PTHREAD_PRIO_INHERIT); pthread_mutex_init(&heir, &a);\n\
        pthread_mutexattr_init(&a); pthread_mutexattr_setrobust(&a, 1); pthread_mutex_init(&robust, &a); pthread_t t[3];\n\
        pthread_mutex_lock(&heir); for (int i = 0; i < 3; i++) pthread_create(t + i, 0, add, 0); usleep(20000); pthread_mutex_unlock(&heir);\n\
        for (int i = 0; i < 3; i++) pthread_join(t[i], 0); pthread_create(t, 0, leave, 0); pthread_join(t[0], 0);\n\
        int got = pthread_mutex_lock(&robust); pthread_mutex_consistent(&robust); pthread_mutex_unlock(&robust); printf(\"%d %d\\n\", count, got == EOWNERDEAD); return 0; }\n";
    assert_eq!(of_source(source, &[]), "3 1\n");
}

/// Such state is saved anew by each run, and has parts that another run would not see again. Some processors do not save the
/// address without an exception (AMD64, volume 2, 11.4.4), and then each switch to another thread loses it.
#[test]
fn saved_state_has_the_addresses_of_the_program() {
    let folder = TempDir::new().expect("a folder");
    let program = compiled("saving.c", folder.path());
    let decided = |text: &str| match text.contains("\"fxsave64 %1\": none") {
        true => text.replace("the program's", "none"),
        false => text.to_owned(),
    };
    same_except(&[program.to_str().expect("a path in text")], decided);
}

/// Which segments are loaded is the program's, though the base of gs is not.
#[test]
fn what_segment_registers_hold_can_be_stored() {
    let source = "#include <stdio.h>\n\
        int main(void) { unsigned long fs = 1, gs = 1; unsigned moved = 1; unsigned short kept = 1;\n\
        for (int i = 0; i < 3; i++) __asm__ volatile(\"push %%fs; pop %0; push %%gs; pop %1; mov %%gs, %2; mov %%gs, %3\"\n\
        : \"=&r\"(fs), \"=&r\"(gs), \"=&r\"(moved), \"=m\"(kept)); printf(\"%lx %lx %x %x\\n\", fs, gs, moved, kept); return 0; }\n";
    assert_eq!(of_source(source, &[]), "0 0 0 0\n");
}

#[test]
fn a_shell_and_its_children() {
    same(&[
        "/bin/bash",
        "-c",
        "for i in 1 2 3; do echo $i; done; ls / | wc -l; exit 3",
    ]);
}

/// A child of vfork(2) shares the memory of its parent; dash makes all its children so.
#[test]
fn children_that_write_to_the_memory_of_their_parent() {
    same_compiled("vfork.c");
    for _ in 0..5 {
        same(&[
            "/bin/dash",
            "-c",
            "/bin/true; /bin/echo a; x=$(/bin/echo b); echo $x; exit 3",
        ]);
    }
}

#[test]
fn programs_of_the_system() {
    let folder = TempDir::new().expect("a folder");
    let numbers: Vec<String> = (0..20_000u64)
        .map(|i| (i * 7919 % 100_003).to_string())
        .collect();
    let file = folder.path().join("numbers");
    fs::write(&file, numbers.join("\n") + "\n").expect("the folder can be written");
    let file = file.to_str().expect("a path in text");
    same(&["/usr/bin/sort", "--parallel=2", "-n", file]);
    same(&["/usr/bin/md5sum", file]);
    same(&["/bin/gzip", "-6", "-c", "-n", file]);
    same(&[
        "/usr/bin/perl",
        "-e",
        "my %h; $h{$_ % 100} += $_ for 1..20000; print join(',', map { $h{$_} } sort keys %h), \"\\n\"",
    ]);
    same(&["/bin/ls", "-la", "/usr/lib"]);
}

struct Addresses {
    sold: u64,
    text: u64,
    untouched: u64,
    sell: u64,
    leave: u64,
    half: u64,
}

fn writes(folder: &Path) -> Addresses {
    let program = compiled("writes.c", folder);
    let (output, code) = recorded(&[program.into_os_string()], folder);
    assert_eq!(code, Some(0));
    assert!(output.contains("-1 xxxxxxxxabcdefgh 22.5"), "{output}");
    let words = output.split_whitespace().take(6);
    let address =
        |word: &str| u64::from_str_radix(word.trim_start_matches("0x"), 16).expect("an address");
    let found: Vec<u64> = words.map(address).collect();
    let [sold, text, untouched, sell, leave, half] = found[..] else {
        panic!("{output}")
    };
    Addresses {
        sold,
        text,
        untouched,
        sell,
        leave,
        half,
    }
}

fn int(replay: &Replay, address: u64) -> i32 {
    let mut bytes = [0; 4];
    assert_eq!(replay.read(address, &mut bytes), 4);
    i32::from_le_bytes(bytes)
}

#[test]
fn the_last_write_is_found() {
    let folder = TempDir::new().expect("a folder");
    let at = writes(folder.path());
    let mut replay = Replay::open(folder.path()).expect("the recording can be opened");
    let end = replay.end();
    let wrong = replay
        .last_write(at.sold, 4, end)
        .expect("it can be searched")
        .expect("it was written");
    replay.goto(wrong).expect("a position");
    assert_eq!(int(&replay, at.sold), (0..777).sum::<i32>());
    let writer = replay.registers().expect("registers").rip;
    assert!(
        (at.sell..at.sell + 64).contains(&writer),
        "{writer:#x} is not in sell"
    );
    replay.goto(wrong + 1).expect("a position");
    assert_eq!(int(&replay, at.sold), -1);
    // The kernel wrote the middle, memset the rest.
    let read = replay
        .last_write(at.text + 8, 8, end)
        .expect("it can be searched")
        .expect("it was written");
    replay.goto(read).expect("a position");
    assert_eq!(
        replay.registers().expect("registers").rax,
        libc::SYS_read as u64
    );
    let set = replay
        .last_write(at.text, 8, end)
        .expect("it can be searched")
        .expect("it was written");
    assert!(set < read);
    assert_eq!(
        replay
            .last_write(at.untouched, 4, end)
            .expect("it can be searched"),
        None
    );
    // Forwards: 776 additions of something, the first of nothing, and the wrong one.
    replay.goto(0).expect("a position");
    assert_eq!(
        replay
            .writes(at.sold, 4, end, usize::MAX)
            .expect("it can be searched")
            .len(),
        778
    );
}

#[test]
fn stops_are_found_forwards_and_backwards() {
    let folder = TempDir::new().expect("a folder");
    let at = writes(folder.path());
    let mut replay = Replay::open(folder.path()).expect("the recording can be opened");
    let end = replay.end();
    let mut forwards = Vec::new();
    while let Some(position) = replay
        .next_stop(&[at.sell], end, &mut |_| true)
        .expect("it can be searched")
    {
        let registers = replay.registers().expect("registers");
        assert_eq!(
            (registers.rip, registers.rdi),
            (at.sell, forwards.len() as u64)
        );
        forwards.push(position);
    }
    assert_eq!(forwards.len(), 778);
    let mut accept = |replay: &Replay| {
        replay
            .registers()
            .is_ok_and(|registers| registers.rdi == 500)
    };
    assert_eq!(
        replay
            .previous_stop(&[at.sell], &mut accept)
            .expect("it can be searched"),
        Some(forwards[500])
    );
    assert_eq!(
        replay
            .previous_stop(&[at.sell], &mut |_| true)
            .expect("it can be searched"),
        Some(forwards[499])
    );
    assert_eq!(replay.position(), forwards[499]);
}

/// Returns of functions that are not traced are passed over, on whatever stack they return.
#[test]
fn every_call_ends_on_whatever_stack_it_runs() {
    let folder = TempDir::new().expect("a folder");
    let program = compiled("stacks.c", folder.path());
    let (output, code) = recorded(&[program.into()], folder.path());
    assert_eq!(code, Some(0));
    let words: Vec<&str> = output.split_whitespace().collect();
    let [at, count] = words[..] else {
        panic!("{output}")
    };
    let address = u64::from_str_radix(at.trim_start_matches("0x"), 16).expect("an address");
    let hook = Hook {
        address,
        vectors: 0,
    };
    let (mut open, mut ended) = (Vec::new(), 0);
    trace(folder.path(), &[hook], &Hints::default(), &mut |traced| {
        match *traced {
            Traced::Enter {
                stack, arguments, ..
            } => open.push((stack, arguments[0].wrapping_mul(2))),
            Traced::Leave { stack, results, .. } => {
                assert_eq!(open.pop(), Some((stack, results[0])));
                ended += 1;
            }
            Traced::Unwound { .. } => panic!("it always returns"),
            _ => {}
        }
        true
    })
    .expect("it can be traced");
    assert_eq!((open.len(), ended.to_string()), (0, count.to_owned()));
}

#[test]
fn calls_are_traced() {
    let folder = TempDir::new().expect("a folder");
    let at = writes(folder.path());
    let mut calls = [Vec::new(), Vec::new(), Vec::new()];
    let mut left = [0, 0, 0];
    let mut unwound = 0;
    let mut halves = Vec::new();
    let mut written = Vec::new();
    trace(
        folder.path(),
        &[(at.sell, 0), (at.leave, 0), (at.half, 1)]
            .map(|(address, vectors)| Hook { address, vectors }),
        &Hints::default(),
        &mut |traced| {
            match *traced {
                Traced::Enter {
                    function,
                    arguments,
                    vectors,
                    ..
                } => {
                    calls[function].push(arguments[0] as i32);
                    if function == 2 {
                        halves.push(f64::from_bits(vectors[0]));
                    }
                }
                Traced::Leave {
                    function, results, ..
                } => {
                    left[function] += 1;
                    if function == 2 {
                        assert_eq!(f64::from_bits(results[2]), halves[left[2] - 1] / 2.0);
                    }
                }
                Traced::Unwound { function, .. } => {
                    assert_eq!(function, 1);
                    unwound += 1;
                }
                Traced::SystemCall { .. } => {}
                Traced::Answer { ref output, .. } => written.extend(output.iter().flatten()),
                Traced::Signal { .. } => panic!("it gets no signal"),
                Traced::Switch { .. } => panic!("it has one stack"),
            }
            true
        },
    )
    .expect("it can be traced");
    assert_eq!(calls[0], (0..778).collect::<Vec<i32>>());
    assert_eq!(calls[1], [0, 1, 2, 3]);
    assert_eq!(halves, (0..10).map(f64::from).collect::<Vec<_>>());
    assert_eq!((left, unwound), ([778, 0, 10], 4));
    assert_eq!(
        String::from_utf8_lossy(&written),
        fs::read_to_string(folder.path().join("output")).expect("the output")
    );
}

#[test]
fn what_a_killed_recorder_wrote_runs_again() {
    let folder = TempDir::new().expect("a folder");
    let _ = writes(folder.path());
    let whole = fs::read(folder.path().join("log.zst")).expect("the log is there");
    let cut = TempDir::new().expect("a folder");
    fs::write(cut.path().join("log.zst"), &whole[..whole.len() - 3000])
        .expect("the folder can be written");
    let outline = exact::outline(cut.path()).expect("what is there can be read");
    assert!(outline.lost.is_some() && outline.end > 1000, "{outline:?}");
    let mut replay = Replay::open(cut.path()).expect("what is there can be opened");
    replay.goto(outline.end).expect("its end can be reached");
}

#[test]
fn what_is_no_recording_is_refused() {
    let folder = TempDir::new().expect("a folder");
    assert!(Replay::open(folder.path()).is_err());
    fs::write(folder.path().join("log.zst"), b"hsexact\x63").expect("the folder can be written");
    let error = Replay::open(folder.path())
        .err()
        .expect("a newer version")
        .to_string();
    assert!(error.contains("version 99"), "{error}");
    fs::write(folder.path().join("log.zst"), b"something").expect("the folder can be written");
    assert!(Replay::open(folder.path()).is_err());
}

#[test]
fn a_program_that_is_not_there() {
    let folder = TempDir::new().expect("a folder");
    let error = record(
        Path::new("/nowhere"),
        &[OsString::from("/nowhere")],
        folder.path(),
        Options::default(),
    );
    let text = error.expect_err("it cannot be started").to_string();
    assert!(
        text.contains("/nowhere") && text.contains("No such file"),
        "{text}"
    );
}
