//! A small process beside the recorder that undoes all patches if the recorder dies without doing so.
//!
//! The recorder announces every patch through a pipe before writing it. End of file on the pipe without a farewell
//! means that the recorder died, for any reason. The guardian undoes only what it recognises as ours, so that
//! announcing a patch that was never written does no harm.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Read, Write},
    os::unix::{fs::FileTypeExt, process::CommandExt},
    process::{Child, ChildStdin, Command, Stdio},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use crate::{
    Error, Result,
    arm::patch::{Written, take_back},
    displace::PATCH_BYTES,
    process::ExitWatch,
    stop::while_stopped,
};

/// Length of a message: an address, the bytes before and after the patch, and their number. Address 0 is the farewell.
const MESSAGE_BYTES: usize = 8 + 5 + 5 + 1;
/// In place of the length, in a farewell: keep reading the program's pipes.
const STAY: u8 = 2;
/// `int3`.
const TRAP: u8 = 0xcc;
/// How long the program's threads may take to stop in each attempt.
const PATIENCE: Duration = Duration::from_secs(10);
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(100);
/// A program that cannot be stopped for this long keeps its patches.
const LONGEST_TRIAL: Duration = Duration::from_secs(24 * 60 * 60);

/// The recorder's end.
#[derive(Debug)]
pub(crate) struct Guardian {
    child: Child,
    announcer: Announcer,
}

/// Announces changes to the guardian. Clones share the same pipe.
#[derive(Clone, Debug)]
pub(crate) struct Announcer {
    pipe: Arc<Mutex<Option<ChildStdin>>>,
}

impl Announcer {
    fn send(&self, messages: &[u8]) {
        let mut pipe = self.pipe.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pipe) = &mut *pipe {
            // The recording continues even if the guardian was killed.
            let _ = pipe.write_all(messages);
        }
    }

    /// Announces a trap that is about to be written over the byte `original`.
    pub fn trap(&self, address: u64, original: u8) {
        let written = Written {
            original: [original, 0, 0, 0, 0],
            jump: [TRAP, 0, 0, 0, 0],
        };
        self.send(&message(address, &written, 1));
    }

    /// Announces a jump that is about to be written over the bytes `original`.
    pub fn jump(&self, address: u64, original: [u8; PATCH_BYTES], jump: [u8; PATCH_BYTES]) {
        let written = Written { original, jump };
        self.send(&message(address, &written, PATCH_BYTES as u8));
    }
}

fn message(address: u64, written: &Written, len: u8) -> Vec<u8> {
    let mut message = Vec::with_capacity(MESSAGE_BYTES);
    message.extend(address.to_le_bytes());
    message.extend(written.original);
    message.extend(written.jump);
    message.push(len);
    message
}

impl Guardian {
    /// Starts `command`, which must call [`guard`] with `pid`, its last argument.
    ///
    /// `pipes` are our ends of the program's standard output and error. The guardian holds them too: the program must
    /// neither get a broken pipe nor block on a full one because we are gone.
    pub fn start(
        command: &[std::ffi::OsString],
        pid: i32,
        pipes: Option<&(File, File)>,
    ) -> Result<Self> {
        let failed = Error::system("start the process that guards the program");
        let mut guardian = Command::new(&command[0]);
        guardian
            .args(&command[1..])
            .arg(pid.to_string())
            .stdin(Stdio::piped())
            .stdout(held(pipes.map(|(out, _)| out)))
            .stderr(held(pipes.map(|(_, err)| err)))
            // Ctrl-C and the hangup of a closed terminal are for the recorder.
            .process_group(0);
        let mut child = guardian.spawn().map_err(failed)?;
        let pipe = child.stdin.take().expect("its standard input is a pipe");
        let pipe = Arc::new(Mutex::new(Some(pipe)));
        Ok(Self {
            child,
            announcer: Announcer { pipe },
        })
    }

    /// Returns a handle that announces changes from elsewhere.
    pub fn announcer(&self) -> Announcer {
        self.announcer.clone()
    }

    /// Announces patches that are about to be written.
    pub fn tell(&mut self, patches: impl Iterator<Item = (u64, Written)>) {
        let messages: Vec<u8> = patches
            .flat_map(|(entry, written)| message(entry, &written, PATCH_BYTES as u8))
            .collect();
        self.announcer.send(&messages);
    }

