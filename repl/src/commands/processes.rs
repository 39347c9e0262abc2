//! `hindsight processes`: the processes of a set made by `record --children`.

mod running;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use server::inspect::signal_name;
use server::quantity::duration;
use store::recording;
use store::set::{self, Process};

pub use self::running::is_running;
use crate::commands::children;
use crate::error::Error;
use crate::exit;
use crate::json::answer;
use crate::output::{self, to_stdout};
use crate::render::{Align, Column, Layout, Table, Terminal};

const EXAMPLES: &str = "\
Examples:
  hindsight record --children -- make -j2
  hindsight processes make
  hindsight processes make --json | jq '.result[] | select(.exit_code != 0)'
  hindsight overview make.children/cc1        one of the recordings in it";

/// List the processes that record --children followed
///
/// Shows one row for each program that a process executed, below its parent. A process that executed none is a copy of
/// its parent, made by fork.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The folder that record --children made, with or without .children
    #[arg(value_name = "SET")]
    set: PathBuf,
    /// Print the processes as JSON, in the order in which they began
    #[arg(long)]
    json: bool,
    /// Show long command lines in full
    #[arg(long)]
    full: bool,
}

/// Bytes of a command line that the table shows.
const MOST_BYTES: usize = 1000;

/// Runs the command and returns the exit code.
///
/// # Errors
/// When there is no such set or it cannot be read.
pub fn run(args: &Args, terminal: &Terminal) -> Result<u8, Error> {
    let Some(dir) = set::resolve(&args.set) else {
        return Err(no_set(&args.set));
    };
    let processes = set::processes(&dir).map_err(|source| Error::Store { source })?;
    let mut out = output::stdout();
    let written = if args.json {
        writeln!(out, "{:#}", answer(as_json(&processes)))
    } else {
        let layout = match terminal.stdout {
            true => Layout::Fit(Terminal::size().0),
            false => Layout::Whole,
        };
        table(&processes, args.full).flush(&mut out, layout, terminal.stdout_colour)
    };
    written.and_then(|()| out.flush()).map_err(to_stdout)?;
    if let Some(why) = set::why_incomplete(&dir) {
        children::warn(&why);
    }
    Ok(exit::DONE)
}

/// Says what to do where there is no set, or where there is one recording of that name.
fn no_set(named: &Path) -> Error {
    let shown = named.display();
    match recording::resolve(named) {
        Ok(_) => {
            let word = store::shell::word(&named.to_string_lossy());
            Error::usage(
                format!("{shown} is a single recording, not a set"),
                Some(format!(
                    "the processes that it made: hindsight sql {word} 'select * from processes'; record --children follows them"
                )),
            )
        }
        Err(_) => Error::usage(
            format!("there is no set of recordings {shown}"),
            Some("hindsight record --children -- PROGRAM makes one".to_owned()),
        ),
    }
}

/// Returns the processes as an array of objects.
pub fn as_json(processes: &[Process]) -> Value {
    let rows = processes.iter().map(|process| {
        json!({
            "pid": process.pid,
            "parent": process.parent,
            "argv": process.argv,
            "start_unix_ns": process.start_unix_ns,
            "image_unix_ns": process.image_unix_ns,
            "end_unix_ns": process.end_unix_ns,
            "became_another": process.became_another,
            "exit_code": process.exit_code,
            "exit_signal": process.exit_signal.map(signal_name),
            "recording": process.recording,
            "pruned": process.is_pruned,
            "notes": process.notes,
        })
    });
    Value::Array(rows.collect())
}

/// `is_full`: with long command lines in full.
fn table(processes: &[Process], is_full: bool) -> Table {
    let columns = [
        ("pid", Align::Right),
        ("parent", Align::Right),
        ("program", Align::Left),
        ("start", Align::Right),
        ("lasted", Align::Right),
        ("exit", Align::Left),
        ("recording", Align::Left),
        ("notes", Align::Left),
    ];
    let mut table = Table::new(
        columns
            .map(|(name, align)| Column {
                name: name.to_owned(),
                align,
            })
            .into(),
    );
    let first = processes.iter().map(|row| row.start_unix_ns).min();
    for (depth, row) in as_tree(processes) {
        let since = |end: i64, start: i64| duration(u64::try_from(end - start).unwrap_or(0));
        table.push(vec![
            Some(row.pid.to_string()),
            row.parent.map(|parent| parent.to_string()),
            Some(format!(
                "{}{}",
                "  ".repeat(depth),
                shown(by_name(row), is_full)
            )),
            first.map(|first| since(row.start_unix_ns, first)),
            row.end_unix_ns.map(|end| since(end, row.start_unix_ns)),
            Some(exit_of(row)),
            row.recording.clone(),
            Some(notes(row)),
        ]);
    }
    table
}

/// Returns the command line of a process.
pub fn program(row: &Process) -> String {
    row.argv.join(" ")
}

/// The same without the folder of the program, which often fills the column.
fn by_name(row: &Process) -> String {
    let Some((program, arguments)) = row.argv.split_first() else {
        return String::new();
    };
    let name = Path::new(program).file_name().map(OsStr::to_string_lossy);
    let name = name.unwrap_or(program.into());
    let arguments = arguments.iter().map(String::as_str);
    let words: Vec<&str> = std::iter::once(&*name).chain(arguments).collect();
    words.join(" ")
}

