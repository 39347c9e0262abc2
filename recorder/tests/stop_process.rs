//! A process that is stopped and released does not notice: its system calls do not fail, all its signals arrive, its
//! exit status reaches its parent, and no thread stays stopped. If a process cannot be stopped, the error names the
//! reason.
//!
//! Method: `stop_target/target.c` computes, sleeps, waits and counts signals, while it is stopped a thousand times.

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use recorder::stop::{StopError, StoppedProcess, while_stopped};

const PATIENCE: Duration = Duration::from_secs(60);
const LIMIT: Duration = Duration::from_secs(120);

/// Builds the target once and returns its path.
fn target() -> &'static Path {
    static TARGET: OnceLock<PathBuf> = OnceLock::new();
    TARGET.get_or_init(|| {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("stop-target");
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/stop_target/target.c");
        let built = Command::new("cc")
            .args(["-O1", "-g", "-pthread", source, "-o"])
            .arg(&path)
            .status()
            .expect("cc runs");
        assert!(built.success());
        path
    })
}

struct Target {
    child: Child,
    input: Option<ChildStdin>,
    output: Option<BufReader<ChildStdout>>,
}

impl Target {
    fn start(mode: &str) -> Target {
        let mut child = Command::new(target())
            .arg(mode)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the target starts");
        let input = child.stdin.take();
        let output = child.stdout.take().map(BufReader::new);
        Target {
            child,
            input,
            output,
        }
    }

    fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// Reads the line `name=ADDRESS`.
    fn address(&mut self, name: &str) -> u64 {
        let mut line = String::new();
        let output = self.output.as_mut().expect("a pipe");
        output.read_line(&mut line).expect("a line");
        let (key, value) = line.trim().split_once("=0x").expect("an address");
        assert_eq!(key, name);
        u64::from_str_radix(value, 16).expect("hexadecimal")
    }

    fn stopped<R: Send>(&self, work: impl FnOnce(&mut StoppedProcess) -> R + Send) -> R {
        while_stopped(self.pid(), PATIENCE, work).expect("the target can be stopped")
    }

    /// Ends the target and returns its status and the rest of its output.
    fn end(mut self) -> (ExitStatus, String) {
        drop(self.input.take());
        let mut rest = String::new();
        let output = self.output.as_mut().expect("a pipe");
        output.read_to_string(&mut rest).expect("text");
        (self.child.wait().expect("it is our child"), rest)
    }

    fn signal(&self, signal: i32) {
        // SAFETY: kill has no preconditions; the process is our child and not reaped yet.
        assert_eq!(unsafe { libc::kill(self.pid(), signal) }, 0);
    }

    fn queue(&self, signal: i32, value: usize) -> bool {
        let value = libc::sigval {
            sival_ptr: value as *mut libc::c_void,
        };
        // SAFETY: as for kill.
        unsafe { libc::sigqueue(self.pid(), signal, value) == 0 }
    }
}

/// Returns the state letters of all threads of a process.
fn states(pid: i32) -> Vec<char> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("the process exists");
    let state = |task: fs::DirEntry| {
        let stat = fs::read_to_string(task.path().join("stat")).ok()?;
        stat[stat.rfind(") ")? + 2..].chars().next()
    };
    tasks.filter_map(|task| state(task.ok()?)).collect()
}

/// Polls until `done`. Panics after a time that only a bug can take.
fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !done() {
        assert!(begin.elapsed() < LIMIT, "still waiting until {what}");
        std::thread::yield_now();
    }
}

fn read_counter(stopped: &StoppedProcess, address: u64) -> u64 {
    let mut bytes = [0; 8];
    stopped
        .read(address, &mut bytes)
        .expect("the counter is mapped");
    u64::from_le_bytes(bytes)
}

/// Fails unless the counting threads keep counting.
fn assert_runs(target: &Target, counter: u64) {
    let before = target.stopped(|stopped| read_counter(stopped, counter));
    wait_until("the target counts on", || {
        target.stopped(|stopped| read_counter(stopped, counter)) > before
    });
}

fn numbers(report: &str) -> HashMap<&str, u64> {
    let pairs = report.lines().filter_map(|line| line.split_once('='));
    pairs
        .filter_map(|(key, value)| Some((key, value.parse().ok()?)))
        .collect()
}

