//! What the programs printed, line by line.

use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;

use rustc_hash::FxHashSet;
use serde::Serialize;
use store::Reader;

use super::clock_texts::ClockTexts;
use super::differences::MOST_FINGERPRINTS;
use super::events::Events;
use super::hash;
use super::places::is_randomised;
use super::realign;
use super::rules::Rules;
use super::run_texts::RunTexts;
use crate::error::Result;

/// Bytes of a line that are compared together; longer lines count as several.
const LINE_BYTES: usize = 64 << 10;
/// Columns of a line that are told.
const TOLD_CHARS: usize = 400;
/// Stands for what is not told.
const LEFT_OUT: &str = "...";

/// A line of output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Line {
    /// Its number, from 1.
    pub line: u64,
    /// The event that wrote its first byte.
    pub seq: u64,
    /// The thread that did.
    pub tid: Option<u32>,
    /// The line, without its end; of long ones what is around the difference.
    pub text: String,
    /// A newline ends it.
    pub newline: bool,
    /// Neither a newline ends it nor more of the same line: the output does.
    #[serde(skip)]
    is_open: bool,
    /// More of the same line is before it.
    #[serde(skip)]
    is_rest: bool,
}

/// The first line that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OutputDifference {
    /// `stdout` or `stderr`.
    pub stream: &'static str,
    /// The line of the first program; `None` if only the other one wrote such a line there.
    pub a: Option<Line>,
    /// The line of the second program.
    pub b: Option<Line>,
    /// How lines of the same text differ.
    pub why: Option<&'static str>,
    /// The bytes of both texts before what differs.
    #[serde(skip)]
    before: [usize; 2],
    /// The same for the same difference in every run.
    #[serde(serialize_with = "hash::as_hex")]
    pub fingerprint: u64,
}

impl OutputDifference {
    /// Returns the texts of both lines as they are shown where there is room for `most` characters: what differs is within.
    #[must_use]
    pub fn texts(&self, most: usize) -> [Option<String>; 2] {
        let lines = [(&self.a, self.before[0]), (&self.b, self.before[1])];
        lines.map(|(line, before)| Some(around(&line.as_ref()?.text, before, most).0))
    }
}

/// The lines that a program wrote to one stream.
struct Lines<'r> {
    events: Events,
    stream: &'static str,
    rules: &'r Rules,
    ready: VecDeque<Line>,
    open: Vec<u8>,
    begun: Option<(u64, Option<u32>)>,
    count: u64,
    /// The line goes on that was cut.
    is_rest: bool,
    /// Rules that have left out a line.
    used: BTreeSet<usize>,
}

/// How a line ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Newline,
    /// It is too long, and what follows counts as another one.
    Cut,
    /// The program wrote no more.
    Output,
}

impl<'r> Lines<'r> {
    fn new(reader: &Reader, stream: &'static str, rules: &'r Rules) -> Result<Self> {
        Ok(Self {
            events: Events::open(reader)?,
            stream,
            rules,
            ready: VecDeque::new(),
            open: Vec::new(),
            begun: None,
            count: 0,
            is_rest: false,
            used: BTreeSet::new(),
        })
    }

    fn end_line(&mut self, end: End) {
        let Some((seq, tid)) = self.begun.take() else {
            return;
        };
        let is_rest = std::mem::replace(&mut self.is_rest, end == End::Cut);
        self.count += u64::from(!is_rest);
        let text = String::from_utf8_lossy(&self.open).into_owned();
        self.open.clear();
        let rules: Vec<usize> = self.rules.ignoring_line(&text).collect();
        if rules.is_empty() {
            self.ready.push_back(Line {
                line: self.count,
                seq,
                tid,
                text,
                newline: end == End::Newline,
                is_open: end == End::Output,
                is_rest,
            });
        }
        self.used.extend(rules);
    }

