//! Goal: what is recorded by single steps is what the tracer saw at each of them. Method: real programs are stopped in the middle of their
//! run and stepped; the registers, flags and vector registers at each step are compared with those that the recording has there, as are the
//! bytes that the program wrote. The recording runs again without contradiction, and the program's output is that without a tracer.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use exact::{
    Ahead, Ending, LONGEST_INSTRUCTION, Registers, Replay, Seek, Standing, Stepped, Stepping,
    verify,
};
use libc::user_regs_struct;
use tempfile::TempDir;

const OPTIONS: i32 = libc::PTRACE_O_TRACECLONE | libc::PTRACE_O_TRACESYSGOOD;
/// The flags of arithmetic, and that of direction.
const FLAGS: u64 = 0xcd5;
const ORIG_RAX: usize = 15;
const EFLAGS: usize = 18;
const GS_BASE: usize = 22;

fn request(request: libc::c_uint, tid: i32, data: usize) -> bool {
    // SAFETY: requests of this file take a number, or the address of what they read or fill.
    unsafe { libc::ptrace(request, tid, std::ptr::null_mut::<u8>(), data) != -1 }
}

fn registers(tid: i32) -> user_regs_struct {
    // SAFETY: plain integers, which the request fills.
    let mut found: user_regs_struct = unsafe { std::mem::zeroed() };
    assert!(request(libc::PTRACE_GETREGS, tid, &raw mut found as usize));
    found
}

fn status(tid: i32) -> i32 {
    let mut status = 0;
    assert_eq!(
        // SAFETY: it writes the status to a place that is there.
        unsafe { libc::waitpid(tid, &raw mut status, libc::__WALL) },
        tid
    );
    status
}

/// What is compared of the registers.
fn compared(registers: &user_regs_struct) -> Registers {
    let mut all = Registers::from(registers);
    all.0[ORIG_RAX] = 0;
    all.0[GS_BASE] = 0;
    all.0[EFLAGS] &= FLAGS;
    all
}

struct Stopped {
    child: Child,
    pid: i32,
    memory: File,
}

/// Starts a program, and stops it when it has run for some time.
fn stopped(command: &mut Command, output: &Path, time: Duration) -> Stopped {
    let output = File::create(output).expect("a file");
    let child = command.stdout(output).spawn().expect("it starts");
    let pid = child.id() as i32;
    assert!(request(libc::PTRACE_SEIZE, pid, OPTIONS as usize));
    std::thread::sleep(time);
    assert!(request(libc::PTRACE_INTERRUPT, pid, 0));
    let status = status(pid);
    assert!(libc::WIFSTOPPED(status), "it has ended before: {status:x}");
    while Stepped::is_in_vdso(pid, registers(pid).rip) {
        assert!(request(libc::PTRACE_SINGLESTEP, pid, 0));
        self::status(pid);
    }
    let memory = File::open(format!("/proc/{pid}/mem")).expect("its memory");
    Stopped { child, pid, memory }
}

