//! Where two threads parted, in words: the calls around it on both sides, and the function that did it.
//!
//! Everything that ended before is equal. So of the calls that are open on both sides, the first one from outside whose
//! function or arguments differ is the first difference in time, and the call around it made that difference: it is the
//! same on both sides, and so is all that it called before. If all are the same, the call itself ended differently.

use std::path::Path;
use std::time::UNIX_EPOCH;

use replay::CallHead;
use serde::Serialize;
use store::columns::ReadCall;
use store::control::FunctionDef;

use super::derived::Derived;
use super::differences::{AROUND, Kind, Parted};
use super::forms::{Atom, Formed};
use super::held::{self, Held};
use super::origins::Seen;
use super::output;
use super::rows::Row;
use super::side::{Side, entry_of, word_of};
use super::slots;
use crate::error::Result;
use crate::functions::args;
use crate::overview::{CallLine, FileLine, line_of_call, told};
use crate::state::CallTexts;

/// Most calls around a difference that are looked at.
const MOST_OPEN: usize = 4096;
/// Those that are told.
const TOLD_OPEN: usize = 8;
/// Characters of a text that an argument points to.
const TEXT_CHARS: usize = 200;
/// Lines of source that are told before and after the one of a call.
const LINES_AROUND: u32 = 1;

/// Where two threads parted.
#[derive(Clone, Debug, Serialize)]
pub struct Parting {
    /// The function that did it; `None` if the threads began differently.
    pub function: Option<String>,
    /// Its number in both recordings.
    #[serde(skip)]
    pub number: Option<u32>,
    /// In which way.
    pub how: How,
    /// What can be told of the first recording.
    pub a: Sight,
    /// What can be told of the second recording.
    pub b: Sight,
    /// The last calls that ended before, the last one last. They are equal on both sides.
    pub before: Vec<CallLine>,
    /// All its arguments are compared.
    pub args_known: bool,
    /// At least one argument is compared, or there is none.
    #[serde(skip)]
    pub args_compared: bool,
    /// Arguments or results that differ: their names, and both values.
    pub values: Vec<Values>,
    /// Arguments of the function that did it which point to the same in both recordings, at different addresses; those on the stack,
    /// which programs hardly hash, are left out.
    pub addresses: Vec<Values>,
    /// Local variables and watched expressions that are known then.
    pub held: Vec<Held>,
}

impl Parting {
    /// Returns what both sides know, what differs first. What only one side knows says nothing, unless that is all.
    pub fn known(&self) -> Vec<&Held> {
        let both = self.held.iter().filter(|held| held.is_on_both());
        let mut told: Vec<&Held> = both.collect();
        if told.is_empty() {
            told.extend(&self.held);
        }
        told.sort_by_key(|held| !held.differs);
        told
    }

    /// Says what is the same where a call ended differently.
    pub(super) fn alike(&self) -> &'static str {
        match (self.args_known, self.args_compared) {
            (true, _) => "with the same arguments and the same calls inside",
            (false, true) => {
                "with the same arguments as far as they are compared, and the same calls inside"
            }
            (false, false) => "with the same calls inside (its arguments are not compared)",
        }
    }
}

/// What a function did differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// It returned something else, or ended in another way, with the same arguments and the same calls inside.
    Result,
    /// It called a function with other arguments.
    Arguments,
    /// It called another function, or returned instead.
    Call,
    /// The calls are the same and in the same order, but others made them.
    Nesting,
    /// The threads began differently.
    Start,
}

/// A parting as one side shows it.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Sight {
    /// The call of the function that did it.
    pub function: Option<CallLine>,
    /// The call that differs: it is the same, or one that it made; `None` if it made none.
    pub call: Option<CallLine>,
    /// The calls around it, the innermost first.
    pub around: Vec<CallLine>,
    /// The statement that made the call.
    pub at: Option<SourceLine>,
    /// The line at which the function begins.
    pub begins: Option<SourceLine>,
    /// That line of source and those around it, as far as the file is there.
    pub source: Vec<SourceLine>,
    /// The next calls that began after the difference, in the order of their ends, the first one first.
    pub after: Vec<CallLine>,
    /// The event at which the difference shows.
    pub seq: u64,
    /// Its thread.
    pub tid: u32,
}