    /// Takes what an event wrote. Where lines are cut does not depend on how many events wrote them.
    fn take(&mut self, bytes: &[u8], by: (u64, Option<u32>)) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (mut text, has_end) = match piece.strip_suffix(b"\n") {
                Some(text) => (text, true),
                None => (piece, false),
            };
            self.begun.get_or_insert(by);
            while self.open.len() + text.len() > LINE_BYTES {
                let (own, rest) = text.split_at(LINE_BYTES - self.open.len());
                self.open.extend_from_slice(own);
                self.end_line(End::Cut);
                self.begun = Some(by);
                text = rest;
            }
            self.open.extend_from_slice(text);
            if has_end {
                self.end_line(End::Newline);
            }
        }
    }

    fn next(&mut self) -> Result<Option<Line>> {
        while self.ready.is_empty() {
            let Some(event) = self.events.next()? else {
                self.end_line(End::Output);
                break;
            };
            if event.kind == self.stream {
                self.take(&event.bytes.unwrap_or_default(), (event.seq, event.tid));
            }
        }
        Ok(self.ready.pop_front())
    }
}

/// The numbers that differ in each run.
#[derive(Clone, Copy, Debug)]
pub struct Numbers<'n> {
    /// The processes and threads of both recordings.
    pub processes: &'n FxHashSet<u64>,
    /// Addresses of programs that are not mapped at random places.
    pub fixed: &'n [Range<u64>],
    /// What texts have of the runs.
    pub texts: &'n RunTexts,
    /// The numbers that are times of the clock.
    pub clock: &'n ClockTexts,
}

/// Returns a line without what differs in each run: addresses, names of temporary files, dates and times of the clock, and numbers
/// of processes and threads that the recordings know.
pub fn normal(line: &str, numbers: Numbers<'_>) -> String {
    let undated = numbers.texts.without_dates(line);
    normal_but_for_times(&numbers.clock.without(&undated), numbers)
}

fn normal_but_for_times(line: &str, numbers: Numbers<'_>) -> String {
    let found = without_addresses(line, numbers.fixed, numbers.texts.folders());
    match found.bytes().any(|byte| byte.is_ascii_digit()) {
        true => without_numbers(&found, numbers.processes),
        false => found,
    }
}

/// Smaller numbers are counts rather than processes.
const FIRST_PROCESS: u64 = 300;

/// Replaces whole numbers that are processes or threads: no parts of names, of longer numbers or of fractions.
fn without_numbers(line: &str, numbers: &FxHashSet<u64>) -> String {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut normal = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        let found = &rest[at..];
        let len = found.bytes().take_while(u8::is_ascii_digit).count();
        let (digits, after) = found.split_at(len);
        normal.push_str(&rest[..at]);
        let is_begun = normal.ends_with(is_word) || ends_a_number(&normal, '.');
        let is_followed = after.starts_with(is_word) || begins_a_fraction(after);
        let number = digits
            .parse()
            .ok()
            .filter(|number| *number >= FIRST_PROCESS);
        let is_known = number.is_some_and(|number| numbers.contains(&number));
        normal.push_str(match is_known && !is_begun && !is_followed {
            true => "?",
            false => digits,
        });
        rest = after;
    }
    normal.push_str(rest);
    normal
}

/// Tells whether a text ends with a digit and then `sign`.
fn ends_a_number(text: &str, sign: char) -> bool {
    let before = text.strip_suffix(sign);
    before.is_some_and(|before| before.ends_with(|c: char| c.is_ascii_digit()))
}

fn begins_a_fraction(text: &str) -> bool {
    let after = text.strip_prefix('.');
    after.is_some_and(|after| after.starts_with(|c: char| c.is_ascii_digit()))
}

