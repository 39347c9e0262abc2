//! The client: connects to the daemon, starts one if none runs, sends requests and waits for the answers.
//!
//! A daemon that greets has counted the client and does not end while it is connected. A daemon that does not greet is
//! ending; the client waits for its successor. If a daemon was killed, the client reports what it left instead of
//! "there is no session".

use std::collections::VecDeque;
use std::fs::OpenOptions;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::Value;

use crate::daemon::connection::write_line;
use crate::error::{Error, Result};
use crate::paths::Paths;
use crate::protocol::{
    Code, Failure, Greeting, MAX_LINE_BYTES, Notice, Pushed, Request, Response, VERSION,
};
use crate::push::Push;
use crate::state::State;
use crate::verbs::Verb;

/// How long a daemon may take to greet.
const CONNECT_PATIENCE: Duration = Duration::from_secs(5);
/// How often the client checks for a new daemon.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// A conversation with the daemon.
pub struct Client {
    stream: BufReader<UnixStream>,
    paths: Paths,
    next_id: u64,
    /// Pushes that arrived while the client waited for an answer.
    pushed: VecDeque<Push>,
}

/// A line from the daemon.
#[derive(Deserialize)]
#[serde(untagged)]
enum Said {
    Pushed(Pushed),
    Response(Box<Response>),
}

fn said(line: &[u8]) -> Result<Said> {
    serde_json::from_slice(line).map_err(|error| Error::Answer {
        reason: error.to_string(),
    })
}

/// Ends a connection from another thread.
pub struct Cutter(UnixStream);

impl Cutter {
    /// Ends the connection. A pending wait fails: no answer will come.
    pub fn cut(&self) {
        // The connection may have ended already.
        let _ = self.0.shutdown(std::net::Shutdown::Both);
    }
}

/// How to wait for an answer.
pub struct Wait<'a> {
    /// How long to wait after the last sign of life.
    pub patience: Option<Duration>,
    /// Receives the notices.
    pub notify: &'a mut dyn FnMut(Notice),
}

impl Client {
    /// Connects to the running daemon.
    ///
    /// # Errors
    /// [`Code::NoSession`] if no daemon runs; the failure says what happened to the last one if it was killed.
    /// [`Error::Folder`] if the folder is not to be trusted.
    pub fn connect(paths: &Paths) -> Result<Client> {
        match Client::greeted(paths)? {
            Some(client) => Ok(client),
            None => Err(no_daemon(paths).into()),
        }
    }

    /// Connects to the daemon; starts it with `command` if none runs. Also returns what happened to the last daemon if
    /// it was killed.
    ///
    /// # Errors
    /// The daemon does not start, or the folder is not to be trusted.
    pub fn connect_or_start(
        paths: &Paths,
        command: &mut Command,
    ) -> Result<(Client, Option<Failure>)> {
        paths.prepare()?;
        if let Some(client) = Client::greeted(paths)? {
            return Ok((client, None));
        }
        let death = State::read(&paths.state()).and_then(|state| state.death());
        let mut child = start(paths, command)?;
        let until = Instant::now() + CONNECT_PATIENCE;
        loop {
            if let Some(client) = Client::greeted(paths)? {
                return Ok((client, death));
            }
            // A daemon that exits successfully found another one running.
            let ended = child.try_wait().map_err(Error::io("watch the daemon"))?;
            let reason = match ended {
                Some(status) if !status.success() => format!("it ended with {status}"),
                _ if Instant::now() >= until => {
                    format!("it has not answered for {} s", CONNECT_PATIENCE.as_secs())
                }
                _ => {
                    std::thread::sleep(LOOK_EVERY);
                    continue;
                }
            };
            return Err(Error::NotServing {
                reason,
                log: paths.log(),
            });
        }
    }

    /// Connects if a daemon greets.
    fn greeted(paths: &Paths) -> Result<Option<Client>> {
        if !paths.verify()? {
            return Ok(None);
        }
        let failed = || Error::io(format!("connect to {}", paths.socket().display()));
        let stream = match UnixStream::connect(paths.socket()) {
            Ok(stream) => stream,
            Err(error) if is_nobody(&error) => return Ok(None),
            Err(error) => return Err(failed()(error)),
        };
        let mut client = Client {
            stream: BufReader::new(stream),
            paths: paths.clone(),
            next_id: 1,
            pushed: VecDeque::new(),
        };
        client.set_patience(Some(CONNECT_PATIENCE))?;
        let line = match client.read_line() {
            Ok(line) => line,
            // A daemon that listens but does not greet is most likely being killed. Starting another one settles it.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(error) => return Err(failed()(error)),
        };
        let Some(line) = line else {
            return Ok(None);
        };
        if let Ok(greeting) = serde_json::from_slice::<Greeting>(&line) {
            return match greeting.hindsight {
                VERSION => Ok(Some(client)),
                _ => Err(Error::Version {
                    daemon: greeting.version,
                    ours: env!("CARGO_PKG_VERSION").to_owned(),
                    pid: greeting.pid,
                }),
            };
        }
        match serde_json::from_slice::<Response>(&line) {
            Ok(Response {
                error: Some(failure),
                ..
            }) => Err(failure.into()),
            _ => Err(Error::Answer {
                reason: "it does not greet".to_owned(),
            }),
        }
    }