    /// Reports that the patches were undone and the program continues. From then on the guardian only reads what the
    /// program still writes to pipes that were ours.
    pub fn leave_pipes(self) {
        let mut farewell = [0; MESSAGE_BYTES];
        farewell[MESSAGE_BYTES - 1] = STAY;
        self.announcer.send(&farewell);
    }

    /// Ends the guardian: the program has ended, or the patches were undone. If dropped without this, it undoes them.
    pub fn farewell(mut self) {
        self.announcer.send(&[0; MESSAGE_BYTES]);
        let pipe = self.announcer.pipe.lock();
        drop(pipe.map(|mut pipe| pipe.take()));
        let _ = self.child.wait();
    }
}

/// Returns a copy of a pipe's reading end, to pass to a new process. The guardian prints nothing, so its own standard
/// output and error are free for this.
fn held(pipe: Option<&File>) -> Stdio {
    let copy = pipe.and_then(|pipe| pipe.try_clone().ok());
    copy.map_or_else(Stdio::null, Stdio::from)
}

/// Reads and discards what the program still writes to pipes that have no other reader.
fn empty_pipes() {
    let empty = |number: u8| {
        let opened = File::open(format!("/proc/self/fd/{number}"));
        if let Ok(mut pipe) = opened
            && pipe
                .metadata()
                .is_ok_and(|metadata| metadata.file_type().is_fifo())
        {
            // However it ends, there is nothing left to hold.
            let _ = io::copy(&mut pipe, &mut io::sink());
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| empty(1));
        scope.spawn(|| empty(2));
    });
}

/// Guards process `pid` until the recorder, at the other end of standard input, says farewell or dies. Then undoes the
/// patches.
///
/// # Errors
/// If the process cannot be watched or stopped, or its memory cannot be written.
pub fn guard(pid: i32) -> Result<()> {
    let watch = ExitWatch::new(pid, false).map_err(Error::system("watch the program"))?;
    let written = match listen(io::stdin().lock()) {
        Last::Death(told) => told,
        Last::Farewell => return Ok(()),
        Last::Leaving => {
            empty_pipes();
            return Ok(());
        }
    };
    if watch.poll().is_some() {
        return Ok(());
    }
    std::thread::scope(|scope| {
        scope.spawn(empty_pipes);
        unhook_in_the_end(pid, &written, &watch)
    })
}

/// Undoes everything. Retries on failure: a thread that has run into a trap is waiting for this.
///
/// End of file on the pipe arrives before the kernel detaches the recorder's tracees, so the first attempt may find the
/// program still traced. A debugger may hold it for longer.
fn unhook_in_the_end(pid: i32, written: &Told, watch: &ExitWatch) -> Result<()> {
    let mut pause = FIRST_PAUSE;
    let start = Instant::now();
    loop {
        let unhooked = unhook(pid, written);
        if unhooked.is_ok() || watch.poll().is_some() {
            return Ok(());
        }
        if start.elapsed() > LONGEST_TRIAL {
            return unhooked;
        }
        std::thread::sleep(pause);
        pause = LONGEST_PAUSE.min(pause * 2);
    }
}

fn unhook(pid: i32, written: &Told) -> Result<()> {
    while_stopped(pid, PATIENCE, |process| {
        // The kernel leaves debug registers set when a tracer is gone: each access would raise a signal.
        process.clear_debug_registers();
        for (&address, &original) in &written.traps {
            let mut found = [0];
            let is_ours = process.read(address, &mut found).is_ok() && found == [TRAP];
            if is_ours {
                process.write(address, &[original])?;
            }
        }
        take_back(&written.patches, process)
    })??;
    Ok(())
}

/// The announced changes.
#[derive(Debug, Default)]
struct Told {
    patches: BTreeMap<u64, Written>,
    traps: BTreeMap<u64, u8>,
}

/// How the recorder went away.
#[derive(Debug)]
enum Last {
    /// Without a farewell: the announced changes must be undone.
    Death(Told),
    /// Nothing is left to do.
    Farewell,
    /// The program continues, and writes to pipes.
    Leaving,
}

