//! Checks the log: its segments, their frames, and the records in them.

use std::path::Path;

use super::threads::Threads;
use super::{Report, Severity};
use crate::control::Control;
use crate::error::{Error, Result};
use crate::file_header::FileHeader;
use crate::format::{FileKind, FrameKind};
use crate::log::frame::{self, END_CLOSED, END_CONTINUES, FrameFault};
use crate::log::frame_reader::{FrameReader, RawFrame};
use crate::log::packing::Unpacker;
use crate::log::{LogPosition, segment_path, segments};
use crate::manifest::RecordingId;

/// What is known about the log before it is read.
pub(super) struct Scope<'a> {
    pub(super) dir: &'a Path,
    pub(super) id: RecordingId,
    /// Whether the recording was closed cleanly.
    pub(super) closed: bool,
    /// What the columns hold already, where there is a seal state.
    pub(super) sealed: Option<SealedLog>,
}

/// How much of the log the columns hold.
#[derive(Clone, Copy, Debug)]
pub(super) struct SealedLog {
    /// Where sealing goes on.
    pub(super) position: LogPosition,
    /// Whether nothing of the log is needed any more.
    pub(super) complete: bool,
}

/// How a segment ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SegmentEnd {
    Continues,
    Closed,
    Missing,
}

pub(super) fn check(
    scope: &Scope<'_>,
    report: &mut Report,
    progress: &mut impl FnMut(u64),
) -> Result<()> {
    let numbers = segments(scope.dir)?;
    let first_kept = check_numbers(scope, &numbers, report);
    let mut threads = Threads::default();
    for number in &numbers {
        report.log.segments += 1;
        let is_last = Some(number) == numbers.last();
        let path = segment_path(scope.dir, *number);
        let header = FileHeader {
            kind: FileKind::Log,
            recording_id: scope.id,
            number: *number,
        };
        let mut reader = match FrameReader::open(&path, &header) {
            Ok(reader) => reader,
            Err(Error::Truncated { offset, .. }) if is_last && !scope.closed => {
                torn(&path, 0, offset, report);
                continue;
            }
            Err(error) => {
                report.damage(&path, &error);
                continue;
            }
        };
        report.file(&path, reader.file_len()?);
        let may_be_torn = is_last && !scope.closed;
        let end = check_segment(&mut reader, may_be_torn, report, &mut threads, progress)?;
        check_end(&path, end, is_last, scope.closed, report);
    }
    report.log.threads = threads.count();
    // Definitions and thread records may be in segments that were sealed and dropped, or in what cannot be read.
    let from_start = first_kept == 0 && report.log.unreadable_bytes == 0;
    threads.finish(scope.dir, from_start, report);
    Ok(())
}

/// Checks that no segment is missing; returns the number of the first one that is there.
fn check_numbers(scope: &Scope<'_>, numbers: &[u32], report: &mut Report) -> u32 {
    let mut missing = |number: u32, why: &str| {
        let path = segment_path(scope.dir, number);
        report.find(
            Severity::Damage,
            &path,
            None,
            format!("the segment is missing: {why}"),
        );
    };
    for pair in numbers.windows(2) {
        for number in pair[0] + 1..pair[1] {
            missing(number, "earlier and later ones are there");
        }
    }
    let first_needed = match scope.sealed {
        Some(sealed) if sealed.complete => None,
        Some(sealed) => Some(sealed.position.segment),
        None => Some(0),
    };
    let first = numbers.first().copied();
    match (first_needed, first) {
        (Some(needed), Some(first)) if needed < first => {
            missing(needed, "its events are not in the columns");
        }
        (Some(needed), None) if scope.closed => {
            missing(needed, "its events are not in the columns")
        }
        _ => {}
    }
    first.unwrap_or(0)
}

fn check_end(path: &Path, end: SegmentEnd, is_last: bool, closed: bool, report: &mut Report) {
    let what = match (end, is_last) {
        (SegmentEnd::Missing, false) => "the segment lacks its last frame",
        (SegmentEnd::Missing, true) if closed => "the log lacks its last frame",
        (SegmentEnd::Closed, false) => "the log ends here, but more segments follow",
        (SegmentEnd::Continues, true) if closed => "the next segment is missing",
        _ => return,
    };
    report.find(Severity::Damage, path, None, what.into());
}