/// A line of source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SourceLine {
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// Its text, if the file is there.
    pub text: Option<String>,
}

/// Two values that differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Values {
    /// The argument's name, or `result`.
    pub name: String,
    /// In the first recording.
    pub a: String,
    /// In the second recording.
    pub b: String,
}

/// An open call.
struct Frame {
    head: CallHead,
    number: u32,
    call: ReadCall,
    args: Formed,
}

/// Returns the calls around a call and itself, the outermost first, as far as they are compared.
fn frames(side: &Side<'_>, start: u64) -> Result<Vec<Frame>> {
    let mut found = Vec::new();
    let Some(timeline) = side.source.timeline() else {
        return Ok(found);
    };
    let mut next = told(timeline.entered_at(start))?;
    for _ in 0..MOST_OPEN {
        let Some(head) = next else { break };
        if let Some((number, _)) = side.compared(head.function) {
            let call = told(timeline.call(&head))?;
            let args = side.args_hash(&call);
            found.push(Frame {
                head,
                number,
                call,
                args,
            });
        }
        next = told(timeline.parent(&head))?;
    }
    found.reverse();
    Ok(found)
}

/// Returns the line of the statement that made a call.
fn call_site(side: &Side<'_>, call: &ReadCall) -> Option<SourceLine> {
    let timeline = side.source.timeline()?;
    let FileLine { file, line } = line_of_call(timeline, call.start_seq, call.ret_addr)?;
    Some(SourceLine {
        text: text_of(side, &file, line),
        file,
        line,
    })
}

/// Reads a source file, the recording's own copy if it has one; `None` if the file was written after the recording had
/// begun: the program that ran is of an older one.
pub fn source_of(side: &Side<'_>, file: &str) -> Option<String> {
    let copies = side.source.timeline().map(|timeline| timeline.sources());
    if let Some(copy) = copies.and_then(|copies| copies.get(file)) {
        return std::fs::read_to_string(copy).ok();
    }
    let manifest = side.source.session().reader().recording().manifest();
    let about = std::fs::metadata(file).ok()?;
    let written = about.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    let begun = u128::try_from(manifest.start_unix_ns).ok()?;
    if written.as_nanos() > begun {
        return None;
    }
    std::fs::read_to_string(Path::new(file)).ok()
}

/// Returns the text of a line, if its file is still there.
fn text_of(side: &Side<'_>, file: &str, line: u32) -> Option<String> {
    let text = source_of(side, file)?;
    let text = text.lines().nth(line.checked_sub(1)? as usize)?;
    Some(text.trim().to_owned())
}

/// Returns a line and those around it without the indentation that all have, if its file is still there.
fn lines_around(side: &Side<'_>, at: &SourceLine) -> Vec<SourceLine> {
    let Some(text) = source_of(side, &at.file) else {
        return Vec::new();
    };
    let first = at.line.saturating_sub(LINES_AROUND).max(1);
    let numbers = first..=at.line.saturating_add(LINES_AROUND);
    let skipped = text.lines().skip(first as usize - 1);
    let lines: Vec<(u32, String)> = numbers
        .zip(skipped.map(|line| line.trim_end().replace('\t', "    ")))
        .collect();
    let indented = lines.iter().filter(|(_, line)| !line.is_empty());
    let indent = indented.map(|(_, line)| line.len() - line.trim_start().len());
    let indent = indent.min().unwrap_or(0);
    lines
        .into_iter()
        .map(|(line, text)| SourceLine {
            file: at.file.clone(),
            line,
            text: Some(text.get(indent..).unwrap_or_default().to_owned()),
        })
        .collect()
}

