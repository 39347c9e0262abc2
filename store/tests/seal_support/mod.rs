//! What the sealing tests share: sealing a synthetic log and showing the rows as text.
#![allow(dead_code, reason = "each test file uses its part")]

use std::path::Path;

use store::Recording;
use store::columns::{ReadCall, ReadEvent, read_calls, read_events};
use store::control::Control;
use store::log::{FrameBody, LogReader, Step, Tail};
use store::recording::{Created, OnTaken, OpenRecording};
use store::seal::{Ending, SealOptions, Sealed, Sealer};
use store::synth::{self, Synth, SynthFrame};
use tempfile::TempDir;

/// Slots of synthetic thread 0 lie below this, on a stack of 1 MiB.
pub const TOP: u64 = 0x7f00_0010_0000;

/// Rows of a sealed recording.
#[derive(Debug, Default, PartialEq)]
pub struct Rows {
    pub calls: Vec<ReadCall>,
    pub events: Vec<ReadEvent>,
}

/// Returns a folder for a test; it is removed when the test succeeds.
pub fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

/// Returns options under which a part ends after `calls` calls.
pub fn parts_of(calls: u64) -> SealOptions {
    SealOptions {
        part_calls: calls,
        ..SealOptions::default()
    }
}

/// Makes a closed recording of these frames.
pub fn record(dir: &Path, frames: &[SynthFrame]) -> Recording {
    let Created { open, mut log } =
        OpenRecording::create(&dir.join("r"), OnTaken::Number, synth::manifest()).unwrap();
    for frame in frames {
        synth::append_frame(&mut log, frame).unwrap();
    }
    open.close(log.close().unwrap()).unwrap()
}

/// Seals a closed recording in steps of `step` events and returns its rows.
pub fn seal(recording: &Recording, options: SealOptions, step: u64) -> Rows {
    let mut sealer = Sealer::own(recording, options).unwrap();
    while !sealer.step(step).unwrap().caught_up {}
    rows(&sealer.finish(Ending::Close, |_| {}).unwrap())
}

/// Returns the rows of a sealed recording.
pub fn rows(sealed: &Sealed) -> Rows {
    let mut rows = Rows::default();
    for part in &sealed.parts {
        let calls = read_calls(&part.calls.path).unwrap();
        let events = read_events(&part.events.path).unwrap();
        assert_eq!(
            (calls.len() as u64, events.len() as u64),
            (part.part.calls, part.part.events)
        );
        rows.calls.extend(calls);
        rows.events.extend(events);
    }
    rows
}

/// Returns the definitions that a sealed recording keeps.
pub fn definitions(sealed: &Sealed, recording: &Recording) -> Vec<Control> {
    let mut found = Vec::new();
    for file in &sealed.definitions {
        let header = recording.file_header(store::format::FileKind::Definitions);
        let mut reader = store::log::frame_reader::FrameReader::open(&file.path, &header).unwrap();
        while reader.offset() < file.len {
            let frame = reader.next_frame().unwrap().unwrap();
            found.push(rmp_serde::from_slice(frame.payload).unwrap());
        }
        assert_eq!(reader.offset(), file.len);
    }
    found
}

/// Returns the definitions that the log of a recording holds.
pub fn definitions_in_log(recording: &Recording) -> Vec<Control> {
    let id = recording.manifest().recording_id;
    let mut reader = LogReader::open(&recording.log_dir(), id, Tail::MayBeTorn).unwrap();
    let mut found = Vec::new();
    while let Step::Frame(frame) = reader.next_frame().unwrap() {
        if let FrameBody::Control(control) = frame.body
            && control.is_definition()
        {
            found.push(*control);
        }
    }
    found
}

/// Seals what `build` describes and returns a line per event that is numbered, in order.
///
/// Functions show as `f0`, `f1`..., threads as `t1`..., and each call twice: where it begins and where it ends.
pub fn story(build: impl FnOnce(&mut Synth)) -> String {
    let dir = folder();
    let mut synth = Synth::new();
    build(&mut synth);
    let recording = record(dir.path(), &synth.frames());
    let rows = seal(&recording, SealOptions::default(), u64::MAX);
    let mut lines: Vec<(u64, String)> = Vec::new();
    for call in &rows.calls {
        lines.push((call.start_seq, begin_line(call)));
        lines.extend(call.end_seq.map(|seq| (seq, end_line(call))));
    }
    lines.extend(
        rows.events
            .iter()
            .map(|event| (event.seq, event_line(event))),
    );
    lines.sort();
    let seqs: Vec<u64> = lines.iter().map(|(seq, _)| *seq).collect();
    assert_eq!(
        seqs,
        (0..lines.len() as u64).collect::<Vec<_>>(),
        "seq is dense"
    );
    lines
        .into_iter()
        .map(|(seq, line)| format!("{seq} {line}\n"))
        .collect()
}

fn begin_line(call: &ReadCall) -> String {
    let parent = call
        .parent_seq
        .map_or(String::new(), |seq| format!(" in {seq}"));
    let tail = if call.tail { " tail" } else { "" };
    let open = if call.end_seq.is_none() {
        assert_eq!((call.dur_ns, call.rax, call.unwound), (-1, None, false));
        match call.child_ns {
            -1 => " end not recorded",
            _ => " unfinished",
        }
    } else {
        ""
    };
    let tid = call.tid.map_or("t?".into(), |tid| format!("t{tid}"));
    let id = call.function_id;
    format!(
        "{tid} f{id} enters at {} depth {}{parent}{tail}{open}",
        call.ts_ns, call.depth
    )
}

fn end_line(call: &ReadCall) -> String {
    let how = match (call.unwound, call.open_at_end, call.rax) {
        (false, false, Some(rax)) => format!("returns {rax}"),
        (true, false, None) => "unwound".into(),
        (false, true, None) => "open at the end".into(),
        other => panic!("{other:?}"),
    };
    let (seq, dur, child) = (call.start_seq, call.dur_ns, call.child_ns);
    format!("  {seq} {how} after {dur}, callees {child}")
}

fn event_line(event: &ReadEvent) -> String {
    let tid = event.tid.map_or(String::new(), |tid| format!("t{tid} "));
    let mut line = format!("{tid}{} at {}", event.kind, event.ts_ns);
    let fields = [
        event.text.clone(),
        event
            .bytes
            .as_ref()
            .map(|b| String::from_utf8_lossy(b).into_owned()),
        event.value.map(|value| format!("value {value}")),
        event.aux.clone(),
    ];
    for field in fields.into_iter().flatten() {
        line.push_str(&format!(" [{field}]"));
    }
    line
}
