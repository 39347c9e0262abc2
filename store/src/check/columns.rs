//! Checks the columns: the seal state, the definitions, and the files of each part against the state.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::statistics::Statistics;

use super::log::SealedLog;
use super::{Report, Severity};
use crate::columns::{EventKind, EventsFile, FileSum, SUM_BLOCK_LEN, SealedFile, Summing};
use crate::control::Control;
use crate::definitions;
use crate::error::{Error, Result};
use crate::format::FileKind;
use crate::recording::{Recording, RecordingState};
use crate::seal::{Part, SealState};

const READ_LEN: usize = 1 << 20;

/// Checks the columns; returns how much of the log they hold, or `None` if nothing is sealed.
pub(super) fn check(
    recording: &Recording,
    report: &mut Report,
    progress: &mut impl FnMut(u64),
) -> Result<Option<SealedLog>> {
    let path = recording.seal_state_path();
    if !path.exists() {
        check_unsealed(recording, report)?;
        return Ok(None);
    }
    let header = recording.file_header(FileKind::SealState);
    let state = match SealState::read(&path, header) {
        Ok(state) => state,
        Err(error) => {
            report.damage(&path, &error);
            return Ok(None);
        }
    };
    report.file(
        &path,
        path.metadata().map_err(Error::io("read", &path))?.len(),
    );
    check_definitions(recording, state.definitions_len, report);
    let dir = recording.columns_dir();
    for part in &state.parts {
        check_part(&dir, part, report, progress)?;
    }
    check_numbers(&path, &state, report);
    Ok(Some(SealedLog {
        position: state.position,
        complete: state.closed,
    }))
}

/// Checks a recording without a seal state. A closed one has sealed files only together with a seal state; the sealed
/// files of a recorder that died are sealed again from the log.
fn check_unsealed(recording: &Recording, report: &mut Report) -> Result<()> {
    let dir = recording.columns_dir();
    let mut entries = match std::fs::read_dir(&dir) {
        Ok(entries) => entries,
        Err(error) => {
            report.damage(&dir, &Error::io("read", &dir)(error));
            return Ok(());
        }
    };
    if recording.state() == RecordingState::Closed && entries.next().is_some() {
        let what = "there is no such file, but there are sealed columns".to_owned();
        report.find(Severity::Damage, &recording.seal_state_path(), None, what);
    }
    Ok(())
}

fn check_definitions(recording: &Recording, len: u64, report: &mut Report) {
    let path = recording.definitions_path();
    let found = path.metadata().map_or(0, |found| found.len());
    // A recorder that dies may have added some that it did not count yet.
    if found > len && recording.state() == RecordingState::Closed {
        let what = format!("it continues after the {len} bytes that were written");
        report.find(Severity::Damage, &path, Some(len), what);
    }
    if len == 0 {
        return;
    }
    let header = recording.file_header(FileKind::Definitions);
    let functions = &mut report.columns.functions;
    let read = definitions::read_file(&path, header, len, |control| {
        *functions += u64::from(matches!(control, Control::Function(_)));
    });
    match (read, path.metadata()) {
        (Err(error), _) => report.damage(&path, &error),
        (Ok(()), Ok(meta)) => report.file(&path, meta.len()),
        (Ok(()), Err(error)) => report.damage(&path, &Error::io("read", &path)(error)),
    }
}

fn check_part(
    dir: &Path,
    part: &Part,
    report: &mut Report,
    progress: &mut impl FnMut(u64),
) -> Result<()> {
    let totals = &mut report.columns;
    totals.parts += 1;
    totals.calls = totals.calls.saturating_add(part.calls);
    totals.unfinished = totals.unfinished.saturating_add(part.unfinished);
    totals.events = totals.events.saturating_add(part.events);
    totals.states = totals.states.saturating_add(part.states);
    totals.captures = totals.captures.saturating_add(part.captures);
    let mut files = vec![
        (
            Part::calls_path(dir, part.number),
            &part.calls_file,
            part.calls,
            "end_seq",
        ),
        (
            Part::events_path(dir, part.number),
            &part.events_file,
            part.events,
            "seq",
        ),
    ];
    let states = Part::states_path(dir, part.number);
    match &part.states_file {
        Some(sum) => files.push((states, sum, part.states, "seq")),
        None if part.states > 0 => {
            let what = format!("there is no such file, but {} states", part.states);
            report.find(Severity::Damage, &states, None, what);
        }
        None => {}
    }
    let captures = Part::captures_path(dir, part.number);
    match &part.captures_file {
        Some(sum) => files.push((captures, sum, part.captures, "seq")),
        None if part.captures > 0 => {
            let what = format!("there is no such file, but {} captures", part.captures);
            report.find(Severity::Damage, &captures, None, what);
        }
        None => {}
    }
    for (path, sum, rows, seq_column) in files {
        if !check_sum(&path, sum, report, progress)? {
            continue;
        }
        if path == Part::events_path(dir, part.number) {
            note_copies_of_memory(path.clone(), sum, report);
        }
        if let Err(what) = check_rows(&path, rows, seq_column, part) {
            report.find(Severity::Damage, &path, None, what);
        }
    }
    Ok(())
}

