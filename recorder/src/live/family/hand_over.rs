//! Hands a parked process to a recorder of its own, which is a new process, and takes it back if that cannot record it.

use std::{
    ffi::OsString,
    io::{self, BufRead, BufReader, Write},
    os::unix::process::CommandExt,
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use store::{
    manifest::Lineage,
    set::{Fact, ProcessLog},
};

use crate::{
    Error, Exit, Member,
    live::{
        commands::{Commands, ask},
        event_loop::Tracer,
        family::now,
    },
    process::{ExitWatch, Parked},
    stop::procfs,
    wake::Event,
};

/// A recorder's answer when it records, before the recording's name.
pub const RECORDED: &str = "recorded ";
/// Its answer when it does not, before the reason.
pub const REFUSED: &str = "refused ";
/// How long to try to take back a process, which a failed recorder may still trace.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(2);

/// Watches a parked process until a tracer has it again: in between, nobody else sees its end.
#[derive(Debug)]
pub(crate) struct ParkedWatch {
    process: ExitWatch,
    /// A tracer has it.
    over: Event,
}

impl ParkedWatch {
    /// Watches `pid`, which is still traced: so it is not another process by now.
    ///
    /// # Errors
    /// If no descriptors are left.
    pub fn new(pid: i32) -> io::Result<Self> {
        Ok(Self {
            process: ExitWatch::new(pid, false)?,
            over: Event::new()?,
        })
    }

    /// Waits until it ends or is traced again, and tells its end.
    fn tell_end(&self, log: &ProcessLog) {
        self.process.wait(&self.over, || {
            let unix_ns = now();
            let (code, signal) = match self.process.told() {
                Some(Exit::Code(code)) => (Some(code), None),
                Some(Exit::Signal(signal)) => (None, Some(signal)),
                Some(Exit::Detached) | None => (None, None),
            };
            // The others keep running even if the disk fails.
            let _ = log.add(&Fact::End {
                pid: self.process.pid(),
                unix_ns,
                code,
                signal,
            });
        });
    }

    /// Returns whether it has ended. Waits for that if it is about to end.
    fn has_ended(&self) -> bool {
        if !self.process.has_ended() && procfs::is_ending(self.process.pid()) {
            self.process.wait_at_most(PATIENCE);
        }
        self.process.has_ended()
    }
}

/// A recorder to start, and its process.
pub(crate) struct Recorder {
    pub log: Arc<ProcessLog>,
    pub command: Vec<OsString>,
    pub parked: Parked,
    pub lineage: Lineage,
    pub is_copy: bool,
}

impl Recorder {
    /// Starts it in a thread of its own, which reports the outcome to the tracer.
    pub fn hand_over(self, watch: ParkedWatch, tracer: Commands) {
        let log = Arc::clone(&self.log);
        let (parked, parent) = (self.parked.clone(), self.lineage.parent_pid);
        let thread = thread::Builder::new().name("hand over".to_owned());
        let failed_tracer = tracer.clone();
        let started = thread.spawn(move || {
            let recorder = self.start_watched(&watch, &tracer);
            // Its descriptors are closed now: this thread lives as long as the process.
            drop(watch);
            // The tracer may end now: whatever was to be told is told.
            settled(&tracer);
            let _ = recorder.map(|mut recorder| recorder.wait());
        });
        if let Err(error) = started {
            // The tracer cannot wait for itself.
            let pid = parked.pid;
            let _ = log.add(&Fact::Unrecorded {
                pid,
                why: error.to_string(),
            });
            let _ = failed_tracer.send(Box::new(move |tracer: &mut Tracer| {
                if let Some(family) = &mut tracer.family {
                    let _ = family.take_back(&parked, parent);
                    family.pending -= 1;
                }
            }));
        }
    }

    /// Starts it and tells if the process ends meanwhile. `None`: it does not record the process.
    fn start_watched(&self, watch: &ParkedWatch, tracer: &Commands) -> Option<Child> {
        thread::scope(|scope| {
            let watching = thread::Builder::new().name("parked".to_owned());
            // Without a thread, its end is unknown.
            let _ = watching.spawn_scoped(scope, || watch.tell_end(&self.log));
            let started = self.start();
            if let Err(why) = &started {
                let parent = self.lineage.parent_pid;
                give_back(&self.log, tracer, watch, (&self.parked, parent), why);
            }
            watch.over.signal();
            started.ok()
        })
    }

    /// Starts it and waits until it records.
    ///
    /// # Errors
    /// Why it does not.
    pub fn start(&self) -> Result<Child, String> {
        let text = |error: io::Error| format!("its recorder cannot be started: {error}");
        let member = Member {
            parked: self.parked.clone(),
            lineage: self.lineage,
            is_copy: self.is_copy,
            records_copies: false,
            set: PathBuf::new(),
            recorder: Vec::new(),
        };
        let member = serde_json::to_vec(&member).map_err(|error| text(error.into()))?;
        let mut child = Command::new(&self.command[0])
            .args(&self.command[1..])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            // Ctrl-C is for the programs.
            .process_group(0)
            .spawn()
            .map_err(text)?;
        let told = child.stdin.take().map(|mut pipe| pipe.write_all(&member));
        let mut answer = String::new();
        if let (Some(Ok(())), Some(pipe)) = (told, child.stdout.take()) {
            let _ = BufReader::new(pipe).read_line(&mut answer);
        }
        if answer.starts_with(RECORDED) {
            return Ok(child);
        }
        let _ = child.wait();
        let why = answer.trim_end().strip_prefix(REFUSED);
        Err(why.unwrap_or("its recorder has failed").to_owned())
    }
}

fn settled(tracer: &Commands) {
    // If the tracer has ended, nothing waits for this.
    let _ = ask(tracer, |tracer| {
        if let Some(family) = &mut tracer.family {
            family.pending -= 1;
        }
    });
}

fn give_back(
    log: &ProcessLog,
    tracer: &Commands,
    watch: &ParkedWatch,
    (parked, parent): (&Parked, i32),
    why: &str,
) {
    let pid = parked.pid;
    let why = match watch.has_ended() {
        true => "it was killed before its recording began",
        false => why,
    };
    let why = why.to_owned();
    let _ = log.add(&Fact::Unrecorded { pid, why });
    let deadline = Instant::now() + PATIENCE;
    while !watch.has_ended() {
        let parked = parked.clone();
        let taken = ask(tracer, move |tracer| {
            let family = tracer.family.as_mut();
            family.map_or(Ok(()), |family| family.take_back(&parked, parent))
        });
        match taken {
            Ok(Err(_)) if Instant::now() < deadline => thread::sleep(PAUSE),
            _ => break,
        }
    }
}

/// Returns why a program is not recorded, without its path, which the caller knows.
#[must_use]
pub fn why_refused(error: &Error) -> String {
    match error {
        Error::Unsupported { reason, .. } => reason.one_line(),
        other => other.one_line(),
    }
}
