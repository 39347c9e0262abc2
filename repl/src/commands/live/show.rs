//! What several verbs write: stops, lines of source, tables of variables. Nothing that a program wrote may steer the
//! terminal.

use std::fmt::Write;

use server::inspect::{FrameReport, ReturnedReport, Shown, SourceReport, VariableReport};
use server::session::{
    DisplayReport, MotionReport, PlaceReport, ReasonReport, SessionReport, StateWord, StopReport,
};

use crate::render::{Align, Colour, Column, Layout, Paint, Table, Terminal, escaped};

/// Writes a table with these headings.
pub fn table(
    headings: &[(&str, Align)],
    rows: Vec<Vec<Option<String>>>,
    terminal: &Terminal,
) -> String {
    let columns = headings.iter().map(|(name, align)| Column {
        name: (*name).to_owned(),
        align: *align,
    });
    let mut table = Table::new(columns.collect());
    for row in rows {
        table.push(row);
    }
    let layout = match terminal.stdout {
        true => Layout::Fit(Terminal::size().0),
        false => Layout::Whole,
    };
    let mut out = Vec::new();
    // Writing to memory cannot fail.
    _ = table.flush(&mut out, layout, terminal.stdout_colour);
    String::from_utf8_lossy(&out).into_owned()
}

/// Writes a place: `parse at parse.c:42`.
pub fn place(place: &PlaceReport) -> String {
    let mut text = match &place.function {
        Some(function) => escaped(function).into_owned(),
        None => place.address.clone(),
    };
    if let (Some(file), Some(line)) = (&place.file, place.line) {
        _ = write!(text, " at {}:{line}", escaped(file));
    }
    text
}