/// Says from which call a pointer or a descriptor comes, if that is known.
fn origin(side: &Side<'_>, atom: &Atom, word: u64, seen: Seen) -> Option<String> {
    let (span, offset) = side.places().origin(word, seen, atom.is_number())?;
    let timeline = side.source.timeline()?;
    let replay::Event::Leave(head) = timeline.event(span.from).ok()? else {
        return None;
    };
    let call = timeline.call(&head).ok()?;
    let place = match call_site(side, &call) {
        Some(line) => format!("at {}:{}", line.file.rsplit('/').next()?, line.line),
        None => format!("by {}", side.source.name(head.function)),
    };
    let what = match (atom.is_number(), offset) {
        (true, _) => format!("opened {place}"),
        (false, 0) => format!("allocated {place}"),
        (false, offset) => format!("byte {offset} of what was allocated {place}"),
    };
    Some(format!("{what}, seq {}", head.start))
}

/// Returns the arguments of two calls of a function where they differ; exactly: as long as blocks and descriptors have the
/// same numbers.
pub fn values(a: (&Side<'_>, &ReadCall), b: (&Side<'_>, &ReadCall), is_exact: bool) -> Vec<Values> {
    let (Some((_, form_a)), Some((_, form_b))) =
        (a.0.compared(a.1.function_id), b.0.compared(b.1.function_id))
    else {
        return Vec::new();
    };
    let of = |side: &Side<'_>, call: &ReadCall| side.source.function(call.function_id).cloned();
    let (own, other) = (of(a.0, a.1), of(b.0, b.1));
    let mut found: Vec<Values> = Vec::new();
    for ((number, atom_a), (_, atom_b)) in form_a.args.iter().zip(&form_b.args) {
        let words = (word_of(a.1, atom_a.word), word_of(b.1, atom_b.word));
        let seen = (entry_of(a.1), entry_of(b.1));
        let form = |side: &Side<'_>, atom: &Atom, word: Option<u64>, seen| {
            word.map(|word| atom.form(word, seen, side.places()))
        };
        let is_same = match (
            form(a.0, atom_a, words.0, seen.0),
            form(b.0, atom_b, words.1, seen.1),
        ) {
            (Some(own), Some(other)) => own.is_same(other, is_exact),
            (own, other) => own == other,
        };
        let has_same_slot = || {
            let (own, other) = ((a.0, a.1, words.0), (b.0, b.1, words.1));
            !is_exact || !atom_a.is_pointer() || slots::is_same_slot(own, other)
        };
        if is_same && has_same_slot() {
            continue;
        }
        let text = |side: &Side<'_>, function: &Option<FunctionDef>, call: &ReadCall, origin| {
            let (name, text) = args::one_of_call(function.as_ref()?, *number, call);
            let text = match on_stack(side, call, origin) {
                Some(place) => format!("{text} ({place})"),
                None => with_origin(side, text, origin),
            };
            Some((name, text))
        };
        let origins = (
            words.0.map(|word| (atom_a, word, seen.0)),
            words.1.map(|word| (atom_b, word, seen.1)),
        );
        let (Some((name, a)), Some((_, b))) = (
            text(a.0, &own, a.1, origins.0.filter(|_| is_exact)),
            text(b.0, &other, b.1, origins.1.filter(|_| is_exact)),
        ) else {
            continue;
        };
        if found.last().is_none_or(|last| last.name != name) {
            found.push(Values { name, a, b });
        }
    }
    found.extend(targets(a, b));
    found
}

