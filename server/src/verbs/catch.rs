//! `catch`: adds, lists, removes and switches catchpoints, which stop a thread at C++ throws, Rust panics and signals.

use recorder::live::{Action, Location, ProbeSpec};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    Call, Command, Does, Form, Needs, ProbeArgs, ProbeKind, ProbesReply, Text, Verb, Word,
    probe_text, probe_words, probes,
};
use crate::inspect::{self, signal_by_name};
use crate::protocol::Failure;

/// The `catch` verb.
pub struct Catch;

/// A catchpoint to add.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CatchAdd {
    /// What to catch.
    pub what: Caught,
    /// Stop only if this expression is true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// Stop only on the Nth hit; 0: on every hit.
    #[serde(default)]
    pub hit_count: u64,
    /// Stop all threads.
    #[serde(default)]
    pub all_threads: bool,
}

/// What a catchpoint catches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Caught {
    /// A C++ throw.
    Throw {
        /// A glob for the name of the type or one of its bases. Default: any type.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pattern: Option<String>,
        /// Stop only if no handler will catch it.
        #[serde(default)]
        unhandled_only: bool,
    },
    /// A Rust panic.
    Panic,
    /// A signal.
    Signal {
        /// The signal's name or number. Default: any signal.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signal: Option<String>,
    },
}

impl Verb for Catch {
    const NAME: &'static str = "catch";
    const DOC: &'static str = "Stop at C++ throws, Rust panics and signals";
    const NEEDS: Needs = Needs::Program;
    const DOES: Does = Does::Change;
    type Args = ProbeArgs<CatchAdd>;
    type Reply = ProbesReply;

    fn run(call: &Call<'_>, args: Self::Args) -> Result<ProbesReply, Failure> {
        probes::run(call, args, ProbeKind::Catchpoint, |_, add| {
            Ok(vec![ProbeSpec {
                location: location(add.what)?,
                action: Action::Break {
                    all_threads: add.all_threads,
                    once: false,
                },
                condition: inspect::condition(add.condition.as_deref())?,
                hit_count: add.hit_count,
            }])
        })
    }
}

impl Command for Catch {
    const WORDS: &'static [Word] = &[
        Word::new(
            "words",
            "throw [TYPE] | panic | signal [NAME] | list | remove ID..",
            Form::Words,
            "What is caught",
        )
        .optional(),
        Word::flag("unhandled", None, "With throw: only what is not caught"),
        probe_words::CONDITION,
        probe_words::HIT_COUNT,
        probe_words::ALL,
        probe_words::ALL_THREADS,
    ];

    fn read(written: Map<String, Value>) -> Result<Self::Args, Failure> {
        probe_words::read(written, |words, written| {
            let unhandled = written.remove("unhandled") == Some(Value::Bool(true));
            let what = serde_json::to_value(caught(words, unhandled)?);
            written.insert("what".to_owned(), what.expect("what is caught is JSON"));
            Ok(())
        })
    }

    fn text(reply: &ProbesReply, asked: &Self::Args) -> Text {
        probe_text::of_program(&reply.probes, asked)
    }
}

fn caught(words: &[String], unhandled_only: bool) -> Result<Caught, Failure> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    Ok(match words.as_slice() {
        ["panic"] => Caught::Panic,
        ["throw"] | ["throw", _] => Caught::Throw {
            pattern: words.get(1).map(|&pattern| pattern.to_owned()),
            unhandled_only,
        },
        ["signal"] | ["signal", _] => Caught::Signal {
            signal: words.get(1).map(|&name| name.to_owned()),
        },
        _ => {
            let message = format!("\"{}\" cannot be caught", words.join(" "));
            return Err(Failure::bad_request(message).hint(instead(&words)));
        }
    })
}

/// What to do instead of catching what only gdb catches.
fn instead(words: &[&str]) -> String {
    match words {
        ["syscall", name, ..] => format!(
            "system calls are caught where the C library makes them: break {name}; one that the program makes itself is not caught"
        ),
        ["syscall"] => {
            "system calls are caught where the C library makes them: break write".to_owned()
        }
        ["fork" | "vfork", ..] => {
            "break fork stops before it; a child is recorded by: hindsight record --children"
                .to_owned()
        }
        ["exec", ..] => {
            "break execve stops before it; what runs then is a process of: hindsight record --children"
                .to_owned()
        }
        ["load" | "unload", ..] => {
            "a breakpoint in a library that is not loaded yet waits for it: break LOCATION --pending; or: break dlopen"
                .to_owned()
        }
        ["catch" | "rethrow", ..] => "catch throw stops where it is thrown".to_owned(),
        _ => "write throw, throw TYPE, panic, signal or signal NAME".to_owned(),
    }
}

fn location(what: Caught) -> Result<Location, Failure> {
    Ok(match what {
        Caught::Throw {
            pattern,
            unhandled_only,
        } => Location::Throw {
            pattern,
            unhandled_only,
        },
        Caught::Panic => Location::Panic,
        Caught::Signal { signal: None } => Location::Signal(None),
        Caught::Signal { signal: Some(name) } => match signal_by_name(&name) {
            Some(signal) => Location::Signal(Some(signal)),
            None => {
                let message = format!("there is no signal {name}");
                return Err(Failure::bad_request(message).hint("write SIGSEGV, segv or 11"));
            }
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_caught_is_read() {
        let read = |value| location(serde_json::from_value(value).unwrap()).unwrap();
        assert_eq!(read(json!("panic")), Location::Panic);
        assert_eq!(
            read(json!({"signal": {"signal": "segv"}})),
            Location::Signal(Some(11))
        );
        assert_eq!(
            read(json!({"throw": {"pattern": "std::*"}})),
            Location::Throw {
                pattern: Some("std::*".to_owned()),
                unhandled_only: false
            }
        );
        let wrong = Caught::Signal {
            signal: Some("SIGNONE".to_owned()),
        };
        assert!(location(wrong).is_err());
    }

    #[test]
    fn what_can_be_caught_is_written_as_words() {
        let caught = |text: &str| {
            let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
            caught(&words, true)
        };
        assert_eq!(caught("panic").unwrap(), Caught::Panic);
        assert!(caught("signal SEGV").is_ok());
        assert!(caught("throw std::exception").is_ok());
        assert!(caught("rain").is_err());
        let fork = caught("fork").unwrap_err();
        assert!(fork.hint.unwrap().contains("break fork"));
        let call = caught("syscall openat").unwrap_err();
        assert!(call.hint.unwrap().contains("break openat"));
        assert!(caught("").is_err());
    }
}
