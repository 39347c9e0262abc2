//! `catch`: adds, lists, removes and switches catchpoints, which stop a thread at C++ exceptions, Rust panics, signals,
//! system calls, new processes and other programs.

use recorder::live::{Action, Happening, Location, ProbeSpec};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    BreakReply, Call, Command, Does, Form, Needs, ProbeArgs, ProbeKind, Text, Verb, Word,
    probe_text, probe_words, probes,
};
use crate::inspect::{self, signal_by_name, signal_name};
use crate::past::{Break, CatchWanted, Happened, Past};
use crate::protocol::Failure;
use crate::session::Session;

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
    /// A handler of a C++ exception is entered.
    Catch,
    /// A C++ exception is thrown again.
    Rethrow,
    /// A system call, before it is made.
    Syscall {
        /// Their names or numbers. Default: any.
        #[serde(default)]
        names: Vec<String>,
    },
    /// A process made by fork.
    Fork,
    /// A process made by vfork or posix_spawn.
    Vfork,
    /// Another program is executed.
    Exec,
    /// A library is loaded while the program runs.
    Load {
        /// A glob for the name of its file. Default: any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pattern: Option<String>,
    },
}

impl Verb for Catch {
    const NAME: &'static str = "catch";
    const DOC: &'static str = "Stop at exceptions, panics, signals, system calls and new processes\n\n  catch throw std::*          C++ exceptions of these types, where they are thrown\n  catch catch                 where one is handled; catch rethrow: where it is thrown again\n  catch panic                 Rust panics\n  catch signal SIGUSR1        a signal that a thread is about to get\n  catch syscall openat        before a system call, by name or number; without one, before any\n  catch syscall write if $rdi == 2\n  catch fork, catch vfork     a new process, after the call that made it; vfork also catches posix_spawn\n  catch exec                  another program, at its first instruction\n  catch load libplugin        a library with that in its name, or a pattern; mapped, but none of its code has run\n\nThe program stays the one that is followed, unless set follow-fork-mode child: a new process runs on by itself.\n\nIn a recording, runs through time stop at its events: fork (vfork and posix_spawn are recorded as fork), exec, load, system calls if they were recorded (--syscalls), and signals: those that ended or stopped the program, with --full also those that it handled.";
    const NEEDS: Needs = Needs::Session;
    const DOES: Does = Does::Change;
    type Args = ProbeArgs<CatchAdd>;
    type Reply = BreakReply;

    fn run(call: &Call<'_>, args: Self::Args) -> Result<BreakReply, Failure> {
        if let Session::Recorded(past) = call.target()? {
            return Ok(BreakReply::Recorded {
                breaks: recorded(&past, args)?,
                of_a_program: past.is_of_a_session(),
            });
        }
        let reply = probes::run(call, args, ProbeKind::Catchpoint, |_, add| {
            Ok(vec![ProbeSpec {
                location: location(add.what)?,
                action: Action::Break {
                    all_threads: add.all_threads,
                    once: false,
                },
                condition: inspect::condition(add.condition.as_deref())?,
                hit_count: add.hit_count,
            }])
        })?;
        Ok(BreakReply::Probes(reply))
    }
}

impl Command for Catch {
    const WORDS: &'static [Word] = &[
        Word::new(
            "words",
            "throw [TYPE] | panic | signal [NAME] | syscall [NAME..] | fork | vfork | exec | load [FILE] | list | remove ID.. | enable ID.. | disable ID..",
            Form::Words,
            "What is caught",
        )
        .optional(),
        Word::flag("unhandled", None, "With throw: only what is not caught"),
        probe_words::CONDITION,
        probe_words::HIT_COUNT,
        probe_words::ALL_OF_KIND,
        probe_words::ALL_THREADS,
    ];

    fn read(written: Map<String, Value>) -> Result<Self::Args, Failure> {
        probe_words::read(written, |words, written| {
            let unhandled = written.remove("unhandled") == Some(Value::Bool(true));
            let words = probe_words::with_if(words, written)?;
            let what = serde_json::to_value(caught(words, unhandled)?);
            written.insert("what".to_owned(), what.expect("what is caught is JSON"));
            Ok(())
        })
    }

    fn text(reply: &BreakReply, asked: &Self::Args) -> Text {
        match reply {
            BreakReply::Probes(reply) => probe_text::of_program(&reply.probes, asked),
            BreakReply::Recorded {
                breaks,
                of_a_program,
            } => probe_text::breaks(breaks, *of_a_program, asked),
        }
    }
}

