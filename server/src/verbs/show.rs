//! The text of parts that several replies share: stops, frames, source lines, tables of variables.

use std::fmt::Write;
use std::path::Path;

use debuginfo::brief_name;

use super::{Column, Piece, Style, Text};
use crate::inspect::{
    FrameReport, FrameVariables, ReturnedReport, Shown, SourceReport, VariableReport, signal_name,
};
use crate::session::{
    DisplayReport, MotionReport, PlaceReport, ReasonReport, SessionReport, StateWord, StopReport,
    WatchChange,
};

/// Writes a place: `parse at parse.c:42`.
pub(super) fn place(place: &PlaceReport) -> String {
    let mut text = match (&place.short_name, &place.function) {
        (Some(name), _) | (None, Some(name)) => brief_name(name),
        (None, None) => place.address.clone(),
    };
    text.extend(place.parameters.as_deref());
    if let (Some(file), Some(line)) = (&place.file, place.line) {
        // Writing to a String cannot fail.
        _ = write!(text, " at {file}:{line}");
    }
    text
}

fn reason(reason: &ReasonReport) -> String {
    match reason {
        ReasonReport::Entry => "at its entry point".to_owned(),
        ReasonReport::Breakpoint { probe, hits } => format!("at breakpoint {probe} (hit {hits})"),
        ReasonReport::Watch {
            probe,
            expression,
            left,
            old,
            new,
            shared,
            by,
        } => {
            let what = expression.as_deref().unwrap_or("value");
            let mut text = match left {
                true => format!(
                    "at watchpoint {probe}, which was removed: the function of {what} has returned, and its memory is another one's ({old} -> {new}"
                ),
                false => format!("at watchpoint {probe} ({what}: {old} -> {new}"),
            };
            if let Some(by) = by {
                _ = write!(text, ", by {}:{}", by.file, by.line);
            }
            if *shared {
                text += ", while other threads accessed it too";
            }
            text + ")"
        }
        ReasonReport::Step => "after a step".to_owned(),
        ReasonReport::User => "on request".to_owned(),
        ReasonReport::Signal {
            signal,
            fault_address,
            fatal,
            ..
        } => {
            let mut text = format!("by {}", signal_name(*signal));
            if let Some(address) = fault_address {
                _ = write!(text, " at address {address}");
            }
            if *fatal {
                text += ", which will end it";
            }
            text
        }
        ReasonReport::Throw {
            probe,
            what,
            message,
            unhandled,
        } => {
            let mut text = format!("at catchpoint {probe}: {what}");
            if let Some(message) = message {
                _ = write!(text, ": {message}");
            }
            if *unhandled {
                text += " (uncaught)";
            }
            text
        }
        ReasonReport::Happened { probe, hits, what } => {
            format!("at catchpoint {probe} (hit {hits}): {what}")
        }
        ReasonReport::AllThreads => "with the others".to_owned(),
        ReasonReport::Event {
            seq,
            steps,
            what,
            breaks,
            ..
        } => event(*seq, *steps, what, breaks),
    }
}

/// Writes a moment of a recording.
fn event(seq: u64, steps: u64, what: &str, breaks: &[u32]) -> String {
    let text = match steps {
        0 => format!("at event {seq}, {what}"),
        steps => format!("at event {seq}+{steps}, after {what}"),
    };
    let breaks: Vec<String> = breaks.iter().map(u32::to_string).collect();
    match breaks.as_slice() {
        [] => text,
        breaks => format!("at breakpoint {}, {text}", breaks.join(" and ")),
    }
}

fn stop(stop: &StopReport) -> Text {
    let mut text = heading(stop);
    if let (Some(source), Some(line)) = (&stop.source_line, stop.place.line) {
        text.pieces.push(code(true, line, '|', source));
    }
    text = text.and(displays(&stop.displays));
    if let ReasonReport::Event { changed: all, .. } = &stop.reason {
        for change in all {
            text.push(changed(change));
        }
    }
    text
}

fn changed(change: &WatchChange) -> String {
    let WatchChange {
        watch,
        expression,
        old,
        new,
        removed,
    } = change;
    match removed {
        Some(why) => {
            format!("Watch {watch} was removed: {expression} was {old}, and {why}")
        }
        None => format!("Watch {watch}: {expression} was {old}, is {new}"),
    }
}