/// Sends signals until told to end: SIGUSR1 one by one, each acknowledged with a byte, and queued ones in bursts.
/// Returns the number of each.
fn send_signals(target: &Target, output: &mut impl Read, stop: &dyn Fn() -> bool) -> (u64, u64) {
    let (mut usr1, mut queued) = (0, 0);
    while !stop() {
        for _ in 0..4 {
            queued += u64::from(target.queue(libc::SIGRTMIN(), queued as usize));
        }
        target.signal(libc::SIGUSR1);
        let mut acknowledged = [0];
        output
            .read_exact(&mut acknowledged)
            .expect("SIGUSR1 arrives");
        assert_eq!(acknowledged, *b"u", "only acknowledgements before the end");
        usr1 += 1;
    }
    (usr1, queued)
}

#[test]
fn thousand_stops_lose_no_signal_and_fail_no_system_call() {
    let mut target = Target::start("signals");
    let counter = target.address("counter");
    let mut output = target.output.take().expect("a pipe");
    let mut longest = Duration::ZERO;
    let begin = Instant::now();
    let done = AtomicBool::new(false);
    let (usr1, queued) = std::thread::scope(|scope| {
        let sender =
            scope.spawn(|| send_signals(&target, &mut output, &|| done.load(Ordering::Relaxed)));
        for round in 0..1000 {
            let begin = Instant::now();
            target.stopped(|stopped| check_stopped(stopped, counter, round));
            longest = longest.max(begin.elapsed());
        }
        done.store(true, Ordering::Relaxed);
        sender.join().expect("all signals were acknowledged")
    });
    println!("1000 stops in {:?}, longest {longest:?}", begin.elapsed());
    target.output = Some(output);
    let (status, report) = target.end();
    assert_eq!(status.code(), Some(0), "{report}");
    println!("{report}sent usr1 {usr1} queued {queued}");
    let numbers = numbers(&report);
    assert_eq!(numbers["failures"], 0, "{report}");
    assert_eq!(numbers["usr1"], usr1);
    assert_eq!(numbers["queued"], queued);
    assert_eq!(numbers["out_of_order"], 0);
    assert_eq!(numbers["alarms"], numbers["alarms_set"]);
    assert!(
        numbers["alarms"] > 100 && numbers["rounds"] > 1000,
        "{report}"
    );
}

fn check_stopped(stopped: &mut StoppedProcess, counter: u64, round: u32) {
    let tids = stopped.tids();
    assert!(tids.len() >= 11, "all threads are listed: {tids:?}");
    for &tid in &tids {
        assert_ne!(stopped.regs(tid).expect("its registers").rip, 0);
    }
    if round.is_multiple_of(16) {
        let before = read_counter(stopped, counter);
        let states = states(stopped.pid());
        assert!(states.iter().all(|s| "tTZX".contains(*s)), "{states:?}");
        assert_eq!(read_counter(stopped, counter), before, "nobody counts");
    }
}

#[test]
fn two_hundred_threads_stop_and_go_on() {
    let mut target = Target::start("threads");
    target.address("counter");
    let mut times: Vec<Duration> = (0..50)
        .map(|_| {
            let begin = Instant::now();
            target.stopped(|stopped| assert_eq!(stopped.tids().len(), 201));
            begin.elapsed()
        })
        .collect();
    times.sort_unstable();
    println!("201 threads stopped and let go in {:?} (median)", times[25]);
    assert_eq!(target.end().0.code(), Some(0));
}

#[test]
fn job_control_stop_survives() {
    let mut target = Target::start("compute");
    let counter = target.address("counter");
    target.signal(libc::SIGSTOP);
    let all_stopped = || states(target.pid()).iter().all(|&state| state == 'T');
    wait_until("the target is job-control stopped", all_stopped);
    let before = target.stopped(|stopped| read_counter(stopped, counter));
    wait_until("it is so again", all_stopped);
    assert_eq!(
        target.stopped(|stopped| read_counter(stopped, counter)),
        before
    );
    target.signal(libc::SIGCONT);
    assert_runs(&target, counter);
    assert_eq!(target.end().0.code(), Some(6));
}

