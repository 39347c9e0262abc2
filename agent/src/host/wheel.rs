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

use super::Host;
use crate::{Error, Result, wheel};

const HELPER: &str = include_str!("../../script/host.py");
/// How long Python may take to start, and Frida to attach. A tenth of a second is usual; a busy machine may need ten
/// seconds.
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
}

impl WheelHost {
    /// Starts the helper process without waiting for it, so that its start overlaps with other work. Installs the
    /// wheel first if need be.
    ///
    /// # Errors
    /// See [`wheel::ensure`]; [`Error::HelperGone`] when python3 cannot be run.
    pub fn start(progress: &dyn Fn(&str)) -> Result<Self> {
        let packages = wheel::ensure(progress)?;
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
        })
    }

    fn request(&mut self, action: &str, request: &Value, patience: Duration) -> Result<Value> {
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
            .map_err(gone)?;
        self.answer(action, patience)
    }

    fn answer(&mut self, action: &str, patience: Duration) -> Result<Value> {
        let gone = |detail: String| Error::HelperGone { detail };
        let line = match self.answers.recv_timeout(patience) {
            Ok(line) => line,
            Err(RecvTimeoutError::Disconnected) => {
                return Err(gone("it ended".into()));
            }
            Err(RecvTimeoutError::Timeout) => {
                // It may be stuck for good; do not wait for its end.
                let _ = self.child.kill();
                let seconds = patience.as_secs();
                return Err(Error::HelperStuck {
                    action: action.into(),
                    seconds,
                });
            }
        };
        let mut answer: Value =
            serde_json::from_str(&line).map_err(|error| gone(error.to_string()))?;
        match answer.get("error").and_then(Value::as_str) {
            Some(message) => Err(Error::Frida {
                action: action.into(),
                message: message.into(),
                is_timeout: answer["timed_out"] == true,
            }),
            None => Ok(answer["ok"].take()),
        }
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
            PATIENCE,
        )
        .map(drop)
    }

    fn call(&mut self, name: &str, argument: Value) -> Result<Value> {
        let request = json!({"op": "call", "name": name, "argument": argument});
        self.request(
            &format!("{name} the runtime in the program"),
            &request,
            PATIENCE,
        )
    }

    fn detach(&mut self) -> Result<()> {
        self.request("leave the program", &json!({"op": "detach"}), PATIENCE)?;
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
