//! Calls of the program's functions at a recorded moment: in a copy of the program, if every instruction is recorded.

use std::time::Instant;

use debuginfo::Diagnostic;
use recorder::live::{Call, Returned};
use replay::{Called, Moment};

use super::Looked;
use crate::inspect::signal_name;
use crate::session::Caller;

/// A thread at a recorded moment.
pub(crate) struct RecordedThread<'a> {
    moment: &'a Moment<'a>,
    /// Receives what the function printed, and what else is worth knowing.
    tell: &'a dyn Fn(String),
}

impl Looked<'_> {
    /// Returns the thread that calls functions.
    pub fn caller<'a>(&'a self, tell: &'a dyn Fn(String)) -> RecordedThread<'a> {
        RecordedThread {
            moment: self.moment,
            tell,
        }
    }
}

impl Caller for RecordedThread<'_> {
    fn call(&self, name: &str, call: Call, points: bool) -> Result<Returned, Diagnostic> {
        let called = self.moment.call(replay::Call {
            function: call.function,
            integers: call.integers,
            floats: call.floats,
            texts: call.texts,
            until: Instant::now() + call.timeout,
        });
        let failed = |why: &str| Diagnostic::new(format!("the call of {name} failed: {why}"));
        let called = called.map_err(|error| failed(&error.to_string()))?;
        let returned = match called {
            Some(Called::Returned(returned)) => returned,
            Some(other) => return Err(unfinished(name, &other)),
            None if self.moment.state.timeline().is_core() => {
                let what =
                    format!("{name} cannot be called: this is a core file, and nothing runs");
                let start = "call it in the program: hindsight start PROGRAM";
                return Err(Diagnostic::new(what).with_hint(start));
            }
            None => {
                let what = format!(
                    "{name} cannot be called: this recording has calls, not every instruction"
                );
                let rerun =
                    "record every instruction, and call it there: hindsight rerun RECORDING --full";
                return Err(Diagnostic::new(what).with_hint(rerun));
            }
        };
        if !returned.output.is_empty() {
            let output = String::from_utf8_lossy(&returned.output);
            (self.tell)(format!("{name} printed: {}", output.trim_end()));
        }
        if let Some(bytes) = returned.pointed.filter(|_| points) {
            (self.tell)(pointed(name, &bytes));
        }
        Ok(Returned {
            rax: returned.rax,
            rdx: returned.rdx,
            xmm0: returned.xmm0,
            xmm1: returned.xmm1,
        })
    }
}

/// Why a call has no result.
fn unfinished(name: &str, called: &Called) -> Diagnostic {
    match called {
        Called::Asked { number } => {
            let system_call = debuginfo::syscalls::name(*number);
            let system_call = system_call.map_or_else(|| number.to_string(), str::to_owned);
            let what = format!(
                "{name} makes the system call {system_call}: what the kernel would have answered then is not known"
            );
            let hint = "functions that compute, allocate memory or print can be called in the past";
            Diagnostic::new(what).with_hint(hint)
        }
        Called::Signal { number, at } => Diagnostic::new(format!(
            "{name} did not return: it received {} at {at:#x}",
            signal_name(*number)
        )),
        Called::Late => {
            let what = format!("{name} did not return in time");
            Diagnostic::new(what).with_hint("request_secs in the configuration file is the limit")
        }
        Called::NoThread | Called::Returned(_) => Diagnostic::new(format!(
            "{name} cannot be called: the thread does not exist at this moment"
        )),
    }
}

/// What a call has written where its result points to. The value is shown with the memory of the moment.
fn pointed(name: &str, bytes: &[u8]) -> String {
    let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    let is_text = !text.is_empty()
        && text.len() < bytes.len()
        && std::str::from_utf8(text).is_ok_and(|text| !text.contains(char::is_control));
    let wrote = match is_text {
        true => format!("wrote {:?}", String::from_utf8_lossy(text)),
        false => "wrote".to_owned(),
    };
    format!(
        "{name} {wrote} where its result points to; the value below has the memory of the moment, before the call"
    )
}