/// Writes the expressions displayed at every stop: `1: total = 3`.
pub(super) fn displays(displays: &[DisplayReport]) -> Text {
    Text::lines(displays.iter().map(|shown| match &shown.value {
        Some(value) => format!("{}: {} = {value}", shown.id, shown.expression),
        None => format!("{}: {}", shown.id, shown.expression),
    }))
}

/// Writes the line that says which thread stopped, where and why.
pub(super) fn heading(stop: &StopReport) -> Text {
    let mut who = format!("Thread {}", stop.thread);
    if let Some(name) = stop.thread_name.as_ref().filter(|name| !name.is_empty()) {
        _ = write!(who, " ({name})");
    }
    if !matches!(stop.reason, ReasonReport::Event { .. }) {
        who += " stopped";
    }
    let what = format!(" {}: {}", reason(&stop.reason), place(&stop.place));
    Text::styled(vec![(Style::Heading, who), (Style::Plain, what)])
}

/// Writes the outcome of a motion.
pub(super) fn stepping(report: &MotionReport) -> Text {
    if let Some(copy) = &report.followed {
        let head = head(report.session, &copy.program, copy.pid, &report.recording);
        let rest = MotionReport {
            followed: None,
            ..report.clone()
        };
        return Text::line(head).and(stepping(&rest));
    }
    if let Some(tid) = report.thread_ended {
        let others = match report.status {
            StateWord::Stopped => "others are stopped: hindsight threads",
            _ => "the program is still running: hindsight await, hindsight pause",
        };
        return Text::line(format!("Thread {tid} has ended; {others}"));
    }
    match (&report.stop, &report.exit, report.timed_out) {
        (Some(newest), _, _) if report.already => {
            Text::line("All threads are stopped already.").and(stop(newest))
        }
        (Some(at), _, _) => {
            let mut text = stop(at);
            if let Some(value) = &report.returned {
                text.push(returned(value));
            }
            match report.more_stops {
                0 => {}
                1 => text.push("One more thread has stopped; \"continue\" shows it"),
                count => text.push(format!(
                    "{count} more threads have stopped; \"continue\" shows them in turn"
                )),
            }
            if let Some(gaps) = went_over(&report.not_recorded) {
                text.push(gaps);
            }
            text
        }
        (None, Some(exit), _) => Text::line(format!(
            "The program {}. Its recording: {}",
            exit.text,
            report.recording.to_string_lossy()
        )),
        (None, None, true) => Text::line(
            "No stop within the time; the program is still running. Wait again: hindsight await",
        ),
        (None, None, false) => Text::line("The program is running."),
    }
}

/// Says what a motion went over that was not recorded.
pub(super) fn went_over(gaps: &[String]) -> Option<String> {
    match gaps {
        [] => None,
        [gap] => Some(format!("not recorded: {gap}")),
        [first, .., last] => Some(format!(
            "not recorded: {} stretches, from {first} to {last}",
            gaps.len()
        )),
    }
}

fn returned(value: &ReturnedReport) -> String {
    let function = value.function.as_deref().map(brief_name);
    let function = function.as_deref().unwrap_or("The function");
    let ty = value.type_name.as_ref();
    let ty = ty.map(|name| format!(" ({})", brief_name(name)));
    let ty = ty.unwrap_or_default();
    let number = value.number.map(|number| format!(" (${number})"));
    let number = number.unwrap_or_default();
    format!("{function} returned{ty} {}{number}", value.shown.text())
}

/// Writes a session and its state.
#[must_use]
pub fn session(report: &SessionReport) -> Text {
    let (session, program) = (report.session, &report.program);
    let recording = &report.recording;
    let mut text = Text::line(match report.status {
        StateWord::Recorded => {
            let recording = recording.to_string_lossy();
            format!("Session {session}: {program}, the recording {recording}")
        }
        _ => head(session, program, report.pid, recording),
    });
    match (report.status, &report.stop, &report.exit) {
        (StateWord::Stopped | StateWord::Recorded, Some(at), _) => text = text.and(stop(at)),
        (StateWord::Ended, _, Some(exit)) => text.push(format!("The program {}.", exit.text)),
        _ => text.push("The program is running."),
    }
    if let (Some(seq), false) = (report.past, report.status == StateWord::Recorded) {
        text.push(format!(
            "You are viewing event {seq} of its past; goto live returns to the present"
        ));
    }
    text
}

