//! What `hindsight overview` says of a set: how it ended, which process failed first, and the tree of processes.

use std::io::Write;

use server::inspect::signal_name;
use server::quantity::{count, duration, grouped};
use store::set::Process;

use crate::commands::processes::{as_json, as_tree, is_running, program};
use crate::error::Error;
use crate::exit;
use crate::json::answer;
use crate::output::{self, to_stdout};
use crate::render::escaped;
use crate::sets::{Whole, has_failed};

/// Most processes that are told to have failed. The tree shows all.
const MOST_FAILED: usize = 5;
/// Bytes of a command line that a line shows.
const MOST_BYTES: usize = 90;

/// Prints the overview of a set and returns the exit code.
///
/// # Errors
/// When stdout cannot be written to.
pub fn run(set: &Whole, most_lines: usize, is_json: bool) -> Result<u8, Error> {
    let mut out = output::stdout();
    let written = if is_json {
        let mut all = set.as_json();
        let failed: Vec<Process> = set.failed().into_iter().cloned().collect();
        all["failures"] = as_json(&failed);
        all["tree"] = as_json(&set.processes);
        writeln!(out, "{:#}", answer(all))
    } else {
        write!(out, "{}", text(set, most_lines))
    };
    written.and_then(|()| out.flush()).map_err(to_stdout)?;
    Ok(exit::DONE)
}

fn text(set: &Whole, most_lines: usize) -> String {
    let mut lines = headline(set);
    lines.extend(failures(set));
    lines.push("Processes".to_owned());
    for (depth, process) in as_tree(&set.processes) {
        lines.push(in_tree(process, depth));
    }
    let next = next(set);
    // The tree gives way, not what to ask next.
    let room = most_lines.saturating_sub(next.len());
    if lines.len() > room {
        let kept = room.saturating_sub(1);
        let left = (lines.len() - kept) as u64;
        lines.truncate(kept);
        lines.push(format!(
            "  {} more; hindsight processes {}",
            count(left, "line"),
            store::shell::word(&set.dir.to_string_lossy())
        ));
    }
    lines.extend(next);
    lines
        .iter()
        .map(|line| format!("{}\n", escaped(line)))
        .collect()
}

fn headline(set: &Whole) -> Vec<String> {
    let command = set.first().map(program).unwrap_or_default();
    let ended = set
        .ending()
        .map_or("its end is not known".to_owned(), ended);
    let has_ended = |process: &Process| process.end_unix_ns.is_some();
    let lasted = set
        .duration_ns()
        .filter(|_| set.ending().is_some_and(has_ended))
        .map(|ns| format!(" after {}", duration(ns)));
    let failed = match set.failed().len() {
        0 => "none failed".to_owned(),
        failed => format!("{} failed", grouped(failed as u64)),
    };
    let processes = match store::set::number(&set.processes) {
        1 => "1 process".to_owned(),
        processes => format!("{} processes", grouped(processes as u64)),
    };
    let recordings = count(set.recordings.len() as u64, "recording");
    vec![
        format!("{}: {ended}{}", short(&command), lasted.unwrap_or_default()),
        format!("  {processes}, {failed}; {recordings}"),
    ]
}

fn failures(set: &Whole) -> Vec<String> {
    let failed = set.failed();
    if failed.is_empty() {
        return Vec::new();
    }
    let mut lines = vec!["Failed, the first one first".to_owned()];
    let start = set.start_unix_ns();
    for process in failed.iter().take(MOST_FAILED) {
        let when = process
            .end_unix_ns
            .and_then(|end| u64::try_from(end - start).ok());
        let when = when
            .map(|ns| format!(" at {}", duration(ns)))
            .unwrap_or_default();
        lines.push(format!(
            "  {} ({}): {}{when}",
            short(&program(process)),
            process.pid,
            ended(process)
        ));
    }
    if failed.len() > MOST_FAILED {
        lines.push(format!(
            "  and {} more",
            grouped((failed.len() - MOST_FAILED) as u64)
        ));
    }
    lines
}

fn in_tree(process: &Process, depth: usize) -> String {
    let indent = "  ".repeat(depth + 1);
    let is_copy = process.image_unix_ns.is_none() && process.recording.is_none();
    let copy = if is_copy {
        ", a copy of its parent"
    } else {
        ""
    };
    let mark = if has_failed(process) {
        " <- failed"
    } else {
        ""
    };
    format!(
        "{indent}{} ({}{copy}): {}{mark}",
        short(&program(process)),
        process.pid,
        ended(process)
    )
}

fn next(set: &Whole) -> Vec<String> {
    let name = store::shell::word(&set.dir.to_string_lossy());
    let recorded = |process: &&&Process| process.recording.is_some();
    let failed = set.failed();
    let of_interest = failed
        .iter()
        .find(recorded)
        .copied()
        .or_else(|| set.first());
    let mut lines = vec!["Ask next".to_owned()];
    if let Some(recording) = of_interest.and_then(|process| process.recording.as_ref()) {
        let path = set.dir.join(recording);
        let path = store::shell::word(&path.to_string_lossy());
        lines.push(format!("  hindsight overview {path}"));
    }
    lines.push(match set.recordings.is_empty() {
        // Without a recording, SQL has nothing to ask.
        true => format!("  hindsight processes {name}"),
        false => format!("  hindsight sql {name} \"select run, count(*) as calls from calls group by run order by calls desc\""),
    });
    lines
}

/// Returns how a process ended.
fn ended(process: &Process) -> String {
    match (process.exit_code, process.exit_signal) {
        (Some(code), _) => format!("exit {code}"),
        (None, Some(signal)) => signal_name(signal),
        (None, None) if process.became_another => "executed another program".to_owned(),
        (None, None) if is_running(process) => "running".to_owned(),
        (None, None) if process.end_unix_ns.is_none() => "its end was not seen".to_owned(),
        (None, None) => "it is not known how it ended".to_owned(),
    }
}

/// Returns the beginning of a command line.
fn short(text: &str) -> String {
    let cut = text
        .char_indices()
        .map(|(at, _)| at)
        .find(|at| *at >= MOST_BYTES);
    match cut {
        Some(cut) => format!("{}...", &text[..cut]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_runs_has_no_end_yet() {
        let process = |pid| Process {
            pid,
            start_unix_ns: i64::MAX,
            ..Process::default()
        };
        assert_eq!(ended(&process(std::process::id() as i32)), "running");
        assert_eq!(ended(&process(i32::MAX)), "its end was not seen");
    }
}
