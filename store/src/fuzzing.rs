//! Feeds arbitrary bytes to everything that reads a recording; no bytes may make it panic.
//!
//! The fuzz target of `fuzz/` and a test on the stable toolchain share this entry. The first byte chooses what the
//! rest is: a block, a whole file, or payloads that get valid checksums, so that what lies behind those is reached.

use std::fs;
use std::path::Path;

use crate::check;
use crate::control::Control;
use crate::error::Result;
use crate::file_header::FileHeader;
use crate::format::{
    COLUMNS_DIR, DEFINITIONS_FILE, FileKind, FrameKind, INCOMPLETE_FILE, LOG_DIR, MANIFEST_FILE,
    SEAL_STATE_FILE,
};
use crate::log::frame::END_CLOSED;
use crate::log::frame_reader::FrameReader;
use crate::log::frame_writer::FrameWriter;
use crate::log::{LogReader, Step, Tail, segment_path};
use crate::recording::Recording;
use crate::seal::{Ending, SealOptions, Sealer, seal_tail};
use crate::storage::Disk;
use crate::synth::{RECORDING_ID, Synth, SynthFrame, debugged, manifest};
use crate::wire::{GapReason, Records};

/// How many ways there are to take the bytes: what the first byte is divided by.
pub const WAYS: u8 = 8;

/// Reads `data` as something of a recording, in the folder `dir`, which is emptied first.
///
/// # Errors
/// When the folder cannot be written. What is wrong with `data` is no error.
pub fn entry(data: &[u8], dir: &Path) -> Result<()> {
    let Some((way, data)) = data.split_first() else {
        return Ok(());
    };
    let io = |error| crate::Error::io("write", dir)(error);
    let run = dir.join("run.hindsight");
    let _ = fs::remove_dir_all(&run);
    for part in [LOG_DIR, COLUMNS_DIR] {
        fs::create_dir_all(run.join(part)).map_err(io)?;
    }
    good_manifest(&run.join(MANIFEST_FILE))?;
    let put = |name: &str, bytes: &[u8]| fs::write(run.join(name), bytes).map_err(io);
    let columns = |name: &str| format!("{COLUMNS_DIR}/{name}");
    match way % WAYS {
        0 => {
            let _ = Records::new(data).map(|d| format!("{d:?}")).count();
            return Ok(());
        }
        1 => put(MANIFEST_FILE, data)?,
        2 => payloads(&run.join(MANIFEST_FILE), FileKind::Manifest, data)?,
        3 => put(&format!("{LOG_DIR}/000000.seg"), data)?,
        4 => payloads(&run.join(LOG_DIR).join("000000.seg"), FileKind::Log, data)?,
        5 => {
            payloads(&run.join(LOG_DIR).join("000000.seg"), FileKind::Log, data)?;
            put(INCOMPLETE_FILE, b"")?;
        }
        6 => put(&columns(SEAL_STATE_FILE), data)?,
        _ => {
            let path = run.join(columns(DEFINITIONS_FILE));
            payloads(&path, FileKind::Definitions, data)?;
            payloads(
                &run.join(columns(SEAL_STATE_FILE)),
                FileKind::SealState,
                data,
            )?;
        }
    }
    read_everything(&run, &dir.join("tail"));
    Ok(())
}

/// Writes a manifest as [`crate::document::write`] does, but does not wait for the disk.
fn good_manifest(path: &Path) -> Result<()> {
    let what = "a manifest";
    let bytes = rmp_serde::to_vec_named(&manifest());
    let bytes = bytes.map_err(|source| crate::Error::Encode { what, source })?;
    let mut writer = FrameWriter::create(&Disk, path, header(FileKind::Manifest))?;
    writer.append(FrameKind::Document, 0, [&bytes, &[]])?;
    Ok(())
}

/// Reads the recording in every way there is.
fn read_everything(run: &Path, tail: &Path) {
    let _ = check::check(run, |_| {});
    let Ok(recording) = Recording::open(run) else {
        return;
    };
    for expected in [Tail::MayBeTorn, Tail::MustBeClosed] {
        let _ = LogReader::open(&recording.log_dir(), RECORDING_ID, expected).map(drain);
    }
    let _ = crate::definitions::read_all(&recording, |_| {});
    let _ = fs::remove_dir_all(tail);
    if fs::create_dir(tail).is_ok() {
        let _ = seal_tail(&recording, tail, SealOptions::default(), |_| {});
    }
}

