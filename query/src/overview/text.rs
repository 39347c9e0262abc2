//! An overview as text, within a number of lines and columns.
//!
//! Each section has a heading and facts of one or more lines, the most important first. If they do not all fit, the longest
//! section repeatedly drops its last fact, and says how many are missing; no heading remains without a fact, and no fact is torn.

use debuginfo::{short_name, told_apart, without_arguments};
use values::one_line::{escaped, fitted, width};
use values::quantity::{count, duration, grouped};

use super::ending::How;
use super::lines::{before, call, error_line, exception, failure, frame, freed, function_time};
use super::lines::{syscalls, thread, unusual, waiter};
use super::{Overview, Question};

/// Columns of a line. Only commands may be longer: they would not work if they were cut.
pub const COLUMNS: usize = 120;
/// Columns of a function's name.
const NAME: usize = 48;

/// Columns of arguments: fewer are not worthwhile.
const LEAST_ARGS: usize = 12;

/// What stays together.
struct Fact {
    lines: Vec<String>,
    /// How many things it tells. The line that stands for several frames tells all of them.
    number: u64,
}

impl From<Vec<String>> for Fact {
    fn from(lines: Vec<String>) -> Fact {
        Fact { lines, number: 1 }
    }
}

impl From<String> for Fact {
    fn from(line: String) -> Fact {
        vec![line].into()
    }
}

/// A heading and the facts below it.
struct Section {
    heading: String,
    facts: Vec<Fact>,
    /// Facts that it gives up last.
    least: usize,
    /// It is dropped as a whole or not at all, and its lines are not cut.
    is_kept: bool,
    /// How many things are not told: they were dropped, or no fact was made of them.
    missing: u64,
    /// It never had all of them: more than these may be missing.
    is_part: bool,
}

impl Section {
    fn new<F: Into<Fact>>(
        heading: impl Into<String>,
        least: usize,
        facts: impl IntoIterator<Item = F>,
    ) -> Section {
        Section {
            heading: heading.into(),
            facts: facts.into_iter().map(Into::into).collect(),
            least,
            is_kept: false,
            missing: 0,
            is_part: false,
        }
    }

    /// Returns it, if it has facts.
    fn filled(self) -> Option<Section> {
        (!self.facts.is_empty()).then_some(self)
    }

    /// How many lines it takes.
    fn len(&self) -> usize {
        1 + lines_of(&self.facts) + usize::from(self.missing > 0)
    }

    /// Gives up as many of its last facts as it takes to become shorter: the line that says how many are missing takes the
    /// place of the first one.
    fn shrink(&mut self) {
        let before = self.len();
        while self.len() >= before
            && let Some(last) = self.facts.pop()
        {
            self.missing += last.number;
        }
    }

    /// How many lines it can drop, if it keeps `least` facts. The line that says how many are missing takes the place of one.
    fn spare(&self, least: usize) -> usize {
        if self.is_kept {
            return 0;
        }
        let rest = self.facts.get(least..).unwrap_or_default();
        lines_of(rest).saturating_sub(usize::from(self.missing == 0))
    }
}

fn lines_of(facts: &[Fact]) -> usize {
    facts.iter().map(|fact| fact.lines.len()).sum()
}

impl Overview {
    /// Writes it, in at most `max_lines` lines of at most 120 columns.
    #[must_use]
    pub fn text(&self, max_lines: usize) -> String {
        let next = self
            .next
            .iter()
            .map(|question| Fact::from(command(question)));
        written(self.sections(next.collect(), max_lines))
    }

    /// The same, but what to ask next is `next`, a line each, and comes second: a reader with little room may cut the end.
    #[must_use]
    pub fn text_asking(&self, next: &[String], max_lines: usize) -> String {
        let next = next.iter().map(|call| Fact::from(format!("  {call}")));
        let mut sections = self.sections(next.collect(), max_lines);
        if let Some(at) = sections.iter().position(|section| section.is_kept) {
            let asked = sections.remove(at);
            sections.insert(at.min(1), asked);
        }
        written(sections)
    }

