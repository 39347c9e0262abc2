//! Which functions most likely made the difference, the likeliest first.
//!
//! The function that parted comes first: with the same arguments and the same calls inside, it did something else. But
//! what it reads from memory is not seen. If the recordings are of two builds, code that is the same does the same on the
//! same memory; so a function whose code differs must have run before. Of these, the one that ran last comes first, calls
//! that were still open before those that had ended. Then come functions that only one build has.

use debuginfo::short_name;
use rustc_hash::FxHashMap;
use serde::Serialize;

use super::code::Codes;
use super::parted::{How, Parting, SourceLine, name_of};
use super::read::{CallFiles, Position};
use super::side::Side;
use super::source;
use crate::error::Result;
use crate::overview::told;
use crate::session::Session;

/// Most functions that are told.
const MOST: usize = 10;
/// Of those that only one build has, so many of each.
const MOST_LONE: usize = 2;

/// A function that may have made the difference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Suspect {
    /// Its name.
    pub function: String,
    /// Why it is one.
    pub why: String,
    /// Whether its code differs in the two builds; null if the builds are the same or their files are not there.
    pub code_differs: Option<bool>,
    /// Its source file and line in the second build, or in the first if only that has them.
    pub place: Option<(String, u32)>,
    /// Its first line of source that differs, in both builds, if their files are there.
    pub source: Option<(SourceLine, SourceLine)>,
    /// Its call in the first recording, if one is meant.
    pub a: Option<u64>,
    /// Its call in the second recording.
    pub b: Option<u64>,
}

/// When a function of a set last ran before an event: its enter event, and whether it had ended.
type Last = FxHashMap<u32, (u64, bool)>;

/// Finds the last calls before event `until` of the functions to which `key` gives a key, in any thread.
fn last_calls(
    session: &Session,
    side: &Side<'_>,
    key: impl Fn(u32) -> Option<u32>,
    until: u64,
) -> Result<Last> {
    let mut last = Last::default();
    let files = CallFiles::open(session.reader(), Vec::new(), &side.stop)?;
    let mut calls = files.calls(Position::default(), None);
    while let Some(batch) = calls.next()? {
        for at in 0..batch.rows() {
            let Some(number) = key(batch.function(at)) else {
                continue;
            };
            let start = batch.start(at);
            if start < until {
                let is_open = batch.end(at).is_none_or(|end| end > until);
                let own = (start, is_open);
                let known = last.entry(number).or_insert(own);
                // Of open calls the innermost counts, and any of them more than an ended one.
                if (own.1, own.0) > (known.1, known.0) {
                    *known = own;
                }
            }
        }
    }
    Ok(last)
}

/// Ranks. `parting` is the first one in time; `seqs` are events at which a difference shows, on both sides.
///
/// # Errors
/// A recording cannot be read.
pub fn suspects(
    sessions: (&Session, &Session),
    sides: (&Side<'_>, &Side<'_>),
    parting: Option<&Parting>,
    seqs: (u64, u64),
    codes: &Codes,
    is_same_build: bool,
) -> Result<Vec<Suspect>> {
    let mut ranking = Ranking {
        sessions,
        sides,
        codes,
        is_same_build,
        found: Vec::new(),
    };
    let own = parting.and_then(|parting| Some((parting, parting.number?)));
    if own.is_some_and(|(_, number)| codes.changed.contains(&number)) || codes.changed.is_empty() {
        ranking.add_own(own);
    }
    if !codes.changed.is_empty() {
        ranking.add_changed(seqs)?;
    }
    ranking.add_own(own);
    if let Some((parting, _)) = own {
        ranking.add_around(parting)?;
    }
    ranking.with_lone(seqs)
}

/// The suspects so far, with their shared numbers.
struct Ranking<'r> {
    sessions: (&'r Session, &'r Session),
    sides: (&'r Side<'r>, &'r Side<'r>),
    codes: &'r Codes,
    is_same_build: bool,
    found: Vec<(u32, Suspect)>,
}