/// Returns the arguments of two calls of a function that are different addresses of the same, and not on the stack.
fn addresses(a: (&Side<'_>, &ReadCall), b: (&Side<'_>, &ReadCall)) -> Vec<Values> {
    let (Some((_, form_a)), Some((_, form_b))) =
        (a.0.compared(a.1.function_id), b.0.compared(b.1.function_id))
    else {
        return Vec::new();
    };
    let function = a.0.source.function(a.1.function_id);
    let pairs = form_a.args.iter().zip(&form_b.args);
    let address = |((number, own), (_, other)): (&(usize, Atom), &(usize, Atom))| {
        let words = (word_of(a.1, own.word)?, word_of(b.1, other.word)?);
        let forms = (
            own.form(words.0, entry_of(a.1), a.0.places()),
            other.form(words.1, entry_of(b.1), b.0.places()),
        );
        let is_on_stack = |(side, call): (&Side<'_>, &ReadCall), word| {
            let places = side.places();
            places.is_near_stack(word, call.sp, entry_of(call))
        };
        let is_address = own.is_pointer()
            && words.0 != words.1
            && forms.0.is_same(forms.1, false)
            && !is_on_stack(a, words.0);
        is_address.then(|| Values {
            name: function
                .and_then(|function| function.params.get(*number))
                .map(|param| param.name.clone())
                .unwrap_or_default(),
            a: format!("{:#x}", words.0),
            b: format!("{:#x}", words.1),
        })
    };
    pairs.filter_map(address).collect()
}

/// Returns what the arguments of two calls of a function point to, where that differs.
fn targets(a: (&Side<'_>, &ReadCall), b: (&Side<'_>, &ReadCall)) -> Vec<Values> {
    let (own, other) = (a.0.targets(a.1), b.0.targets(b.1));
    let pairs = own.iter().zip(&other);
    let differing = pairs.filter(|(own, other)| own.1 != other.1);
    let function = a.0.source.function(a.1.function_id);
    let value = |((number, _), _): (&(usize, u64), &(usize, u64))| {
        let name = &function?.params.get(*number)?.name;
        let text = |(side, call): (&Side<'_>, &ReadCall), is_whole: bool| {
            let mut texts = CallTexts::new(side.source.session().states());
            let text = match is_whole {
                true => texts.whole_parameter(call.start_seq, name),
                false => texts.parameter(call.start_seq, name),
            };
            text.unwrap_or_else(|| "another value".to_owned())
        };
        let mut texts = [text(a, false), text(b, false)];
        if texts[0] == texts[1] {
            // What differs is behind the part of a text that is shown.
            texts = output::apart(&text(a, true), &text(b, true), TEXT_CHARS);
        }
        let [a, b] = texts;
        Some(Values {
            name: name.clone(),
            a,
            b,
        })
    };
    differing.filter_map(value).collect()
}

/// Says where on the stack an argument points to.
fn on_stack(side: &Side<'_>, call: &ReadCall, of: Option<(&Atom, u64, Seen)>) -> Option<String> {
    let (atom, word, _) = of?;
    match atom.is_pointer() {
        true => slots::told(side, call, word),
        false => None,
    }
}

/// Adds to a value from which call it comes.
fn with_origin(side: &Side<'_>, text: String, of: Option<(&Atom, u64, Seen)>) -> String {
    match of.and_then(|(atom, word, seen)| origin(side, atom, word, seen)) {
        Some(origin) => format!("{text} ({origin})"),
        None => text,
    }
}

/// Returns the result of a call in words.
fn result_of(side: &Side<'_>, line: &CallLine, call: &ReadCall, is_exact: bool) -> String {
    let form = side.compared(call.function_id).map(|(_, form)| form);
    let origin = || {
        let atom = form?.result.first()?;
        let (word, at) = (word_of(call, atom.word)?, call.end_seq?);
        let seen = Seen {
            at,
            ..entry_of(call)
        };
        Some((atom, word, seen))
    };
    with_origin(side, ended(line), origin().filter(|_| is_exact))
}

fn ended(line: &CallLine) -> String {
    match (&line.result, line.end_seq) {
        (_, None) if line.only_entered => "its end is not recorded".to_owned(),
        (_, None) => "had not ended".to_owned(),
        _ if line.open_at_end => "had not returned".to_owned(),
        _ if line.unwound => "left by an exception or longjmp".to_owned(),
        (Some(result), _) => result.clone(),
        (None, _) => "returned".to_owned(),
    }
}

