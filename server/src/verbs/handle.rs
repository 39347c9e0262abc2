//! `handle`: whether a signal stops the program, with gdb's keywords. It sets and removes catchpoints.

use recorder::live::{Action, Location, ProbeSpec};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Call, Command, Does, Form, Needs, Text, Verb, Word};
use crate::inspect::{signal_by_name, signal_name};
use crate::protocol::{Code, Failure};
use crate::session::of_recorder;

/// The `handle` verb.
pub struct Handle;

/// The arguments of `handle`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HandleArgs {
    /// The signal's name or number.
    pub signal: String,
    /// `stop`, `nostop`, `print`, `noprint`, `pass`, `nopass`.
    #[serde(default)]
    pub actions: Vec<String>,
}

/// The reply of `handle`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandleReply {
    /// The signal.
    pub signal: String,
    /// A thread that gets it stops first.
    pub stops: bool,
    /// Its catchpoint, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catchpoint: Option<u32>,
}

impl Verb for Handle {
    const NAME: &'static str = "handle";
    const DOC: &'static str = "Set whether a signal stops the program: handle SIGUSR1 nostop noprint pass\n\nA signal stops the program if it will end it, or if stop is set, which catch signal does, too. Those that stop it are recorded, and so are faults; print and noprint change nothing. The program gets every signal: nopass is refused.";
    const NEEDS: Needs = Needs::RunningProgram;
    const DOES: Does = Does::Change;
    type Args = HandleArgs;
    type Reply = HandleReply;

    fn run(call: &Call<'_>, args: HandleArgs) -> Result<HandleReply, Failure> {
        let session = call.live()?;
        let Some(signal) = signal_by_name(&args.signal) else {
            let message = format!("there is no signal {}", args.signal);
            return Err(Failure::bad_request(message).hint("write SIGSEGV, segv or 11"));
        };
        let wish = wish(&args.actions)?;
        let own = || {
            let mut probes = session.live.probes();
            probes.retain(|view| view.spec.location == Location::Signal(Some(signal)));
            probes
        };
        match wish {
            Some(true) if own().is_empty() => {
                let spec = ProbeSpec {
                    location: Location::Signal(Some(signal)),
                    action: Action::Break {
                        all_threads: false,
                        once: false,
                    },
                    condition: None,
                    hit_count: 0,
                };
                let added = session.live.add_probe(spec);
                added.map_err(|error| of_recorder(&error))?;
            }
            Some(false) => {
                for view in own() {
                    let removed = session.live.remove_probe(view.id);
                    removed.map_err(|error| of_recorder(&error))?;
                }
            }
            _ => {}
        }
        let all = session.live.probes();
        let of_all = all
            .iter()
            .find(|view| view.spec.location == Location::Signal(None));
        let catchpoint = own().first().or(of_all).map(|view| view.id);
        Ok(HandleReply {
            signal: signal_name(signal),
            stops: catchpoint.is_some(),
            catchpoint,
        })
    }
}

impl Command for Handle {
    const WORDS: &'static [Word] = &[Word::new(
        "words",
        "SIGNAL [stop|nostop] [print|noprint] [pass]",
        Form::Words,
        "The signal and how to handle it",
    )];

    fn read(mut written: Map<String, Value>) -> Result<HandleArgs, Failure> {
        let words = written.remove("words").unwrap_or_default();
        let mut words: Vec<String> = serde_json::from_value(words).unwrap_or_default();
        if words.is_empty() {
            return Err(Failure::bad_request("no signal is named")
                .hint("write handle SIGUSR1 nostop noprint pass"));
        }
        let signal = words.remove(0);
        wish(&words)?;
        Ok(HandleArgs {
            signal,
            actions: words,
        })
    }

    fn text(reply: &HandleReply, _: &HandleArgs) -> Text {
        let signal = &reply.signal;
        Text::line(match (reply.stops, reply.catchpoint) {
            (true, Some(id)) => {
                format!("{signal} stops the program (catchpoint {id}), is recorded and passed on")
            }
            _ => format!("{signal} stops the program only where it will end it, and is passed on"),
        })
    }
}

/// Whether the signal is to stop the program; `None` if no word says so.
fn wish(actions: &[String]) -> Result<Option<bool>, Failure> {
    let mut wish = None;
    for action in actions {
        match action.as_str() {
            "stop" => wish = Some(true),
            "nostop" => wish = Some(false),
            // Signals are always events of the recording, and the program always gets them.
            "print" | "noprint" | "pass" | "noignore" => {}
            "nopass" | "ignore" => {
                return Err(Failure::new(
                    Code::NotAllowed,
                    "signals are always passed on to the program",
                )
                .hint("to stop before it gets one: handle SIGNAL stop"));
            }
            other => {
                return Err(
                    Failure::bad_request(format!("handle does not know \"{other}\""))
                        .hint("write stop, nostop, print, noprint or pass"),
                );
            }
        }
    }
    Ok(wish)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_wish_counts_and_losing_signals_is_refused() {
        let wish = |text: &str| {
            let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
            wish(&words)
        };
        assert_eq!(wish("nostop noprint pass").unwrap(), Some(false));
        assert_eq!(wish("stop print").unwrap(), Some(true));
        assert_eq!(wish("").unwrap(), None);
        assert_eq!(wish("nopass").unwrap_err().code, Code::NotAllowed);
        assert_eq!(wish("quietly").unwrap_err().code, Code::BadRequest);
    }
}