/// Notes the copies of memory that a file of events names. Other checks report what cannot be read of it.
fn note_copies_of_memory(path: PathBuf, sum: &FileSum, report: &mut Report) {
    let sum = sum.clone();
    let Ok(file) = EventsFile::open(&SealedFile { path, sum }) else {
        return;
    };
    for page in 0..file.pages().len() {
        let mut seqs = Vec::new();
        let heads = file.heads(page, |head| {
            if head.kind == EventKind::Snapshot.name() {
                seqs.push(head.seq);
            }
        });
        let events = heads.and_then(|()| file.events(page, &seqs));
        for id in events.iter().flatten().filter_map(|event| event.value) {
            report.copy_of_memory(id as u32);
        }
    }
}

/// Compares length and checksum of a file with the state; returns whether they agree.
fn check_sum(
    path: &Path,
    expected: &FileSum,
    report: &mut Report,
    progress: &mut impl FnMut(u64),
) -> Result<bool> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) => {
            report.damage(path, &Error::io("open", path)(error));
            return Ok(false);
        }
    };
    let mut summing = Summing::default();
    let mut buffer = vec![0; READ_LEN];
    loop {
        let count = file.read(&mut buffer).map_err(Error::io("read", path))?;
        if count == 0 {
            break;
        }
        summing.add(&buffer[..count]);
        progress(count as u64);
    }
    let found = summing.finish();
    report.file(path, found.len);
    if (found.len, found.crc32c) == (expected.len, expected.crc32c) {
        return Ok(true);
    }
    let (offset, what) = match found.len == expected.len {
        true => (
            first_difference(&found.blocks, &expected.blocks),
            "the file's checksum differs".to_string(),
        ),
        false => (
            Some(found.len.min(expected.len)),
            format!("it has {} bytes instead of {}", found.len, expected.len),
        ),
    };
    report.find(Severity::Damage, path, offset, what);
    Ok(false)
}

/// Returns the start of the first block with a wrong checksum, if block checksums were noted.
fn first_difference(found: &[u8], expected: &[u8]) -> Option<u64> {
    let (found, expected) = (found.as_chunks::<4>().0, expected.as_chunks::<4>().0);
    let block = found.iter().zip(expected).position(|(a, b)| a != b)?;
    Some((block * SUM_BLOCK_LEN) as u64)
}

/// Compares the number of rows and the range of seqs with the state.
fn check_rows(
    path: &Path,
    rows: u64,
    seq_column: &str,
    part: &Part,
) -> std::result::Result<(), String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let reader = SerializedFileReader::new(file).map_err(|error| error.to_string())?;
    let metadata = reader.metadata();
    let found = metadata.file_metadata().num_rows();
    if found != rows as i64 {
        return Err(format!("it has {found} rows instead of {rows}"));
    }
    let seqs = part.first_seq as i64..part.end_seq as i64;
    let columns = metadata
        .row_groups()
        .iter()
        .flat_map(|group| group.columns());
    for column in columns.filter(|column| column.column_path().string() == seq_column) {
        let Some(Statistics::Int64(range)) = column.statistics() else {
            continue;
        };
        let outside = [range.min_opt(), range.max_opt()]
            .into_iter()
            .flatten()
            .find(|seq| !seqs.contains(seq));
        if let Some(seq) = outside {
            return Err(format!("seq {seq} is outside the part's {seqs:?}"));
        }
    }
    Ok(())
}

/// Checks that the parts are consecutive and that each event has its place.
fn check_numbers(path: &Path, state: &SealState, report: &mut Report) {
    report.columns.next_seq = state.next_seq;
    let mut odd = |what: String| report.find(Severity::Damage, path, None, what);
    let mut next_seq = 0;
    for (index, part) in state.parts.iter().enumerate() {
        if part.number as usize != index {
            odd(format!("part {} comes as number {index}", part.number));
        }
        if part.first_seq != next_seq || part.end_seq < part.first_seq {
            odd(format!("part {index} does not continue at seq {next_seq}"));
        }
        next_seq = part.end_seq;
    }
    if next_seq > state.next_seq {
        odd(format!(
            "{next_seq} events are in parts, {} have a number",
            state.next_seq
        ));
    }
    let told = state.parts.iter().fold(0, |told: u64, part| {
        let halves = part.calls.saturating_mul(2).saturating_sub(part.unfinished);
        told.saturating_add(halves).saturating_add(part.events)
    });
    if state.closed && told != state.next_seq {
        odd(format!(
            "the parts hold {told} events of {}",
            state.next_seq
        ));
    }
}
