//! The words on the wire: one JSON document per line, both ways.
//!
//! ```text
//! daemon: {"hindsight":1,"version":"0.1.0","pid":4711}                      once, before anything else
//! client: {"id":1,"command":"break","args":{"at":"parse.c:12"},"session":2}  session may be left out: the newest of "folder", or of all
//! daemon: {"id":1,"notice":{"kind":"progress","text":"reading libfoo.so"}}   any number of these, then one of
//! daemon: {"id":1,"success":true,"result":{...}}
//! daemon: {"id":1,"success":false,"error":{"code":"INVALID_LINE","message":"...","details":{"valid_lines":[10,14]}}}
//! daemon: {"push":{"session":2,"kind":"stopped","stop":{...}}}               at any time, to who has subscribed
//! ```
//!
//! A connection's requests are answered one after the other; who wants to wait and ask at once opens two connections.

use std::path::PathBuf;

use debuginfo::Diagnostic;
use expr::Missing;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::os_text::OsText;
use crate::push::Push;

/// The version of these words. It changes when an old client would misunderstand a new daemon or the other way round.
pub const VERSION: u32 = 1;

/// No line may be longer: memory for one is bounded, whoever writes it.
pub const MAX_LINE_BYTES: u64 = 64 << 20;

/// What the daemon says first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Greeting {
    /// [`VERSION`].
    pub hindsight: u32,
    /// The version of the program that serves.
    pub version: String,
    /// The daemon's process id.
    pub pid: u32,
}

/// What a client asks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// Comes back in the response.
    pub id: u64,
    /// The verb.
    pub command: String,
    /// The verb's arguments: an object, see the verb's `Args`.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub args: Value,
    /// Which session; left out: the newest that was begun in `folder`, or else the newest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<u32>,
    /// The client's folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<OsText>,
}

/// Something to show while the answer is being worked on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    /// What it is.
    pub kind: NoticeKind,
    /// For people.
    pub text: String,
}

/// What a notice is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoticeKind {
    /// A step of something that takes time.
    Progress,
    /// Something to know; the work goes on.
    Warning,
}

/// What the daemon answers: a notice, or the end of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Response {
    /// The request's.
    pub id: u64,
    /// Only in notices; nothing else is there then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notice: Option<Notice>,
    /// Whether it was done; in all but notices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub success: Option<bool>,
    /// The verb's reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// Why it was not done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
}

impl Response {
    /// Makes the response to request `id` of what its verb returned.
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

/// What the daemon says without being asked, once the client has subscribed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pushed {
    /// What has happened.
    pub push: Push,
}

/// What kind of failure it is: a word for programs, which never changes its meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Code {
    /// There is no such session, or none at all.
    NoSession,
    /// The program has ended.
    NotRunning,
    /// It asks for a stopped thread, and none is.
    NotStopped,
    /// No thread has this number.
    NoThread,
    /// No frame has this number.
    NoFrame,
    /// The recording has no such event, or no event in that direction.
    NoEvent,
    /// The line has no code; [`Details::valid_lines`] has the nearest that do.
    InvalidLine,
    /// No loaded module was made of such a source file.
    InvalidFile,
    /// The line table has no columns for the line.
    InvalidColumn,
    /// No function matches.
    InvalidFunction,
    /// Nothing can be placed at this address.
    InvalidAddress,
    /// A condition or template has a mistake at `position`.
    InvalidCondition,
    /// No probe has this number.
    BreakpointNotFound,
    /// No displayed expression has this number.
    DisplayNotFound,
    /// The processor watches four places at most.
    NoWatchpointLeft,
    /// An expression could not be evaluated.
    EvalFailed,
    /// A value could not be written.
    WriteFailed,
    /// Memory could not be read.
    ReadFailed,
    /// No loaded module has such a place yet: it is pending.
    ModuleNotLoaded,
    /// The program could not be started or attached to.
    NotStarted,
    /// It took too long; the program goes on.
    Timeout,
    /// The request is no request: an unknown verb, or arguments it does not take.
    BadRequest,
    /// The client is not the daemon's user.
    NotAllowed,
    /// Anything else.
    Failed,
}

/// Why something was not done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    /// For programs.
    pub code: Code,
    /// For people: what is wrong.
    pub message: String,
    /// For people: the next step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// For programs: what belongs to the code.
    #[serde(default, skip_serializing_if = "Details::is_empty")]
    pub details: Details,
    /// What is wrong with an expression, for verbs that add to it.
    #[serde(skip)]
    pub expression: Option<ExpressionFault>,
}

/// What programs may want to know of a failure, by its code.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Details {
    /// With [`Code::InvalidLine`]: lines near it that have code, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub valid_lines: Vec<u32>,
    /// With [`Code::InvalidCondition`] and [`Code::EvalFailed`]: the byte of the text, from 0, where the mistake is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<usize>,
    /// What may have been meant: verbs, files or functions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nearest: Vec<String>,
    /// Of a session that is no more: what was recorded of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
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
    /// It cannot be read.
    Unreadable,
    /// It names what is not there.
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

    /// Makes a failure of what is wrong and what to do about it.
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

    /// Adds what belongs to the code.
    #[must_use]
    pub fn details(self, details: Details) -> Failure {
        Failure { details, ..self }
    }

    /// Adds the byte of the text, from 0, where the mistake is.
    #[must_use]
    pub fn at(self, position: usize) -> Failure {
        self.details(Details {
            position: Some(position),
            ..Details::default()
        })
    }

    /// Makes the failure of a request that is none.
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