fn without_addresses(line: &str, fixed: &[Range<u64>], folders: &[String]) -> String {
    let mut normal = String::with_capacity(line.len());
    let mut rest = line;
    let starts = || {
        ["0x", "/tmp/"]
            .into_iter()
            .chain(folders.iter().map(String::as_str))
    };
    while let Some(at) = starts().filter_map(|start| rest.find(start)).min() {
        normal.push_str(&rest[..at]);
        let found = &rest[at..];
        let (len, is_told) = match found.strip_prefix("0x") {
            Some(digits) => {
                let len = digits.bytes().take_while(u8::is_ascii_hexdigit).count();
                let number = u64::from_str_radix(&digits[..len], 16).unwrap_or(0);
                let is_address =
                    is_randomised(number) || fixed.iter().any(|own| own.contains(&number));
                (2 + len, !is_address)
            }
            None => {
                let is_end = |c: char| c.is_whitespace() || "\"':;,()<>".contains(c);
                (found.find(is_end).unwrap_or(found.len()), false)
            }
        };
        normal.push_str(match (is_told, found.starts_with("0x")) {
            (true, _) => &found[..len],
            (false, true) => "0x?",
            (false, false) => "/tmp/?",
        });
        rest = &found[len..];
    }
    normal.push_str(rest);
    normal
}

/// Returns at most so many characters of a text, with what comes `before` bytes of it, and how many bytes come before that then.
fn around(text: &str, before: usize, most: usize) -> (String, usize) {
    let chars = text[..before].chars().count();
    let skipped = match chars > most / 2 && text.chars().count() > most {
        true => chars - most / 4,
        false => 0,
    };
    let left_out: usize = text.chars().take(skipped).map(char::len_utf8).sum();
    let mark = if skipped > 0 { LEFT_OUT } else { "" };
    let mut rest = text.chars().skip(skipped);
    let mut shown = mark.to_owned();
    shown.extend(rest.by_ref().take(most));
    if rest.next().is_some() {
        shown += LEFT_OUT;
    }
    (shown, mark.len() + before - left_out)
}

/// Cuts a line to what is told of it, and returns how many bytes come before what differs then.
fn cut(line: Line, before: usize) -> (Line, usize) {
    let (mut text, mut before) = around(&line.text, before, TOLD_CHARS);
    if line.is_rest && !text.starts_with(LEFT_OUT) {
        text.insert_str(0, LEFT_OUT);
        before += LEFT_OUT.len();
    }
    if !line.newline && !line.is_open && !text.ends_with(LEFT_OUT) {
        text += LEFT_OUT;
    }
    (Line { text, ..line }, before)
}

/// Returns with how many bytes both texts begin.
fn alike(a: &str, b: &str) -> usize {
    let mut pairs = a.char_indices().zip(b.chars());
    let first = pairs.find(|((_, own), other)| own != other);
    first.map_or(a.len().min(b.len()), |((at, _), _)| at)
}

/// Returns at most so many characters of two texts, those around where they first differ.
pub fn apart(a: &str, b: &str, most: usize) -> [String; 2] {
    let same = alike(a, b);
    [a, b].map(|text| around(text, same, most).0)
}

/// Returns how many bytes of both lines come before what differs. Words that differ in nothing but what differs in each run are
/// passed over.
fn common(a: &str, b: &str, [of_a, of_b]: [Numbers<'_>; 2]) -> [usize; 2] {
    let (mut own, mut other) = (0, 0);
    loop {
        let (x, y) = (&a[own..], &b[other..]);
        let same = alike(x, y);
        if same == x.len() || same == y.len() {
            return [own + same, other + same];
        }
        let space = x[..same]
            .char_indices()
            .rev()
            .find(|(_, c)| c.is_whitespace());
        let start = space.map_or(0, |(at, space)| at + space.len_utf8());
        let word = |text: &str| {
            let word = &text[start..];
            word.find(char::is_whitespace).unwrap_or(word.len())
        };
        let (len_x, len_y) = (word(x), word(y));
        let (word_x, word_y) = (&x[start..start + len_x], &y[start..start + len_y]);
        if word_x == word_y || normal(word_x, of_a) != normal(word_y, of_b) {
            return [own + same, other + same];
        }
        (own, other) = (own + start + len_x, other + start + len_y);
    }
}

/// Differences of output and events that were found, and those that are accepted.
#[derive(Debug)]
pub struct Known<'k> {
    /// The numbers that differ in each run.
    pub numbers: Numbers<'k>,
    /// Fingerprints that are accepted.
    pub accepted: &'k BTreeSet<u64>,
    /// How many of the differences are.
    pub known: u64,
    /// Lines of output that differ in dates and times of the clock alone.
    pub dated: u64,
    /// Fingerprints of the others.
    pub found: BTreeSet<u64>,
    /// There are more than are remembered.
    pub has_more: bool,
    /// Rules that have left out a line of output.
    pub used_rules: BTreeSet<usize>,
}

