//! SQL at the prompt: queries, and moves to where an SQL condition is true.

use std::sync::Arc;

use query::Options;
use server::protocol::{Code, Failure};
use server::session::StateWord;

use super::Session;
use crate::ask::{Asker, Records, View, show as show_answer, show_document};
use crate::error::Error;
use crate::format::Format;

/// The maximum number of rows shown on a terminal.
const ROWS: usize = 1000;

impl Session {
    /// Moves to the nearest call in a direction for which an SQL condition is true. If the condition uses the columns
    /// of events, moves to the nearest event.
    pub(super) fn run_to_where(&mut self, words: &[String]) -> Result<u8, Error> {
        let is_back = words[0].starts_with("reverse");
        if words.len() == 1 {
            return Err(Error::usage(
                "continue where takes a condition",
                Some("write: continue where dur_ns > 1000000".to_owned()),
            ));
        }
        if self.is_live() && !is_back {
            return Err(Error::usage(
                "continue where searches the recording, and you are at its end",
                Some("go back: continue back where CONDITION; or stop the program where it is true: break LOCATION --condition EXPRESSION".to_owned()),
            ));
        }
        let here = self.here()?;
        let condition = words[1..].join(" ");
        let (best, side) = match is_back {
            false => ("min", ">"),
            true => ("max", "<"),
        };
        let asker = self.asker()?;
        let mut nearest = |table: &str, seq: &str| {
            let sql = format!(
                "SELECT {best}({seq}) FROM {table} WHERE ({condition}) AND {seq} {side} {here}"
            );
            let rows = asker.texts(&sql)?;
            Ok::<_, Error>(rows.first().and_then(|row| row.first().cloned()).flatten())
        };
        let (found, nothing) = match nearest("calls", "start_seq") {
            Ok(found) => (found, format!("call with start_seq {side} {here}")),
            Err(error @ (Error::Interrupted | Error::Terminated { .. })) => return Err(error),
            // If the condition is wrong for both tables, report the error for calls.
            Err(error) => match nearest("events", "seq") {
                Ok(found) => (found, format!("event with seq {side} {here}")),
                Err(_) => return Err(error),
            },
        };
        let Some(seq) = found else {
            return Err(Error::usage(
                format!("no {nothing} fulfils: {condition}"),
                Some(
                    "the condition is one over the columns of calls or of events: \\d calls or \\d events in hindsight sql"
                        .to_owned(),
                ),
            ));
        };
        self.verb(vec!["goto".to_owned(), seq])
    }

    /// Returns the event at which a search through time starts: the current one, or the last one of a program that has
    /// ended.
    fn here(&self) -> Result<u64, Error> {
        let position = self.position()?;
        if let Some(seq) = position.as_ref().and_then(|position| position.seq) {
            return Ok(seq);
        }
        match (&self.present, position) {
            (Some(_), Some(position)) if position.status == StateWord::Running => {
                let message =
                    "the program is running; its past can be examined while it is stopped";
                let failure = Failure::new(Code::NotStopped, message);
                Err(server::Error::from(failure.hint("stop it first: pause")).into())
            }
            (Some(present), _) => Ok(present.events()?.saturating_sub(1)),
            (None, _) => Ok(0),
        }
    }

    pub(super) fn sql(&mut self, text: &str) -> Result<(), Error> {
        let text = text.trim_end_matches(';');
        if self.json {
            return show_document(self.asker()?, text);
        }
        let view = View {
            format: Format::Table,
            rows: self.terminal().stdout.then_some(ROWS),
            records: Records::Auto,
            timing: false,
            terminal: self.terminal().clone(),
        };
        show_answer(self.asker()?, text, &view)
    }

    /// Returns the asker for SQL. In a live session it sees everything recorded so far.
    fn asker(&mut self) -> Result<&mut Asker, Error> {
        // A live prompt has taken over Ctrl-C anyway.
        let interruptible = self.terminal().interactive || self.present.is_some();
        let reader = match (self.link.past(), &self.present) {
            (Some(past), _) => Arc::clone(past.timeline().reader()),
            (None, Some(present)) => present.reader()?,
            (None, None) => unreachable!("a prompt is about a recording or a session"),
        };
        match &mut self.asker {
            Some(asker) => asker.look_at(reader)?,
            None => {
                let mut asker = Asker::new(reader, Options::default(), interruptible)?;
                asker.show_life(self.terminal());
                self.asker = Some(asker);
            }
        }
        Ok(self.asker.as_mut().expect("it was made"))
    }
}