impl Ranking<'_> {
    /// Adds a function, unless it is known or there are enough; `a` and `b` are its calls.
    fn add(&mut self, number: u32, why: String, a: Option<u64>, b: Option<u64>) {
        let is_known = self.found.iter().any(|(known, _)| *known == number);
        if is_known || self.found.len() >= MOST {
            return;
        }
        let sides = self.sides;
        let Some(function) = name_of(sides.0, number) else {
            return;
        };
        let place = place_of(sides.1, number).or_else(|| place_of(sides.0, number));
        let is_changed = self.codes.changed.contains(&number);
        let code_differs = match self.is_same_build {
            true => None,
            false => (is_changed || self.codes.is_known).then_some(is_changed),
        };
        let change = is_changed.then(|| source::first_change(sides.0, sides.1, number));
        let change = change.flatten();
        let inlined = change.as_ref().and_then(|change| change.inlined.as_ref());
        let suspect = Suspect {
            why: match inlined {
                Some(inlined) => format!("{why}; {} is inlined into it", short_name(inlined)),
                None => why,
            },
            function,
            code_differs,
            place,
            source: change.map(|change| change.lines),
            a,
            b,
        };
        self.found.push((number, suspect));
    }

    /// Adds the function that parted.
    fn add_own(&mut self, own: Option<(&Parting, u32)>) {
        if let Some((parting, number)) = own {
            let start = |sight: &super::parted::Sight| sight.function.as_ref().map(|call| call.seq);
            self.add(number, why(parting), start(&parting.a), start(&parting.b));
        }
    }

    /// Adds the functions whose code differs and that ran, those that ran last first.
    fn add_changed(&mut self, seqs: (u64, u64)) -> Result<()> {
        let (sessions, sides, codes) = (self.sessions, self.sides, self.codes);
        let changed = |side: &Side<'_>, id| {
            let number = side.number_of(id);
            number.filter(|number| codes.changed.contains(number))
        };
        let in_a = last_calls(sessions.0, sides.0, |id| changed(sides.0, id), seqs.0)?;
        let in_b = last_calls(sessions.1, sides.1, |id| changed(sides.1, id), seqs.1)?;
        let of = |last: &Last, number| last.get(&number).copied();
        let mut ran: Vec<(bool, u64, u32)> = codes
            .changed
            .iter()
            .filter_map(|number| {
                let (seq, is_open) = of(&in_a, *number).or(of(&in_b, *number))?;
                Some((is_open, seq, *number))
            })
            .collect();
        ran.sort_unstable_by(|a, b| b.cmp(a));
        for (is_open, _, number) in ran {
            let why = match is_open {
                true => "its code differs, and it was running when the difference showed",
                false => "its code differs, and it ran before the difference showed",
            };
            let start = |last: &Last| of(last, number).map(|(seq, _)| seq);
            self.add(number, why.to_owned(), start(&in_a), start(&in_b));
        }
        if sides.0.has_random_keys {
            for (number, seqs) in ran_later(sessions, sides, &changed)? {
                let why = "its code differs, and it ran; what differed before may be the order of a table with random keys";
                self.add(number, why.to_owned(), seqs.0, seqs.1);
            }
        }
        Ok(())
    }

    /// Adds the functions that were running around the one that parted.
    fn add_around(&mut self, parting: &Parting) -> Result<()> {
        let side = self.sides.0;
        for (call_a, call_b) in parting.a.around.iter().zip(&parting.b.around).take(3) {
            let timeline = side.source.timeline();
            let head = timeline.map(|timeline| told(timeline.entered_at(call_a.seq)));
            let head = head.transpose()?.flatten();
            if let Some(number) = head.and_then(|head| side.number_of(head.function)) {
                let why = "it was running when the difference showed".to_owned();
                self.add(number, why, Some(call_a.seq), Some(call_b.seq));
            }
        }
        Ok(())
    }

    /// Returns the suspects, with the functions that only one build has.
    fn with_lone(self, seqs: (u64, u64)) -> Result<Vec<Suspect>> {
        let (sessions, sides) = (self.sessions, self.sides);
        let mut found: Vec<Suspect> = self.found.into_iter().map(|(_, suspect)| suspect).collect();
        if !self.is_same_build {
            for (session, side, until, letter) in [
                (sessions.1, sides.1, seqs.1, 'B'),
                (sessions.0, sides.0, seqs.0, 'A'),
            ] {
                found.extend(lone(session, side, until, letter, self.codes)?);
            }
            found.truncate(MOST);
        }
        Ok(found)
    }
}