    /// Makes all sections, within a number of lines; only what to ask next is kept as a whole.
    fn sections(&self, next: Vec<Fact>, max_lines: usize) -> Vec<Section> {
        let mut sections: Vec<Section> = [
            Some(self.head()),
            self.crash(),
            self.deadlocks(),
            self.last_calls(),
            self.seen(),
            self.printed(),
            self.failed(),
            self.failed_syscalls(),
            self.with_threads(),
            self.times(),
            self.unusual_lines(),
            questions(next),
        ]
        .into_iter()
        .flatten()
        .collect();
        fit(&mut sections, max_lines);
        sections
    }

    fn head(&self) -> Section {
        let program = &self.program;
        let name = match program.argv.as_slice() {
            [] => "a program".to_owned(),
            argv => argv.join(" "),
        };
        let known = program.duration_ns.unwrap_or_default();
        let ran = match program.counts_instructions() {
            true => count(known, "instruction"),
            false => duration(known),
        };
        let ended = match &self.ending.how {
            _ if program.is_to_be_counted() => {
                "is being recorded; its instructions are counted when it has ended".to_owned()
            }
            How::Exited { code } => format!("exited with code {code} after {ran}"),
            How::Killed { signal } => format!("was ended by {signal} after {ran}"),
            How::Core {
                signal: Some(signal),
                has_ended: true,
            } => format!("was ended by {signal}; this is its core file"),
            How::Core {
                signal: Some(signal),
                has_ended: false,
            } => format!(
                "was stopped by {signal} when a tool wrote this core file; it may have gone on"
            ),
            How::Core { signal: None, .. } => "a core file of it, while it ran".to_owned(),
            How::Standing { signal } => {
                format!("is stopped at {signal}, which will end it, after {ran}")
            }
            How::Became => format!("became another program after {ran}"),
            How::Detached => format!("was left running after {ran}"),
            How::Running => format!("has not ended: what was recorded of it so far, {ran}"),
            How::NotSeen if program.state == "incomplete" => {
                format!("recorded for {ran}; what came after is missing")
            }
            How::NotSeen => format!("recorded for {ran}; its end was not recorded"),
        };
        // How long it ran says nothing of when that was: `goto` counts from the beginning of the recording.
        let when = self.ending.ts_ns.filter(|_| !program.counts_instructions());
        let when = when.and_then(|ns| u64::try_from(ns).ok());
        let when = when.map(|ns| format!(", at {}", duration(ns)));
        let when = when.unwrap_or_default();
        let at = self.ending.seq.map(|seq| format!(" (seq {seq}{when})"));
        let recorded = format!("  {}{}", self.how_much(), self.how_recorded());
        let room = COLUMNS.saturating_sub(ended.len() + at.as_ref().map_or(0, String::len) + 2);
        let name = fitted(&escaped(&name), room.max(20)).into_owned();
        let mut section = Section::new(
            format!("{name}: {ended}{}", at.unwrap_or_default()),
            2 + program.remarks.len(),
            [recorded],
        );
        let remarks = program.remarks.iter();
        let remarks = remarks.map(|remark| Fact::from(format!("  {}", escaped(remark))));
        section.facts.extend(remarks);
        if let Some((seq, became)) = &self.ending.became {
            let line = format!(
                "  from seq {seq} on it was another program, {}, whose calls are not recorded",
                escaped(became)
            );
            section.facts.push(line.into());
        }
        if program.gaps > 0 {
            let first = program
                .first_gap
                .map(|seq| format!(", the first at seq {seq}"));
            // Of a torn end it is not known how much was in it.
            let lost = match program.lost {
                0 => "an unknown number of events".to_owned(),
                lost => count(lost, "event"),
            };
            let line = format!(
                "  lost: {lost} in {}{}",
                count(program.gaps, "gap"),
                first.unwrap_or_default()
            );
            section.facts.push(line.into());
        }
        section
    }

    fn how_much(&self) -> String {
        let program = &self.program;
        if program.is_to_be_counted() {
            return "its events and calls are found then, too".to_owned();
        }
        format!(
            "{}, {} of {}, {}",
            count(program.events, "event"),
            count(program.calls, "call"),
            count(program.functions, "function"),
            count(self.threads.total, "thread")
        )
    }

