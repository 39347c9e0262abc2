//! Drives Frida through a small Python process that has the official wheel.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{self, Receiver, RecvTimeoutError},
    thread,
    time::Duration,
};

use serde_json::{Value, json};

use super::{Host, has_left, patience::Patience};
use crate::{Error, Result, wheel};

const HELPER: &str = include_str!("../../script/host.py");
/// How long Python may take to start, and Frida to attach: a tenth of a second is usual. Time in which a thread of
/// the helper or the program waits for a processor does not count, here and below.
const START_PATIENCE: Duration = Duration::from_secs(60);
/// How long any other request may take: milliseconds are usual. In one of a thousand runs Frida never finishes leaving
/// a program (17.25.2).
const PATIENCE: Duration = Duration::from_secs(10);
/// A file in the wheel's folder: the path of the interpreter that `python3` starts. The `python3` in PATH may be a
/// script that takes longer to find the interpreter than the interpreter takes to start.
const INTERPRETER_FILE: &str = "interpreter";

/// The helper process; it ends when this is dropped.
#[derive(Debug)]
pub struct WheelHost {
    child: Child,
    requests: Option<ChildStdin>,
    answers: Receiver<String>,
    is_ready: bool,
    packages: PathBuf,
    /// The process that Frida is attached to.
    pid: Option<i32>,
    /// How long requests may take.
    patience: Duration,
}

impl WheelHost {
    /// Starts the helper process without waiting for it, so that its start overlaps with other work. Installs the
    /// wheel first if need be.
    ///
    /// # Errors
    /// See [`wheel::ensure`]; [`Error::HelperGone`] when python3 cannot be run.
    pub fn start(progress: &dyn Fn(&str)) -> Result<Self> {
        Self::with(wheel::ensure(progress)?)
    }

    /// Starts the helper process with the package in this folder.
    fn with(packages: PathBuf) -> Result<Self> {
        let mut child = Command::new(interpreter(&packages))
            // Use nothing of the user's Python set-up: only the standard library and the wheel.
            .args(["-I", "-S", "-c", HELPER])
            .arg(&packages)
            // Frida would unpack and start a service for iOS devices there, which outlives it; without that folder it
            // does not.
            .env("TMPDIR", "/dev/null")
            // Python does not start in a folder that was removed.
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            // Ctrl-C is meant for the program.
            .process_group(0)
            .spawn()
            .map_err(|error| Error::HelperGone {
                detail: format!("python3: {error}"),
            })?;
        let requests = child.stdin.take();
        let output = BufReader::new(child.stdout.take().expect("piped above"));
        let (send, answers) = mpsc::channel();
        thread::spawn(move || {
            for line in output.lines().map_while(|line| line.ok()) {
                if send.send(line).is_err() {
                    break;
                }
            }
        });
        Ok(Self {
            child,
            requests,
            answers,
            is_ready: false,
            packages,
            pid: None,
            patience: PATIENCE,
        })
    }

    fn request(&mut self, action: &str, request: &Value, patience: Duration) -> Result<Value> {
        self.send(request)?;
        self.answer(action, patience)
    }

    fn send(&mut self, request: &Value) -> Result<()> {
        self.ready()?;
        let gone = |error: std::io::Error| Error::HelperGone {
            detail: error.to_string(),
        };
        let Some(requests) = self.requests.as_mut() else {
            return Err(Error::HelperGone {
                detail: "it was told to leave".into(),
            });
        };
        writeln!(requests, "{request}")
            .and_then(|()| requests.flush())
            .map_err(gone)
    }

    fn answer(&mut self, action: &str, patience: Duration) -> Result<Value> {
        match self.line(patience)? {
            Some(line) => answered(action, &line),
            None => {
                // It may be stuck for good; do not wait for its end.
                let _ = self.child.kill();
                Err(Error::HelperStuck {
                    action: action.into(),
                    seconds: patience.as_secs(),
                })
            }
        }
    }