impl Stopped {
    fn standing(&self) -> Standing<'_> {
        Standing {
            pid: self.pid,
            tid: self.pid,
            threads: vec![(self.pid, registers(self.pid))],
            command: vec![String::from("program")],
            ran: 1,
            is_hidden: &|_| false,
            is_own_file: &|_| false,
            own: &|_, _| {},
        }
    }

    fn code(&self, at: u64) -> Vec<u8> {
        let mut bytes = vec![0; LONGEST_INSTRUCTION];
        let count = self.memory.read_at(&mut bytes, at).unwrap_or(0);
        bytes.truncate(count);
        bytes
    }

    /// Steps until so many instructions are recorded, or recording ends before; returns the registers at each position.
    fn step(&self, stepped: &mut Stepped, wanted: u64) -> (Vec<Option<Registers>>, Option<Ahead>) {
        let mut seen = vec![None; wanted as usize + 4];
        loop {
            let now = registers(self.pid);
            let position = stepped.count() as usize;
            if stepped.is_between(now.rip) {
                seen[position] = Some(compared(&now));
            }
            if stepped.count() >= wanted && stepped.is_between(now.rip) {
                return (seen, None);
            }
            match stepped.ahead(&self.code(now.rip)).expect("it can be read") {
                Ahead::Done => continue,
                Ahead::Instruction | Ahead::Call => {}
                end => return (seen, Some(end)),
            }
            loop {
                assert!(request(libc::PTRACE_SINGLESTEP, self.pid, 0));
                let status = status(self.pid);
                if !libc::WIFSTOPPED(status) {
                    return (seen, None);
                }
                if status >> 8 != libc::SIGTRAP {
                    self.deliver(stepped, libc::WSTOPSIG(status));
                    break;
                }
                if stepped.stepped().expect("it can be read") == Stepping::Done {
                    break;
                }
            }
        }
    }

    /// A signal that is caught has come: the thread is at its handler then.
    fn deliver(&self, stepped: &mut Stepped, signal: i32) {
        assert!(stepped.takes_signals().expect("it can be read"));
        let before = stepped.signal_ahead().expect("it can be read");
        assert!(request(libc::PTRACE_SINGLESTEP, self.pid, signal as usize));
        assert_eq!(status(self.pid) >> 8, libc::SIGTRAP);
        stepped.handler(signal, &before).expect("it can be read");
    }

    /// The program goes on, and ends.
    fn let_go(mut self) -> Option<i32> {
        // SAFETY: a request without memory.
        unsafe { libc::ptrace(libc::PTRACE_DETACH, self.pid, 0, 0) };
        self.child.wait().expect("it ends").code()
    }
}

/// Compares the recording with what was seen.
fn compare(folder: &Path, seen: &[Option<Registers>]) -> usize {
    let mut replay = Replay::open(folder).expect("it opens");
    let mut count = 0;
    for (position, seen) in seen.iter().enumerate() {
        let Some(seen) = seen else { continue };
        replay.goto(position as u64).expect("it runs again");
        let found = compared(&replay.registers().expect("it has registers"));
        assert_eq!(&found, seen, "at {position}");
        count += 1;
    }
    count
}

#[test]
fn calls_and_signals_are_as_they_were() {
    let folder = TempDir::new().expect("a folder");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/stepped.c");
    let program = folder.path().join("stepped");
    let built = Command::new("gcc")
        .args(["-O1", "-g", "-o"])
        .args([&program, &source])
        .status();
    assert!(built.expect("gcc is installed").success());
    let output = folder.path().join("output");
    let mut command = Command::new(&program);
    let native = command.output().expect("it runs");
    let program = stopped(&mut command, &output, Duration::from_millis(200));
    let mut stepped =
        Stepped::begin(&program.standing(), folder.path(), None).expect("recording begins");
    let (seen, end) = program.step(&mut stepped, 400_000);
    assert_eq!(end, Some(Ahead::Exit(4)));
    let recorded = stepped.end(Ending::Exit(4)).expect("the log is written");
    assert_eq!(program.let_go(), native.status.code());
    assert_eq!(fs::read(&output).expect("the output"), native.stdout);
    let last = seen
        .iter()
        .rposition(Option::is_some)
        .expect("it was stepped");
    // From behind the loop on: that is as long as the clock wants.
    let from = last.saturating_sub(20_000);
    let mut tail = vec![None; from];
    tail.extend_from_slice(&seen[from..]);
    assert!(compare(folder.path(), &tail) > 5000);
    let verdict = verify(folder.path(), &mut |_, _| true).expect("it can be run again");
    assert_eq!(verdict.contradiction, None, "of {}", recorded.instructions);
}

