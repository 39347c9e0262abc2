//! Recordings of every instruction. The recorder is a process of its own: it goes on if the wait for it ends, and ends its program and
//! then itself if this process ends.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use serde_json::Value;
use server::protocol::{Code, Failure};
use store::Recording;
use store::manifest::Lineage;

use crate::context::{Cancel, lock};
use crate::group::Group;

/// What the recorder has printed last is looked for in so many bytes at the end.
const END_OF_TEXT: u64 = 64 << 10;
/// How long to wait for a recorder whose program was ended: it runs the program once more, which may take longer.
const PATIENCE: Duration = Duration::from_secs(20);
/// How often the wait looks whether its caller has gone.
const LOOK: Duration = Duration::from_millis(100);

/// Recorders that were started.
#[derive(Default)]
pub(crate) struct Recorders {
    running: Mutex<Vec<Arc<Running>>>,
}

/// A recorder and what it prints.
struct Running {
    recording: PathBuf,
    pid: u32,
    said: Mutex<File>,
    over: Arc<Over>,
}

/// What came of the wish to end a program.
pub(crate) enum Stopped {
    /// It has ended, and the recorder told this of its recording.
    Recorded(Value),
    /// It has ended, and its recording is still being written.
    Writing,
    /// It has not been started yet.
    Starting,
}

/// Whether a recorder has ended; any number of calls may wait for that.
#[derive(Default)]
struct Over {
    is_over: Mutex<bool>,
    changed: Condvar,
}

impl Over {
    fn set(&self) {
        *lock(&self.is_over) = true;
        self.changed.notify_all();
    }

    /// Waits for so long at most, and returns whether it has ended.
    fn within(&self, time: Duration) -> bool {
        let is_over = lock(&self.is_over);
        let waited = self
            .changed
            .wait_timeout_while(is_over, time, |is_over| !*is_over);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

impl Recorders {
    /// Runs a recorder and waits for its end. `Ok(None)`: it still runs after `patience`.
    ///
    /// # Errors
    /// It could not be started, or it refused.
    pub fn record(
        &self,
        mut recorder: Command,
        recording: PathBuf,
        cancel: &Cancel,
        patience: Duration,
    ) -> Result<Option<Value>, Failure> {
        // What the program itself prints there is in the recording.
        let said = tempfile::tempfile().map_err(|error| cannot(&error))?;
        let stderr = said.try_clone().map_err(|error| cannot(&error))?;
        recorder
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(stderr)
            .process_group(0);
        let (started, start) = mpsc::channel();
        let over = Arc::<Over>::default();
        let ended = Arc::clone(&over);
        // For the kernel the recorder's parent is the thread that started it, so that thread stays until the recorder's end.
        std::thread::spawn(move || {
            let (told, child) = match recorder.spawn() {
                Ok(child) => (Ok(child.id()), Some(child)),
                Err(error) => (Err(error), None),
            };
            // There may be no one who waits.
            let _ = started.send(told);
            if let Some(mut child) = child {
                let _ = child.wait();
            }
            ended.set();
        });
        let started = start.recv().map_err(|error| cannot(&error))?;
        let pid = started.map_err(|error| cannot(&error))?;
        let running = Arc::new(Running {
            recording,
            pid,
            said: Mutex::new(said),
            over,
        });
        lock(&self.running).push(Arc::clone(&running));
        self.wait(&running, cancel, patience)
    }

    /// Ends the program of a recording, and waits for the end of its recorder, which closes the recording. `Ok(None)`: there is no
    /// recorder.
    ///
    /// # Errors
    /// It ended without a recording.
    pub fn stop(&self, recording: &Path, cancel: &Cancel) -> Result<Option<Stopped>, Failure> {
        let Some(running) = self.of(recording) else {
            return Ok(None);
        };
        let until = Instant::now() + PATIENCE;
        // Its recorder may be about to start it.
        let is_started = loop {
            if end_program(&running.recording, running.pid) {
                break true;
            }
            let is_given_up = cancel.is_set() || Instant::now() >= until;
            if is_given_up || running.over.within(LOOK) {
                break false;
            }
        };
        let left = until.saturating_duration_since(Instant::now());
        let told = self.wait(&running, cancel, left)?;
        Ok(Some(match (told, is_started) {
            (Some(told), _) => Stopped::Recorded(told),
            (None, true) => Stopped::Writing,
            (None, false) => Stopped::Starting,
        }))
    }

    /// Waits for the end of the recorder of a recording. `Ok(None)`: it still runs after `patience`, or there is none.
    ///
    /// # Errors
    /// It ended without a recording.
    pub fn wait_for(
        &self,
        recording: &Path,
        cancel: &Cancel,
        patience: Duration,
    ) -> Result<Option<Value>, Failure> {
        match self.of(recording) {
            Some(running) => self.wait(&running, cancel, patience),
            None => Ok(None),
        }
    }

    /// Returns whether the recorder of a recording runs.
    pub fn is_running(&self, recording: &Path) -> bool {
        let running = self.of(recording);
        running.is_some_and(|running| !running.over.within(Duration::ZERO))
    }

    /// Returns whether a recorder of a recording was started, and nobody has learnt yet how it ended.
    pub fn is_known(&self, recording: &Path) -> bool {
        self.of(recording).is_some()
    }

    fn of(&self, recording: &Path) -> Option<Arc<Running>> {
        let all = lock(&self.running);
        let mut own = all.iter().filter(|running| running.recording == recording);
        own.next().map(Arc::clone)
    }

    fn wait(
        &self,
        running: &Arc<Running>,
        cancel: &Cancel,
        patience: Duration,
    ) -> Result<Option<Value>, Failure> {
        let until = Instant::now() + patience;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if running.over.within(left.min(LOOK)) {
                break;
            }
            if left.is_zero() || cancel.is_set() {
                return Ok(None);
            }
        }
        lock(&self.running).retain(|other| !Arc::ptr_eq(other, running));
        let told = last_words(&mut lock(&running.said));
        let told = told.ok_or_else(|| cannot(&"the recorder ended without a word"))?;
        match told.get("error") {
            Some(error) => {
                Err(serde_json::from_value(error.clone()).unwrap_or_else(|_| cannot(error)))
            }
            None => Ok(Some(told["result"].clone())),
        }
    }
}

/// Ends the program of a recording, which is a child of its recorder, and what it made. Returns whether there is nothing more to do:
/// otherwise it has not been started.
fn end_program(recording: &Path, recorder: u32) -> bool {
    let found = Recording::open_exact(recording).ok();
    let lineage = found.and_then(|recording| recording.manifest().lineage);
    let Some(Lineage { pid, .. }) = lineage else {
        return false;
    };
    if let Some(mut group) = Group::of(pid, recorder) {
        group.end();
    }
    true
}

fn cannot(error: &dyn std::fmt::Display) -> Failure {
    Failure::new(Code::NotStarted, format!("cannot record: {error}"))
}

/// Returns the last line of JSON that the recorder has printed.
fn last_words(said: &mut File) -> Option<Value> {
    let len = said.seek(SeekFrom::End(0)).ok()?;
    said.seek(SeekFrom::Start(len.saturating_sub(END_OF_TEXT)))
        .ok()?;
    let mut text = Vec::new();
    said.read_to_end(&mut text).ok()?;
    let text = String::from_utf8_lossy(&text);
    let mut lines = text.lines().rev();
    // The program may have begun a line.
    lines.find_map(|line| serde_json::from_str(&line[line.find('{')?..]).ok())
}
