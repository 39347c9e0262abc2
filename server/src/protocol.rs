//! The messages on the wire: one JSON document per line, both ways.
//!
//! ```text
//! daemon: {"hindsight":1,"version":"0.1.0","pid":4711}                      once, before anything else
//! client: {"id":1,"command":"break","args":{"at":"parse.c:12"},"session":2}  session is optional (see Request)
//! daemon: {"id":1,"notice":{"kind":"progress","text":"reading libfoo.so"}}   any number of these, then one of
//! daemon: {"id":1,"success":true,"result":{...}}
//! daemon: {"id":1,"success":false,"error":{"code":"INVALID_LINE","message":"...","details":{"valid_lines":[10,14]}}}
//! daemon: {"push":{"session":2,"kind":"stopped","stop":{...}}}               at any time, to a subscribed client
//! ```
//!
//! The daemon answers the requests of a connection one at a time. A client that wants to send requests while another
//! one waits opens a second connection.

use std::path::PathBuf;

use debuginfo::Diagnostic;
use expr::Missing;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::os_text::OsText;
use crate::push::Push;

/// The protocol version. It changes when an old client would misunderstand a new daemon, or the reverse.
pub const VERSION: u32 = 1;

/// The maximum length of a line, which bounds the memory that a peer can make the reader use.
pub const MAX_LINE_BYTES: u64 = 64 << 20;

/// The daemon's first message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Greeting {
    /// [`VERSION`].
    pub hindsight: u32,
    /// The daemon's version.
    pub version: String,
    /// The daemon's process id.
    pub pid: u32,
}

/// A client's request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// An id that the response repeats.
    pub id: u64,
    /// The verb.
    pub command: String,
    /// The verb's arguments: an object; see the verb's `Args`.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub args: Value,
    /// The session. Default: the newest that was begun in `folder`, else the newest of all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<u32>,
    /// The client's folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<OsText>,
}

/// A message shown while the answer is prepared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    /// Its kind.
    pub kind: NoticeKind,
    /// The text, for people.
    pub text: String,
    /// The next step after a warning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The operation ends when the client leaves.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub may_leave: bool,
}

impl Notice {
    /// Makes a notice.
    #[must_use]
    pub fn new(kind: NoticeKind, text: String) -> Notice {
        Notice {
            kind,
            text,
            hint: None,
            may_leave: false,
        }
    }

    pub(crate) fn warning(warning: Diagnostic) -> Notice {
        Notice {
            hint: warning.hint,
            ..Notice::new(NoticeKind::Warning, warning.message)
        }
    }

    /// Returns the text and the next step as one line.
    #[must_use]
    pub fn one_line(&self) -> String {
        let (message, hint) = (self.text.clone(), self.hint.clone());
        Diagnostic { message, hint }.one_line()
    }
}

/// The kind of a notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoticeKind {
    /// A step of a long operation.
    Progress,
    /// The progress of a long operation. The next one replaces it.
    Running,
    /// A warning; the work continues.
    Warning,
}

/// A message about a request: a notice, or the final answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Response {
    /// The request's id.
    pub id: u64,
    /// A notice; all other fields are then absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notice: Option<Notice>,
    /// Whether the verb succeeded; absent in a notice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub success: Option<bool>,
    /// The verb's reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// Why the verb failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
}

impl Response {
    /// Makes the response to request `id` from the outcome of its verb.
    #[must_use]
    pub fn of(id: u64, outcome: Result<Value, Failure>) -> Response {
        let (result, error) = match outcome {
            Ok(value) => (Some(value), None),
            Err(failure) => (None, Some(failure)),
        };
        Response {
            id,
            notice: None,
            success: Some(error.is_none()),
            result,
            error,
        }
    }

    /// Makes a notice about request `id`.
    #[must_use]
    pub fn notice(id: u64, notice: Notice) -> Response {
        Response {
            id,
            notice: Some(notice),
            success: None,
            result: None,
            error: None,
        }
    }
}

/// A message that the daemon sends on its own, once the client has subscribed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pushed {
    /// What has happened.
    pub push: Push,
}