impl Known<'_> {
    /// Takes a difference. Returns its fingerprint, or `None` if it is accepted.
    pub fn take(&mut self, what: &str, a: Option<&str>, b: Option<&str>) -> Option<u64> {
        let text = |text: Option<&str>| {
            text.map_or(0, |text| {
                hash::of_bytes(normal(text, self.numbers).as_bytes())
            })
        };
        let fingerprint = hash::of_words(&[hash::of_bytes(what.as_bytes()), text(a), text(b)]);
        if self.accepted.contains(&fingerprint) {
            self.known += 1;
            return None;
        }
        if self.found.len() < MOST_FINGERPRINTS {
            self.found.insert(fingerprint);
        } else {
            self.has_more |= !self.found.contains(&fingerprint);
        }
        Some(fingerprint)
    }
}

/// Compares line by line what two programs wrote to a stream. Returns the first line that differs; `None` if none does.
///
/// # Errors
/// A recording cannot be read.
pub fn output(
    (a, b): (&Reader, &Reader),
    stream: &'static str,
    rules: &Rules,
    known: &mut Known<'_>,
) -> Result<Option<OutputDifference>> {
    if rules.ignores_output() {
        return Ok(None);
    }
    let (mut own, mut other) = (Lines::new(a, stream, rules)?, Lines::new(b, stream, rules)?);
    let mut first = None;
    // Lines that differ in their ends alone: the output of one of them ends there.
    let mut open: Option<(Line, Line)> = None;
    // A time that only the other program could have read is a difference.
    let numbers = known.numbers;
    let of_each = numbers.texts.own_clocks().each_ref();
    let of_each = of_each.map(|clock| Numbers { clock, ..numbers });
    let mut dated = 0;
    let mut differ = |a: Option<Line>, b: Option<Line>, why: Option<&'static str>| {
        let end = |line: &Line| {
            if why.is_some() && line.newline {
                "\n"
            } else {
                ""
            }
        };
        let text = |line: &Option<Line>| line.as_ref().map(|line| line.text.clone() + end(line));
        if let Some(fingerprint) = known.take(stream, text(&a).as_deref(), text(&b).as_deref())
            && first.is_none()
        {
            let before = match (&a, &b) {
                (Some(a), Some(b)) => common(&a.text, &b.text, of_each),
                _ => [0, 0],
            };
            let [a, b] = [(a, before[0]), (b, before[1])]
                .map(|(line, before)| line.map(|line| cut(line, before)));
            let rest = |cut: &Option<(Line, usize)>| cut.as_ref().map_or(0, |(_, before)| *before);
            first = Some(OutputDifference {
                stream,
                before: [rest(&a), rest(&b)],
                a: a.map(|(line, _)| line),
                b: b.map(|(line, _)| line),
                why,
                fingerprint,
            });
        }
    };
    realign::pairs(
        || own.next(),
        || other.next(),
        |a, b| is_same_text(a, b, of_each),
        |line| hash::of_bytes(normal(&line.text, numbers).as_bytes()),
        |a, b| {
            open = None;
            match (a, b) {
                (Some(a), Some(b)) if is_same_text(&a, &b, of_each) => {
                    dated += u64::from(has_other_time(&a, &b, numbers));
                    let is_open = a.is_open || b.is_open;
                    open = (a.newline != b.newline && is_open).then_some((a, b));
                }
                (a, b) => differ(a, b, None),
            }
        },
    )?;
    if let Some((a, b)) = open {
        let why = match a.newline {
            true => "A ends with a newline, B does not",
            false => "B ends with a newline, A does not",
        };
        differ(Some(a), Some(b), Some(why));
    }
    known.dated += dated;
    known.used_rules.extend(own.used);
    known.used_rules.extend(other.used);
    Ok(first)
}

