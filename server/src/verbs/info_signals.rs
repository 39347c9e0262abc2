//! `info_signals`: what each signal does: whether it stops the program, is recorded and is passed on.

use recorder::live::{FAULTS, Location};
use serde::{Deserialize, Serialize};

use super::{Call, Column, Command, Does, Form, Needs, Text, Verb, Word};
use crate::inspect::{signal_by_name, signal_name};
use crate::protocol::Failure;

/// The `info_signals` verb.
pub struct InfoSignals;

/// The arguments of `info_signals`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InfoSignalsArgs {
    /// The signal's name or number; all that have names, if none is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
}

/// The reply of `info_signals`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InfoSignalsReply {
    /// The signals, by number.
    pub signals: Vec<SignalLine>,
}

/// A signal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignalLine {
    /// Its name.
    pub signal: String,
    /// Its number.
    pub number: i32,
    /// A thread that gets it stops first, whether or not the program gets it.
    pub stops: bool,
    /// The catchpoint that stops it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catchpoint: Option<u32>,
    /// It is an event of the recording even if it does not end the program.
    pub is_recorded: bool,
    /// The program gets it.
    pub is_passed: bool,
}

/// Signals with names of their own.
const NAMED: std::ops::RangeInclusive<i32> = 1..=31;

impl Verb for InfoSignals {
    const NAME: &'static str = "info_signals";
    const DOC: &'static str = "Show how signals are handled: info signals, info signals SIGUSR1\n\nA signal stops the program if it is caught (catch signal, handle SIGNAL stop) or if it will end it. Those that stop it are recorded, and so are faults. The program gets every signal.";
    const ALIASES: &'static [&'static str] = &["info_handle"];
    const NEEDS: Needs = Needs::Program;
    const DOES: Does = Does::Look;
    type Args = InfoSignalsArgs;
    type Reply = InfoSignalsReply;

    fn run(call: &Call<'_>, args: InfoSignalsArgs) -> Result<InfoSignalsReply, Failure> {
        let session = call.live()?;
        let numbers = match &args.signal {
            None => NAMED,
            Some(name) => {
                let number = signal_by_name(name).ok_or_else(|| {
                    Failure::bad_request(format!("there is no signal {name}"))
                        .hint("write SIGSEGV, segv or 11")
                })?;
                number..=number
            }
        };
        let probes = session.live.probes();
        let caught = |signal: Option<i32>| {
            let is_it = |location: &Location| *location == Location::Signal(signal);
            let found = probes.iter().find(|view| is_it(&view.spec.location));
            found.map(|view| view.id)
        };
        let line = |number: i32| {
            let catchpoint = caught(Some(number)).or_else(|| caught(None));
            SignalLine {
                signal: signal_name(number),
                number,
                stops: catchpoint.is_some(),
                catchpoint,
                is_recorded: catchpoint.is_some() || FAULTS.contains(&number),
                is_passed: true,
            }
        };
        Ok(InfoSignalsReply {
            signals: numbers.map(line).collect(),
        })
    }
}

impl Command for InfoSignals {
    const WORDS: &'static [Word] = &[Word::new(
        "signal",
        "SIGNAL",
        Form::Text,
        "Only this one, by name or number",
    )
    .optional()];

    fn text(reply: &InfoSignalsReply, _: &InfoSignalsArgs) -> Text {
        let row = |line: &SignalLine| {
            let at_end = || "if it ends the program".to_owned();
            let stops = line.catchpoint.map(|id| format!("yes (catchpoint {id})"));
            let recorded = line.is_recorded.then(|| "yes".to_owned());
            vec![
                line.signal.clone(),
                stops.unwrap_or_else(at_end),
                recorded.unwrap_or_else(at_end),
                "yes".to_owned(),
            ]
        };
        let columns = [
            Column::text("Signal"),
            Column::text("Stops"),
            Column::text("Recorded"),
            Column::text("Passed on"),
        ];
        Text::table(&columns, reply.signals.iter().map(row).collect())
    }
}
