//! Verbs asked of a recording that is open in this process, instead of the daemon.

use std::cell::RefCell;
use std::rc::Rc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use server::past::Past;
use server::protocol::{Code, Failure};

use super::ask;
use crate::error::Error;
use crate::exit;

thread_local! {
    /// The recording that verbs are asked of.
    static OPEN: RefCell<Option<Rc<Past>>> = const { RefCell::new(None) };
}

/// From now on, this thread's verbs are asked of a recording.
pub fn look_at(past: &Rc<Past>) {
    OPEN.set(Some(Rc::clone(past)));
}

/// From now on, this thread's verbs are asked of the daemon again.
pub fn look_away() {
    OPEN.set(None);
}

/// Returns the recording that verbs are asked of, if one is open.
pub fn open() -> Option<Rc<Past>> {
    OPEN.with_borrow(Clone::clone)
}

/// Makes an error of a failure.
pub fn failed(failure: Failure) -> Error {
    Error::Live {
        source: server::Error::Failed(Box::new(failure)),
    }
}

/// Asks a recording for a verb.
///
/// # Errors
/// The verb's.
pub fn asked<A: Serialize, R: DeserializeOwned>(
    past: &Past,
    command: &str,
    args: &A,
) -> Result<R, Error> {
    let args = serde_json::to_value(args).expect("arguments are JSON");
    let reply = past.serve(command, args).map_err(failed)?;
    serde_json::from_value(reply).map_err(|error| {
        failed(Failure::new(
            Code::Failed,
            format!("the reply to {command} is not what was expected: {error}"),
        ))
    })
}

/// Shows a reply, as text or as JSON. Returns the exit code.
///
/// # Errors
/// That of the reply.
pub fn answer<R: Serialize>(
    reply: Result<R, Error>,
    json: bool,
    show: impl FnOnce(&R) -> String,
) -> Result<u8, Error> {
    if json {
        return ask::answer_as_json(reply);
    }
    write(&show(&reply?))?;
    Ok(exit::DONE)
}

/// Writes text to stdout.
///
/// # Errors
/// Nobody reads it.
pub fn write(text: &str) -> Result<(), Error> {
    ask::write(text)
}