/// Returns a call in words.
pub fn described(side: &Side<'_>, start: u64) -> Result<Option<CallLine>> {
    let Some(timeline) = side.source.timeline() else {
        return Ok(None);
    };
    match told(timeline.entered_at(start))? {
        Some(head) => side.source.described(&head).map(Some),
        None => Ok(None),
    }
}

fn sight(
    side: &Side<'_>,
    tid: u32,
    frames: &[Frame],
    differs: usize,
    is_result: bool,
) -> Result<Sight> {
    let line = |frame: &Frame| side.source.described(&frame.head);
    let shown = frames.get(differs);
    let around = frames[..differs.min(frames.len())]
        .iter()
        .rev()
        .take(TOLD_OPEN);
    let function = match is_result {
        true => shown,
        false => differs.checked_sub(1).and_then(|at| frames.get(at)),
    };
    let ended = |frame: &Frame| frame.head.end.unwrap_or(frame.head.start);
    let seq = match (shown, is_result) {
        (Some(frame), true) => ended(frame),
        (Some(frame), false) => frame.head.start,
        (None, _) => frames.last().map_or(0, ended),
    };
    let at = shown.and_then(|frame| call_site(side, &frame.call));
    let function = function.map(line).transpose()?;
    let begins = function.as_ref().and_then(|call| {
        let (file, line) = (call.file.clone()?, call.line?);
        Some(SourceLine {
            text: text_of(side, &file, line),
            file,
            line,
        })
    });
    Ok(Sight {
        begins,
        after: Vec::new(),
        source: at
            .as_ref()
            .map(|at| lines_around(side, at))
            .unwrap_or_default(),
        function,
        call: shown.map(line).transpose()?,
        around: around.map(line).collect::<Result<_>>()?,
        at,
        seq,
        tid,
    })
}

/// Returns the first of a side's next calls that began after the difference.
fn following(side: &Side<'_>, sight: &Sight, rows: &[Row]) -> Result<Vec<CallLine>> {
    let later = rows.iter().filter(|row| row.start > sight.seq);
    let lines = later.filter_map(|row| described(side, row.start).transpose());
    lines.take(AROUND).collect()
}

