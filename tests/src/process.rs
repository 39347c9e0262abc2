//! Runs programs to their end or in the background, always with a deadline, so that a hang becomes a failure.

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::Value;
use std::ffi::{OsStr, OsString};
use std::io::{Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A deadline far longer than any successful run, even on a busy machine.
const DEADLINE: Duration = Duration::from_secs(150);

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

impl Status {
    /// The exit code that a shell, and `hindsight record`, reports for it.
    #[must_use]
    pub fn as_shell_code(self) -> i32 {
        match self {
            Self::Code(code) => code,
            Self::Signal(signal) => 128 + signal,
        }
    }
}

impl From<ExitStatus> for Status {
    fn from(status: ExitStatus) -> Self {
        status
            .code()
            .map_or_else(|| Self::Signal(status.signal().unwrap_or(0)), Self::Code)
    }
}

/// A finished process.
#[derive(Debug)]
pub struct Ended {
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    pub status: Status,
}

impl Ended {
    /// Standard output as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Standard error as text.
    #[must_use]
    pub fn errors(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }

    /// The result of the JSON document on standard output.
    ///
    /// # Panics
    /// If that is something else.
    #[must_use]
    pub fn result(&self) -> Value {
        let answer: Value = serde_json::from_slice(&self.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}{}", self.text(), self.errors()));
        assert_eq!(answer["success"], true, "{answer:#}");
        answer["result"].clone()
    }
}

/// A command line with everything else that a program inherits at its start.
#[derive(Clone)]
pub struct Program {
    pub(crate) path: PathBuf,
    pub(crate) args: Vec<OsString>,
    dir: PathBuf,
    stdin: Vec<u8>,
    pub(crate) env: Vec<(OsString, OsString)>,
    /// The expected exit code.
    pub(crate) code: i32,
}

impl Program {
    /// The file `path`, to be run in the folder `dir`, with a small fixed environment.
    pub fn new(path: impl Into<PathBuf>, dir: impl Into<PathBuf>) -> Self {
        let mut env = vec![("LC_ALL".into(), "C.UTF-8".into())];
        for name in ["PATH", "HOME", "XDG_CACHE_HOME", "PIP_INDEX_URL"] {
            if let Some(value) = std::env::var_os(name) {
                env.push((name.into(), value));
            }
        }
        Self {
            path: path.into(),
            args: Vec::new(),
            dir: dir.into(),
            stdin: Vec::new(),
            env,
            code: 0,
        }
    }

    /// The same with these arguments appended.
    #[must_use]
    pub fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.args
            .extend(args.into_iter().map(|a| a.as_ref().to_owned()));
        self
    }

    /// The same, with this expected exit code.
    #[must_use]
    pub fn ending(mut self, code: i32) -> Self {
        self.code = code;
        self
    }

    /// The same with these bytes as standard input.
    #[must_use]
    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = bytes.into();
        self
    }

    /// The same with an environment variable.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.env.push((name.into(), value.as_ref().to_owned()));
        self
    }

    /// The same program wrapped: `wrapper... path args...`, with the same folder, input and environment.
    #[must_use]
    pub fn wrapped<S: AsRef<OsStr>>(
        &self,
        wrapper: &Path,
        wrapper_args: impl IntoIterator<Item = S>,
    ) -> Self {
        let mut args: Vec<OsString> = wrapper_args
            .into_iter()
            .map(|a| a.as_ref().to_owned())
            .collect();
        args.push(self.path.clone().into());
        args.extend(self.args.iter().cloned());
        Self {
            path: wrapper.to_path_buf(),
            args,
            ..self.clone()
        }
    }

    /// The same program on its own terminal, created by script(1).
    #[must_use]
    pub fn in_terminal(&self) -> Self {
        let quoted: Vec<String> = std::iter::once(self.path.as_os_str())
            .chain(self.args.iter().map(OsString::as_os_str))
            .map(|word| format!("'{}'", word.to_string_lossy()))
            .collect();
        let args = ["-qec".into(), quoted.join(" ").into(), "/dev/null".into()];
        Self {
            path: "/usr/bin/script".into(),
            args: args.into(),
            ..self.clone()
        }
    }

    /// The folder it runs in.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Runs it to its end.
    ///
    /// # Panics If it cannot be started, or does not end within the deadline.
    #[must_use]
    pub fn run(&self) -> Ended {
        self.start().finish()
    }

    /// Starts it in its own process group.
    ///
    /// # Panics
    /// If it cannot be started.
    #[must_use]
    pub fn start(&self) -> Running {
        let mut child = Command::new(&self.path)
            .args(&self.args)
            .current_dir(&self.dir)
            .env_clear()
            .envs(self.env.iter().map(|(n, v)| (n, v)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap_or_else(|e| panic!("cannot start {}: {e}", self.path.display()));
        let input = self.stdin.clone();
        let mut stdin = child.stdin.take().expect("stdin is a pipe");
        // A program that ends without reading all of its input does not fail the test.
        std::thread::spawn(move || drop(stdin.write_all(&input)));
        Running::new(child, format!("{} {:?}", self.path.display(), self.args))
    }
}

/// A process in the background. Dropping it kills its process group.
pub struct Running {
    pid: Pid,
    what: String,
    stdout: Option<JoinHandle<Vec<u8>>>,
    stderr: Option<JoinHandle<Vec<u8>>>,
    ended: Receiver<Status>,
    finished: bool,
}

impl Running {
    fn new(mut child: Child, what: String) -> Self {
        let pid = Pid::from_child(&child);
        let stdout = read_all(child.stdout.take().expect("stdout is a pipe"));
        let stderr = read_all(child.stderr.take().expect("stderr is a pipe"));
        let (sender, ended) = channel();
        std::thread::spawn(move || {
            let status = child.wait().expect("a child can be waited for");
            let _ = sender.send(Status::from(status));
        });
        Self {
            pid,
            what,
            stdout: Some(stdout),
            stderr: Some(stderr),
            ended,
            finished: false,
        }
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid, signal).expect("the process can be signalled");
    }

    /// Sends a signal to its whole process group, as a terminal does for Ctrl-C.
    pub fn signal_group(&self, signal: Signal) {
        kill_process_group(self.pid, signal).expect("the process group can be signalled");
    }

    /// Waits for its end and for the end of its output.
    ///
    /// # Panics
    /// If that takes too long.
    #[must_use]
    pub fn finish(mut self) -> Ended {
        let status = match self.ended.recv_timeout(DEADLINE) {
            Ok(status) => status,
            Err(RecvTimeoutError::Timeout) => {
                let standing = standing(self.pid());
                panic!(
                    "{} has not ended after {DEADLINE:?}:\n{standing}",
                    self.what
                )
            }
            Err(RecvTimeoutError::Disconnected) => panic!("{} could not be waited for", self.what),
        };
        self.finished = true;
        let collect = |reader: Option<JoinHandle<Vec<u8>>>| {
            let reader = reader.expect("finish runs once");
            wait_until("its output to end", || reader.is_finished().then_some(()));
            reader.join().expect("readers do not panic")
        };
        Ended {
            stdout: collect(self.stdout.take()),
            stderr: collect(self.stderr.take()),
            status,
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.finished {
            let _ = kill_process_group(self.pid, Signal::KILL);
        }
    }
}

/// Describes the states of the threads of a process group.
fn standing(group: i32) -> String {
    let mut told = String::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let file = |name: &str| std::fs::read_to_string(entry.path().join(name));
        let stat = file("stat").unwrap_or_default();
        // state, parent, process group (proc_pid_stat(5))
        let mut fields = stat.rsplit(')').next().unwrap_or_default().split(' ');
        if fields.nth(3).and_then(|field| field.parse().ok()) != Some(group) {
            continue;
        }
        told += &file("status").unwrap_or_default();
        let threads = std::fs::read_dir(entry.path().join("task"));
        for thread in threads.into_iter().flatten().flatten() {
            let file = |name: &str| std::fs::read_to_string(thread.path().join(name));
            let [stat, syscall] = ["stat", "syscall"].map(|name| file(name).unwrap_or_default());
            told += &format!("{stat}  {syscall}");
        }
        let gdb = Command::new("gdb")
            .args(["-batch", "-ex", "thread apply all backtrace 20", "-p"])
            .arg(entry.file_name())
            .stdin(Stdio::null())
            .output();
        if let Ok(output) = gdb {
            told += &String::from_utf8_lossy(&output.stdout);
        }
    }
    told
}

fn read_all(mut from: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = from.read_to_end(&mut bytes);
        bytes
    })
}

/// Sends a signal to any process.
///
/// # Panics
/// If there is no such process.
pub fn kill(pid: i32, signal: Signal) {
    let pid = Pid::from_raw(pid).expect("process ids are positive");
    kill_process(pid, signal).expect("the process can be signalled");
}

/// Polls until there is a result, and returns it.
///
/// # Panics If there is none within the deadline.
pub fn wait_until<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(start.elapsed() < DEADLINE, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