/// Says why a thread stopped.
fn reason(reason: &ReasonReport) -> String {
    match reason {
        ReasonReport::Entry => "at its entry point".to_owned(),
        ReasonReport::Breakpoint { probe, hits } => format!("at breakpoint {probe} (hit {hits})"),
        ReasonReport::Watch {
            probe,
            expression,
            old,
            new,
            shared,
            by,
        } => {
            let what = expression.as_deref().unwrap_or("value");
            let what = [what, ": ", old, " -> ", new].concat();
            let mut text = format!("at watchpoint {probe} ({}", escaped(&what));
            if let Some(by) = by {
                _ = write!(text, ", by {}:{}", escaped(&by.file), by.line);
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
            let name = server::inspect::signal_name(*signal);
            let at = fault_address
                .as_ref()
                .map(|address| format!(" at address {address}"));
            let fatal = if *fatal { ", which will end it" } else { "" };
            format!("by {name}{}{fatal}", at.unwrap_or_default())
        }
        ReasonReport::Throw {
            probe,
            what,
            message,
            unhandled,
        } => {
            let mut text = format!("at catchpoint {probe}: {}", escaped(what));
            if let Some(message) = message {
                _ = write!(text, ": {}", escaped(message));
            }
            if *unhandled {
                text += " (uncaught)";
            }
            text
        }
        ReasonReport::AllThreads => "with the others".to_owned(),
        ReasonReport::Event { seq, what, .. } => format!("at event {seq}, {}", escaped(what)),
    }
}

/// Writes a stop and its line.
pub fn stop(stop: &StopReport, colour: Colour) -> String {
    let mut text = heading(stop, colour);
    if let (Some(source), Some(line)) = (&stop.source_line, stop.place.line) {
        let arrow = colour.paint(Paint::Prompt, "->");
        _ = writeln!(text, "{arrow} {line:>5} | {}", code(source));
    }
    text += &displays(&stop.displays);
    if let ReasonReport::Event { changed, .. } = &stop.reason {
        for change in changed {
            _ = writeln!(
                text,
                "Watch {}: {} was {}, is {}",
                change.watch,
                escaped(&change.expression),
                escaped(&change.old),
                escaped(&change.new)
            );
        }
    }
    text
}

/// Writes what is displayed at every stop: `1: total = 3`.
pub fn displays(displays: &[DisplayReport]) -> String {
    let line = |shown: &DisplayReport| {
        let expression = escaped(&shown.expression);
        match &shown.value {
            Some(value) => format!("{}: {expression} = {}\n", shown.id, escaped(value)),
            None => format!("{}: {expression}\n", shown.id),
        }
    };
    displays.iter().map(line).collect()
}

/// Writes the line that says which thread stopped where and why.
pub fn heading(stop: &StopReport, colour: Colour) -> String {
    let name = match &stop.thread_name {
        Some(name) => format!(" ({})", escaped(name)),
        None => String::new(),
    };
    let who = colour.paint(
        Paint::Heading,
        match stop.reason {
            ReasonReport::Event { .. } => format!("Thread {}{name}", stop.thread),
            _ => format!("Thread {}{name} stopped", stop.thread),
        },
    );
    format!("{who} {}: {}\n", reason(&stop.reason), place(&stop.place))
}

/// Writes how running came out.
pub fn motion(report: &MotionReport, colour: Colour) -> String {
    if let Some(tid) = report.thread_ended {
        let others = match report.status {
            StateWord::Stopped => "others are stopped: hindsight threads",
            _ => "the program is still running: hindsight await, hindsight pause",
        };
        return format!("Thread {tid} has ended; {others}\n");
    }
    match (&report.stop, &report.exit, report.timed_out) {
        (Some(newest), _, _) if report.already => {
            format!("All threads are stopped already.\n{}", stop(newest, colour))
        }
        (Some(at), _, _) => {
            let mut text = stop(at, colour);
            if let Some(value) = &report.returned {
                _ = writeln!(text, "{}", returned(value));
            }
            text += &more_stops(report.more_stops);
            text
        }
        (None, Some(exit), _) => format!(
            "The program {}. Its recording: {}\n",
            exit.text,
            escaped(&report.recording.to_string_lossy())
        ),
        (None, None, true) => {
            "No stop within the time; the program is still running. Wait again: hindsight await\n"
                .to_owned()
        }
        (None, None, false) => "The program is running.\n".to_owned(),
    }
}

/// Says that more threads stand at stops that are to be shown.
fn more_stops(count: usize) -> String {
    match count {
        0 => String::new(),
        1 => "One more thread has stopped; \"continue\" shows it\n".to_owned(),
        _ => format!("{count} more threads have stopped; \"continue\" shows them in turn\n"),
    }
}

/// Writes what a function has returned.
fn returned(value: &ReturnedReport) -> String {
    let function = value.function.as_deref().unwrap_or("The function");
    let ty = match &value.type_name {
        Some(name) => format!(" ({name})"),
        None => String::new(),
    };
    format!(
        "{} returned{} {}",
        escaped(function),
        escaped(&ty),
        escaped(&value.shown.text())
    )
}

/// Writes what a session is and does.
pub fn session(report: &SessionReport, colour: Colour) -> String {
    let (session, program) = (report.session, escaped(&report.program));
    let recording = report.recording.to_string_lossy();
    let recording = escaped(&recording);
    let mut text = match report.status {
        StateWord::Recorded => format!("Session {session}: {program}, the recording {recording}\n"),
        _ => format!(
            "Session {session}: {program} (process {}), recorded into {recording}\n",
            report.pid
        ),
    };
    match (report.status, &report.stop, &report.exit) {
        (StateWord::Stopped | StateWord::Recorded, Some(report), _) => {
            text += &stop(report, colour);
        }
        (StateWord::Ended, _, Some(exit)) => _ = writeln!(text, "The program {}.", exit.text),
        _ => text += "The program is running.\n",
    }
    if let (Some(seq), false) = (report.past, report.status == StateWord::Recorded) {
        _ = writeln!(
            text,
            "Event {seq} of its past is looked at; to the program as it is now: goto live"
        );
    }
    text
}

/// Writes lines of source, an arrow before the one that is asked about.
pub fn source(report: &SourceReport, colour: Colour) -> String {
    let mut text = String::new();
    for (number, line) in (report.first..).zip(&report.lines) {
        let is_here = number == report.line;
        let arrow = if is_here { "->" } else { "  " };
        let arrow = colour.paint(Paint::Prompt, arrow);
        let bar = if report.with_code.contains(&number) {
            "|"
        } else {
            ":"
        };
        _ = writeln!(text, "{arrow} {number:>5} {bar} {}", code(line));
    }
    text
}

/// Source text with its tabs as spaces and nothing that steers the terminal.
pub fn code(line: &str) -> String {
    let line = line.replace('\t', "    ");
    escaped(line.trim_end()).into_owned()
}

/// Writes a value, or in angle brackets why it is not known.
pub fn shown(shown: &Shown) -> String {
    // What is stale says so in its text, each part of it on its own.
    shown.text()
}

/// Writes a table of variables.
pub fn variables(variables: &[VariableReport], terminal: &Terminal) -> String {
    let row = |variable: &VariableReport| {
        let hidden = if variable.shadowed { " (hidden)" } else { "" };
        vec![
            Some(format!("{}{hidden}", variable.name)),
            Some(variable.type_name.clone()),
            Some(shown(&variable.shown)),
        ]
    };
    let headings = [
        ("Name", Align::Left),
        ("Type", Align::Left),
        ("Value", Align::Left),
    ];
    table(&headings, variables.iter().map(row).collect(), terminal)
}

/// Writes a frame: `#1  parse (text="a") at parse.c:42`.
pub fn frame(report: &FrameReport) -> String {
    let mark = if report.selected { '*' } else { ' ' };
    let mut text = format!("{mark}#{:<3}", report.index);
    if report.is_signal {
        return text + " <signal handler called>";
    }
    match &report.function {
        Some(function) if report.somewhere => {
            _ = write!(text, " somewhere in {}", escaped(function));
        }
        Some(function) => _ = write!(text, " {}", escaped(function)),
        None => _ = write!(text, " {}", report.address),
    }
    let args = report.args.as_ref().filter(|_| !report.somewhere);
    if let Some(args) = args {
        let args: Vec<String> = args
            .iter()
            .map(|arg| format!("{}={}", arg.name, shown(&arg.shown)))
            .collect();
        _ = write!(text, " ({})", escaped(&args.join(", ")));
    }
    match (&report.file, report.line, &report.module) {
        (Some(file), Some(line), _) => _ = write!(text, " at {}:{line}", escaped(file)),
        (_, _, Some(module)) => _ = write!(text, " in {}", escaped(module)),
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

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn at_breakpoint() -> StopReport {
        StopReport {
            number: 1,
            thread: 10,
            thread_name: Some("app\x1b[2J".to_owned()),
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
                value: Some("\"\x1b[2J\"".to_owned()),
            }],
        }
    }

    #[test]
    fn a_stop_says_who_why_and_where_and_steers_no_terminal() {
        expect![[r#"
            Thread 10 (app\x1b[2J) stopped at breakpoint 1 (hit 3): parse at parse.c:42
            ->    42 |     n += 1;
            2: name = "\x1b[2J"
        "#]]
        .assert_eq(&stop(&at_breakpoint(), Colour::Off));
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
            with_code: vec![8, 10],
            total: 11,
        };
        expect![[r"
                   8 | int main()
                   9 : {
            ->    10 |     return 0;
        "]]
        .assert_eq(&source(&report, Colour::Off));
    }
}