fn head(session: u32, program: &str, pid: i32, recording: &Path) -> String {
    let recording = recording.to_string_lossy();
    format!("Session {session}: {program} (process {pid}), recorded into {recording}")
}

/// Writes source lines, with an arrow at the current one.
pub(super) fn source(report: &SourceReport) -> Text {
    let lines = (report.first..).zip(&report.lines);
    let pieces = lines.map(|(number, line)| {
        let has_code = report.with_code.contains(&number);
        let bar = if has_code { '|' } else { ':' };
        code(report.marked == Some(number), number, bar, line)
    });
    Text {
        pieces: pieces.collect(),
    }
}

pub(super) fn code(is_here: bool, number: u32, bar: char, line: &str) -> Piece {
    let line = format!(" {number:>5} {bar} {}", spaced(line));
    Piece::Styled(vec![arrow(is_here), (Style::Plain, line)])
}

/// The mark of the current position.
pub(super) fn arrow(is_here: bool) -> (Style, String) {
    (Style::Here, if is_here { "->" } else { "  " }.to_owned())
}

/// Replaces the tabs of a source line by spaces.
pub(super) fn spaced(line: &str) -> String {
    line.replace('\t', "    ").trim_end().to_owned()
}

pub(super) fn variables(variables: &[VariableReport], is_full: bool) -> Text {
    let cut = shown(variables, is_full).map(VariableReport::left_out);
    table_of(variables, is_full).and(left_out(cut))
}

/// Returns the variables that a list shows: without `--full`, none that is optimized out.
fn shown(variables: &[VariableReport], is_full: bool) -> impl Iterator<Item = &VariableReport> {
    let is_shown = move |variable: &&VariableReport| is_full || !variable.optimized_out;
    variables.iter().filter(is_shown)
}

fn table_of(variables: &[VariableReport], is_full: bool) -> Text {
    let shown: Vec<&VariableReport> = shown(variables, is_full).collect();
    let row = |variable: &&VariableReport| {
        let hidden = if variable.shadowed { " (hidden)" } else { "" };
        vec![
            format!("{}{hidden}", variable.shown_name()),
            brief_name(&variable.type_name),
            variable.shown.text(),
        ]
    };
    let mut text = Text::default();
    if !shown.is_empty() {
        let columns = ["Name", "Type", "Value"].map(Column::text);
        text = text.and(Text::table(&columns, shown.iter().map(row).collect()));
    }
    match optimized_out(variables.len() - shown.len(), !shown.is_empty()) {
        Some(count) => text.and(Text::hint(count)),
        None => text,
    }
}

/// Writes how many variables a list omits because they are optimized out; `is_more` if it shows others.
fn optimized_out(count: usize, is_more: bool) -> Option<String> {
    let more = if is_more { " more" } else { "" };
    match count {
        0 => None,
        1 => Some(format!("(1{more} is optimized out: --full lists it)")),
        _ => Some(format!(
            "({count}{more} are optimized out: --full lists them)"
        )),
    }
}

/// Writes the variables of a frame that is not the selected one.
pub(super) fn own_variables(own: &FrameVariables, is_full: bool) -> Text {
    let heading = Text::line(of_frame(own.frame, own.function.as_deref()));
    match own.variables.is_empty() {
        true => heading.and(Text::line("None are known there.")),
        false => {
            // Expressions refer to the selected frame.
            let cut = shown(&own.variables, is_full).map(|v| v.left_out().map(|_| ""));
            let table = table_of(&own.variables, is_full);
            heading.and(table).and(left_out(cut))
        }
    }
}

/// Returns the heading of a list of variables.
pub(super) fn of_frame(index: usize, function: Option<&str>) -> String {
    match function {
        Some(function) => format!("In frame {index}, {}:", brief_name(function)),
        None => format!("In frame {index}:"),
    }
}

/// Writes how to see what values leave out: the expressions for that, empty if there is none.
pub(super) fn left_out<'a>(values: impl IntoIterator<Item = Option<&'a str>>) -> Text {
    let mut left_out = values.into_iter().flatten().peekable();
    if left_out.peek().is_none() {
        return Text::default();
    }
    match left_out.find(|expression| !expression.is_empty()) {
        Some(expression) => Text::hint(format!(
            "(shortened: print -- {expression}, or --full for all)"
        )),
        None => Text::hint("(shortened: --full shows all)"),
    }
}