    fn how_recorded(&self) -> String {
        let program = &self.program;
        let filters = match program.filters.as_slice() {
            [] => String::new(),
            filters => format!("; only functions that pass {}", filters.join(" ")),
        };
        match program.captures.as_slice() {
            [] => filters,
            captures => format!("{filters}; with {}", captures.join(", ")),
        }
    }

    fn crash(&self) -> Option<Section> {
        let crash = self.ending.crash.as_ref()?;
        let signal = match &self.ending.how {
            How::Killed { signal }
            | How::Standing { signal }
            | How::Core {
                signal: Some(signal),
                ..
            } => signal.as_str(),
            _ => "a signal",
        };
        let verb = match &self.ending.how {
            How::Standing { .. } => "Stands at",
            How::Core {
                has_ended: false, ..
            } => "Stopped by",
            _ => "Ended by",
        };
        let address = crash.address.as_ref();
        let address = address.map_or_else(String::new, |at| format!(" at address {at}"));
        let heading = format!(
            "{verb} {signal}{address}, seq {}, in thread {}",
            crash.seq,
            thread_name(crash.tid, crash.thread.as_deref())
        );
        let freed = crash.freed.iter().map(|block| Fact::from(freed(block)));
        let frames = crash.frames.iter().map(|place| Fact::from(frame(place)));
        let mut facts: Vec<Fact> = freed.chain(frames).collect();
        let more = crash.more_frames.max(u64::from(crash.is_cut));
        if more > 0 {
            facts.push(Fact {
                lines: vec![and_more(more, crash.is_cut)],
                number: more,
            });
        }
        facts.extend(before(crash).map(Fact::from));
        Some(Section {
            // Only the last ones of the calls before are known.
            is_part: crash.is_cut || !crash.ended.is_empty(),
            ..Section::new(heading, 5, facts)
        })
    }

    fn deadlocks(&self) -> Option<Section> {
        let waiters = self.deadlocks.iter().flatten();
        let facts = waiters.map(waiter).map(wrapped);
        let heading = "Deadlock: each of these threads waited for the next one's lock, the last for the first's";
        Section::new(heading, 4, facts).filled()
    }

    fn last_calls(&self) -> Option<Section> {
        let heading = match self.ending.panic {
            Some(seq) => format!(
                "The main thread panicked at seq {seq}; its own calls that were open then, the innermost first"
            ),
            None => "Last calls of the main thread, the last one first".to_owned(),
        };
        let section = Section {
            is_part: true,
            ..Section::new(heading, 2, self.ending.last_calls.iter().map(call))
        };
        section.filled()
    }

    fn seen(&self) -> Option<Section> {
        let ending = &self.ending;
        let told = ending.exceptions.len() as u64;
        let heading = "Exceptions and signals that were seen, the last one first";
        let section = Section {
            missing: ending.exception_count.saturating_sub(told),
            ..Section::new(heading, 1, ending.exceptions.iter().map(exception))
        };
        section.filled()
    }

    fn printed(&self) -> Option<Section> {
        let errors = &self.errors;
        let which = match errors.is_cut {
            true => ": the first lines and the last ones",
            false => "",
        };
        let writes = count(errors.writes, "write");
        let heading = format!("Printed to standard error in {writes}{which}");
        let section = Section {
            is_part: errors.is_cut,
            ..Section::new(heading, 4, errors.lines.iter().map(error_line))
        };
        section.filled()
    }

    fn failed(&self) -> Option<Section> {
        let told = self.failures.told.iter().map(failure);
        let section = Section {
            missing: self.failures.more,
            ..Section::new("Results that look like failures", 3, told)
        };
        section.filled()
    }

    fn failed_syscalls(&self) -> Option<Section> {
        let failed = self.failed_syscalls.as_ref()?;
        let heading =
            "System calls that failed; errors that are usual, such as EAGAIN, are left out";
        let section = Section {
            missing: failed.more,
            ..Section::new(heading, 3, failed.told.iter().map(syscalls))
        };
        section.filled()
    }

    fn with_threads(&self) -> Option<Section> {
        let threads = &self.threads;
        if threads.total < 2 {
            return None;
        }
        let told = threads.told.iter().map(thread).map(wrapped);
        Some(Section {
            missing: threads.total - threads.told.len() as u64,
            ..Section::new("Threads", 2, told)
        })
    }

