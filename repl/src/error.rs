//! The errors of all commands: one sentence, the next step and the exit code.

use std::io;
use std::path::{Path, PathBuf};

use debuginfo::with_causes;
use query::error::store_sentence;
use server::inspect::signal_name;
use server::protocol::{Code, Failure};
use store::recording::is_left;

use crate::{exit, suggest};

/// Why a command failed. The message follows `error: `, and [`Error::help`] follows `help: `.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{message}")]
    Usage {
        message: String,
        help: Option<String>,
    },
    #[error("there is no recording {}", path.display())]
    NoRecording {
        path: PathBuf,
        near: Option<PathBuf>,
    },
    #[error("{} is not a recording: {}", path.display(), what_it_lacks(path))]
    NotARecording { path: PathBuf },
    #[error("{}", store_sentence(source))]
    Store { source: store::Error },
    #[error("{}", source.sentence())]
    Query { source: query::Error },
    #[error("interrupted")]
    Interrupted,
    /// A signal other than that of Ctrl-C ended the command.
    #[error("ended by {}", signal_name(*signal))]
    Terminated { signal: i32 },
    /// Ctrl-C ended the opening of a recording.
    #[error(
        "interrupted while sealing what the recorder had left unsealed; nothing is lost, and the recording can be opened again"
    )]
    OpeningLeft,
    /// The user abandoned the wait for a stop.
    #[error("stopped waiting; the program is still running")]
    Left,
    /// The reader of the output has gone. This is not reported.
    #[error("the output is no longer read")]
    ReaderGone,
    /// A machine on the network refused a request.
    #[error("{message}")]
    Remote {
        message: String,
        help: Option<String>,
    },
    #[error("cannot {}", with_causes(source))]
    Setup { source: agent::Error },
    #[error("{}", record_message(source))]
    Record { source: recorder::Error },
    #[error("{}", live_message(source))]
    Live { source: server::Error },
    #[error("cannot {action}: {source}")]
    Io {
        /// The failed action: a verb and its object.
        action: String,
        source: io::Error,
    },
}

impl Error {
    /// Makes an error for a mistake in the user's input.
    pub fn usage(message: impl Into<String>, help: Option<String>) -> Error {
        Error::Usage {
            message: message.into(),
            help,
        }
    }

    /// Converts an error of clap: its first line without the prefix, and the next step.
    pub fn of_words(error: &clap::Error) -> Error {
        let text = suggest::asking_for_number(&error.to_string());
        let first = text.lines().next().unwrap_or_default();
        let mut message = first.strip_prefix("error: ").unwrap_or(first).to_owned();
        if message.ends_with(':') {
            let listed = text.lines().skip(1).map(str::trim);
            let listed: Vec<&str> = listed.take_while(|line| !line.is_empty()).collect();
            message = format!("{message} {}", listed.join(", "));
        }
        let mut usage = text
            .lines()
            .filter_map(|line| line.trim().strip_prefix("Usage: "));
        Error::usage(message, usage.next().map(|usage| format!("write: {usage}")))
    }

    /// Makes an error for a failed system call; `action` is a verb and its object.
    pub fn io(action: impl Into<String>, source: io::Error) -> Error {
        Error::Io {
            action: action.into(),
            source,
        }
    }

    /// Returns the next step, if there is one.
    pub fn help(&self) -> Option<String> {
        match self {
            Error::Usage { help, .. } | Error::Remote { help, .. } => help.clone(),
            Error::NoRecording {
                near: Some(near), ..
            } => Some(format!("did you mean {}?", near.display())),
            Error::NoRecording { near: None, .. } => {
                Some("make one with `hindsight record PROGRAM`, or name its folder".to_owned())
            }
            Error::NotARecording { path } if is_left(path) => {
                Some("the next recording of that name replaces it".to_owned())
            }
            Error::NotARecording { .. } => {
                Some("name a folder made by `hindsight record`, like app.hindsight".to_owned())
            }
            Error::Store { source } => source.hint().map(str::to_owned),
            Error::Query { source } => source.hint(),
            Error::Setup { source } => source.hint(),
            Error::Record {
                source: recorder::Error::Start { program, source },
            } => start_help(program, source),
            Error::Record { source } => source.hint(),
            Error::Live { source } => source.hint(),
            Error::Left => Some("wait again with: await; stop it with: pause".to_owned()),
            Error::Io { .. }
            | Error::Interrupted
            | Error::Terminated { .. }
            | Error::OpeningLeft
            | Error::ReaderGone => None,
        }
    }

    /// Returns the wrong part of the query, as lines with a caret below.
    pub fn excerpt(&self) -> Option<&str> {
        match self {
            Error::Query {
                source: query::Error::Sql(error),
            } if !error.excerpt.is_empty() => Some(&error.excerpt),
            _ => None,
        }
    }

    /// Returns the error in the form of verbs, for `--json`.
    pub fn failure(&self) -> Failure {
        if let Error::Live {
            source: server::Error::Failed(failure),
        } = self
        {
            return (**failure).clone();
        }
        let code = match self.exit_code() {
            exit::USAGE => Code::BadRequest,
            exit::NOT_STARTED => Code::NotStarted,
            _ => Code::Failed,
        };
        let failure = Failure::new(code, self.to_string());
        match self.help() {
            Some(help) => failure.hint(help),
            None => failure,
        }
    }