/// The kind of a failure: a word for programs, whose meaning never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Code {
    /// There is no such session, or none at all.
    NoSession,
    /// The program has ended.
    NotRunning,
    /// The verb needs a stopped thread, and none is stopped.
    NotStopped,
    /// No thread has this number.
    NoThread,
    /// No frame has this number.
    NoFrame,
    /// The recording has no such event, or no event in that direction.
    NoEvent,
    /// The line has no code; [`Details::valid_lines`] lists the nearest lines that do.
    InvalidLine,
    /// No loaded module was compiled from such a source file.
    InvalidFile,
    /// The line table has no columns for the line.
    InvalidColumn,
    /// No function matches.
    InvalidFunction,
    /// No probe can be set at this address.
    InvalidAddress,
    /// A condition or template has a mistake at `position`.
    InvalidCondition,
    /// No probe has this number.
    BreakpointNotFound,
    /// No displayed expression has this number.
    DisplayNotFound,
    /// The processor can watch only four places.
    NoWatchpointLeft,
    /// An expression could not be evaluated.
    EvalFailed,
    /// A value could not be written.
    WriteFailed,
    /// Memory could not be read.
    ReadFailed,
    /// No loaded module has such a place yet; the probe is pending.
    ModuleNotLoaded,
    /// The program could not be started or attached to.
    NotStarted,
    /// The operation took too long; the program continues.
    Timeout,
    /// The request is malformed: an unknown verb, or arguments that the verb does not take.
    BadRequest,
    /// The client is not the daemon's user.
    NotAllowed,
    /// Anything else.
    Failed,
}

impl Code {
    /// Returns whether the failure is about the program's code and source, or the request itself, which do not depend on whether
    /// the program runs.
    #[must_use]
    pub fn is_about_code(self) -> bool {
        matches!(
            self,
            Code::InvalidLine
                | Code::InvalidFile
                | Code::InvalidColumn
                | Code::InvalidFunction
                | Code::BadRequest
        )
    }
}

/// Why a request failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    /// The kind of failure, for programs.
    pub code: Code,
    /// What is wrong, for people.
    pub message: String,
    /// The next step, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Details that belong to the code, for programs.
    #[serde(default, skip_serializing_if = "Details::is_empty")]
    pub details: Details,
    /// What is wrong with an expression, for verbs that explain it further.
    #[serde(skip)]
    pub expression: Option<ExpressionFault>,
}

/// Details of a failure, for programs. The code says which are set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Details {
    /// With [`Code::InvalidLine`]: nearby lines that have code, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub valid_lines: Vec<u32>,
    /// With [`Code::InvalidCondition`] and [`Code::EvalFailed`]: the byte offset of the mistake in the text, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<usize>,
    /// What the user may have meant: verbs, files or functions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nearest: Vec<String>,
    /// The recording of a session that no longer exists.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "store::os_path::optional"
    )]
    pub recording: Option<PathBuf>,
}

impl Details {
    fn is_empty(&self) -> bool {
        *self == Details::default()
    }
}

/// What is wrong with an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpressionFault {
    /// The expression has a syntax error.
    Unreadable,
    /// The expression names something that does not exist.
    Missing(Missing),
}

impl Failure {
    /// Makes a failure.
    pub fn new(code: Code, message: impl Into<String>) -> Failure {
        Failure {
            code,
            message: message.into(),
            hint: None,
            details: Details::default(),
            expression: None,
        }
    }

    /// Makes a failure from a diagnostic: what is wrong, and what to do about it.
    pub fn of(code: Code, what: impl Into<Diagnostic>) -> Failure {
        let Diagnostic { message, hint } = what.into();
        Failure {
            hint,
            ..Failure::new(code, message)
        }
    }

    /// Adds the next step.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Failure {
        self.hint = Some(hint.into());
        self
    }

    /// Adds details.
    #[must_use]
    pub fn details(self, details: Details) -> Failure {
        Failure { details, ..self }
    }

    /// Adds the byte offset of the mistake in the text, from 0.
    #[must_use]
    pub fn at(self, position: usize) -> Failure {
        self.details(Details {
            position: Some(position),
            ..Details::default()
        })
    }

    /// Makes the failure of a malformed request.
    pub fn bad_request(message: impl Into<String>) -> Failure {
        Failure::new(Code::BadRequest, message)
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

#[cfg(test)]
mod tests;
