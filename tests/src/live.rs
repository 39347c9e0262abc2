//! A live session: runs verbs of `hindsight` against the test's own daemon, which ends with the test.

use crate::fixture::fixture_source;
use crate::hindsight::Hindsight;
use crate::process::{Ended, Program, kill, wait_until};
use crate::recording::Recording;
use crate::scratch::Scratch;
use rustix::process::{Pid, Signal, test_kill_process};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use tempfile::TempDir;

/// The test's own daemon and its programs. Dropping it ends both.
pub struct Live {
    /// The folder of the client and of recordings.
    pub scratch: Scratch,
    // The path of a socket must be short, so it is not in the test's folder.
    runtime: TempDir,
    started: Mutex<Vec<i32>>,
}

impl Live {
    /// No daemon runs yet.
    ///
    /// # Panics If the folders cannot be created.
    #[must_use]
    pub fn new(name: &str) -> Self {
        let scratch = Scratch::new(name);
        let runtime = tempfile::tempdir_in("/tmp").expect("a folder for the socket");
        let private = std::fs::Permissions::from_mode(0o700);
        std::fs::set_permissions(runtime.path(), private).expect("the folder is ours");
        Self {
            scratch,
            runtime,
            started: Mutex::default(),
        }
    }

    /// A session with a program that was started with these options before its name.
    ///
    /// # Panics
    /// If it does not start.
    #[must_use]
    pub fn started(name: &str, options: &[&str], program: &Path, args: &[&str]) -> Self {
        let live = Self::new(name);
        live.start(options, program, args);
        live
    }

    /// Starts a program and returns the reply of `start`.
    ///
    /// # Panics
    /// If it does not start.
    pub fn start(&self, options: &[&str], program: &Path, args: &[&str]) -> Value {
        let path = program.to_str().expect("paths of tests are text");
        let words = [&["start"], options, &[path], args].concat();
        let report = self.ask(&words);
        self.keep(&report);
        report
    }

    /// Registers a program, to be killed when the test ends.
    pub fn keep(&self, report: &Value) {
        let pid = report["pid"].as_i64().expect("a session has a process");
        self.programs().push(pid as i32);
    }

    fn programs(&self) -> std::sync::MutexGuard<'_, Vec<i32>> {
        // The entries are independent.
        self.started.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A command line for the test's own daemon.
    #[must_use]
    pub fn command(&self, words: &[&str]) -> Program {
        self.program(Hindsight::path(), words)
    }

    /// The folder of the daemon's socket: `XDG_RUNTIME_DIR` of its clients.
    #[must_use]
    pub fn runtime(&self) -> &Path {
        self.runtime.path()
    }