/// Listens to the recorder until it goes away.
fn listen(mut from: impl Read) -> Last {
    let mut told = Told::default();
    let mut message = [0; MESSAGE_BYTES];
    while from.read_exact(&mut message).is_ok() {
        let (address, bytes) = message.split_at(8);
        let address = u64::from_le_bytes(address.try_into().expect("eight bytes"));
        if address == 0 {
            return match message[MESSAGE_BYTES - 1] {
                STAY => Last::Leaving,
                _ => Last::Farewell,
            };
        }
        let (original, rest) = bytes.split_at(5);
        let (jump, len) = rest.split_at(5);
        if len[0] == 1 {
            told.traps.insert(address, original[0]);
            continue;
        }
        let patch = Written {
            original: original.try_into().expect("five bytes"),
            jump: jump.try_into().expect("five bytes"),
        };
        told.patches.insert(address, patch);
    }
    Last::Death(told)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stop::procfs;

    /// As when the recorder's threads end one after the other, with the tracing thread last.
    #[test]
    fn a_program_that_is_still_traced_is_unhooked_later() {
        let mut program = Command::new("sleep")
            .arg("1000")
            .spawn()
            .expect("it starts");
        let pid = program.id() as i32;
        // It sleeps once it has been executed and its libraries are loaded.
        while procfs::name(pid) != "sleep" || procfs::state(pid, pid) != Some('S') {
            std::thread::sleep(FIRST_PAUSE);
        }
        let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).expect("it lives");
        let code = maps
            .lines()
            .find(|line| line.contains("r-xp"))
            .expect("it has code");
        let (start, _) = code.split_once('-').expect("a range");
        let address = u64::from_str_radix(start, 16).expect("a number");
        let byte = |process: &crate::stop::StoppedProcess| {
            let mut found = [0];
            process.read(address, &mut found).expect("it is mapped");
            found[0]
        };
        let original = while_stopped(pid, PATIENCE, |process| {
            let original = byte(process);
            process
                .write(address, &[TRAP])
                .expect("code can be written");
            original
        });
        let original = original.expect("it can be stopped");
        assert_ne!(original, TRAP);
        let told = Told {
            traps: BTreeMap::from([(address, original)]),
            ..Told::default()
        };
        let watch = ExitWatch::new(pid, false).expect("it lives");
        let (holds, held) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let stopped = while_stopped(pid, PATIENCE, |_| {
                    holds.send(()).expect("somebody waits");
                    std::thread::sleep(Duration::from_millis(200));
                });
                stopped.expect("it can be stopped");
            });
            held.recv().expect("it is stopped");
            assert!(unhook(pid, &told).is_err(), "somebody else traces it");
            unhook_in_the_end(pid, &told, &watch).expect("the other tracer has let go");
        });
        let found = while_stopped(pid, PATIENCE, |process| byte(process));
        assert_eq!(found.expect("it can be stopped"), original);
        program.kill().expect("it runs");
        program.wait().expect("it has ended");
    }

    fn patch(address: u64) -> Vec<u8> {
        let written = Written {
            original: *b"befor",
            jump: *b"jumps",
        };
        message(address, &written, PATCH_BYTES as u8)
    }

    #[test]
    fn death_leaves_what_was_told_whole() {
        let trap = Written {
            original: [0x55, 0, 0, 0, 0],
            jump: [TRAP, 0, 0, 0, 0],
        };
        let mut said = patch(0x1000);
        said.extend(patch(0x2000));
        said.extend(message(0x2001, &trap, 1));
        said.extend(&patch(0x3000)[..9]);
        let Last::Death(told) = listen(&said[..]) else {
            panic!("there was no farewell");
        };
        assert_eq!(
            told.patches.keys().copied().collect::<Vec<_>>(),
            [0x1000, 0x2000]
        );
        assert_eq!(&told.patches[&0x2000].original, b"befor");
        assert_eq!(&told.patches[&0x2000].jump, b"jumps");
        assert_eq!(told.traps, BTreeMap::from([(0x2001, 0x55)]));
    }

    #[test]
    fn farewell_leaves_nothing_to_do() {
        let said = [patch(0x1000), vec![0; MESSAGE_BYTES]].concat();
        assert!(matches!(listen(&said[..]), Last::Farewell));
    }
}
