//! Drives Frida through a small Python process that has the official wheel.

use std::{
    io::{BufRead, BufReader, Write},
    os::unix::process::CommandExt,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use serde_json::{Value, json};

use super::Host;
use crate::{Error, Result, wheel};

const HELPER: &str = include_str!("../../script/host.py");

/// The helper process; it ends when this is dropped.
#[derive(Debug)]
pub struct WheelHost {
    child: Child,
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    version: Option<String>,
}

impl WheelHost {
    /// Starts the helper process without waiting for it, so that its start overlaps with other work. Installs the
    /// wheel first if need be.
    ///
    /// # Errors
    /// See [`wheel::ensure`]; [`Error::HelperGone`] when python3 cannot be run.
    pub fn start(progress: &dyn Fn(&str)) -> Result<Self> {
        let packages = wheel::ensure(progress)?;
        let mut child = Command::new("python3")
            // Nothing of the user's Python set-up: only the standard library and the wheel.
            .args(["-I", "-S", "-c", HELPER])
            .arg(packages)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            // Ctrl-C is for the program.
            .process_group(0)
            .spawn()
            .map_err(|error| Error::HelperGone {
                detail: format!("python3: {error}"),
            })?;
        let requests = child.stdin.take();
        let answers = BufReader::new(child.stdout.take().expect("piped above"));
        Ok(Self {
            child,
            requests,
            answers,
            version: None,
        })
    }

    /// Waits until the helper is ready and returns Frida's version.
    ///
    /// # Errors
    /// [`Error::HelperGone`] when it ended instead.
    pub fn ready(&mut self) -> Result<&str> {
        if self.version.is_none() {
            let version = self.answer("start")?;
            self.version = Some(version.as_str().unwrap_or_default().to_owned());
        }
        Ok(self.version.as_deref().unwrap_or_default())
    }

    fn request(&mut self, action: &str, request: &Value) -> Result<Value> {
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
        self.answer(action)
    }

    fn answer(&mut self, action: &str) -> Result<Value> {
        let mut line = String::new();
        let gone = |detail: String| Error::HelperGone { detail };
        self.answers
            .read_line(&mut line)
            .map_err(|error| gone(error.to_string()))?;
        if line.is_empty() {
            return Err(gone(
                "it ended; is python3 at least version 3.7, and the Frida package whole?".into(),
            ));
        }
        let mut answer: Value =
            serde_json::from_str(&line).map_err(|error| gone(error.to_string()))?;
        match answer.get("error").and_then(Value::as_str) {
            Some(message) => Err(Error::Frida {
                action: action.into(),
                message: message.into(),
            }),
            None => Ok(answer["ok"].take()),
        }
    }
}

impl Host for WheelHost {
    fn version(&self) -> &str {
        wheel::VERSION
    }

    fn attach(&mut self, pid: i32) -> Result<()> {
        self.request(
            &format!("attach to process {pid}"),
            &json!({"op": "attach", "pid": pid}),
        )
        .map(drop)
    }

    fn load(&mut self, source: &str) -> Result<()> {
        self.request(
            "load the agent's script",
            &json!({"op": "load", "source": source}),
        )
        .map(drop)
    }

    fn call(&mut self, name: &str, argument: Value) -> Result<Value> {
        let request = json!({"op": "call", "name": name, "argument": argument});
        self.request(&format!("{name} the runtime in the program"), &request)
    }

    fn detach(&mut self) -> Result<()> {
        self.request("leave the program", &json!({"op": "detach"}))?;
        drop(self.requests.take());
        // It ends at the end of its input; a status of its own says nothing more.
        let _ = self.child.wait();
        Ok(())
    }
}

impl Drop for WheelHost {
    fn drop(&mut self) {
        drop(self.requests.take());
        // It ends by itself at the end of its input; there is nothing to do about one that does not exist.
        let _ = self.child.wait();
    }
}
