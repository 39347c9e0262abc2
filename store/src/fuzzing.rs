//! Feeds arbitrary bytes to everything that reads a recording; no bytes may make it panic.
//!
//! The fuzz target of `fuzz/` and a test on the stable toolchain share this entry. The first byte chooses the meaning
//! of the rest: a block, a whole file, or payloads that get valid checksums, so that the code after the checksum test
//! runs. Sealed files are read as they are: readers open them without their checksum, which only `check` compares.

use std::fs;
use std::path::Path;

use crate::check;
use crate::columns::{
    CallsFile, CapturesFile, CheckedFile, EventsFile, SealedFile, StatesFile, Summing,
};
use crate::control::Control;
use crate::error::Result;
use crate::file_header::FileHeader;
use crate::format::{
    COLUMNS_DIR, DEFINITIONS_FILE, FileKind, FrameKind, INCOMPLETE_FILE, LABELS_FILE, LOG_DIR,
    MANIFEST_FILE, MEMORY_DIR, MODULES_DIR, MODULES_INDEX_FILE, NOTES_FILE, SEAL_STATE_FILE,
};
use crate::log::frame::END_CLOSED;
use crate::log::frame_reader::FrameReader;
use crate::log::frame_writer::FrameWriter;
use crate::log::{LogReader, Step, Tail, segment_path};
use crate::memory::{Memory, PAGE_LEN, Region, SnapshotWriter};
use crate::packed::{PackedModule, Packer};
use crate::reader::Reader;
use crate::recording::Recording;
use crate::seal::{Ending, SealOptions, Sealer};
use crate::storage::Disk;
use crate::synth::{RECORDING_ID, Synth, SynthFrame, debugged, manifest};
use crate::wire::{CAPTURE_REGISTER_WORDS, GapReason, Records, Section, push_capture};

/// Number of ways to use the bytes: the first byte modulo this chooses one.
pub const WAYS: u8 = 17;

/// The ways from this one on are sealed files. Fuzzers that count every panic as a fault omit them: the Parquet library
/// panics at damaged pages, and readers catch that.
pub const FIRST_SEALED_WAY: u8 = 13;

/// Most pages and regions of a file that are examined: damaged files name many.
const MOST_LOOKED_AT: usize = 100;

const SNAPSHOT: &str = "memory/000000.mem";
const SEALED: &str = "columns/sealed.parquet";