/// Bounds a command line: one may have megabytes.
fn shown(mut line: String, is_full: bool) -> String {
    if line.len() > MOST_BYTES && !is_full {
        line.truncate(line.floor_char_boundary(MOST_BYTES));
        line += "...";
    }
    line
}

/// Returns how a process ended, as the tables show it.
pub fn exit_of(row: &Process) -> String {
    match (row.exit_code, row.exit_signal) {
        (Some(code), _) => code.to_string(),
        (None, Some(signal)) => signal_name(signal),
        (None, None) if row.became_another => "exec".to_owned(),
        (None, None) if is_running(row) => "running".to_owned(),
        (None, None) if row.end_unix_ns.is_none() => "not seen".to_owned(),
        (None, None) => "unknown".to_owned(),
    }
}

fn notes(row: &Process) -> String {
    let copy = row.image_unix_ns.is_none() && row.recording.is_none() && !row.is_pruned;
    let copy = copy.then(|| "not recorded: a copy of its parent, made by fork".to_owned());
    let missing = row.recording.is_none() && row.image_unix_ns.is_some() && !row.is_pruned;
    let notes = row.notes.iter().enumerate().map(|(at, note)| match at {
        0 if missing => format!("not recorded: {note}"),
        _ => note.clone(),
    });
    let pruned = row.is_pruned.then(|| "recording removed".to_owned());
    copy.into_iter()
        .chain(pruned)
        .chain(notes)
        .collect::<Vec<_>>()
        .join("; ")
}

/// Orders the processes so that each stands below its parent, and tells how deep.
pub fn as_tree(processes: &[Process]) -> Vec<(usize, &Process)> {
    // The parent of a row is the last row of that number that began before it.
    let mut newest: BTreeMap<i32, usize> = BTreeMap::new();
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); processes.len()];
    let mut tops = Vec::new();
    for (index, row) in processes.iter().enumerate() {
        let before = newest.get(&row.pid).copied();
        let follows = before.filter(|before| processes[*before].became_another);
        let parent = row.parent.and_then(|parent| newest.get(&parent).copied());
        match follows.or(parent) {
            Some(parent) => children[parent].push(index),
            None => tops.push(index),
        }
        newest.insert(row.pid, index);
    }
    let mut rows = Vec::new();
    let mut open: Vec<(usize, usize)> = tops.into_iter().rev().map(|top| (0, top)).collect();
    while let Some((depth, index)) = open.pop() {
        rows.push((depth, &processes[index]));
        open.extend(
            children[index]
                .iter()
                .rev()
                .map(|child| (depth + 1, *child)),
        );
    }
    rows
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn process(pid: i32, parent: i32, argv: &str) -> Process {
        Process {
            pid,
            parent: Some(parent),
            argv: argv.split(' ').map(str::to_owned).collect(),
            start_unix_ns: i64::from(pid) * 1_000_000,
            image_unix_ns: Some(i64::from(pid) * 1_000_000),
            end_unix_ns: Some(90_000_000),
            exit_code: Some(0),
            recording: Some(format!("{pid}.hindsight")),
            ..Process::default()
        }
    }

    #[test]
    fn processes_stand_below_their_parents() {
        let shell = Process {
            became_another: true,
            exit_code: None,
            ..process(10, 1, "sh cc a.c")
        };
        let copy = Process {
            image_unix_ns: None,
            recording: None,
            exit_code: None,
            exit_signal: Some(9),
            ..process(12, 10, "cc a.c")
        };
        let old = Process {
            recording: None,
            end_unix_ns: None,
            exit_code: None,
            notes: vec!["it is odd".to_owned()],
            ..process(13, 11, "old")
        };
        let rows = [
            shell,
            process(10, 1, "cc a.c"),
            process(11, 10, "/usr/lib/gcc/cc1 a.c"),
            copy,
            old,
        ];
        let mut text = Vec::new();
        table(&rows, false)
            .flush(&mut text, Layout::Whole, crate::render::Colour::Off)
            .unwrap();
        expect![[r#"
             pid | parent | program     |  start |  lasted | exit     | recording    | notes
            -----+--------+-------------+--------+---------+----------+--------------+--------------------------------------------------
              10 |      1 | sh cc a.c   |   0 ns | 80.0 ms | exec     | 10.hindsight | 
              10 |      1 |   cc a.c    |   0 ns | 80.0 ms | 0        | 10.hindsight | 
              11 |     10 |     cc1 a.c | 1.0 ms | 79.0 ms | 0        | 11.hindsight | 
              13 |     11 |       old   | 3.0 ms |    NULL | not seen | NULL         | not recorded: it is odd
              12 |     10 |     cc a.c  | 2.0 ms | 78.0 ms | SIGKILL  | NULL         | not recorded: a copy of its parent, made by fork
        "#]].assert_eq(&String::from_utf8(text).unwrap());
    }

    #[test]
    fn a_long_command_line_is_bounded_unless_all_of_it_is_wanted() {
        let rows = [process(10, 1, &"é".repeat(5000))];
        for (is_full, expected) in [(false, 500), (true, 5000)] {
            let mut text = Vec::new();
            table(&rows, is_full)
                .flush(&mut text, Layout::Whole, crate::render::Colour::Off)
                .unwrap();
            let text = String::from_utf8(text).unwrap();
            assert_eq!(text.matches('é').count(), expected);
            assert_eq!(text.contains("é..."), !is_full);
        }
    }
}