/// Catches recorded events.
fn recorded(past: &Past, args: ProbeArgs<CatchAdd>) -> Result<Vec<Break>, Failure> {
    let is_catch = |known: &Break| known.caught.is_some();
    match args {
        ProbeArgs::List => Ok(past.all_breaks().into_iter().filter(is_catch).collect()),
        ProbeArgs::Add(add) => {
            let location = location(add.what.clone())?;
            let words = words(&location);
            let what = match &add.what {
                Caught::Signal { .. } => Happened::Signal(signal(&location)),
                Caught::Fork | Caught::Vfork => Happened::Fork,
                Caught::Exec => Happened::Exec,
                Caught::Load { pattern } => Happened::Load(pattern.clone()),
                Caught::Syscall { names } => Happened::Syscall(
                    names
                        .iter()
                        .map(|name| system_call(name))
                        .collect::<Result<_, _>>()?,
                ),
                _ => return Err(past.cannot_catch()),
            };
            let has_options = add.condition.is_some() || add.hit_count > 0 || add.all_threads;
            let wanted = CatchWanted {
                what,
                words,
                has_options,
            };
            Ok(vec![past.add_catch(wanted)?])
        }
        ProbeArgs::Remove(chosen) => probes::each_id(&chosen, |id| past.remove_break(id)),
        ProbeArgs::Enable(chosen) => probes::each_id(&chosen, |id| past.switch_break(id, true)),
        ProbeArgs::Disable(chosen) => probes::each_id(&chosen, |id| past.switch_break(id, false)),
    }
}

/// Returns the signal that a location means; `None`: any.
fn signal(location: &Location) -> Option<i32> {
    match location {
        Location::Signal(signal) => *signal,
        _ => None,
    }
}

/// How a location is written behind `catch`.
fn words(location: &Location) -> String {
    let Some(signal) = signal(location) else {
        return location.to_string();
    };
    // A real-time signal has no name, and is called by its number.
    let name = signal_name(signal);
    match name.starts_with("signal ") {
        true => name,
        false => format!("signal {name}"),
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
        ["catch"] => Caught::Catch,
        ["rethrow"] => Caught::Rethrow,
        ["syscall", names @ ..] => Caught::Syscall {
            names: names.iter().map(|&name| name.to_owned()).collect(),
        },
        ["fork"] => Caught::Fork,
        ["vfork"] => Caught::Vfork,
        ["exec"] => Caught::Exec,
        ["load"] | ["load", _] => Caught::Load {
            pattern: words.get(1).map(|&pattern| within(pattern)),
        },
        _ => {
            let message = format!("\"{}\" cannot be caught", words.join(" "));
            return Err(Failure::bad_request(message).hint(instead(&words)));
        }
    })
}

/// Returns the pattern for names that have a word in them; a pattern stays as it is.
fn within(word: &str) -> String {
    match word.contains(['*', '?', '[']) {
        true => word.to_owned(),
        false => format!("*{word}*"),
    }
}

/// Reads the name or the number of a system call.
fn system_call(name: &str) -> Result<u64, Failure> {
    let known = || debuginfo::syscalls::number(name);
    if let Some(number) = name.parse().ok().or_else(known) {
        return Ok(number);
    }
    let near = expr::nearest(name, debuginfo::syscalls::names());
    let failure = Failure::bad_request(format!("there is no system call {name}"));
    Err(match near {
        Some(near) => failure.hint(format!("did you mean {near}?")),
        None => failure.hint("write the kernel's name, as strace does, or a number"),
    })
}

/// What to do instead.
fn instead(words: &[&str]) -> &'static str {
    match words {
        ["unload", ..] => "stop where the program unloads it: break dlclose",
        _ => "write throw, catch, rethrow, panic, signal, syscall, fork, vfork, exec or load",
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
        Caught::Catch => Location::Event(Happening::Handler),
        Caught::Rethrow => Location::Event(Happening::Rethrow),
        Caught::Syscall { names } => {
            let numbers: Result<Vec<u64>, Failure> =
                names.iter().map(|name| system_call(name)).collect();
            Location::Event(Happening::Syscall(numbers?))
        }
        Caught::Fork => Location::Event(Happening::Fork),
        Caught::Vfork => Location::Event(Happening::Vfork),
        Caught::Exec => Location::Event(Happening::Exec),
        Caught::Load { pattern } => Location::Event(Happening::Load(pattern)),
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
        let place = |text: &str| location(caught(text).unwrap()).map(|place| place.to_string());
        for text in [
            "fork",
            "exec",
            "catch",
            "rethrow",
            "syscall",
            "load",
            "load libm*",
        ] {
            assert_eq!(place(text).unwrap(), text);
        }
        assert_eq!(place("syscall openat 1").unwrap(), "syscall openat write");
        let written = |text: &str| words(&location(caught(text).unwrap()).unwrap());
        for (text, expected) in [
            ("signal", "signal"),
            ("signal usr1", "signal SIGUSR1"),
            ("signal 34", "signal 34"),
        ] {
            assert_eq!(written(text), expected);
        }
        let wrong = place("syscall opnat").unwrap_err();
        assert_eq!(wrong.hint.as_deref(), Some("did you mean openat?"));
        let unload = caught("unload libm").unwrap_err();
        assert!(unload.hint.unwrap().contains("dlclose"));
        assert!(caught("").is_err());
    }
}