/// Reads `data` as some part of a recording, in the folder `dir`, which is emptied first.
///
/// # Errors
/// When the folder cannot be written. A fault in `data` is not an error.
pub fn entry(data: &[u8], dir: &Path) -> Result<()> {
    let Some((way, data)) = data.split_first() else {
        return Ok(());
    };
    let io = |error| crate::Error::io("write", dir)(error);
    let run = dir.join("run.hindsight");
    let _ = fs::remove_dir_all(&run);
    for part in [LOG_DIR, COLUMNS_DIR, MEMORY_DIR, MODULES_DIR] {
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
        8 => put(SNAPSHOT, data)?,
        9 => snapshot(&run.join(SNAPSHOT), data)?,
        10 => put(NOTES_FILE, data)?,
        11 => {
            payloads(&run.join(NOTES_FILE), FileKind::Notes, data)?;
            payloads(&run.join(LABELS_FILE), FileKind::Labels, data)?;
        }
        12 => {
            let index = run.join(MODULES_DIR).join(MODULES_INDEX_FILE);
            payloads(&index, FileKind::Modules, data)?;
        }
        FIRST_SEALED_WAY..WAYS => {
            put(SEALED, data)?;
            read_sealed(&run.join(SEALED), way % WAYS);
            return Ok(());
        }
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
    read_everything(&run, dir);
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

/// Reads the recording in every possible way.
fn read_everything(run: &Path, temp_dir: &Path) {
    let _ = check::check(run, |_| {});
    let Ok(recording) = Recording::open(run) else {
        return;
    };
    for expected in [Tail::Grows, Tail::MayBeTorn, Tail::MustBeClosed] {
        let _ = LogReader::open(&recording.log_dir(), RECORDING_ID, expected).map(drain);
    }
    let _ = crate::notes::read(&recording);
    let _ = crate::Summary::of(recording.clone());
    let _ = crate::packed::check(&recording, |_, _, _| {});
    if let Ok(mut memory) = Memory::open(&recording) {
        let _ = memory.check();
        let regions = memory.regions(0).to_vec();
        for region in regions.iter().take(MOST_LOOKED_AT) {
            let end = region.addr.saturating_add(region.len);
            for addr in [region.addr, end.saturating_sub(1), end] {
                let _ = memory.page(0, addr);
            }
        }
    }
    if let Ok(reader) = Reader::open(run, temp_dir) {
        let _ = reader.definitions(|_| {});
    }
}

/// Reads a sealed file as replay does: every page, and some rows by their number.
fn read_sealed(path: &Path, way: u8) {
    // Give it valid checksums, so that the code after the checksum test runs.
    let mut summing = Summing::default();
    summing.add(&fs::read(path).unwrap_or_default());
    let sealed = SealedFile {
        path: path.to_path_buf(),
        sum: summing.finish(),
    };
    match way {
        13 => {
            let Ok(file) = CheckedFile::open(&sealed).and_then(CallsFile::open) else {
                return;
            };
            for page in 0..file.pages().len().min(MOST_LOOKED_AT) {
                if let Ok(spine) = file.spine(page) {
                    let _ = spine.first_end_from(7);
                    for row in 0..spine.rows() {
                        let _ = (spine.end_seq(row), spine.parent_seq(row), spine.tid(row));
                    }
                    if let Ok(page) = file.page(page) {
                        for row in 0..spine.rows() {
                            let _ = page.call(row);
                        }
                    }
                }
            }
            let _ = file.ends();
        }
        14 => {
            let Ok(file) = EventsFile::open(&sealed) else {
                return;
            };
            for page in 0..file.pages().len().min(MOST_LOOKED_AT) {
                let mut found = Vec::new();
                let _ = file.heads(page, |head| found.push(head.seq));
                for seq in found {
                    let _ = file.event(seq);
                }
            }
        }
        15 => {
            if let Ok(file) = StatesFile::open(&sealed) {
                let mut found = Vec::new();
                let _ = file.each_shown(|shown| found.push(shown.seq));
                for seq in found {
                    let _ = file.state(seq);
                }
            }
        }
        _ => {
            let Ok(file) = CapturesFile::open(&sealed) else {
                return;
            };
            for page in 0..file.pages().len().min(MOST_LOOKED_AT) {
                for page in file.page(page, page % 3).into_iter().flatten() {
                    for row in 0..page.rows() {
                        let _ = (page.seq(row), page.tid(row), page.registers(row));
                        let _ = page.sections(row).count();
                    }
                }
            }
        }
    }
}

fn drain(mut reader: LogReader) {
    while let Ok(Step::Frame(_)) = reader.next_frame() {}
}

/// Cuts frames out of `data`: one byte for the kind, one for the argument, two for the length of the payload, then its
/// bytes.
fn frames_in(mut data: &[u8]) -> impl Iterator<Item = (FrameKind, u8, &[u8])> {
    std::iter::from_fn(move || {
        let [code, arg, low, high, rest @ ..] = data else {
            return None;
        };
        let len = usize::from(u16::from_le_bytes([*low, *high]));
        let (payload, rest) = rest.split_at(rest.len().min(len));
        data = rest;
        let kind = FrameKind::from_code(code % FrameKind::Pages as u8 + 1);
        Some((kind.expect("the codes are dense"), *arg, payload))
    })
}

/// Writes a file of the frames in `data`. A file of one value takes only the first.
fn payloads(path: &Path, kind: FileKind, data: &[u8]) -> Result<()> {
    let _ = fs::remove_file(path);
    let mut writer = FrameWriter::create(&Disk, path, header(kind))?;
    let many_values = matches!(kind, FileKind::Log | FileKind::Definitions);
    for (frame_kind, arg, payload) in frames_in(data) {
        if !many_values {
            writer.append(FrameKind::Document, u64::from(arg), [payload, &[]])?;
            break;
        }
        writer.append(frame_kind, u64::from(arg), [payload, &[]])?;
    }
    if kind == FileKind::Log {
        writer.append(FrameKind::SegmentEnd, END_CLOSED, [&[], &[]])?;
    }
    Ok(())
}

/// Writes a snapshot of frames cut out of `data`. Its last frame refers to the one before it, as in real ones.
fn snapshot(path: &Path, data: &[u8]) -> Result<()> {
    let mut writer = FrameWriter::create(&Disk, path, header(FileKind::Memory))?;
    let mut contents_at = writer.len();
    for (kind, arg, payload) in frames_in(data) {
        contents_at = writer.len();
        // The address of a run of pages: the argument counts pages above the first.
        let arg = u64::from(arg) * PAGE_LEN;
        writer.append(kind, arg, [payload, &[]])?;
    }
    writer.append(FrameKind::SegmentEnd, contents_at, [&[], &[]])?;
    Ok(())
}

/// Returns one seed input for each way, taken from recordings that are made in the folder `dir`.
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
    Sealer::own(&live, options)?.finish(Ending::Close, |_| {})?;
    add_to(&live, dir)?;
    let snapshot = live.dir().join(SNAPSHOT);
    let notes = crate::notes::path_of(&live);
    let modules = live.dir().join(MODULES_DIR).join(MODULES_INDEX_FILE);
    let sealed = |recording: &Recording, name: &str| {
        let path = recording.columns_dir().join(name);
        fs::read(&path).map_err(crate::Error::io("read", &path))
    };
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
        read(&snapshot)?,
        snapshot_frames_of(&snapshot)?,
        read(&notes)?,
        frames_of(&notes)?,
        frames_of(&modules)?,
        sealed(&recording, "calls-000000.parquet")?,
        sealed(&live, "events-000000.parquet")?,
        sealed(&live, "states-000000.parquet")?,
        sealed(&recording, "captures-000000.parquet")?,
    ];
    let numbered = inputs.into_iter().enumerate();
    Ok(numbered
        .map(|(way, input)| [vec![way as u8], input].concat())
        .collect())
}