    /// Returns the next line of the helper; `None` if it has none although it had time enough.
    fn line(&mut self, patience: Duration) -> Result<Option<String>> {
        let helper = i32::try_from(self.child.id()).ok();
        let processes: Vec<i32> = helper.into_iter().chain(self.pid).collect();
        match Patience::new(patience, &processes).wait(&self.answers) {
            Ok(line) => Ok(Some(line)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(Error::HelperGone {
                detail: "it ended".into(),
            }),
        }
    }
}

fn answered(action: &str, line: &str) -> Result<Value> {
    let mut answer: Value = serde_json::from_str(line).map_err(|error| Error::HelperGone {
        detail: error.to_string(),
    })?;
    match answer.get("error").and_then(Value::as_str) {
        Some(message) => Err(Error::Frida {
            action: action.into(),
            message: message.into(),
            is_timeout: answer["timed_out"] == true,
        }),
        None => Ok(answer["ok"].take()),
    }
}

/// Returns the interpreter of the last start, if it still exists.
fn interpreter(packages: &Path) -> PathBuf {
    let known = fs::read_to_string(packages.join(INTERPRETER_FILE)).map(PathBuf::from);
    match known {
        Ok(path) if path.is_absolute() && path.is_file() => path,
        _ => "python3".into(),
    }
}

/// Speeds up the next start. If the cache cannot be written, that start is just slower.
fn remember_interpreter(packages: &Path, python: &str) {
    let file = packages.join(INTERPRETER_FILE);
    if fs::read_to_string(&file).is_ok_and(|known| known == python) {
        return;
    }
    let draft = packages.join(format!("{INTERPRETER_FILE}.{}", std::process::id()));
    let _ = fs::write(&draft, python).and_then(|()| fs::rename(&draft, &file));
}

impl Host for WheelHost {
    fn ready(&mut self) -> Result<()> {
        if !self.is_ready {
            let hello = self.answer("start", START_PATIENCE)?;
            if let Some(python) = hello["python"].as_str() {
                remember_interpreter(&self.packages, python);
            }
            self.is_ready = true;
        }
        Ok(())
    }

    fn version(&self) -> &str {
        wheel::VERSION
    }

    fn attach(&mut self, pid: i32) -> Result<()> {
        self.pid = Some(pid);
        self.request(
            &format!("attach to process {pid}"),
            &json!({"op": "attach", "pid": pid}),
            START_PATIENCE,
        )
        .map(drop)
    }

    fn load(&mut self, source: &str) -> Result<()> {
        self.request(
            "load the agent's script",
            &json!({"op": "load", "source": source}),
            self.patience,
        )
        .map(drop)
    }

    fn call(&mut self, name: &str, argument: Value) -> Result<Value> {
        let request = json!({"op": "call", "name": name, "argument": argument});
        self.request(
            &format!("{name} the runtime in the program"),
            &request,
            self.patience,
        )
    }

    fn detach(&mut self) -> Result<()> {
        let action = "leave the program";
        self.send(&json!({"op": "detach"}))?;
        match self.line(self.patience)? {
            Some(line) => drop(answered(action, &line)?),
            // It hangs after it has left: what counts is that nothing of it is in the program.
            None if self.pid.is_some_and(|pid| has_left(pid, false)) => _ = self.child.kill(),
            None => {
                let _ = self.child.kill();
                return Err(Error::HelperStuck {
                    action: action.into(),
                    seconds: self.patience.as_secs(),
                });
            }
        }
        drop(self.requests.take());
        // It exits at the end of its input; its status adds nothing.
        let _ = self.child.wait();
        Ok(())
    }
}

impl Drop for WheelHost {
    fn drop(&mut self) {
        drop(self.requests.take());
        // It exits by itself at the end of its input; a helper that is gone needs no signal.
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An extension module that attaches, and whose device manager never closes.
    const HANGING: &str = "
import time
__version__ = '0'
class TimedOutError(Exception): pass
class ProcessNotRespondingError(Exception): pass
class SessionOptions: pass
class Session:
    def detach(self, done): done(None, None)
class Device:
    def attach(self, pid, options, done): done(Session(), None)
class DeviceManager:
    def get_device_by_type(self, kind, timeout, done): done(Device(), None)
    def close(self, done): time.sleep(1000000)
def get_device_manager():
    return DeviceManager()
";

    /// Has the hanging Frida leave a process.
    fn left(pid: i32) -> Result<()> {
        let folder = tempfile::tempdir().unwrap();
        let package = folder.path().join("frida");
        fs::create_dir(&package).unwrap();
        fs::write(package.join("_frida.py"), HANGING).unwrap();
        let mut host = WheelHost::with(folder.path().to_owned()).unwrap();
        host.patience = Duration::from_millis(300);
        host.attach(pid).unwrap();
        host.detach()
    }

    #[test]
    fn a_frida_that_hangs_has_left_if_nothing_of_it_is_in_the_program() {
        // What Frida leaves behind while it is there: a thread of this name.
        let (end, wait) = mpsc::channel::<()>();
        let thread = thread::Builder::new().name("gum-js-loop".to_owned());
        let there = thread
            .spawn(move || {
                let _ = wait.recv();
            })
            .unwrap();
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        let stays = left(std::process::id() as i32);
        left(child.id() as i32).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        drop(end);
        there.join().unwrap();
        assert!(matches!(stays, Err(Error::HelperStuck { .. })), "{stays:?}");
    }
}