    fn times(&self) -> Option<Section> {
        let time = &self.time;
        if time.only_entries {
            let why = "  times of functions are not known: only their entries are recorded";
            let heading = "Time in recorded calls";
            return Some(Section::new(heading, 4, [why.to_owned()]));
        }
        let unit = match self.program.counts_instructions() {
            true => " (instructions: 1 us is 1,000)",
            false => "",
        };
        let heading = format!(
            "Time in recorded calls, {} in all{unit}; of each function without the calls that it made",
            duration(time.recorded_ns)
        );
        let section = Section {
            missing: time.more,
            ..Section::new(heading, 4, time.functions.iter().map(function_time))
        };
        section.filled()
    }

    fn unusual_lines(&self) -> Option<Section> {
        let section = Section {
            // There are at most a few of each kind.
            is_part: true,
            ..Section::new("Unusual", 2, self.unusual.iter().map(unusual).map(wrapped))
        };
        section.filled()
    }
}

/// What to ask next, which is not cut.
fn questions(facts: Vec<Fact>) -> Option<Section> {
    let section = Section {
        is_kept: true,
        ..Section::new("Ask next", 3, facts)
    };
    section.filled()
}

/// The line that says how many more there are; `is_least`: perhaps even more than these.
fn and_more(missing: u64, is_least: bool) -> String {
    let least = if is_least { "at least " } else { "" };
    format!("  and {least}{} more", grouped(missing))
}

fn written(sections: Vec<Section>) -> String {
    let mut text = String::new();
    for section in sections {
        push(&mut text, &section.heading, section.is_kept);
        for line in section.facts.iter().flat_map(|fact| &fact.lines) {
            push(&mut text, line, section.is_kept);
        }
        if section.missing > 0 {
            push(
                &mut text,
                &and_more(section.missing, section.is_part),
                false,
            );
        }
    }
    text
}

/// Makes sections shorter until they fit: first to their minimum, then to a fact. Later sections matter less, except the
/// questions.
fn fit(sections: &mut Vec<Section>, max_lines: usize) {
    let all = |sections: &[Section]| sections.iter().map(Section::len).sum::<usize>();
    while all(sections) > max_lines {
        let spare = |section: &Section| (section.spare(section.least), section.spare(1));
        // Of equally long ones, the one that already has a line about missing lines.
        let most = sections
            .iter_mut()
            .max_by_key(|section| (spare(section), section.missing > 0));
        if let Some(section) = most.filter(|section| spare(section) > (0, 0)) {
            section.shrink();
            continue;
        }
        let last = sections.iter().rposition(|section| !section.is_kept);
        match last {
            Some(at @ 1..) => drop(sections.remove(at)),
            _ if sections.len() > 1 => drop(sections.pop()),
            _ => {
                let head = &mut sections[0];
                head.missing = 0;
                while head.len() > max_lines && head.facts.pop().is_some() {}
                break;
            }
        }
    }
}

/// Breaks a line that is too long between two of its parts: the last words often matter most. What does not fit on two lines is cut
/// later.
fn wrapped(line: String) -> Vec<String> {
    if width(&escaped(&line)) <= COLUMNS {
        return vec![line];
    }
    let ends = line.char_indices().zip(line.chars().skip(1));
    let ends = ends.filter(|((_, mark), next)| matches!(mark, ',' | ';') && *next == ' ');
    let halves = ends.map(|((at, _), _)| {
        let rest = format!("    {}", &line[at + 2..]);
        (line[..=at].to_owned(), rest)
    });
    let fits = |half: &str| width(&escaped(half)) <= COLUMNS;
    let last = halves
        .filter(|(first, rest)| fits(first) && fits(rest))
        .last();
    match last {
        Some((first, rest)) => vec![first, rest],
        None => vec![line],
    }
}

/// Appends a line. Commands are not cut.
fn push(text: &mut String, line: &str, is_whole: bool) {
    let line = escaped(line);
    match is_whole {
        true => text.push_str(&line),
        false => text.push_str(&fitted(&line, COLUMNS)),
    }
    text.push('\n');
}

