//! The places of lines. gdb and Hindsight must have the same places for a line, or gdb must lack one for a known
//! reason. What readelf reads of the line table, and nm of the symbols, decides which. Where they differ, gdb uses
//! our places.
//!
//! The reasons, both in gdb 13:
//! - The cold part of a function lies before the function: gdb takes code before its entry for the prologue, and moves
//!   breakpoints from there to the entry.
//! - Rows of another file follow at the same address: gdb keeps only the last file's rows of an address, and moves a
//!   line that has none left to the next line.

use std::{collections::BTreeSet, fmt::Write, ops::Range, path::Path, process::Command};

use crate::{
    bench::Subject,
    stops::{Stop, place},
};

/// Load address of position-independent programs.
const BASE: u64 = 0x5555_5555_4000;

/// A row of a line table, in the table's order.
struct Row {
    file: String,
    line: u32,
    address: u64,
    is_statement: bool,
}

/// Returns a line of a plan: FILE:LINE and our places.
pub fn planned(stop: &Stop) -> String {
    let mut text = format!("{}:{}\t", stop.file, stop.line);
    for (at, address) in stop.addresses.iter().enumerate() {
        let comma = if at == 0 { "" } else { "," };
        write!(text, "{comma}{address:x}").expect("a String takes all");
    }
    text
}

/// Returns which of these places, `ADDRESS FUNCTION FILE:LINE`, are neither the start of a statement of the line
/// according to readelf, nor that of an inlined call according to addr2line.
pub fn without_statement<'a>(subject: &Subject, places: &'a [String]) -> BTreeSet<&'a str> {
    if places.is_empty() {
        return BTreeSet::new();
    }
    let rows = rows(&subject.path);
    let begins = |text: &str| {
        let (address, rest) = text.split_once(' ')?;
        let line = rest.rsplit(' ').next()?;
        let address = u64::from_str_radix(address, 16).ok()?.checked_sub(BASE)?;
        let is_here = |row: &&Row| row.address == address && row.is_statement;
        let mut here = rows.iter().filter(is_here);
        let is_its = here.any(|row| place(&row.file, row.line) == line);
        (is_its || inlined_call_begins(&subject.path, address)).then_some(())
    };
    let places: BTreeSet<&str> = places.iter().map(String::as_str).collect();
    let is_astray = |place: &&str| begins(place).is_none();
    places.into_iter().filter(is_astray).collect()
}

/// Returns whether the code at an address belongs to an inlined call that the code before it does not belong to.
fn inlined_call_begins(path: &Path, address: u64) -> bool {
    let [before, behind] = [address - 1, address].map(|address| {
        let address = format!("{address:#x}");
        let text = printed("addr2line", &["-f", "-i", &address, "-e"], path);
        let functions = text.lines().step_by(2).map(str::to_owned);
        let mut functions: Vec<String> = functions.collect();
        functions.reverse();
        functions
    });
    behind.len() > 1 && !before.starts_with(&behind)
}

/// Returns the unexplained differences between gdb's and Hindsight's places, as printed by gdb's script.
pub fn wrong(subject: &Subject, output: &str) -> Vec<String> {
    let said: BTreeSet<&str> = output
        .lines()
        .filter_map(|line| line.strip_prefix("PLACES\t"))
        .collect();
    if said.is_empty() {
        return Vec::new();
    }
    let (rows, cold) = (rows(&subject.path), cold_parts(&subject.path));
    let mut found = Vec::new();
    for said in said {
        let fields: Vec<&str> = said.split('\t').collect();
        let [line, ours, theirs] = fields[..] else {
            panic!("three fields: {said}");
        };
        found.extend(judged(
            line,
            &addresses(ours),
            &addresses(theirs),
            &rows,
            &cold,
        ));
    }
    found
}

fn judged(
    line: &str,
    ours: &BTreeSet<u64>,
    theirs: &BTreeSet<u64>,
    rows: &[Row],
    cold: &[Range<u64>],
) -> Vec<String> {
    let is_its = |row: &&Row| place(&row.file, row.line) == line && row.is_statement;
    let is_begun = |address: u64| {
        rows.iter()
            .any(|row| is_its(&row) && row.address == address)
    };
    let mut found = Vec::new();
    for at in ours {
        if !is_begun(*at) {
            found.push(format!("{line}: no statement of it begins at {at:#x}"));
        } else if !theirs.contains(at)
            && !cold.iter().any(|part| part.contains(at))
            && !is_hidden(line, *at, rows)
        {
            found.push(format!("{line}: gdb has no place at {at:#x}"));
        }
    }
    let missing = theirs.difference(ours).filter(|at| is_begun(**at));
    found.extend(missing.map(|at| format!("{line}: only gdb has a place at {at:#x}")));
    found
}