fn drain(mut reader: LogReader) {
    while let Ok(Step::Frame(_)) = reader.next_frame() {}
}

/// Writes a file of frames cut out of `data`: one byte for the kind, one for the argument, two for the length of the
/// payload, then its bytes. A file that holds one value takes the first only.
fn payloads(path: &Path, kind: FileKind, mut data: &[u8]) -> Result<()> {
    let _ = fs::remove_file(path);
    let mut writer = FrameWriter::create(&Disk, path, header(kind))?;
    let one_value = matches!(kind, FileKind::Manifest | FileKind::SealState);
    while let [code, arg, low, high, rest @ ..] = data {
        let len = usize::from(u16::from_le_bytes([*low, *high]));
        let (payload, rest) = rest.split_at(rest.len().min(len));
        data = rest;
        let code = code % FrameKind::PackedBlock as u8 + 1;
        let frame_kind = match FrameKind::from_code(code) {
            Some(frame_kind) if !one_value => frame_kind,
            _ => FrameKind::Document,
        };
        writer.append(frame_kind, u64::from(*arg), [payload, &[]])?;
        if one_value {
            break;
        }
    }
    if kind == FileKind::Log {
        writer.append(FrameKind::SegmentEnd, END_CLOSED, [&[], &[]])?;
    }
    Ok(())
}

/// Returns one input to begin with for each way, taken from a recording that is made in the folder `dir`.
///
/// # Errors
/// When the recording cannot be made.
pub fn seeds(dir: &Path) -> Result<Vec<Vec<u8>>> {
    let recording = synth().record(&dir.join("seed"))?;
    let options = SealOptions {
        keep_log: true,
        ..SealOptions::default()
    };
    Sealer::own(&recording, options)?.finish(Ending::Close, |_| {})?;
    let mut blocks = Vec::new();
    let frames = [synth().frames(), debugged().frames()].concat();
    for frame in frames {
        if let SynthFrame::Block { bytes, .. } = frame {
            blocks.extend(bytes);
        }
    }
    let manifest = recording.dir().join(MANIFEST_FILE);
    let segment = segment_path(&recording.log_dir(), 0);
    let live = debugged().record(&dir.join("debugged"))?;
    let live_segment = segment_path(&live.log_dir(), 0);
    let state = recording.seal_state_path();
    let read = |path: &Path| fs::read(path).map_err(crate::Error::io("read", path));
    let inputs = [
        blocks,
        read(&manifest)?,
        frames_of(&manifest)?,
        read(&segment)?,
        frames_of(&segment)?,
        frames_of(&live_segment)?,
        read(&state)?,
        [
            frames_of(&state)?,
            frames_of(&recording.definitions_path())?,
        ]
        .concat(),
    ];
    let numbered = inputs.into_iter().enumerate();
    Ok(numbered
        .map(|(way, input)| [vec![way as u8], input].concat())
        .collect())
}

fn synth() -> Synth {
    let mut synth = Synth::new();
    let f = synth.function("f");
    synth
        .thread(1)
        .enter(f, 0x7f00)
        .output(1, b"hi")
        .leave(0x7f00)
        .watermark();
    synth
        .thread(2)
        .enter(f, 0x7f00)
        .enter_tail(f, 0x7f00)
        .enter_noleave(f, 0x7e00);
    synth
        .gap(1, GapReason::Torn)
        .fork(5)
        .exec("/bin/true")
        .thread_exit();
    synth.control(Control::Detached { ticks: 900 });
    synth
}

/// Returns the frames of a file as [`payloads`] takes them.
fn frames_of(path: &Path) -> Result<Vec<u8>> {
    let (mut reader, _) = FrameReader::open_any(path)?;
    let mut bytes = Vec::new();
    while let Ok(frame) = reader.next_frame()? {
        bytes.push(frame.header.kind as u8 - 1);
        bytes.push(frame.header.arg as u8);
        bytes.extend_from_slice(&(frame.payload.len() as u16).to_le_bytes());
        bytes.extend_from_slice(frame.payload);
    }
    Ok(bytes)
}

fn header(kind: FileKind) -> FileHeader {
    FileHeader {
        kind,
        recording_id: RECORDING_ID,
        number: 0,
    }
}