    /// Returns a handle that ends this connection while another thread waits on it.
    ///
    /// # Errors
    /// A system call fails.
    pub fn cutter(&self) -> Result<Cutter> {
        let twin = self.stream.get_ref().try_clone();
        Ok(Cutter(twin.map_err(Error::io(
            "watch the conversation with the daemon",
        ))?))
    }

    /// Sends a request for verb `V` and waits for its reply.
    ///
    /// # Errors
    /// The verb fails, the wait takes too long ([`Code::Timeout`]), or the daemon dies.
    pub fn call<V: Verb>(
        &mut self,
        args: &V::Args,
        session: Option<u32>,
        wait: Wait<'_>,
    ) -> Result<V::Reply> {
        let args = serde_json::to_value(args).expect("arguments are JSON");
        let value = self.ask(V::NAME, args, session, wait)?;
        serde_json::from_value(value).map_err(|error| Error::Answer {
            reason: error.to_string(),
        })
    }

    /// Sends a request for any verb. Arguments and reply are JSON, as on the wire.
    ///
    /// # Errors
    /// As [`Client::call`].
    pub fn ask(
        &mut self,
        command: &str,
        args: Value,
        session: Option<u32>,
        wait: Wait<'_>,
    ) -> Result<Value> {
        let id = self.next_id;
        self.next_id += 1;
        let request = Request {
            id,
            command: command.to_owned(),
            args,
            session,
            folder: std::env::current_dir()
                .ok()
                .map(|folder| folder.as_os_str().into()),
        };
        if let Err(error) = write_line(self.stream.get_mut(), &request) {
            tracing::debug!(%error, "the daemon does not listen");
            return Err(gone(&self.paths).into());
        }
        self.set_patience(wait.patience)?;
        loop {
            let line = match self.read_line() {
                Ok(Some(line)) => line,
                Ok(None) => return Err(gone(&self.paths).into()),
                Err(error) if is_late(&error) => return Err(late(command, wait.patience).into()),
                Err(_) => return Err(gone(&self.paths).into()),
            };
            let response = match said(&line)? {
                Said::Pushed(pushed) => {
                    self.pushed.push_back(pushed.push);
                    continue;
                }
                Said::Response(response) => *response,
            };
            if response.id != id {
                // This answers an earlier request whose wait was given up.
                continue;
            }
            match response {
                Response {
                    notice: Some(notice),
                    ..
                } => (wait.notify)(notice),
                Response {
                    error: Some(failure),
                    ..
                } => return Err(failure.into()),
                Response { result, .. } => return Ok(result.unwrap_or_default()),
            }
        }
    }

    /// Waits for the next push and returns it. The client must have sent [`crate::verbs::Subscribe`] before.
    ///
    /// # Errors
    /// The daemon has ended.
    pub fn next_push(&mut self) -> Result<Push> {
        if let Some(push) = self.pushed.pop_front() {
            return Ok(push);
        }
        self.set_patience(None)?;
        loop {
            let line = self.read_line().ok().flatten();
            let line = line.ok_or_else(|| gone(&self.paths))?;
            if let Said::Pushed(pushed) = said(&line)? {
                return Ok(pushed.push);
            }
        }
    }

    fn set_patience(&self, patience: Option<Duration>) -> Result<()> {
        let stream = self.stream.get_ref();
        stream
            .set_read_timeout(patience)
            .map_err(Error::io("set how long to wait"))
    }

    /// Reads a line; `None` at the end of the connection.
    fn read_line(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut line = Vec::new();
        let mut bounded = self.stream.by_ref().take(MAX_LINE_BYTES);
        loop {
            match bounded.read_until(b'\n', &mut line) {
                Ok(_) if line.ends_with(b"\n") => return Ok(Some(line)),
                Ok(_) => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(None),
                Err(error) => return Err(error),
            }
        }
    }
}

/// Starts the daemon without a terminal. Its messages go to a file next to the socket.
fn start(paths: &Paths, command: &mut Command) -> Result<Child> {
    let log = paths.log();
    let file = OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(&log)
        .map_err(Error::io(format!("write {}", log.display())))?;
    let twin = file
        .try_clone()
        .map_err(Error::io(format!("write {}", log.display())))?;
    command
        .stdin(Stdio::null())
        .stdout(file)
        .stderr(twin)
        .spawn()
        .map_err(Error::io("start the daemon"))
}

fn is_nobody(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
    )
}

fn is_late(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
    )
}

fn late(command: &str, patience: Option<Duration>) -> Failure {
    let secs = patience.unwrap_or_default().as_secs_f64();
    Failure::new(
        Code::Timeout,
        format!("no answer to {command} within {secs} s; the daemon is still working on it"),
    )
    .hint("wait longer: request_secs under [timeouts] in ~/.config/hindsight/config.toml")
}

/// No daemon runs: it was killed, or none was needed.
fn no_daemon(paths: &Paths) -> Failure {
    State::read(&paths.state())
        .and_then(|state| state.death())
        .unwrap_or_else(|| {
            Failure::new(Code::NoSession, "there is no live session")
                .hint("start one: hindsight start PROGRAM, or hindsight attach PID")
        })
}

/// The daemon ended while the client waited for an answer.
fn gone(paths: &Paths) -> Failure {
    State::read(&paths.state())
        .and_then(|state| state.death())
        .unwrap_or_else(|| {
            Failure::new(Code::NoSession, "the daemon ended before it answered")
                .hint("begin again: hindsight start PROGRAM, or hindsight attach PID")
        })
}