fn is_same_text(a: &Line, b: &Line, [of_a, of_b]: [Numbers<'_>; 2]) -> bool {
    a.text == b.text || normal(&a.text, of_a) == normal(&b.text, of_b)
}

/// Tells whether lines with the same text differ in dates or times.
fn has_other_time(a: &Line, b: &Line, numbers: Numbers<'_>) -> bool {
    let without = |line: &Line| normal_but_for_times(&line.text, numbers);
    a.text != b.text && without(a) != without(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_temporary_names_are_no_difference() {
        for (line, expected) in [
            ("", ""),
            ("at 0x55d0c0de1000, 16 bytes", "at 0x?, 16 bytes"),
            ("mask 0xff", "mask 0xff"),
            ("crc 0xf2b5ee7a0d4a1185", "crc 0xf2b5ee7a0d4a1185"),
            ("0x1eb353c0 0x5d532a0", "0x? 0x5d532a0"),
            ("0x", "0x"),
            ("wrote /tmp/tmp.Ab12Cd: done", "wrote /tmp/?: done"),
            ("/tmp/a /tmp/b", "/tmp/? /tmp/?"),
        ] {
            let numbers = Numbers {
                processes: &FxHashSet::default(),
                fixed: &[0x1eb0_0000..0x1ec0_0000],
                texts: &RunTexts::default(),
                clock: &ClockTexts::default(),
            };
            assert_eq!(normal(line, numbers), expected);
        }
    }

    #[test]
    fn numbers_of_processes_are_no_difference() {
        let numbers = [7, 5487, 5488].into_iter().collect();
        for (line, expected) in [
            ("pid 5487", "pid ?"),
            ("[5487:5488] begun, 5487.", "[?:?] begun, ?."),
            ("app-5487.log", "app-?.log"),
            ("7 files, 5489 bytes", "7 files, 5489 bytes"),
            (
                "x5487 5487ms 15487 54870 1.5487 5487.25",
                "x5487 5487ms 15487 54870 1.5487 5487.25",
            ),
            (
                "0x5487 99999999999999999999999",
                "0x5487 99999999999999999999999",
            ),
        ] {
            let numbers = Numbers {
                processes: &numbers,
                fixed: &[],
                texts: &RunTexts::default(),
                clock: &ClockTexts::default(),
            };
            assert_eq!(normal(line, numbers), expected);
        }
    }

    #[test]
    fn what_differs_in_a_long_line_is_told() {
        let numbers = Numbers {
            processes: &FxHashSet::default(),
            fixed: &[],
            texts: &RunTexts::default(),
            clock: &ClockTexts::default(),
        };
        let address = |last: char| format!("at 0x55d0c0de100{last} ");
        let long = "x".repeat(600) + " ";
        let (a, b) = (
            address('0') + &long + "total 5 cents" + &long,
            address('8') + &long + "total 6 cents" + &long,
        );
        let before = common(&a, &b, [numbers; 2]);
        assert_eq!(before.map(|at| &a[at..at + 7]), ["5 cents"; 2]);
        let (shown, at) = around(&a, before[0], 400);
        assert!(
            shown.starts_with("...xxx") && shown.ends_with("xxx..."),
            "{shown}"
        );
        assert!(shown[at..].starts_with("5 cents"), "{shown}");
        assert_eq!(around("short 5", 6, 400), ("short 5".to_owned(), 6));
        // A number, another space, the end of one, and a letter of two bytes.
        for (a, b, expected) in [
            ("took 15 ms", "took 17 ms", [6, 6]),
            ("a b", "a\tb", [1, 1]),
            ("a b", "a b c", [3, 3]),
            ("gr\u{fc}n 1", "gr\u{fc}n 2", [6, 6]),
        ] {
            assert_eq!(common(a, b, [numbers; 2]), expected, "{a}");
        }
    }
}
