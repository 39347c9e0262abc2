//! Starts a program and parks it at its entry point: its libraries are loaded, and none of its own code has run.
//!
//! The program is our own child with our own terminal and descriptors, so its status and its output are the same as
//! without us. It is parked in a loop of its own and not in a ptrace-stop, because Frida, which is loaded next, must be
//! the tracer. If we die before we release it, it exits: no other process knows that it waits.

use std::{
    ffi::OsString,
    fs, io,
    os::{
        fd::OwnedFd,
        unix::{fs::FileExt, process::CommandExt},
    },
    path::{Path, PathBuf},
    process::{self, Command},
};

use debuginfo::Module;
use serde::{Deserialize, Serialize};

use super::{Maps, executable::refuse_what_only_a_shell_would_run, limits};
use crate::{Error, Result, Surroundings, live::Stdio, signals::ChildSignals, stop::Registers};

/// Sleeps a millisecond at a time while its parent's id is the one at [`PARK_PARENT`].
#[rustfmt::skip]
const PARK: [u8; 64] = [
    0xb8, 110, 0, 0, 0,             //  0 loop: mov eax, SYS_getppid
    0x0f, 0x05,                     //  5 syscall
    0x3d, 0, 0, 0, 0,               //  7 cmp eax, PARENT
    0x75, 0x12,                     // 12 jne gone
    0x48, 0x8d, 0x3d, 27, 0, 0, 0,  // 14 lea rdi, [rip + (48 - 21)]: one millisecond
    0x31, 0xf6,                     // 21 xor esi, esi
    0xb8, 35, 0, 0, 0,              // 23 mov eax, SYS_nanosleep
    0x0f, 0x05,                     // 28 syscall
    0xeb, 0xe0,                     // 30 jmp loop
    0xb8, 231, 0, 0, 0,             // 32 gone: mov eax, SYS_exit_group
    0xbf, 137, 0, 0, 0,             // 37 mov edi, 128 + SIGKILL
    0x0f, 0x05,                     // 42 syscall
    0x0f, 0x0b, 0x0f, 0x0b,         // 44 ud2
    0, 0, 0, 0, 0, 0, 0, 0,         // 48 seconds
    0x40, 0x42, 0x0f, 0, 0, 0, 0, 0, // 56 nanoseconds: 1,000,000
];
const PARK_PARENT: usize = 8;
/// As [`PARK`], for a process that is not our child: it lets any process trace it, as our children do, and sleeps for
/// at most a minute.
#[rustfmt::skip]
pub(crate) const PARK_FOR_ANOTHER: [u8; 64] = [
    0xb8, 157, 0, 0, 0,             //  0 mov eax, SYS_prctl
    0xbf, 0x61, 0x6d, 0x61, 0x59,   //  5 mov edi, PR_SET_PTRACER
    0x6a, 0xff, 0x5e,               // 10 push -1; pop rsi: PR_SET_PTRACER_ANY
    0x0f, 0x05,                     // 13 syscall
    0xbb, 0x60, 0xea, 0, 0,         // 15 mov ebx, 60000
    0x48, 0x8d, 0x3d, 21, 0, 0, 0,  // 20 loop: lea rdi, [rip + (48 - 27)]: one millisecond
    0x31, 0xf6,                     // 27 xor esi, esi
    0x6a, 35, 0x58,                 // 29 push SYS_nanosleep; pop rax
    0x0f, 0x05,                     // 32 syscall
    0xff, 0xcb,                     // 34 dec ebx
    0x75, 0xee,                     // 36 jnz loop
    0x6a, 60, 0x58,                 // 38 push SYS_exit; pop rax
    0x6a, 127, 0x5f,                // 41 push 127; pop rdi
    0x0f, 0x05,                     // 44 syscall
    0x0f, 0x0b,                     // 46 ud2
    0, 0, 0, 0, 0, 0, 0, 0,         // 48 seconds
    0x40, 0x42, 0x0f, 0, 0, 0, 0, 0, // 56 nanoseconds: 1,000,000
];
pub(crate) const INT3: u8 = 0xcc;
const AT_BASE: u64 = 7;
pub(crate) const AT_ENTRY: u64 = 9;
/// A function that dynamic linkers call for debuggers: before and after they load the libraries that a program is
/// linked with, or only after.
const LINKER_NOTICE: &str = "_dl_debug_state";
const NOTICES: usize = 2;

/// A process parked at its entry point.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(into = "Saved", try_from = "Saved")]
pub struct Parked {
    /// Process id, and the id of its only thread.
    pub pid: i32,
    /// Address of its entry point.
    pub entry: u64,
    /// The original bytes under the parking loop.
    pub original: [u8; PARK.len()],
    /// Its registers at the entry point. The parking loop changes them.
    pub registers: Registers,
    /// Path of its executable.
    pub exe: PathBuf,
}