    /// Returns the code to exit with.
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::Usage { .. } | Error::NoRecording { .. } | Error::NotARecording { .. } => {
                exit::USAGE
            }
            Error::Query {
                source: query::Error::Sql(_) | query::Error::ReadOnly { .. },
            } => exit::USAGE,
            Error::Query {
                source: query::Error::Rule { .. },
            } => exit::USAGE,
            Error::Query {
                source: query::Error::NotComparable { .. },
            } => exit::INCOMPLETE,
            Error::Interrupted | Error::OpeningLeft | Error::Left => {
                exit::from_signal(libc::SIGINT)
            }
            Error::Terminated { signal } => exit::from_signal(*signal),
            Error::ReaderGone => exit::DONE,
            Error::Record {
                source: recorder::Error::EndedEarly { signal, .. },
            } => exit::from_signal(*signal),
            Error::Record { source } if source.is_about_the_target() => exit::NOT_STARTED,
            Error::Record {
                source:
                    recorder::Error::Pattern { .. }
                    | recorder::Error::Watch { .. }
                    | recorder::Error::Probe { .. }
                    | recorder::Error::Store(
                        store::Error::Exists { .. }
                        | store::Error::BadName { .. }
                        | store::Error::NotCreated { .. },
                    ),
            } => exit::USAGE,
            Error::Live {
                source: server::Error::Failed(failure),
            } => live_exit_code(failure.code),
            Error::Live {
                source: server::Error::Config { .. },
            } => exit::USAGE,
            Error::Store { .. }
            | Error::Remote { .. }
            | Error::Live { .. }
            | Error::Query { .. }
            | Error::Setup { .. }
            | Error::Record { .. }
            | Error::Io { .. } => exit::FAILED,
        }
    }
}

impl From<server::Error> for Error {
    fn from(source: server::Error) -> Error {
        Error::Live { source }
    }
}

fn what_it_lacks(path: &Path) -> &'static str {
    match path.is_dir() {
        true if is_left(path) => "its recorder was killed as it began",
        true => "it has no manifest",
        false => "it is a file, and a recording is a folder",
    }
}

/// Distinguishes a wrong request, after which nothing was done, from an attempt that failed.
fn live_exit_code(code: Code) -> u8 {
    match code {
        Code::NotStarted => exit::NOT_STARTED,
        Code::BadRequest
        | Code::InvalidLine
        | Code::InvalidFile
        | Code::InvalidColumn
        | Code::InvalidFunction
        | Code::InvalidAddress
        | Code::InvalidCondition
        | Code::BreakpointNotFound
        | Code::DisplayNotFound
        | Code::NoFrame
        | Code::NoEvent
        | Code::NoThread => exit::USAGE,
        _ => exit::FAILED,
    }
}

fn live_message(error: &server::Error) -> String {
    match error {
        server::Error::Failed(failure) => failure.message.clone(),
        other => with_causes(other),
    }
}

fn record_message(error: &recorder::Error) -> String {
    let message = with_causes(error);
    match error {
        // These messages are sentences, not actions.
        recorder::Error::Store(_) | recorder::Error::DebugInfo(_) => {
            format!("cannot record: {message}")
        }
        _ => format!("cannot {message}"),
    }
}

/// Returns the file beside a path that is spelt nearly so.
fn beside(path: &Path) -> Option<PathBuf> {
    let files = std::fs::read_dir(path.parent()?).ok()?.flatten();
    let files = files.filter(|entry| entry.path().is_file());
    let names: Vec<String> = files
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    let near = suggest::nearest(
        path.file_name()?.to_str()?,
        names.iter().map(String::as_str),
    );
    Some(path.with_file_name(near?))
}

/// Returns what to do about a program that could not be started.
fn start_help(program: &str, source: &io::Error) -> Option<String> {
    let path = Path::new(program);
    let is_path = program.contains('/');
    if let Some((program, arguments)) = program.split_once(' ')
        && source.kind() == io::ErrorKind::NotFound
        && Path::new(program).is_file()
    {
        return Some(format!(
            "leave the quotes out, if these are arguments: {program} {arguments}"
        ));
    }
    match source.kind() {
        io::ErrorKind::NotFound if path.is_dir() => {
            Some("it is a folder: name a program in it".to_owned())
        }
        io::ErrorKind::NotFound if path.is_file() && is_path => Some(
            "it is a script whose interpreter, named in its first line, does not exist".to_owned(),
        ),
        io::ErrorKind::NotFound if path.is_file() => Some(format!(
            "it is not in PATH; for the one in this folder write ./{program}"
        )),
        io::ErrorKind::NotFound if !is_path => Some("it is not in PATH".to_owned()),
        io::ErrorKind::NotFound => Some(match beside(path) {
            Some(near) => format!("did you mean {}?", near.display()),
            None => "name a program by its path, or one in PATH by its name".to_owned(),
        }),
        io::ErrorKind::PermissionDenied if source.raw_os_error() == Some(libc::EPERM) => Some(
            "another program traces this one (strace, gdb), or a sandbox does not allow it"
                .to_owned(),
        ),
        io::ErrorKind::PermissionDenied if path.is_dir() => Some("it is a folder".to_owned()),
        io::ErrorKind::PermissionDenied if path.is_file() => {
            Some(format!("make it executable: chmod +x {program}"))
        }
        _ => None,
    }
}