/// Returns how many of the calls that were open, outermost first, are the same in both recordings.
fn alike(
    (a, own): (&Side<'_>, &[Frame]),
    (b, other): (&Side<'_>, &[Frame]),
    is_exact: bool,
    derived: Option<&Derived<'_>>,
) -> usize {
    let are_made = |own: &ReadCall, other: &ReadCall| {
        derived.is_some_and(|derived| derived.has_same_args(own, other, is_exact))
    };
    let has_same_args = |own: &Frame, other: &Frame| {
        let has_same_slots = || slots::have_same_slots((a, &own.call), (b, &other.call));
        match own.args.is_same(other.args, is_exact) {
            true => !is_exact || has_same_slots(),
            false => are_made(&own.call, &other.call),
        }
    };
    let pairs = own.iter().zip(other);
    pairs
        .take_while(|(own, other)| own.number == other.number && has_same_args(own, other))
        .count()
}

/// Returns which of the open calls differs, of which the first `common` are the same, and how.
fn place(own: &[Frame], other: &[Frame], common: usize, parted: &Parted) -> (usize, How) {
    let is_same_call = common > 0 && common == own.len() && common == other.len();
    let differs = match (own.len(), other.len()) {
        _ if is_same_call => common - 1,
        // One side has come to its end.
        (len @ 1.., 0) | (0, len @ 1..) => len - 1,
        _ => common,
    };
    let how = match (own.get(differs), other.get(differs)) {
        _ if is_same_call => match (parted.a, parted.b) {
            (Some(a), Some(b)) if a.result.is_same(b.result, parted.is_exact) => How::Nesting,
            _ => How::Result,
        },
        _ if differs == 0 => How::Start,
        (Some(a), Some(b)) if a.number == b.number => How::Arguments,
        _ => How::Call,
    };
    (differs, how)
}

/// Returns the results of two calls that ended differently, where both are known.
fn results(
    a: (&Side<'_>, &Frame),
    b: (&Side<'_>, &Frame),
    sights: (&Sight, &Sight),
    is_exact: bool,
) -> Vec<Values> {
    let calls = sights.0.call.as_ref().zip(sights.1.call.as_ref());
    let result = calls.map(|(x, y)| Values {
        name: "result".to_owned(),
        a: result_of(a.0, x, &a.1.call, is_exact),
        b: result_of(b.0, y, &b.1.call, is_exact),
    });
    result.into_iter().collect()
}

/// Says where two threads parted.
///
/// # Errors
/// A recording cannot be read.
pub fn parting(
    a: (&Side<'_>, u32),
    b: (&Side<'_>, u32),
    parted: &Parted,
    derived: Option<&Derived<'_>>,
) -> Result<Parting> {
    let open = |side: &Side<'_>, row: Option<Row>| {
        row.map_or(Ok(Vec::new()), |row| frames(side, row.start))
    };
    let (own, other) = (open(a.0, parted.a)?, open(b.0, parted.b)?);
    let common = alike((a.0, &own), (b.0, &other), parted.is_exact, derived);
    let (differs, how) = place(&own, &other, common, parted);
    let is_result = how == How::Result;
    let number = match is_result {
        true => own.last().map(|frame| frame.number),
        false => differs
            .checked_sub(1)
            .and_then(|at| own.get(at).or(other.get(at)))
            .map(|frame| frame.number),
    };
    let mut sight_a = sight(a.0, a.1, &own, differs, is_result)?;
    let mut sight_b = sight(b.0, b.1, &other, differs, is_result)?;
    sight_a.after = following(a.0, &sight_a, &parted.after[0])?;
    sight_b.after = following(b.0, &sight_b, &parted.after[1])?;
    let calls = own.get(differs).zip(other.get(differs));
    let values = match (how, calls) {
        (How::Arguments | How::Start, Some((x, y))) => {
            values((a.0, &x.call), (b.0, &y.call), parted.is_exact)
        }
        (How::Result, Some((x, y))) => {
            let sights = (&sight_a, &sight_b);
            results((a.0, x), (b.0, y), sights, parted.is_exact)
        }
        _ => Vec::new(),
    };
    let by = match is_result {
        true => Some(differs),
        false => differs.checked_sub(1),
    };
    let by = by.and_then(|at| own.get(at).zip(other.get(at)));
    let addresses = by.map(|(x, y)| addresses((a.0, &x.call), (b.0, &y.call)));
    let held = held::held((a.0, &sight_a), (b.0, &sight_b))?;
    let before = parted.before.iter().rev().take(AROUND).rev();
    let before = before.filter_map(|(row, _)| described(a.0, row.start).transpose());
    let id = number.and_then(|number| a.0.id_of(number));
    let function = id.and_then(|id| a.0.source.function(id));
    let form = id.and_then(|id| a.0.compared(id)).map(|(_, form)| form);
    let args_known = function
        .zip(form)
        .is_some_and(|(function, form)| form.has_all_args(function));
    Ok(Parting {
        args_known,
        args_compared: args_known || form.is_some_and(|form| !form.args.is_empty()),
        function: number.and_then(|number| name_of(a.0, number)),
        number,
        how,
        a: sight_a,
        b: sight_b,
        before: before.collect::<Result<_>>()?,
        values,
        addresses: addresses.unwrap_or_default(),
        held,
    })
}

/// Returns the name of a function by its shared number, as `Definitions::told_name` tells it.
pub fn name_of(side: &Side<'_>, number: u32) -> Option<String> {
    let function = side.source.function(side.id_of(number)?);
    let definitions = side.source.session().definitions();
    function.map(|function| definitions.told_name(function))
}

/// Says in which way calls of a kind differ, for people.
pub fn kind_text(kind: Kind) -> &'static str {
    match kind {
        Kind::Arguments => "other arguments",
        Kind::Result => "another result",
        Kind::Inside => "more or fewer calls inside",
        Kind::OnlyA => "only in A",
        Kind::OnlyB => "only in B",
    }
}