/// A parked process as one recorder passes it to another.
#[derive(Serialize, Deserialize)]
struct Saved {
    pid: i32,
    entry: u64,
    original: Vec<u8>,
    registers: Vec<u64>,
}

const REGISTERS: usize = size_of::<Registers>() / size_of::<u64>();

impl From<Parked> for Saved {
    fn from(parked: Parked) -> Self {
        // SAFETY: the structure consists of that many words.
        let words: [u64; REGISTERS] = unsafe { std::mem::transmute(parked.registers) };
        Self {
            pid: parked.pid,
            entry: parked.entry,
            original: parked.original.to_vec(),
            registers: words.to_vec(),
        }
    }
}

impl TryFrom<Saved> for Parked {
    type Error = String;

    fn try_from(saved: Saved) -> std::result::Result<Self, String> {
        let cut = |_| "a parked process is told with too few bytes".to_owned();
        let words: [u64; REGISTERS] = saved.registers.as_slice().try_into().map_err(cut)?;
        let exe = fs::read_link(format!("/proc/{}/exe", saved.pid));
        Ok(Self {
            pid: saved.pid,
            entry: saved.entry,
            original: saved.original.as_slice().try_into().map_err(cut)?,
            // SAFETY: the structure consists of that many words, and any are valid.
            registers: unsafe { std::mem::transmute::<[u64; REGISTERS], Registers>(words) },
            exe: exe.map_err(|error| format!("process {}: {error}", saved.pid))?,
        })
    }
}

/// Our ends of a program's standard output and error.
pub type Pipes = (fs::File, fs::File);

/// The result of a start.
#[derive(Debug)]
pub enum Started {
    /// It is parked at its entry point.
    Parked(Parked),
    /// It ended before (because a library is missing, say). Its status must still be collected.
    Ended(i32),
}

/// Starts `argv` and parks it. `check` may refuse the executable, and `check_mapped` its mapped libraries, before any
/// code of the program or of its libraries runs. Returns the pipes to it if `stdio` asks for them.
///
/// # Errors
/// [`Error::Start`] if it cannot be run, or the error of a check.
pub fn start(
    argv: &[OsString],
    signals: &ChildSignals,
    (stdio, surroundings): (&Stdio, &Surroundings),
    check: impl Fn(&Path) -> Result<()>,
    check_mapped: impl Fn(&Path, &Maps) -> Result<()>,
) -> Result<(Started, Option<Pipes>)> {
    let program = argv[0].to_string_lossy().into_owned();
    refuse_what_only_a_shell_would_run(&argv[0])?;
    let mut command = Command::new(&argv[0]);
    command.args(&argv[1..]);
    if let Some(name) = &surroundings.name {
        command.arg0(name);
    }
    if let Stdio::Piped { cwd, env } = stdio {
        command
            .current_dir(cwd)
            .env_clear()
            .envs(env.iter().map(|(name, value)| (name, value)))
            .stdin(process::Stdio::null())
            .stdout(process::Stdio::piped())
            .stderr(process::Stdio::piped())
            .process_group(0);
    }
    if let Some(env) = &surroundings.env {
        let env = env.iter().map(|(name, value)| (name, value));
        command.env_clear().envs(env);
    }
    if let Some(path) = &surroundings.stdin {
        let file =
            fs::File::open(path).map_err(Error::system(format!("open {}", path.display())))?;
        command.stdin(file);
    }
    let no_aslr = surroundings.no_aslr;
    let standard = match (stdio, &surroundings.stdin) {
        (Stdio::Piped { .. }, _) => 0..0,
        (Stdio::Inherit, Some(_)) => 1..3,
        (Stdio::Inherit, None) => 0..3,
    };
    let signals = *signals;
    // SAFETY: between fork and exec only async-signal-safe calls: ptrace, prctl, prlimit, close, personality and sigaction.
    unsafe {
        command.pre_exec(move || {
            signals.restore();
            limits::put_back_own();
            exact::close_again(standard.clone());
            if no_aslr {
                fix_addresses()?;
            }
            // Yama may restrict tracing to ancestors, but Frida's helper is a sibling.
            libc::prctl(libc::PR_SET_PTRACER, libc::PR_SET_PTRACER_ANY, 0, 0, 0);
            match libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) {
                0 => Ok(()),
                _ => Err(io::Error::last_os_error()),
            }
        });
    }
    let mut child = command.spawn().map_err(|source| Error::Start {
        program: program.clone(),
        source,
    })?;
    let pid = child.id() as i32;
    let pipes = child.stdout.take().zip(child.stderr.take());
    let pipes = pipes.map(|(out, err)| (OwnedFd::from(out).into(), OwnedFd::from(err).into()));
    // The handle is not needed: the exit watch collects the status by process id.
    drop(child);
    let tracee = Tracee {
        pid,
        running: false,
    };
    Ok((tracee.park(check, check_mapped)?, pipes))
}

