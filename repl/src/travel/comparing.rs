//! `compare` at the prompt: two recordings side by side. `next difference` and `previous difference` move both to where
//! they differ, `goto` moves both, and `other` runs a verb on the second one.

use std::path::Path;
use std::sync::Arc;

use query::compare::{Asked, COLUMNS, Comparison, Step, ThreadEvent, Twin, Twins, compare_both};
use query::{Options, Session as Opened};
use serde_json::json;
use server::past::Past;
use server::transport::InProcess;
use server::verbs::{Command, Goto, GotoArgs, PositionReply};

use super::Session;
use super::sides::{self, Side};
use crate::commands::compare;
use crate::commands::live::{self, Common, Patience};
use crate::error::Error;
use crate::exit;
use crate::json::answer;
use crate::recording::to_read;

/// Most calls that differ and can be stepped through.
const MOST_CALLS: usize = 10_000;

/// Two recordings that were compared.
pub struct Comparing {
    /// The recording of the prompt, A.
    own: Arc<Past>,
    /// The other one, B; the prompt's own while a verb runs on B.
    other: InProcess,
    sessions: (Opened, Opened),
    asked: Asked,
    found: Comparison,
    twins: Twins,
    steps: Vec<Step>,
    /// The step that was shown last.
    at: Option<usize>,
}

/// The direction of a move through the differences.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Way {
    Next,
    Previous,
}

fn none() -> Error {
    Error::usage(
        "nothing is compared",
        Some("compare the recording with another one first: compare OTHER".to_owned()),
    )
}

fn failed(source: query::Error) -> Error {
    match source {
        query::Error::Stopped => Error::Interrupted,
        source => Error::Query { source },
    }
}

impl Session {
    /// `compare OTHER`, `compare` and `compare --off`.
    pub(super) fn compare(&mut self, words: &[String]) -> Result<u8, Error> {
        match words {
            [] => {
                let comparing = self.compared()?;
                live::write(&self.summary(comparing))?;
                Ok(exit::DONE)
            }
            [word] if word == "--off" => {
                self.compared()?;
                self.comparing = None;
                Ok(exit::DONE)
            }
            [other] => {
                self.comparing = Some(self.begin(other)?);
                let comparing = self.compared()?;
                live::write(&self.summary(comparing))?;
                Ok(exit::DONE)
            }
            _ => Err(Error::usage(
                "compare takes one recording",
                Some("write: compare OTHER".to_owned()),
            )),
        }
    }

    fn begin(&self, other: &str) -> Result<Comparing, Error> {
        let own = self.link.past().ok_or_else(|| {
            Error::usage(
                "only a recording can be compared with another one",
                Some("leave, and open it: hindsight repl RECORDING".to_owned()),
            )
        })?;
        let path = to_read(Path::new(other))?;
        let asked = compare::asked(MOST_CALLS, true)?;
        let reader = Arc::clone(own.timeline().reader());
        let options = Options::default();
        let sessions = (
            Opened::new(reader, options.clone()).map_err(compare::failed)?,
            Opened::open_with(&path, options).map_err(compare::failed)?,
        );
        let past = Past::open(&path, &store::temp_dir()).map_err(server::Error::from)?;
        let names = (compare::name_of(own.path()), other.to_owned());
        let stop = asked.stop.clone();
        let (found, twins) = self
            .link
            .watched(
                move || stop.stop(),
                || {
                    let (a, b) = ((&sessions.0, &*names.0), (&sessions.1, &*names.1));
                    compare_both(a, b, &asked)
                },
            )?
            .map_err(|error| match error {
                query::Error::Stopped => Error::Interrupted,
                error => compare::failed(error),
            })?;
        Ok(Comparing {
            own,
            other: InProcess::new(past),
            sessions,
            // The next search is not ended by the Ctrl-C of this one.
            asked: compare::asked(MOST_CALLS, true)?,
            steps: found.steps(),
            found,
            twins,
            at: None,
        })
    }

    /// Returns the comparison, if it is that of the prompt's recording.
    fn compared(&self) -> Result<&Comparing, Error> {
        let past = self.link.past();
        let is_own =
            |comparing: &&Comparing| past.is_some_and(|past| Arc::ptr_eq(&past, &comparing.own));
        self.comparing.as_ref().filter(is_own).ok_or_else(none)
    }

    /// Returns whether two recordings are compared.
    pub(super) fn is_comparing(&self) -> bool {
        self.compared().is_ok()
    }

    fn summary(&self, comparing: &Comparing) -> String {
        if self.json {
            let json = serde_json::to_value(&comparing.found).expect("it is JSON");
            return format!("{}\n", answer(json));
        }
        let lines = comparing.found.lines(false, COLUMNS);
        let mut shown = compare::painted(&lines, self.terminal().stdout_colour);
        if !comparing.steps.is_empty() {
            shown += "next difference goes to the first one, in both; other VERB asks B\n";
        }
        shown
    }

