//! Distinguishes the torn end that a dead recorder leaves from damage: only bytes that were never written are dropped.
//!
//! A writer's bytes reach the file in order, so a killed recorder leaves a beginning of its last frame. After a machine
//! failure, sectors that did not reach the disk hold zeroes. Any other end is a later change.

use super::frame::FrameFault;
use super::frame_reader::FrameReader;
use crate::error::Result;

/// Bytes that a disk writes at once.
const SECTOR_LEN: u64 = 512;
/// Fewer zeroes than this may be the content of a frame.
const LEAST_ZEROES: usize = 64;

/// Returns the fault of the bytes from the reader's place to `end`, the file's end, or `None` if they are an
/// incompletely written frame. No whole frame follows in its place.
///
/// # Errors
/// [`crate::Error::Io`].
pub(crate) fn wrong_end(
    reader: &mut FrameReader,
    fault: FrameFault,
    end: u64,
) -> Result<Option<String>> {
    if let Some((found, belongs)) = reader.find_displaced_frame(end)? {
        let what = format!(
            "{fault}, and a frame that was written at offset {belongs} lies at offset {found}"
        );
        return Ok(Some(what));
    }
    if fault == FrameFault::Short || has_hole(reader, end)? {
        return Ok(None);
    }
    Ok(Some(format!(
        "{fault}, though all of its bytes were written"
    )))
}

/// Whether a sector between the reader's place and `end` holds only zeroes.
fn has_hole(reader: &mut FrameReader, end: u64) -> Result<bool> {
    let mut at = reader.offset();
    while at < end {
        let next = (at + 1).next_multiple_of(SECTOR_LEN).min(end);
        let sector = reader.bytes_at(at, (next - at) as usize)?;
        if sector.len() >= LEAST_ZEROES && sector.iter().all(|byte| *byte == 0) {
            return Ok(true);
        }
        at = next;
    }
    Ok(false)
}