/// Makes the kernel put this process's next program at the same addresses in each run. Async-signal-safe.
fn fix_addresses() -> io::Result<()> {
    const ASK: libc::c_ulong = 0xffff_ffff;
    // SAFETY: only asks for and changes flags of this process.
    let changed = unsafe {
        let now = libc::personality(ASK);
        now >= 0 && {
            let wanted = now as libc::c_ulong | libc::ADDR_NO_RANDOMIZE as libc::c_ulong;
            libc::personality(wanted) >= 0
        }
    };
    match changed {
        true => Ok(()),
        false => Err(io::Error::last_os_error()),
    }
}

/// A child that we trace. Killed if it is dropped before it is released.
struct Tracee {
    pid: i32,
    running: bool,
}

impl Tracee {
    fn park(
        mut self,
        check: impl Fn(&Path) -> Result<()>,
        check_mapped: impl Fn(&Path, &Maps) -> Result<()>,
    ) -> Result<Started> {
        let pid = self.pid;
        if self.wait()?.is_none() {
            return self.ended();
        }
        let exe = fs::read_link(format!("/proc/{pid}/exe"))
            .map_err(Error::system("find the program's file"))?;
        check(&exe)?;
        let entry = told_by_kernel(pid, AT_ENTRY)?.ok_or_else(|| {
            Error::system("find where the program begins")(io::ErrorKind::NotFound.into())
        })?;
        let memory = fs::OpenOptions::new()
            .read(true)
            .write(true)
            .open(format!("/proc/{pid}/mem"))
            .map_err(Error::system("open the program's memory"))?;
        let mut original = [0; PARK.len()];
        memory
            .read_exact_at(&mut original, entry)
            .map_err(Error::system("read the program's entry point"))?;
        memory
            .write_all_at(&[INT3], entry)
            .map_err(Error::system("write to the program's entry point"))?;
        let notice = linker_notice(pid, &exe)?;
        let check_loaded = || {
            let maps =
                Maps::read(pid).map_err(Error::system("read what the program has mapped"))?;
            check_mapped(&exe, &maps)
        };
        if !self.run_to_entry(&memory, entry, notice, check_loaded)? {
            return self.ended();
        }
        let registers = self
            .registers()
            .map_err(Error::system("read the program's registers"))?;
        let mut park = PARK;
        park[PARK_PARENT..PARK_PARENT + 4].copy_from_slice(&process::id().to_le_bytes());
        memory
            .write_all_at(&park, entry)
            .map_err(Error::system("write to the program's entry point"))?;
        self.request(libc::PTRACE_DETACH, 0)
            .map_err(Error::system("let the program go"))?;
        self.running = true;
        Ok(Started::Parked(Parked {
            pid,
            entry,
            original,
            registers,
            exe,
        }))
    }

    /// Runs to the trap at `entry`. At its notices the dynamic linker has loaded what `check` inspects. Returns false
    /// if the child ended.
    fn run_to_entry(
        &mut self,
        memory: &fs::File,
        entry: u64,
        notice: Option<u64>,
        check: impl Fn() -> Result<()>,
    ) -> Result<bool> {
        for notice in notice.into_iter().cycle().take(NOTICES) {
            match self.run_to_notice(memory, notice, entry)? {
                None => return Ok(false),
                Some(at) if at == entry => return Ok(true),
                Some(_) => check()?,
            }
        }
        Ok(self.run_to(&[entry])?.is_some())
    }

    /// Runs until the dynamic linker calls the function at `notice`, or to the trap at `entry`. Returns the pc; `None`
    /// if the child ended.
    fn run_to_notice(&mut self, memory: &fs::File, notice: u64, entry: u64) -> Result<Option<u64>> {
        let patch = |bytes: &[u8]| {
            memory
                .write_all_at(bytes, notice)
                .map_err(Error::system("write to the dynamic linker"))
        };
        let mut original = [0];
        memory
            .read_exact_at(&mut original, notice)
            .map_err(Error::system("read the dynamic linker"))?;
        patch(&[INT3])?;
        let found = self.run_to(&[notice, entry])?;
        if found.is_some() {
            patch(&original)?;
        }
        if found != Some(notice) {
            return Ok(found);
        }
        // Step past the function's first instruction, so that it can be stopped there again.
        Ok(self.step()?.then_some(notice))
    }

