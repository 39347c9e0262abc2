//! Starting a program under control, up to its first instruction.

use std::ffi::{CString, OsString};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use crate::error::{Context, Error, Result};
use crate::ptrace;
use crate::record::Options;

const OPTIONS: i32 = libc::PTRACE_O_TRACECLONE
    | libc::PTRACE_O_TRACEFORK
    | libc::PTRACE_O_TRACEVFORK
    | libc::PTRACE_O_TRACEEXEC
    | libc::PTRACE_O_TRACESYSGOOD
    | libc::PTRACE_O_EXITKILL;

/// Held from the pipe to its end: another child that is forked meanwhile would hold the pipe open, for which this one waits.
static STARTING: Mutex<()> = Mutex::new(());

fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends = [0; 2];
    // SAFETY: the kernel writes two descriptors, which are ours from then on.
    unsafe {
        if libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok((OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])))
    }
}

/// Starts a program, and returns its id when it is about to execute its first instruction.
pub(crate) fn start(program: &CString, args: &[OsString], options: &Options) -> Result<i32> {
    let args: Vec<CString> = args
        .iter()
        .map(|arg| CString::new(arg.as_bytes()))
        .collect::<Result<_, _>>()
        .map_err(|error| Error::System {
            what: "pass an argument",
            source: error.into(),
        })?;
    let mut pointers: Vec<*const libc::c_char> = args.iter().map(|arg| arg.as_ptr()).collect();
    pointers.push(std::ptr::null());
    let environment = environment(options)?;
    let mut variables: Vec<*const libc::c_char> = environment
        .iter()
        .map(|variable| variable.as_ptr())
        .collect();
    variables.push(std::ptr::null());
    let input = options
        .input
        .as_ref()
        .map(File::open)
        .transpose()
        .context("open the program's input")?;
    let output = options
        .output
        .as_ref()
        .map(File::create)
        .transpose()
        .context("create the file for output")?;
    let alone = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
    let (ready, go) = pipe().context("make a pipe")?;
    let (failure, failed) = pipe().context("make a pipe")?;
    // SAFETY: after fork the child calls nothing but system calls, on memory that was made before.
    let pid = unsafe {
        match libc::fork() {
            0 => {
                let mut byte = 0u8;
                libc::close(go.as_raw_fd());
                libc::read(ready.as_raw_fd(), (&raw mut byte).cast(), 1);
                prepare(options, input.as_ref(), output.as_ref());
                libc::execve(program.as_ptr(), pointers.as_ptr(), variables.as_ptr());
                let code = *libc::__errno_location();
                libc::write(failed.as_raw_fd(), (&raw const code).cast(), 4);
                libc::_exit(127);
            }
            -1 => return Err(io::Error::last_os_error()).context("start a process"),
            pid => pid,
        }
    };
    drop((ready, failed));
    let seized = ptrace::seize(pid, OPTIONS).context("trace the program");
    // The child goes on when the pipe is closed, whatever happened.
    drop(go);
    drop(alone);
    seized?;
    wait_for_exec(pid).map_err(|error| {
        let mut code = [0; 4];
        // SAFETY: the kernel writes at most four bytes.
        let count = unsafe { libc::read(failure.as_raw_fd(), code.as_mut_ptr().cast(), 4) };
        match count {
            4 => Error::Start {
                program: program.to_string_lossy().into_owned(),
                source: io::Error::from_raw_os_error(i32::from_ne_bytes(code)),
            },
            _ => error,
        }
    })?;
    Ok(pid)
}

/// The standard descriptors that were closed when this process began, as bits. Rust's start-up opens /dev/null in their places.
static CLOSED: AtomicU8 = AtomicU8::new(0);

/// Runs before that start-up.
#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_START_UP: extern "C" fn() = note_closed;

extern "C" fn note_closed() {
    for fd in 0..3 {
        // SAFETY: only asks for flags.
        if unsafe { libc::fcntl(fd, libc::F_GETFD) } == -1 {
            CLOSED.fetch_or(1 << fd, Relaxed);
        }
    }
}

/// Closes those of the standard `descriptors` that were closed when this process began: the programs that we start find them as they
/// would without us. For a child before it executes a program. Async-signal-safe.
pub fn close_again(descriptors: Range<i32>) {
    let closed = CLOSED.load(Relaxed);
    for fd in descriptors.filter(|fd| closed >> fd & 1 != 0) {
        // SAFETY: nothing of ours refers to a standard descriptor by its number.
        unsafe { libc::close(fd) };
    }
}

/// What the child does before it executes the program.
///
/// # Safety
/// For a child after fork: nothing but system calls.
unsafe fn prepare(options: &Options, input: Option<&File>, output: Option<&File>) {
    // SAFETY: the caller's, and all descriptors are open.
    unsafe {
        if let Some(first) = options.in_child {
            first();
        }
        if options.fixed_addresses {
            libc::personality(libc::ADDR_NO_RANDOMIZE as libc::c_ulong);
        }
        if let Some(input) = input {
            libc::dup2(input.as_raw_fd(), 0);
        }
        if let Some(output) = output {
            libc::dup2(output.as_raw_fd(), 1);
            libc::dup2(output.as_raw_fd(), 2);
        }
        close_again(match (input, output) {
            (None, None) => 0..3,
            (Some(_), None) => 1..3,
            (None, Some(_)) => 0..1,
            (Some(_), Some(_)) => 0..0,
        });
        for signal in &options.default_signals {
            libc::signal(*signal, libc::SIG_DFL);
        }
    }
}

/// The variables of the program.
fn environment(options: &Options) -> Result<Vec<CString>> {
    let ours = || std::env::vars_os().collect();
    let variables: Vec<(OsString, OsString)> = options.environment.clone().unwrap_or_else(ours);
    let texts = variables.into_iter().map(|(name, value)| {
        let mut text = name.into_encoded_bytes();
        text.push(b'=');
        text.extend(value.into_encoded_bytes());
        CString::new(text)
    });
    texts
        .collect::<Result<_, _>>()
        .map_err(|error| Error::System {
            what: "pass a variable",
            source: error.into(),
        })
}

fn wait_for_exec(pid: i32) -> Result<()> {
    loop {
        let Some((_, status)) = ptrace::wait(pid, false).context("wait for the program")? else {
            continue;
        };
        if !libc::WIFSTOPPED(status) {
            return Err(io::Error::from_raw_os_error(libc::ESRCH)).context("start the program");
        }
        if status >> 8 == libc::SIGTRAP | (libc::PTRACE_EVENT_EXEC << 8) {
            return Ok(());
        }
        ptrace::cont(pid, libc::WSTOPSIG(status)).context("resume the program")?;
    }
}