fn check_segment(
    reader: &mut FrameReader,
    may_be_torn: bool,
    report: &mut Report,
    threads: &mut Threads,
    progress: &mut impl FnMut(u64),
) -> Result<SegmentEnd> {
    let path = reader.path().to_path_buf();
    let mut unpacker = Unpacker::default();
    let mut last = SegmentEnd::Missing;
    let mut done = 0;
    loop {
        let offset = reader.offset();
        progress(offset - done);
        done = offset;
        let fault = match reader.next_frame()? {
            Ok(frame) => {
                if last != SegmentEnd::Missing {
                    let what = "a frame follows the segment's last one".to_string();
                    report.find(Severity::Damage, &path, Some(offset), what);
                }
                last = check_frame(&path, &frame, &mut unpacker, report, threads);
                continue;
            }
            Err(fault) => fault,
        };
        let end = reader.file_len()?;
        if fault == FrameFault::Short && offset >= end {
            return Ok(last);
        }
        match reader.find_frame_after(end)? {
            Some(next) => {
                let what = format!("{fault}; the next whole frame begins at offset {next}");
                report.find(Severity::Damage, &path, Some(offset), what);
                report.log.unreadable_bytes += next - offset;
                reader.seek(next);
            }
            None => {
                match may_be_torn && last == SegmentEnd::Missing {
                    true => torn(&path, offset, end, report),
                    false => {
                        report.find(Severity::Damage, &path, Some(offset), fault.to_string());
                        report.log.unreadable_bytes += end - offset;
                    }
                }
                return Ok(last);
            }
        }
    }
}

fn check_frame(
    path: &Path,
    frame: &RawFrame<'_>,
    unpacker: &mut Unpacker,
    report: &mut Report,
    threads: &mut Threads,
) -> SegmentEnd {
    let mut bad = |what: String| {
        report.find(Severity::Damage, path, Some(frame.offset), what);
        SegmentEnd::Missing
    };
    match (frame.header.kind, frame.header.arg) {
        (FrameKind::SegmentEnd, END_CONTINUES) => return SegmentEnd::Continues,
        (FrameKind::SegmentEnd, END_CLOSED) => return SegmentEnd::Closed,
        (FrameKind::SegmentEnd, other) => {
            return bad(format!("unknown way {other} to end a segment"));
        }
        (FrameKind::Document | FrameKind::Pages, _) => {
            return bad(format!(
                "a frame of kind {:?} in the log",
                frame.header.kind
            ));
        }
        (FrameKind::Block | FrameKind::PackedBlock, arg) => {
            let bytes = match frame.header.kind {
                FrameKind::PackedBlock => match unpacker.unpack(frame.payload) {
                    Ok(bytes) => bytes,
                    Err(fault) => return bad(fault.to_string()),
                },
                _ => frame.payload,
            };
            report.log.blocks += 1;
            let (ring, tenancy) = frame::ring_and_tenancy(arg);
            let place = (path, frame.offset);
            threads.block(place, (ring, tenancy), bytes, report);
        }
        (FrameKind::Watermark, ticks) => {
            report.log.watermarks += 1;
            threads.watermark((path, frame.offset), ticks, report);
        }
        (FrameKind::Control, _) => match rmp_serde::from_slice::<Control>(frame.payload) {
            Ok(control) => {
                report.log.controls += 1;
                threads.control((path, frame.offset), &control, report);
            }
            Err(error) => return bad(format!("a control event cannot be read: {error}")),
        },
    }
    report.log.frames += 1;
    SegmentEnd::Missing
}

fn torn(path: &Path, offset: u64, end: u64, report: &mut Report) {
    let len = end - offset;
    let what = format!("the last {len} bytes are an unfinished frame, which readers drop");
    report.find(Severity::Note, path, Some(offset), what);
    report.log.torn_bytes += len;
}