    /// Executes one instruction. Passes signals on. Returns false if the child ended.
    fn step(&self) -> Result<bool> {
        let mut signal = 0;
        loop {
            self.request(libc::PTRACE_SINGLESTEP, signal)
                .map_err(Error::system("start the program"))?;
            match self.wait()? {
                None => return Ok(false),
                Some(libc::SIGTRAP) => return Ok(true),
                Some(other) => signal = other,
            }
        }
    }

    /// Runs to one of the traps. Passes signals on. Returns the pc; `None` if the child ended.
    fn run_to(&mut self, traps: &[u64]) -> Result<Option<u64>> {
        let mut signal = 0;
        loop {
            self.request(libc::PTRACE_CONT, signal)
                .map_err(Error::system("start the program"))?;
            let Some(stopped_by) = self.wait()? else {
                return Ok(None);
            };
            let mut registers = self
                .registers()
                .map_err(Error::system("read the program's registers"))?;
            let at = registers.rip.wrapping_sub(1);
            if stopped_by == libc::SIGTRAP && traps.contains(&at) {
                registers.rip = at;
                self.set_registers(&registers)
                    .map_err(Error::system("set the program's registers"))?;
                return Ok(Some(at));
            }
            signal = if stopped_by == libc::SIGTRAP {
                0
            } else {
                stopped_by
            };
        }
    }

    /// Waits for the next stop and returns its signal; `None` if the child ended (it must still be collected).
    fn wait(&self) -> Result<Option<i32>> {
        // SAFETY: `info` is ours, and all zeroes is a valid value of it.
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        loop {
            let wanted = libc::WEXITED | libc::WSTOPPED | libc::WNOWAIT;
            // SAFETY: `info` is ours.
            if unsafe { libc::waitid(libc::P_PID, self.pid as u32, &mut info, wanted) } == 0 {
                break;
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(Error::system("wait for the program")(error));
            }
        }
        if info.si_code == libc::CLD_EXITED
            || info.si_code == libc::CLD_KILLED
            || info.si_code == libc::CLD_DUMPED
        {
            return Ok(None);
        }
        let mut status = 0;
        // SAFETY: `status` is ours. A stop is pending, so the call does not block.
        unsafe { libc::waitpid(self.pid, &mut status, libc::WUNTRACED) };
        Ok(Some(libc::WSTOPSIG(status)))
    }

    fn ended(mut self) -> Result<Started> {
        self.running = true;
        Ok(Started::Ended(self.pid))
    }

    fn request(&self, request: libc::c_uint, data: i32) -> io::Result<()> {
        // SAFETY: these requests take no addresses in this process.
        match unsafe { libc::ptrace(request, self.pid, 0usize, data as usize) } {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    }

    fn registers(&self) -> io::Result<Registers> {
        // SAFETY: all zeroes is a valid value; the kernel fills it.
        let mut registers: Registers = unsafe { std::mem::zeroed() };
        // SAFETY: `registers` is ours and of the type the request asks for.
        match unsafe { libc::ptrace(libc::PTRACE_GETREGS, self.pid, 0usize, &raw mut registers) } {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(registers),
        }
    }

    fn set_registers(&self, registers: &Registers) -> io::Result<()> {
        // SAFETY: `registers` is of the type the request asks for.
        match unsafe {
            libc::ptrace(
                libc::PTRACE_SETREGS,
                self.pid,
                0usize,
                &raw const *registers,
            )
        } {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    }
}

impl Drop for Tracee {
    fn drop(&mut self) {
        if !self.running {
            kill(self.pid);
        }
    }
}

/// Kills a child that must not run, and collects it.
pub fn kill(pid: i32) {
    // SAFETY: our own child, not reaped yet, so its process id is not reused.
    unsafe {
        libc::kill(pid, libc::SIGKILL);
        libc::waitpid(pid, std::ptr::null_mut(), 0);
    }
}

/// Finds the function that the dynamic linker calls for debuggers.
fn linker_notice(pid: i32, exe: &Path) -> Result<Option<u64>> {
    let base = told_by_kernel(pid, AT_BASE)?.filter(|base| *base != 0);
    let linker = Module::open(exe)
        .ok()
        .and_then(|module| Module::open(module.interp()?).ok());
    let function = linker.and_then(|linker| linker.address_of(LINKER_NOTICE));
    Ok(base.zip(function).map(|(base, function)| base + function.0))
}

/// Reads a word of the auxiliary vector (getauxval(3)).
pub(crate) fn told_by_kernel(pid: i32, key: u64) -> Result<Option<u64>> {
    let auxv = fs::read(format!("/proc/{pid}/auxv"))
        .map_err(Error::system("read where the program begins"))?;
    let words: Vec<u64> = auxv
        .chunks_exact(8)
        .map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes")))
        .collect();
    Ok(words
        .chunks_exact(2)
        .find(|pair| pair[0] == key)
        .map(|pair| pair[1]))
}