/// Returns the functions to which `changed` gives a number that ran at any time, in the order of their last calls, with these: where
/// chance makes the first difference, the functions that made others ran later.
fn ran_later(
    sessions: (&Session, &Session),
    sides: (&Side<'_>, &Side<'_>),
    changed: &dyn Fn(&Side<'_>, u32) -> Option<u32>,
) -> Result<Vec<(u32, (Option<u64>, Option<u64>))>> {
    let in_a = last_calls(sessions.0, sides.0, |id| changed(sides.0, id), u64::MAX)?;
    let in_b = last_calls(sessions.1, sides.1, |id| changed(sides.1, id), u64::MAX)?;
    let seq = |last: &Last, number: &u32| last.get(number).map(|(seq, _)| *seq);
    let numbers = in_a.keys().chain(in_b.keys());
    let seqs = numbers.map(|number| (*number, (seq(&in_a, number), seq(&in_b, number))));
    let mut found: Vec<_> = seqs.collect();
    found.sort_unstable_by_key(|(number, seqs)| (seqs.0.or(seqs.1), *number));
    found.dedup();
    Ok(found)
}

/// Returns the functions of the program that only this build has and that ran last before an event: new ones, and such as have
/// another name in the other build and other code.
fn lone(
    session: &Session,
    side: &Side<'_>,
    until: u64,
    letter: char,
    codes: &Codes,
) -> Result<Vec<Suspect>> {
    let is_lone = |id: &u32| codes.lone[usize::from(letter == 'B')].contains(id);
    let last = last_calls(session, side, |id| Some(id).filter(is_lone), until)?;
    let mut ran: Vec<(bool, u64, u32)> = last
        .into_iter()
        .map(|(id, (seq, is_open))| (is_open, seq, id))
        .collect();
    ran.sort_unstable_by(|a, b| b.cmp(a));
    let suspect = |(is_open, seq, id)| {
        let function = side.source.function(id)?;
        let when = match is_open {
            true => "was running when the difference showed",
            false => "ran before the difference showed",
        };
        Some(Suspect {
            function: session.definitions().told_name(function),
            why: format!("only {letter} has it, and it {when}"),
            code_differs: None,
            place: function.file.clone().zip(function.line),
            source: None,
            a: (letter == 'A').then_some(seq),
            b: (letter == 'B').then_some(seq),
        })
    };
    Ok(ran
        .into_iter()
        .filter_map(suspect)
        .take(MOST_LONE)
        .collect())
}

fn place_of(side: &Side<'_>, number: u32) -> Option<(String, u32)> {
    let function = side.source.function(side.id_of(number)?)?;
    Some((function.file.clone()?, function.line?))
}

/// Says why the function that parted is suspected.
fn why(parting: &Parting) -> String {
    let callee = |sight: &super::parted::Sight| match &sight.call {
        Some(call) => format!("called {}", debuginfo::short_name(&call.function)),
        None => "made no more calls".to_owned(),
    };
    match parting.how {
        How::Result => format!("{}, it ended differently", parting.alike()),
        How::Arguments => format!("it {} with other arguments", callee(&parting.a)),
        How::Call => format!(
            "in A it {}, in B it {}",
            callee(&parting.a),
            callee(&parting.b)
        ),
        How::Nesting => "the calls inside it are the same, but others made them".to_owned(),
        How::Start => "it began differently".to_owned(),
    }
}