pub(super) fn thread_name(tid: u32, name: Option<&str>) -> String {
    match name.filter(|name| !name.is_empty()) {
        Some(name) => format!("{tid} ({name})"),
        None => tid.to_string(),
    }
}

/// A place in the source: the last component of the file's path, and the line.
pub(super) fn source(file: Option<&str>, line: Option<u32>) -> String {
    match (file.and_then(|file| file.rsplit('/').next()), line) {
        (Some(file), Some(line)) => format!(" at {file}:{line}"),
        _ => String::new(),
    }
}

/// A name that may be long: those of templates are.
pub(super) fn short(name: &str) -> String {
    within(name, NAME)
}

/// Returns the short form of a name in this many columns: if it is longer, without the text between angle brackets, and then
/// cut.
#[must_use]
pub fn within(name: &str, columns: usize) -> String {
    let name = short_name(name);
    let name = escaped(&name);
    match width(&name) <= columns {
        true => name.into_owned(),
        false => fitted(&without_arguments(&name), columns).into_owned(),
    }
}

/// As [`within`] for the functions of one list. Different ones that would look the same have their full names.
#[must_use]
pub fn all_within(names: &[&str], columns: usize) -> Vec<String> {
    let full = names
        .iter()
        .map(|name| fitted(&escaped(name), columns).into_owned());
    let full: Vec<String> = full.collect();
    let short = names.iter().map(|name| within(name, columns)).collect();
    told_apart(&full, short)
}

/// Parts of a line; the middle one is shortened.
pub(super) fn joined(before: &str, middle: &str, after: &str) -> String {
    let (before, after) = (escaped(before), escaped(after));
    let room = COLUMNS.saturating_sub(width(&before) + width(&after));
    format!("{before}{}{after}", fitted(&escaped(middle), room))
}

/// A name between two texts. It is shortened to fit, and never longer than [`NAME`].
pub(super) fn named(before: &str, name: &str, after: &str) -> String {
    let room = COLUMNS.saturating_sub(width(before) + width(after));
    format!("{before}{}{after}", within(name, room.min(NAME)))
}

/// Appends arguments in parentheses, if there is room for some of them.
pub(super) fn with_args(line: String, args: &str) -> String {
    let room = COLUMNS.saturating_sub(width(&line) + 3);
    match args.is_empty() || room < LEAST_ARGS {
        true => line,
        false => format!("{line} ({})", fitted(&escaped(args), room)),
    }
}

