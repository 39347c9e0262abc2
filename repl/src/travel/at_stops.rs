//! `commands`, typed over several lines: `commands 2`, the lines, `end`.

use server::verbs::{
    Commands, CommandsArgs, Does, InfoBreakpoints, InfoBreakpointsReply, PageArgs, find,
};

use super::{Session, line};
use crate::commands::live::{self, Common, Patience};
use crate::error::Error;
use crate::exit;
use crate::output;

/// The prompt for the lines, as gdb's.
pub const PROMPT: &str = "> ";

/// What ends them.
pub const END: &str = "end";

/// The breakpoint whose lines are being entered, and those that it has so far.
#[derive(Debug)]
pub struct Entered {
    /// Without one, they are dropped: it was refused.
    id: Option<u32>,
    lines: Vec<String>,
}

impl Session {
    /// Begins the lines of a breakpoint: of the one with this number, or of the last one. With more words it is a verb
    /// like others.
    pub(super) fn commands(&mut self, words: Vec<String>) -> Result<u8, Error> {
        let id = match &words[1..] {
            [] => self.last_breakpoint()?,
            [id] if id.bytes().all(|byte| byte.is_ascii_digit()) => id.parse().ok(),
            _ => return self.verb(words),
        };
        let args = CommandsArgs {
            id,
            ..CommandsArgs::default()
        };
        // A script goes on with its lines, which are not for now even if there is no such breakpoint.
        let begin = |id| Entered {
            id,
            lines: Vec::new(),
        };
        if !self.is_typed {
            self.entered = Some(begin(None));
        }
        self.set_commands(&args)?;
        let Some(id) = id else {
            return Err(Error::usage(
                "commands is for a breakpoint, and there is none",
                Some("set one first: break LOCATION".to_owned()),
            ));
        };
        self.entered = Some(begin(Some(id)));
        if self.is_typed {
            output::line(format_args!(
                "Lines to run when {id} stops the program, up to: {END}; Ctrl-C drops them"
            ))?;
        }
        Ok(exit::DONE)
    }

    /// Takes a line, while lines are being entered: up to `end`. Returns whether it was one of them.
    pub(super) fn enter(&mut self, text: &str) -> Result<bool, Error> {
        let Some(entered) = &mut self.entered else {
            return Ok(false);
        };
        if text != END {
            if !text.is_empty() {
                entered.lines.push(text.to_owned());
            }
            return Ok(true);
        }
        let Entered { id, lines } = self.entered.take().expect("lines are entered");
        if id.is_some() {
            self.set_commands(&CommandsArgs {
                id,
                remove: lines.is_empty(),
                lines,
            })?;
        }
        Ok(true)
    }

    /// Returns whether lines are being entered.
    pub(super) fn is_entering(&self) -> bool {
        self.entered.is_some()
    }

    /// Drops the lines that are being entered, if any: the breakpoint keeps those that it had.
    pub(super) fn drop_entered(&mut self) -> Result<(), Error> {
        match self.entered.take() {
            Some(Entered { id: Some(id), .. }) => {
                output::line(format_args!("The lines of {id} stay as they were"))
            }
            _ => Ok(()),
        }
    }

    /// Returns an error if lines are still being entered: there was no `end`.
    pub(super) fn unended(&mut self) -> Option<Error> {
        let Entered { id, lines } = self.entered.take()?;
        let whose = match id {
            Some(id) => format!("of breakpoint {id}"),
            None => "after the refused commands".to_owned(),
        };
        let taken = server::quantity::count(lines.len() as u64, "line");
        Some(Error::usage(
            format!("the lines {whose} have no end: {taken} did nothing"),
            Some("write end after the lines that are to run at the stop".to_owned()),
        ))
    }

    /// Runs the lines of the breakpoint that has stopped the program, and those of the stops that they lead to.
    pub(super) fn run_at_stop(&mut self) -> Result<u8, Error> {
        if self.is_at_stop {
            return Ok(exit::DONE);
        }
        self.is_at_stop = true;
        let mut result = Ok(exit::DONE);
        while matches!(result, Ok(exit::DONE)) {
            let Some(lines) = self.link.take_at_stop() else {
                break;
            };
            for line in lines {
                result = self.run(&line).map(|(_, code)| code);
                // As in gdb, nothing follows a line that moves on.
                if !matches!(result, Ok(exit::DONE)) || self.is_move(&line) {
                    break;
                }
            }
        }
        self.is_at_stop = false;
        result
    }

    fn is_move(&self, line: &str) -> bool {
        let words = line::normal(line::split(&self.with_meaning(line.trim())));
        let verb = words.first().and_then(|verb| find(verb));
        verb.is_some_and(|verb| verb.does == Does::Move)
    }

    fn set_commands(&self, args: &CommandsArgs) -> Result<(), Error> {
        let common = Common::default();
        live::fetch::<Commands>(&common, &self.link, args, Patience::Answer).map(drop)
    }

    /// Returns the number of the newest breakpoint.
    fn last_breakpoint(&self) -> Result<Option<u32>, Error> {
        let common = Common::default();
        let all = PageArgs::default();
        let asked = live::fetch::<InfoBreakpoints>(&common, &self.link, &all, Patience::Answer)?;
        Ok(match asked {
            InfoBreakpointsReply::Program { probes, .. } => {
                probes.iter().map(|probe| probe.id).max()
            }
            InfoBreakpointsReply::Recorded {
                breaks, watches, ..
            } => {
                let watches = watches.iter().map(|watch| watch.id);
                breaks.iter().map(|known| known.id).chain(watches).max()
            }
        })
    }
}