fn check(mut command: Command, time: u64, wanted: u64) {
    let folder = TempDir::new().expect("a folder");
    let native = command.output().expect("it runs");
    let output = folder.path().join("output");
    let program = stopped(&mut command, &output, Duration::from_millis(time));
    let mut stepped =
        Stepped::begin(&program.standing(), folder.path(), None).expect("recording begins");
    let (seen, end) = program.step(&mut stepped, wanted);
    assert_eq!(end, None, "it ended at {}", stepped.count());
    let last = registers(program.pid);
    let stack = program.code(last.rsp);
    let recorded = stepped.end(Ending::GoesOn(String::from("that is all")));
    let recorded = recorded.expect("the log is written");
    assert!(recorded.instructions >= wanted && recorded.refused.is_none());
    assert_eq!(program.let_go(), native.status.code());
    assert_eq!(fs::read(&output).expect("the output"), native.stdout);
    assert!(compare(folder.path(), &seen) as u64 > wanted / 2);
    let mut replay = Replay::open(folder.path()).expect("it opens");
    replay.goto(recorded.instructions).expect("it runs again");
    let mut bytes = vec![0; stack.len()];
    replay.read(last.rsp, &mut bytes);
    assert_eq!(bytes, stack);
    let verdict = verify(folder.path(), &mut |_, _| true).expect("it can be run again");
    assert_eq!(verdict.contradiction, None);
    assert!(verdict.registers > 0 && verdict.whole);
}

fn command(program: &str, args: &[&str]) -> Command {
    let mut command = Command::new(program);
    command
        .args(args)
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    command
}

#[test]
fn gzip_is_as_it_was_at_every_step() {
    let folder = TempDir::new().expect("a folder");
    let text = folder.path().join("text");
    let lines: String = (0..400_000)
        .map(|i| format!("{i} {:x}\n", i * 7919))
        .collect();
    fs::write(&text, lines).expect("a file");
    let path = text.to_str().expect("its name");
    check(command("gzip", &["-9", "-c", path]), 60, 20_000);
}

#[test]
fn lua_is_as_it_was_at_every_step() {
    let script = "local t = {} for i = 1, 3000000 do t[i % 1000] = tostring(i * 1.5) .. os.time() \
                  if i % 5000 == 0 then io.write(#t, ' ', os.clock() > 0 and 1 or 0, '\\n') end end";
    check(command("lua5.4", &["-e", script]), 60, 20_000);
}

#[test]
fn sqlite_is_as_it_was_at_every_step() {
    let query = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400000) \
                 SELECT sum(length(i || 'x')), count(DISTINCT i % 1000) FROM n";
    check(command("sqlite3", &[":memory:", query]), 60, 20_000);
}

#[test]
fn what_it_writes_has_the_bytes_that_it_wrote() {
    let folder = TempDir::new().expect("a folder");
    let mut command = command("lua5.4", &["-e", "for i = 1, 1e9 do _G[i % 7] = i end"]);
    let program = stopped(
        &mut command,
        &folder.path().join("output"),
        Duration::from_millis(40),
    );
    let mut stepped =
        Stepped::begin(&program.standing(), folder.path(), None).expect("recording begins");
    let (_, end) = program.step(&mut stepped, 3000);
    assert_eq!(end, None);
    let count = stepped.count();
    let recorded = stepped.end(Ending::GoesOn(String::from("that is all")));
    recorded.expect("the log is written");
    let mut replay = Replay::open(folder.path()).expect("it opens");
    let seek = Seek {
        writes: true,
        value_bytes: 64,
        ..Seek::default()
    };
    let mut last = std::collections::BTreeMap::new();
    replay
        .seek(0..count, &seek, &mut |batch| {
            for access in &batch.accesses {
                for (byte, at) in batch.value(access).iter().zip(access.address..) {
                    last.insert(at, *byte);
                }
            }
            true
        })
        .expect("it is searched");
    assert!(last.len() > 100, "{}", last.len());
    for (at, byte) in last {
        assert_eq!(program.code(at).first(), Some(&byte), "at {at:x}");
    }
    let mut child = program.child;
    child.kill().expect("it is ended");
    child.wait().expect("it has ended");
}