/// Adds the files next to the log: a snapshot of memory, a note, a copy of a module.
fn add_to(recording: &Recording, dir: &Path) -> Result<()> {
    let mut writer = SnapshotWriter::create(&Disk, recording.dir(), RECORDING_ID, 0)?;
    writer.append(2 * PAGE_LEN, &[7; 2 * PAGE_LEN as usize])?;
    writer.append(5 * PAGE_LEN, &[9; PAGE_LEN as usize])?;
    let region = |first: u64, pages: u64, name: &str| Region {
        addr: first * PAGE_LEN,
        len: pages * PAGE_LEN,
        zeroed: name.is_empty(),
        name: name.to_owned(),
    };
    writer.finish(vec![region(1, 3, ""), region(5, 2, "/lib/libshop.so")])?;
    crate::notes::add(recording, 0, "here it began")?;
    let module = dir.join("libshop.so");
    fs::write(&module, b"a library").map_err(crate::Error::io("write", &module))?;
    let mut packer = Packer::begin(recording)?;
    packer.copy(&module, "000000/libshop.so")?;
    packer.add_module(PackedModule {
        path: "/lib/libshop.so".into(),
        build_id: Some("c0ffee".into()),
        file: "000000/libshop.so".into(),
    });
    packer.finish()?;
    Ok(())
}

fn synth() -> Synth {
    let mut synth = Synth::new();
    let f = synth.function("f");
    let mut captured = Vec::new();
    let section = Section {
        addr: 0x7f40,
        bytes: b"ada",
    };
    push_capture(
        &mut captured,
        0,
        Some([3; CAPTURE_REGISTER_WORDS]),
        &[section],
    );
    synth
        .thread(1)
        .enter(f, 0x7f00)
        .raw(&captured)
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

/// Returns the frames of a file as [`frames_in`] cuts them.
fn frames_of(path: &Path) -> Result<Vec<u8>> {
    frames_with(path, |_, arg| Some(arg as u8))
}

/// Returns the frames of a snapshot as [`snapshot`] takes them.
fn snapshot_frames_of(path: &Path) -> Result<Vec<u8>> {
    frames_with(path, |kind, arg| {
        (kind != FrameKind::SegmentEnd).then_some((arg / PAGE_LEN) as u8)
    })
}

/// Returns the frames of a file for which `argument` gives a byte.
fn frames_with(path: &Path, argument: impl Fn(FrameKind, u64) -> Option<u8>) -> Result<Vec<u8>> {
    let (mut reader, _) = FrameReader::open_any(path)?;
    let mut bytes = Vec::new();
    while let Ok(frame) = reader.next_frame()? {
        let Some(argument) = argument(frame.header.kind, frame.header.arg) else {
            continue;
        };
        bytes.push(frame.header.kind as u8 - 1);
        bytes.push(argument);
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