/// Writes a frame: `#1  parse (text="a") at parse.c:42`.
pub(super) fn frame(report: &FrameReport) -> String {
    let mark = if report.selected { '*' } else { ' ' };
    let mut text = format!("{mark}#{:<3}", report.index);
    if report.is_signal {
        return text + " <signal handler called>";
    }
    let name = report.short_name.as_ref().or(report.function.as_ref());
    let name = brief_name(name.unwrap_or(&report.address));
    if report.somewhere && report.function.is_some() {
        text += " somewhere in";
    }
    _ = write!(text, " {name}");
    let args = report.args.as_ref();
    if let Some(args) = args.filter(|args| !report.somewhere || !args.is_empty()) {
        _ = write!(text, " ({})", arguments(args));
    }
    match (&report.file, report.line, &report.module) {
        (Some(file), Some(line), _) => _ = write!(text, " at {file}:{line}"),
        (_, _, Some(module)) => _ = write!(text, " in {module}"),
        _ => {}
    }
    if report.inlined {
        text += " [inlined]";
    }
    if report.is_tail_call {
        text += " [tail call]";
    }
    text
}

/// Writes the arguments of a frame on one line: `x=2, y=3`.
pub(super) fn arguments(args: &[VariableReport]) -> String {
    let args = args
        .iter()
        .map(|arg| format!("{}={}", arg.shown_name(), in_a_frame(&arg.shown)));
    args.collect::<Vec<_>>().join(", ")
}

/// A reason of at most this many characters is shown in a frame's line.
const SHORT_REASON: usize = 20;

/// Returns an argument's value for the line of its frame, which has no room for long reasons: `args` shows them.
fn in_a_frame(shown: &Shown) -> String {
    match lacks_reason(shown) {
        true => "<unknown>".to_owned(),
        false => shown.text(),
    }
}

/// Returns whether the line of a frame leaves out why this value is not known.
pub(super) fn lacks_reason(shown: &Shown) -> bool {
    let reason = shown.unknown.as_ref().filter(|_| shown.value.is_none());
    reason.is_some_and(|reason| reason.len() > SHORT_REASON)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &Text) -> Vec<String> {
        let line = |piece: &Piece| match piece {
            Piece::Line(line) | Piece::Hint(line) => line.clone(),
            Piece::Styled(parts) => parts.iter().map(|(_, part)| part.as_str()).collect(),
            Piece::Table(..) => "a table".to_owned(),
        };
        text.pieces.iter().map(line).collect()
    }

    #[test]
    fn a_stop_says_who_why_and_where() {
        let at_breakpoint = StopReport {
            number: 1,
            thread: 10,
            thread_name: Some("app".to_owned()),
            reason: ReasonReport::Breakpoint { probe: 1, hits: 3 },
            place: PlaceReport {
                address: "0x401136".to_owned(),
                function: Some("parse".to_owned()),
                file: Some("parse.c".to_owned()),
                line: Some(42),
                ..PlaceReport::default()
            },
            source_line: Some("\tn += 1;".to_owned()),
            displays: vec![DisplayReport {
                id: 2,
                expression: "name".to_owned(),
                value: Some("\"x\"".to_owned()),
            }],
        };
        assert_eq!(
            plain(&stop(&at_breakpoint)),
            [
                "Thread 10 (app) stopped at breakpoint 1 (hit 3): parse at parse.c:42",
                "->    42 |     n += 1;",
                "2: name = \"x\"",
            ]
        );
    }

    #[test]
    fn long_template_names_are_brief_where_a_thread_stops() {
        let name = format!("merge<{}int>", "shop::Order<shop::Item, 4>, ".repeat(20));
        let at = PlaceReport {
            function: Some(name),
            ..PlaceReport::default()
        };
        assert_eq!(place(&at), "merge<..>");
    }

    #[test]
    fn the_line_that_is_looked_at_has_an_arrow() {
        let report = SourceReport {
            file: "a.c".to_owned(),
            first: 8,
            lines: ["int main()", "{", "    return 0;"]
                .map(str::to_owned)
                .into(),
            line: 10,
            marked: Some(10),
            with_code: vec![8, 10],
            total: 11,
        };
        assert_eq!(
            plain(&source(&report)),
            [
                "       8 | int main()",
                "       9 : {",
                "->    10 |     return 0;"
            ]
        );
    }
}