#[test]
fn continue_that_arrives_meanwhile_takes_effect() {
    let mut target = Target::start("compute");
    let counter = target.address("counter");
    for _ in 0..50 {
        target.signal(libc::SIGSTOP);
        wait_until("the target is job-control stopped", || {
            states(target.pid()).iter().all(|&state| state == 'T')
        });
        target.stopped(|_| target.signal(libc::SIGCONT));
        assert_runs(&target, counter);
    }
    assert_eq!(target.end().0.code(), Some(6));
}

#[test]
fn stop_signal_that_arrives_meanwhile_takes_effect() {
    let mut target = Target::start("compute");
    let counter = target.address("counter");
    target.stopped(|_| target.signal(libc::SIGSTOP));
    wait_until("the target is job-control stopped", || {
        states(target.pid()).iter().all(|&state| state == 'T')
    });
    target.signal(libc::SIGCONT);
    assert_runs(&target, counter);
    assert_eq!(target.end().0.code(), Some(6));
}

#[test]
fn panic_lets_the_target_go() {
    let mut target = Target::start("compute");
    let counter = target.address("counter");
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        target.stopped(|_| std::panic::resume_unwind(Box::new("on purpose")))
    }));
    assert!(panicked.is_err());
    assert_runs(&target, counter);
    assert_eq!(target.end().0.code(), Some(6));
}

#[test]
fn killed_while_stopped_is_reported_and_its_status_reaches_the_parent() {
    let mut target = Target::start("compute");
    target.address("counter");
    target.stopped(|stopped| {
        let tid = stopped.tids()[0];
        target.signal(libc::SIGKILL);
        wait_until("its threads are gone", || {
            matches!(stopped.regs(tid), Err(StopError::NoSuchThread { .. }))
        });
    });
    assert_eq!(target.end().0.signal(), Some(libc::SIGKILL));
}

#[test]
fn exit_status_reaches_the_parent_however_close_the_stop() {
    for _ in 0..200 {
        let target = Target::start("seven");
        let pid = target.pid();
        let last = loop {
            if let Err(error) = while_stopped(pid, PATIENCE, |_| ()) {
                break error;
            }
        };
        assert!(
            matches!(last, StopError::Zombie { .. } | StopError::Gone { .. }),
            "{last}"
        );
        assert_eq!(target.end().0.code(), Some(7));
    }
}

#[test]
fn exec_by_another_thread_succeeds_however_close_the_stop() {
    for _ in 0..100 {
        let mut target = Target::start("exec");
        target.address("counter");
        let last = loop {
            if let Err(error) = while_stopped(target.pid(), PATIENCE, |_| ()) {
                break error;
            }
        };
        let (status, report) = target.end();
        assert_eq!(status.code(), Some(7), "{last}, {status}, {report}");
    }
}

#[test]
fn process_whose_leader_has_ended_can_be_stopped() {
    let mut target = Target::start("lose-leader");
    let counter = target.address("counter");
    let pid = target.pid();
    wait_until("the leader has ended", || states(pid).contains(&'Z'));
    target.stopped(|stopped| {
        assert_eq!(stopped.tids().len(), 2);
        assert!(!stopped.tids().contains(&pid));
        stopped
            .write(counter, &1u64.to_le_bytes())
            .expect("writable");
    });
    assert_runs(&target, counter);
    assert_eq!(target.end().0.code(), Some(5));
}

#[test]
fn process_that_is_not_our_child_can_be_stopped() {
    let mut shell = Command::new("sh")
        .arg("-c")
        .arg("\"$0\" compute <&3 3<&- & echo $!; wait $!; echo status $?")
        .arg(target())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn_with_input_as_3();
    let mut output = BufReader::new(shell.stdout.take().expect("a pipe"));
    // In either order.
    let (mut pid, mut started) = (None, false);
    while pid.is_none() || !started {
        let mut line = String::new();
        assert_ne!(output.read_line(&mut line).expect("a line"), 0);
        started |= line.starts_with("counter=");
        pid = pid.or(line.trim().parse().ok());
    }
    let pid: i32 = pid.expect("the shell told it");
    for _ in 0..100 {
        let threads = while_stopped(pid, PATIENCE, |stopped| stopped.tids().len());
        assert_eq!(threads.expect("it can be stopped"), 4);
    }
    drop(shell.stdin.take());
    let mut rest = String::new();
    output.read_to_string(&mut rest).expect("text");
    assert_eq!(rest.trim(), "status 6");
    assert!(shell.wait().expect("our child").success());
}

