//! `commands`: the lines that a client runs when a breakpoint has stopped the program.

use serde::{Deserialize, Serialize};

use super::{Call, Command, Does, Form, Needs, Text, Verb, Word};
use crate::protocol::{Code, Failure};
use crate::session::Session;

/// The `commands` verb.
pub struct Commands;

/// The arguments of `commands`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CommandsArgs {
    /// The breakpoint's number. Without one: all that have lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<u32>,
    /// Its lines. Without any, those that it has are shown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<String>,
    /// Remove its lines.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub remove: bool,
}

/// The reply of `commands`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandsReply {
    /// The breakpoint that was asked about, or all that have lines.
    pub commands: Vec<LinesOf>,
}

/// The lines of a breakpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinesOf {
    /// Its number.
    pub id: u32,
    /// Its lines.
    pub lines: Vec<String>,
    /// It was a temporary breakpoint, and is gone since its stop: the lines are for that stop.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_gone: bool,
}

impl Verb for Commands {
    const NAME: &'static str = "commands";
    const DOC: &'static str = "Set commands to run when a breakpoint stops the program\n\n  commands 2 'print total' continue     run these lines when breakpoint 2 stops it; lines after one that resumes the program are not run\n  commands 2 silent 'print n' continue  and do not show the stop itself\n  commands 2                            show its lines\n  commands 2 --remove                   remove them\n\nThe prompt and the shell run them after the verb that ended at the stop, but not with --json. At the prompt, commands 2 reads the lines that follow, up to: end. Watchpoints and catchpoints may have lines, too.";
    const NEEDS: Needs = Needs::Session;
    const DOES: Does = Does::Change;
    type Args = CommandsArgs;
    type Reply = CommandsReply;

    fn run(call: &Call<'_>, args: CommandsArgs) -> Result<CommandsReply, Failure> {
        let session = call.target()?;
        let known = numbers(&session);
        if let Some(id) = args.id.filter(|id| !known.contains(id)) {
            return Err(match &session {
                Session::Recorded(past) if past.is_of_a_session() => not_of_the_past(id),
                _ => no_such(id, &known),
            });
        }
        match args.id {
            Some(id) if args.remove => session.at_stops().set(id, Vec::new()),
            Some(id) if !args.lines.is_empty() => session.at_stops().set(id, args.lines),
            Some(_) => {}
            None if args.remove => {
                for id in session.at_stops().numbers() {
                    session.at_stops().set(id, Vec::new());
                }
            }
            None => {}
        }
        let lines_of = |id: u32| LinesOf {
            id,
            lines: session.at_stops().of(id),
            is_gone: !known.contains(&id),
        };
        Ok(CommandsReply {
            commands: match args.id {
                Some(id) => vec![lines_of(id)],
                // A temporary breakpoint is removed when it stops, before a client asks for the lines of that stop.
                None => {
                    let all = session.at_stops().numbers();
                    all.into_iter().map(lines_of).collect()
                }
            },
        })
    }
}

/// The numbers of everything that stops the program.
fn numbers(session: &Session) -> Vec<u32> {
    match session {
        Session::Live(session) => session.live.probes().iter().map(|probe| probe.id).collect(),
        Session::Recorded(past) => {
            let breaks = past.all_breaks();
            let watches = past.all_watches().watches;
            let watches = watches.iter().map(|watch| watch.id);
            breaks.iter().map(|known| known.id).chain(watches).collect()
        }
    }
}

/// The past of a session has breakpoints of its own, with numbers of their own.
fn not_of_the_past(id: u32) -> Failure {
    let message = format!("the past has no breakpoint {id}");
    Failure::new(Code::BreakpointNotFound, message)
        .hint("for a breakpoint of the program, go back first: goto live")
}

fn no_such(id: u32, known: &[u32]) -> Failure {
    let failure = Failure::new(
        Code::BreakpointNotFound,
        format!("there is no breakpoint {id}"),
    );
    failure.hint(match known {
        [] => "set one first: break LOCATION".to_owned(),
        known => {
            let numbers: Vec<String> = known.iter().map(u32::to_string).collect();
            format!("there are: {}", numbers.join(", "))
        }
    })
}

impl Command for Commands {
    const WORDS: &'static [Word] = &[
        Word::new(
            "id",
            "ID",
            Form::NumberOperand,
            "The number of the breakpoint [default: all that have lines]",
        )
        .optional(),
        Word::new(
            "lines",
            "LINE",
            Form::Words,
            "What to run; quote lines of several words",
        )
        .optional(),
        Word::new("remove", "", Form::Flag(None), "Remove the lines"),
    ];

    fn text(reply: &CommandsReply, asked: &CommandsArgs) -> Text {
        let mut shown = reply.commands.iter().filter(|of| !of.is_gone).peekable();
        if shown.peek().is_none() {
            return Text::line("No breakpoint has lines.");
        }
        Text::lines(shown.map(|of| match of.lines.is_empty() {
            true if asked.remove => format!("{}: no lines any more", of.id),
            true => format!("{}: no lines", of.id),
            false => format!("{}: {}", of.id, of.lines.join("; ")),
        }))
    }
}
