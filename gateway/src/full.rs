//! Recordings of every instruction. The recorder is a process of its own: it goes on if the wait for it ends, and ends its program and
//! then itself if this process ends.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, TryRecvError};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;
use server::protocol::{Code, Failure};

use crate::context::{Cancel, lock};

/// What the recorder has printed last is looked for in so many bytes at the end.
const END_OF_TEXT: u64 = 64 << 10;
/// How long a recorder that was interrupted may take: it runs the program once more.
const PATIENCE: Duration = Duration::from_secs(60);
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
    group: Option<Pid>,
    said: Mutex<File>,
    over: Mutex<Receiver<()>>,
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
        let (ended, over) = mpsc::channel();
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
            let _ = ended.send(());
        });
        let started = start.recv().map_err(|error| cannot(&error))?;
        let pid = started.map_err(|error| cannot(&error))?;
        let running = Arc::new(Running {
            recording,
            group: i32::try_from(pid).ok().and_then(Pid::from_raw),
            said: Mutex::new(said),
            over: Mutex::new(over),
        });
        lock(&self.running).push(Arc::clone(&running));
        self.wait(&running, cancel, patience)
    }

    /// Interrupts the recorder of a recording as Ctrl-C does, and waits for its end. `Ok(None)`: there is none.
    ///
    /// # Errors
    /// It ended without a recording.
    pub fn stop(&self, recording: &Path, cancel: &Cancel) -> Result<Option<Value>, Failure> {
        let Some(running) = self.of(recording) else {
            return Ok(None);
        };
        if let Some(group) = running.group {
            // It may have ended.
            let _ = kill_process_group(group, Signal::INT);
        }
        self.wait(&running, cancel, PATIENCE)
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
        running.is_some_and(|running| match running.over.try_lock() {
            Ok(over) => matches!(over.try_recv(), Err(TryRecvError::Empty)),
            // Another call waits for its end.
            Err(_) => true,
        })
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
        let over = lock(&running.over);
        let until = Instant::now() + patience;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match over.recv_timeout(left.min(LOOK)) {
                Err(RecvTimeoutError::Timeout) if left.is_zero() || cancel.is_set() => {
                    return Ok(None);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Ok(()) | Err(RecvTimeoutError::Disconnected) => break,
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