trait SpawnWithInputAs3 {
    fn spawn_with_input_as_3(&mut self) -> Child;
}

impl SpawnWithInputAs3 for Command {
    /// A shell gives its background jobs /dev/null as input, so the pipe is passed as descriptor 3 as well.
    fn spawn_with_input_as_3(&mut self) -> Child {
        use std::os::unix::process::CommandExt;
        // SAFETY: dup2 is allowed between fork and exec.
        unsafe {
            self.pre_exec(|| match libc::dup2(0, 3) {
                -1 => Err(std::io::Error::last_os_error()),
                _ => Ok(()),
            })
        };
        self.spawn().expect("sh starts")
    }
}

#[test]
fn read_only_text_can_be_written() {
    let mut target = Target::start("constant");
    let constant = target.address("constant");
    target.stopped(|stopped| {
        let mut code = [0; 32];
        stopped.read(constant, &mut code).expect("text is readable");
        let at = code
            .windows(4)
            .position(|w| w == 41u32.to_le_bytes())
            .expect("mov eax, 41");
        stopped
            .write(constant + at as u64, &[43])
            .expect("text is writable");
    });
    assert_eq!(target.end().0.code(), Some(43));
}

#[test]
fn unmapped_memory_is_an_error() {
    let mut target = Target::start("compute");
    target.address("counter");
    target.stopped(|stopped| {
        let read = stopped
            .read(0x10, &mut [0; 4])
            .expect_err("nothing is there");
        assert!(matches!(
            read,
            StopError::Memory {
                operation: "read",
                address: 0x10,
                len: 4,
                ..
            }
        ));
        let written = stopped.write(0x10, &[0; 4]).expect_err("nothing is there");
        assert!(matches!(
            written,
            StopError::Memory {
                operation: "write",
                ..
            }
        ));
        let nobody = stopped.regs(1).expect_err("not a thread of this process");
        assert!(matches!(nobody, StopError::NoSuchThread { tid: 1, .. }));
    });
    assert_eq!(target.end().0.code(), Some(6));
}

#[test]
fn thread_goes_on_where_it_is_told_to() {
    let mut target = Target::start("spin");
    let go_here = target.address("go_here");
    let pid = target.pid();
    // The loop is one instruction of two bytes, right before.
    wait_until("the thread is in the loop", || {
        target.stopped(|stopped| {
            let inside = stopped.regs(pid).expect("it is stopped").rip == go_here - 2;
            if inside {
                stopped
                    .set_rip(pid, go_here)
                    .expect("no system call is pending");
            }
            inside
        })
    });
    assert_eq!(target.end().0.code(), Some(8));
}

#[test]
fn code_interrupted_by_a_signal_goes_on_where_it_is_told_to() {
    for mode in ["handler", "handler-elsewhere"] {
        let mut target = Target::start(mode);
        let go_here = target.address("go_here");
        let pid = target.pid();
        wait_until("the thread is in the loop", || {
            target.stopped(|stopped| stopped.regs(pid).expect("stopped").rip) == go_here - 2
        });
        target.signal(libc::SIGUSR1);
        target.address("handler");
        let moved = target
            .stopped(|stopped| stopped.move_threads(|rip| (rip == go_here - 2).then_some(go_here)));
        assert_eq!(moved.expect("it is stopped"), 1, "{mode}");
        let input = target.input.as_mut().expect("open");
        input.write_all(b"x").expect("written");
        assert_eq!(target.end().0.code(), Some(8), "{mode}");
    }
}