    /// `next difference` and `previous difference`.
    pub(super) fn difference(&mut self, way: Way, words: &[String]) -> Result<u8, Error> {
        if let [word, ..] = words {
            return Err(Error::usage(format!("it does not take \"{word}\""), None));
        }
        let here = self.position()?;
        let comparing = self.compared()?;
        let Some(at) = comparing.following(way, here.as_ref()) else {
            let (which, back) = match way {
                Way::Next => ("next", "previous difference goes back"),
                Way::Previous => ("previous", "next difference continues"),
            };
            let more = comparing.found.differing > MOST_CALLS as u64;
            let message = match comparing.steps.is_empty() {
                true => "the recordings do not differ".to_owned(),
                false if more && way == Way::Next => {
                    format!("only the first {MOST_CALLS} differences are gone through")
                }
                false => format!("there is no {which} difference"),
            };
            let hint = (!comparing.steps.is_empty()).then(|| back.to_owned());
            return Err(Error::usage(message, hint));
        };
        let step = comparing.steps[at].clone();
        let texts = [
            self.side_at(step.seqs[0], step.has[0])?,
            self.of_other(|session| session.side_at(step.seqs[1], step.has[1]))?,
        ];
        let comparing = self.comparing.as_mut().ok_or_else(none)?;
        comparing.at = Some(at);
        let (number, of) = (at + 1, comparing.steps.len());
        if self.json {
            let step = json!({"number": number, "of": of, "step": step});
            live::write(&format!("{}\n", answer(step)))?;
            return Ok(exit::DONE);
        }
        let heading = format!("Difference {number} of {of}: {}", step.text);
        let mut shown = sides::heading(&heading, self.terminal());
        for values in &step.values {
            shown += &sides::values(values, self.terminal());
        }
        shown += &self.beside(texts)?;
        live::write(&shown)?;
        Ok(exit::DONE)
    }

    /// Moves to an event and returns what is shown there.
    fn side_at(&self, seq: Option<u64>, has_it: bool) -> Result<Side, Error> {
        let Some(seq) = seq else {
            return Ok(Side::lines(["nothing had happened here before".to_owned()]));
        };
        let args = GotoArgs {
            to: seq.to_string(),
        };
        let reply = live::fetch::<Goto>(&Common::default(), &self.link, &args, Patience::Search)?;
        let text = live::written(&Goto::text(&reply, &args), &sides::plain(self.terminal()));
        let missing = (!has_it).then(|| "it is not here; this is where it would be".to_owned());
        let lines = text.lines().map(str::to_owned);
        Ok(Side::lines(missing.into_iter().chain(lines)))
    }

    /// Writes both sides with their names.
    fn beside(&self, [a, b]: [Side; 2]) -> Result<String, Error> {
        let found = &self.compared()?.found;
        let (a, b) = (
            a.named(format!("A {}", found.a.name)),
            b.named(format!("B {}", found.b.name)),
        );
        Ok(sides::beside(&a, &b, self.terminal()))
    }

    /// Does something with the other recording in place of the prompt's own.
    fn of_other<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.compared()?;
        let mut comparing = self.comparing.take().ok_or_else(none)?;
        self.link.exchange(&mut comparing.other);
        let done = work(self);
        self.link.exchange(&mut comparing.other);
        self.comparing = Some(comparing);
        done
    }

    /// `other VERB ...`: runs a verb on the second recording.
    pub(super) fn other(&mut self, text: &str) -> Result<u8, Error> {
        if text.is_empty() {
            return Err(Error::usage(
                "other takes a verb",
                Some("write: other where".to_owned()),
            ));
        }
        self.of_other(|session| session.run(text).map(|(_, code)| code))
    }

    /// Moves the second recording to the moment that matches the first one's.
    pub(super) fn follow(&mut self) -> Result<u8, Error> {
        let here = self.position()?;
        let place = here.and_then(|here| {
            Some(ThreadEvent {
                seq: here.seq?,
                tid: here.thread?,
            })
        });
        let comparing = self.compared()?;
        let stop = comparing.asked.stop.clone();
        let twin = match place {
            None => None,
            Some(place) => self
                .link
                .watched(
                    move || stop.stop(),
                    || {
                        let (a, b) = &comparing.sessions;
                        comparing.twins.twin((a, b), &comparing.asked, place)
                    },
                )?
                .map_err(failed)?,
        };
        let name = comparing.found.b.name.clone();
        let (seq, has_it) = match twin {
            Some(Twin::Same(place)) => (Some(place.seq), true),
            Some(Twin::Before(place)) => (Some(place.seq), false),
            None => (None, true),
        };
        let side =
            match seq {
                None => Side::lines([
                    "no moment of it belongs to this one: it stays where it is".to_owned()
                ]),
                Some(_) => self.of_other(|session| session.side_at(seq, has_it))?,
            };
        if !self.json {
            let side = side.named(format!("B {name}"));
            live::write(&sides::alone(&side, self.terminal()))?;
        }
        Ok(exit::DONE)
    }
}

impl Comparing {
    /// Returns the step that follows the last one, or the position if it was left since.
    fn following(&self, way: Way, here: Option<&PositionReply>) -> Option<usize> {
        let seq = here.and_then(|here| here.seq).unwrap_or(0);
        let is_there = |at: &usize| self.steps[*at].seqs[0].is_none_or(|own| own == seq);
        if let Some(at) = self.at.filter(is_there) {
            return match way {
                Way::Next => Some(at + 1).filter(|next| *next < self.steps.len()),
                Way::Previous => at.checked_sub(1),
            };
        }
        let own = |step: &Step| step.seqs[0].unwrap_or(0);
        match way {
            Way::Next if self.at.is_none() && seq == 0 => (!self.steps.is_empty()).then_some(0),
            Way::Next => self.steps.iter().position(|step| own(step) > seq),
            Way::Previous => self.steps.iter().rposition(|step| own(step) < seq),
        }
    }
}