/// A command; if it is too long for a line, its question is on a separate line, or on two.
fn command(question: &Question) -> Vec<String> {
    let command = &question.command;
    let at = command.find('"').filter(|_| width(command) + 2 > COLUMNS);
    let Some(at) = at else {
        return vec![format!("  {command}")];
    };
    let mut lines = vec![format!("  {}\\", &command[..at])];
    let question = &command[at..];
    // No function name contains that: the question would use its id.
    let within = question
        .find(" where ")
        .filter(|_| width(question) + 2 > COLUMNS);
    match within {
        Some(within) => {
            lines.push(format!("  {}", &question[..within]));
            lines.push(format!("  {}", &question[within..]));
        }
        None => lines.push(format!("  {question}")),
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sections(lines: &[usize]) -> Vec<Section> {
        let section = |lines: &usize| Section::new("heading", 2, vec![String::new(); *lines]);
        lines.iter().map(section).collect()
    }

    #[test]
    fn the_longest_section_gives_up_lines_first() {
        let mut all = sections(&[1, 9, 4]);
        fit(&mut all, 12);
        let left: Vec<(usize, u64)> = all.iter().map(|s| (s.facts.len(), s.missing)).collect();
        assert_eq!(left, [(1, 0), (3, 6), (4, 0)]);
    }

    /// Facts of two lines each, and then as many of one.
    fn mixed(number: usize) -> Section {
        let two = |at| vec![format!("  {at}"), format!("    more of {at}")];
        let facts = (0..number).map(two);
        let ones = (number..2 * number).map(|at| vec![format!("  {at}")]);
        Section::new("mixed", 2, facts.chain(ones))
    }

    #[test]
    fn facts_are_counted_and_not_torn() {
        for max_lines in 2..20 {
            let mut all = vec![Section::new("head", 1, ["  one".to_owned()]), mixed(4)];
            fit(&mut all, max_lines);
            let text = written(all);
            let lines: Vec<&str> = text.lines().collect();
            assert!(lines.len() <= max_lines, "{max_lines}: {text}");
            let told = (0..8).filter(|at| lines.contains(&format!("  {at}").as_str()));
            let told = told.collect::<Vec<_>>();
            for at in told.iter().filter(|at| **at < 4) {
                assert!(text.contains(&format!("    more of {at}\n")), "{text}");
            }
            let more = lines.iter().find_map(|line| line.strip_prefix("  and "));
            let expected = format!("{} more", 8 - told.len());
            match told.len() {
                0 => assert_eq!(more, None, "{text}"),
                8 => assert_eq!((more, max_lines >= 15), (None, true), "{text}"),
                _ => assert_eq!(more, Some(expected.as_str()), "{text}"),
            }
        }
    }

    #[test]
    fn a_line_that_stands_for_several_is_counted_as_these() {
        let mut facts: Vec<Fact> = (0..3).map(|at| Fact::from(format!("  {at}"))).collect();
        facts.push(Fact {
            lines: vec![and_more(7, false)],
            number: 7,
        });
        facts.push("  before that".to_owned().into());
        let mut all = vec![Section {
            is_part: true,
            ..Section::new("crash", 1, facts)
        }];
        fit(&mut all, 4);
        // The last one of three, the seven, and the call before.
        assert_eq!(written(all), "crash\n  0\n  1\n  and at least 9 more\n");
    }

    #[test]
    fn a_long_line_is_broken_where_the_last_words_stay() {
        let long = "x".repeat(80);
        let lines = wrapped(format!(
            "  1 ({long}) waits for 0x10, seq 7; 2 took it in move (app.c:3)"
        ));
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines[0].ends_with(", seq 7;"), "{lines:?}");
        assert_eq!(lines[1], "    2 took it in move (app.c:3)");
        let short = "  1 waits, seq 7".to_owned();
        assert_eq!(wrapped(short.clone()), [short]);
        // It has no parts, or one that is too long.
        for long in ["x".repeat(200), format!("x, {}", "y".repeat(200))] {
            assert_eq!(wrapped(long.clone()), [long]);
        }
    }

    #[test]
    fn names_are_the_short_ones_of_other_answers() {
        for (name, short) in [
            (
                "alloc::vec::Vec<i32, alloc::alloc::Global>::push",
                "Vec<i32>::push",
            ),
            (
                "std::vector<int, std::allocator<int> >::at",
                "std::vector<int>::at",
            ),
            ("cache::get", "cache::get"),
        ] {
            assert_eq!(within(name, NAME), short);
            assert_eq!(within(name, NAME), short_name(name));
        }
    }

    #[test]
    fn different_functions_of_a_list_look_different() {
        let names = [
            "std::thread::thread::Thread::new",
            "std::sys::thread::unix::Thread::new",
            "std::thread::JoinHandle<i32>::join",
        ];
        let expected = [names[0], names[1], "JoinHandle<i32>::join"];
        assert_eq!(all_within(&names, NAME), expected);
    }

    #[test]
    fn long_names_lose_their_template_arguments_first() {
        for (name, short) in [
            (
                "std::basic_string<char, std::allocator<char> >::swap",
                "std::basic_string<..>::swap",
            ),
            (
                "<alloc::vec::Vec<u8> as Trait<A>>::f",
                "<alloc::vec::Vec<..> as Trait<..>>::f",
            ),
            ("ns::operator<< <char>", "ns::operator<< <..>"),
            ("operator->", "operator->"),
            ("f", "f"),
        ] {
            assert_eq!(without_arguments(name), short);
        }
    }

    #[test]
    fn any_number_of_lines_is_kept_to() {
        for max_lines in 1..40 {
            let mut all = sections(&[2, 12, 8, 9, 8, 10, 6]);
            let mut kept = Section::new("questions", 3, vec![String::new(); 6]);
            kept.is_kept = true;
            all.push(kept);
            fit(&mut all, max_lines);
            let lines: usize = all.iter().map(Section::len).sum();
            assert!(lines <= max_lines, "{lines} of {max_lines}");
        }
    }
}