/// Returns whether rows of another file follow those of a line at the same address.
fn is_hidden(line: &str, address: u64, rows: &[Row]) -> bool {
    let its = |row: &Row| place(&row.file, row.line) == line && row.address == address;
    let Some(last) = rows.iter().rposition(its) else {
        return false;
    };
    let behind = rows[last + 1..].iter();
    let mut behind = behind.take_while(|row| row.address == address);
    behind.any(|row| row.file != rows[last].file)
}

fn addresses(text: &str) -> BTreeSet<u64> {
    let address = |text: &str| u64::from_str_radix(text, 16).expect("an address");
    text.split(',').map(|text| address(text) - BASE).collect()
}

/// Returns all rows that readelf reads.
fn rows(path: &Path) -> Vec<Row> {
    let text = printed("readelf", &["-W", "--debug-dump=decodedline"], path);
    let row = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [file, line, address, rest @ ..] = &words[..] else {
            return None;
        };
        Some(Row {
            file: (*file).to_owned(),
            line: line.parse().ok()?,
            address: u64::from_str_radix(address.strip_prefix("0x")?, 16).ok()?,
            is_statement: rest.last() == Some(&"x"),
        })
    };
    let rows: Vec<Row> = text.lines().filter_map(row).collect();
    assert!(!rows.is_empty(), "readelf reads a line table");
    rows
}

/// Returns the parts of functions that gcc has moved before the function.
fn cold_parts(path: &Path) -> Vec<Range<u64>> {
    let text = printed("nm", &["-S"], path);
    let symbol = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [start, size, _, name] = words[..] else {
            return None;
        };
        let number = |text: &str| u64::from_str_radix(text, 16).ok();
        let (start, size) = (number(start)?, number(size)?);
        Some((name.to_owned(), start..start + size))
    };
    let symbols: Vec<(String, Range<u64>)> = text.lines().filter_map(symbol).collect();
    let is_before = |name: &str, part: &Range<u64>| {
        let of = symbols.iter().filter(|(other, _)| other == name);
        of.clone().next().is_some() && of.clone().all(|(_, code)| part.end <= code.start)
    };
    let part = |(name, part): &(String, Range<u64>)| {
        let function = name.strip_suffix(".cold")?;
        is_before(function, part).then(|| part.clone())
    };
    symbols.iter().filter_map(part).collect()
}

fn printed(tool: &str, args: &[&str], path: &Path) -> String {
    let done = Command::new(tool).args(args).arg(path).output();
    let done = done.unwrap_or_else(|e| panic!("{tool} can be started: {e}"));
    assert!(done.status.success(), "{tool} {}", path.display());
    String::from_utf8_lossy(&done.stdout).into_owned()
}

#[test]
fn only_known_reasons_excuse_gdb() {
    let row = |file: &str, line, address, is_statement| Row {
        file: file.to_owned(),
        line,
        address,
        is_statement,
    };
    let rows = [
        row("a.cc", 7, 0x10, true),
        row("a.cc", 8, 0x20, true),
        row("b.h", 1, 0x20, false),
        row("a.cc", 8, 0x30, false),
        row("a.cc", 7, 0x40, true),
    ];
    let cold = [0x40..0x48];
    let set = |all: &[u64]| all.iter().copied().collect::<BTreeSet<u64>>();
    let count = |line: &str, ours: &[u64], theirs: &[u64]| {
        judged(line, &set(ours), &set(theirs), &rows, &cold).len()
    };
    assert_eq!(count("a.cc:8", &[0x20], &[0x10]), 0, "hidden");
    assert_eq!(count("a.cc:7", &[0x10, 0x40], &[0x10]), 0, "cold");
    assert_eq!(count("a.cc:7", &[0x10], &[0x10, 0x40]), 1, "we lack one");
    assert_eq!(count("a.cc:7", &[0x10, 0x40], &[0x40]), 1, "gdb lacks one");
    assert_eq!(count("a.cc:8", &[0x20, 0x30], &[0x20]), 1, "no statement");
}