#[test]
fn thread_in_a_system_call_is_moved_to_another_copy_of_it() {
    let mut target = Target::start("read");
    let read_here = target.address("read_here");
    let read_there = target.address("read_there");
    let pid = target.pid();
    wait_until("the thread waits for input", || {
        target.stopped(|stopped| {
            let registers = stopped.regs(pid).expect("it is stopped");
            let waits = registers.rip == read_here && (registers.rax as i64) < 0;
            if waits {
                let refused = stopped
                    .set_rip(pid, read_there + 1)
                    .expect_err("no syscall before");
                assert!(
                    matches!(refused, StopError::RestartPending { .. }),
                    "{refused}"
                );
                stopped
                    .set_rip(pid, read_there)
                    .expect("a syscall ends there");
            }
            waits
        })
    });
    let input = target.input.as_mut().expect("open");
    input.write_all(b"x").expect("written");
    assert_eq!(target.end().0.code(), Some(2), "the second copy returned");
}

#[test]
fn thread_that_waits_for_a_vfork_child_is_waited_for_or_refused() {
    let mut target = Target::start("vfork");
    let counter = target.address("counter");
    let pid = target.pid();
    wait_until("it waits for its child", || states(pid).contains(&'D'));
    // Enough for the other threads on a busy machine. This one cannot be stopped however long that is.
    let patience = Duration::from_secs(2);
    let refused = while_stopped(pid, patience, |_| ()).expect_err("one thread cannot be stopped");
    assert!(
        matches!(refused, StopError::NotStopping { tid, state: 'D', .. } if tid == pid),
        "{refused}"
    );
    wait_until("the other thread runs on", || {
        states(pid).iter().all(|&state| state != 't')
    });
    drop(target.input.take());
    assert_runs_or_ends(&target, counter);
    assert_eq!(target.end().0.code(), Some(4));
}

/// The process may end at any time; until then it can be stopped.
fn assert_runs_or_ends(target: &Target, counter: u64) {
    let stopped = while_stopped(target.pid(), PATIENCE, |stopped| {
        read_counter(stopped, counter)
    });
    if let Err(error) = stopped {
        assert!(
            matches!(error, StopError::Zombie { .. } | StopError::Gone { .. }),
            "{error}"
        );
    }
}

#[test]
fn ended_processes_are_named_so() {
    let target = Target::start("seven");
    let pid = target.pid();
    wait_until("it has ended", || states(pid) == ['Z']);
    let zombie = while_stopped(pid, PATIENCE, |_| ()).expect_err("nothing to stop");
    assert!(matches!(zombie, StopError::Zombie { .. }), "{zombie}");
    assert_eq!(target.end().0.code(), Some(7));
    let gone = while_stopped(pid, PATIENCE, |_| ()).expect_err("nothing to stop");
    assert!(matches!(gone, StopError::Gone { .. }), "{gone}");
}

#[test]
fn own_process_is_refused() {
    let pid = std::process::id() as i32;
    let refused = while_stopped(pid, PATIENCE, |_| ()).expect_err("who would go on?");
    assert!(matches!(refused, StopError::OwnProcess { .. }), "{refused}");
}

#[test]
fn process_under_a_debugger_is_refused_with_its_name() {
    let mut target = Target::start("compute");
    target.address("counter");
    let pid = target.pid();
    let refused = target.stopped(|_| while_stopped(pid, PATIENCE, |_| ()).expect_err("traced"));
    let own = std::process::id() as i32;
    assert!(
        matches!(&refused, StopError::AlreadyTraced { tracer, .. } if *tracer == own),
        "{refused}"
    );
    assert_eq!(target.end().0.code(), Some(6));
}

#[test]
fn process_of_another_user_is_refused() {
    const NOBODY: u32 = 65534;
    let refused = std::thread::spawn(|| {
        // SAFETY: the system call (unlike the C function) changes only the calling thread, which ends soon.
        unsafe { libc::syscall(libc::SYS_setresuid, NOBODY, NOBODY, NOBODY) };
        while_stopped(1, PATIENCE, |_| ()).expect_err("the first process is root's")
    });
    let refused = refused.join().expect("no panic");
    assert!(
        matches!(
            refused,
            StopError::NotPermitted {
                pid: 1,
                target_uid: 0,
                ..
            } | StopError::ScopeRoot { .. }
                | StopError::ScopeNobody { .. }
        ),
        "{refused}"
    );
}