    /// Another program, with an environment in which it uses the test's own daemon.
    #[must_use]
    pub fn program(&self, path: &Path, words: &[&str]) -> Program {
        let home = self.scratch.path().to_path_buf();
        // The data is fetched once for all tests.
        let cache = std::env::var_os("XDG_CACHE_HOME").map_or_else(
            || PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".cache"),
            PathBuf::from,
        );
        Program::new(path, self.scratch.path())
            .args(words)
            .env("XDG_RUNTIME_DIR", self.runtime.path())
            .env("HOME", home)
            .env("XDG_CACHE_HOME", cache)
    }

    /// Runs a verb with `--json` added after it and returns the daemon's whole response.
    ///
    /// # Panics
    /// If it is not JSON.
    #[must_use]
    pub fn response(&self, words: &[&str]) -> (Ended, Value) {
        let (verb, rest) = words.split_first().expect("a verb");
        let words = [&[*verb, "--json"], rest].concat();
        let ended = self.command(&words).run();
        let value = serde_json::from_slice(&ended.stdout).unwrap_or_else(|e| {
            panic!(
                "{words:?}: not JSON ({e}): {}{}",
                ended.text(),
                ended.errors()
            )
        });
        (ended, value)
    }

    /// Runs a verb and returns its reply.
    ///
    /// # Panics
    /// If it was refused.
    pub fn ask(&self, words: &[&str]) -> Value {
        let (ended, mut response) = self.response(words);
        assert_eq!(response["success"], true, "{words:?}: {response:#}");
        assert_eq!(ended.status.as_shell_code(), 0, "{words:?}: {response:#}");
        response["result"].take()
    }

    /// Runs a verb that must be refused and returns the error.
    ///
    /// # Panics
    /// If it was accepted.
    #[must_use]
    pub fn refused(&self, words: &[&str]) -> Value {
        let (ended, mut response) = self.response(words);
        assert_eq!(response["success"], false, "{words:?}: {response:#}");
        assert_ne!(ended.status.as_shell_code(), 0, "{words:?}: {response:#}");
        response["error"].take()
    }

    /// The value of an expression, as text.
    ///
    /// # Panics
    /// If it has none.
    #[must_use]
    pub fn print(&self, expression: &str) -> String {
        let reply = self.ask(&["print", expression]);
        match reply["value"].as_str() {
            Some(value) => value.to_owned(),
            None => panic!("{expression} has no value: {reply:#}"),
        }
    }

    /// Runs a verb that moves the program and returns where it stopped.
    ///
    /// # Panics
    /// If it did not stop.
    pub fn moved(&self, words: &[&str]) -> Value {
        let mut reply = self.ask(words);
        assert_eq!(reply["status"], "stopped", "{words:?}: {reply:#}");
        reply["stop"].take()
    }

    /// Lets the program run to its end and returns its exit code.
    ///
    /// # Panics
    /// If it stops, or was killed.
    #[must_use]
    pub fn run_to_end(&self) -> i64 {
        let reply = self.ask(&["continue"]);
        assert_eq!(reply["status"], "ended", "{reply:#}");
        reply["exit"]["code"]
            .as_i64()
            .unwrap_or_else(|| panic!("it was killed: {reply:#}"))
    }

    /// The output of the program so far.
    ///
    /// # Panics
    /// If it cannot be read.
    #[must_use]
    pub fn output(&self) -> String {
        self.command(&["output"]).run().text()
    }

    /// The session as `status` shows it.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn session(&self) -> Value {
        let mut status = self.ask(&["status"]);
        status["sessions"][0].take()
    }

    /// The recording of the session.
    ///
    /// # Panics
    /// If there is no session.
    #[must_use]
    pub fn recording(&self) -> Recording {
        let session = self.session();
        Recording::new(PathBuf::from(
            session["recording"]
                .as_str()
                .expect("a session is recorded"),
        ))
    }

    /// The path of the daemon's socket.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.runtime.path().join("hindsight/daemon.sock")
    }

    /// Sends one request over the socket, as a program would, and returns the response.
    ///
    /// # Panics
    /// If the daemon does not answer.
    #[must_use]
    pub fn request(&self, request: &Value) -> Value {
        let mut stream = UnixStream::connect(self.socket()).expect("the daemon listens");
        let line = format!("{request}\n");
        stream.write_all(line.as_bytes()).expect("it reads");
        let lines = BufReader::new(stream).lines();
        let answers = lines.map_while(Result::ok);
        let mut parsed = answers.filter_map(|line| serde_json::from_str::<Value>(&line).ok());
        let answer = parsed.find(|answer| answer["id"] == request["id"]);
        answer.expect("the daemon answers")
    }

    /// Writes the user's configuration file.
    ///
    /// # Panics
    /// If it cannot be written.
    pub fn configure(&self, text: &str) {
        let folder = self.scratch.join(".config/hindsight");
        std::fs::create_dir_all(&folder).expect("the test's folder is writable");
        std::fs::write(folder.join("config.toml"), text).expect("the test's folder is writable");
    }

    /// The daemon's process.
    #[must_use]
    pub fn daemon(&self) -> Option<i32> {
        let stream = UnixStream::connect(self.socket()).ok()?;
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).ok()?;
        let greeting: Value = serde_json::from_str(&line).ok()?;
        Some(greeting["pid"].as_i64()? as i32)
    }

    /// Waits for the end of a process.
    pub fn wait_for_end_of(&self, pid: i32) {
        wait_until("a process to end", || (!is_alive(pid)).then_some(()));
    }
}

/// Returns whether a process exists and is not a zombie.
#[must_use]
pub fn is_alive(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.is_ok_and(|stat| !stat.contains(") Z ") && !stat.contains(") X "))
}

impl Drop for Live {
    fn drop(&mut self) {
        for pid in self.programs().clone() {
            let is_there = Pid::from_raw(pid).is_some_and(|pid| test_kill_process(pid).is_ok());
            if is_there && is_alive(pid) {
                kill(pid, Signal::KILL);
            }
        }
        if let Some(daemon) = self.daemon() {
            // It closes its recordings; a daemon that does not do so in time is killed.
            let _ = self.command(&["stop"]).run();
            if is_alive(daemon) {
                kill(daemon, Signal::KILL);
            }
        }
    }
}

/// The number of the line of a fixture's source that ends with a comment with this mark.
///
/// # Panics
/// If not exactly one line has it.
#[must_use]
pub fn marked_line(fixture: &str, file: &str, mark: &str) -> u64 {
    let text = std::fs::read_to_string(fixture_source(fixture).join(file)).expect("a source file");
    let ends = [format!("/* {mark} */"), format!("// {mark}")];
    let lines: Vec<u64> = (1..)
        .zip(text.lines())
        .filter(|(_, line)| ends.iter().any(|end| line.ends_with(end)))
        .map(|(number, _)| number)
        .collect();
    assert_eq!(lines.len(), 1, "{file}: lines marked {mark}: {lines:?}");
    lines[0]
}
