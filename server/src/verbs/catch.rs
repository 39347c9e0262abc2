//! `catch`: adds, lists, removes and switches catchpoints: C++ throws, Rust panics and signals stop a thread.

use recorder::live::{Action, Location, ProbeSpec};
use serde::{Deserialize, Serialize};

use super::{Call, Does, Needs, ProbeArgs, ProbeKind, ProbesReply, Verb, probes};
use crate::inspect::{self, signal_by_name};
use crate::protocol::Failure;

/// The verb.
pub struct Catch;

/// A catchpoint to add.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CatchAdd {
    /// What.
    pub what: Caught,
    /// Only if this is true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// Only on the Nth hit; 0: on every one.
    #[serde(default)]
    pub hit_count: u64,
    /// Stop all threads.
    #[serde(default)]
    pub all_threads: bool,
}

/// What is caught.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Caught {
    /// A C++ throw.
    Throw {
        /// A glob on the type's name, its bases count too; left out: any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pattern: Option<String>,
        /// Only if nobody will catch it.
        #[serde(default)]
        unhandled_only: bool,
    },
    /// A Rust panic.
    Panic,
    /// A signal.
    Signal {
        /// Its name or number; left out: any.
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
}
