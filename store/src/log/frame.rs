//! Encodes and checks frames: 24 bytes of header, then the payload, padded to a multiple of 8.

use crate::format::{FRAME_ALIGN, FRAME_HEADER_LEN, FRAME_MARK, FrameKind, MAX_PAYLOAD_LEN};

/// Offset of the checksum. It covers the file header, the rest of the frame header, the payload and the padding.
pub const CRC_AT: usize = 0;
/// Offset of the mark.
pub const MARK_AT: usize = 4;
/// Offset of the frame kind.
pub const KIND_AT: usize = 6;
/// Offset of a byte that is zero.
pub const ZERO_AT: usize = 7;
/// Offset of the payload's length in bytes, without the padding.
pub const LEN_AT: usize = 8;
/// Offset of the frame's own place in the file, in units of 8 bytes.
pub const PLACE_AT: usize = 12;
/// Offset of the argument, whose meaning depends on the kind.
pub const ARG_AT: usize = 16;

/// Argument of a segment's last frame: the log continues in the next segment.
pub const END_CONTINUES: u64 = 0;
/// Argument of the log's last frame: the log was closed cleanly.
pub const END_CLOSED: u64 = 1;

/// The fields of a frame header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHeader {
    /// The kind of the payload.
    pub kind: FrameKind,
    /// Length of the payload in bytes, without the padding.
    pub len: usize,
    /// Ring and tenancy of a block, ticks of a watermark, or how a segment ends; otherwise 0.
    pub arg: u64,
}

/// Why bytes are not the frame that should be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameFault {
    /// The file ends before the frame does.
    #[error("the file ends inside a frame")]
    Short,
    /// All bytes of the header are zero: they were never written.
    #[error("zeros where a frame should begin")]
    Zeros,
    /// The header lacks its mark.
    #[error("no frame begins here")]
    Mark,
    /// The payload would exceed the limit.
    #[error("a frame of {0} bytes is longer than any")]
    TooLong(usize),
    /// The frame was written for another place.
    #[error("the frame belongs to another place")]
    ParameterPlace,
    /// The checksum differs.
    #[error("the frame's checksum differs")]
    Crc,
    /// The checksum holds, but the kind is unknown.
    #[error("unknown frame kind {0}")]
    Kind(u8),
}

/// Returns the argument of a block frame.
#[inline]
pub fn block_arg(ring: u32, tenancy: u32) -> u64 {
    u64::from(ring) | u64::from(tenancy) << 32
}

/// Returns ring and tenancy of a block frame's argument.
#[inline]
pub fn ring_and_tenancy(arg: u64) -> (u32, u32) {
    (arg as u32, (arg >> 32) as u32)
}

/// Returns the length in bytes of a whole frame whose payload has `len` bytes.
#[inline]
pub fn frame_len(len: usize) -> usize {
    FRAME_HEADER_LEN + len.next_multiple_of(FRAME_ALIGN)
}

/// Returns the padding that follows a payload of `len` bytes.
#[inline]
pub fn padding(len: usize) -> &'static [u8] {
    &[0; FRAME_ALIGN][..len.next_multiple_of(FRAME_ALIGN) - len]
}

/// Returns the header of a frame at `offset` whose payload is the concatenation of `parts`.
///
/// `file_crc` is the checksum of the file's header.
#[inline]
pub fn encode(
    header: &FrameHeader,
    file_crc: u32,
    offset: u64,
    parts: [&[u8]; 2],
) -> [u8; FRAME_HEADER_LEN] {
    let mut bytes = [0; FRAME_HEADER_LEN];
    bytes[MARK_AT..KIND_AT].copy_from_slice(&FRAME_MARK);
    bytes[KIND_AT] = header.kind as u8;
    bytes[LEN_AT..PLACE_AT].copy_from_slice(&(header.len as u32).to_le_bytes());
    bytes[PLACE_AT..ARG_AT].copy_from_slice(&place(offset).to_le_bytes());
    bytes[ARG_AT..].copy_from_slice(&header.arg.to_le_bytes());
    let mut crc = crc32c::crc32c_append(file_crc, &bytes[MARK_AT..]);
    for part in parts {
        crc = crc32c::crc32c_append(crc, part);
    }
    crc = crc32c::crc32c_append(crc, padding(header.len));
    bytes[CRC_AT..MARK_AT].copy_from_slice(&crc.to_le_bytes());
    bytes
}

/// Reads the length of the payload from a header at `offset`, without the payload.
///
/// # Errors
/// A fault that the header alone shows.
pub fn payload_len(header: &[u8; FRAME_HEADER_LEN], offset: u64) -> Result<usize, FrameFault> {
    if *header == [0; FRAME_HEADER_LEN] {
        return Err(FrameFault::Zeros);
    }
    if header[MARK_AT..KIND_AT] != FRAME_MARK || header[ZERO_AT] != 0 {
        return Err(FrameFault::Mark);
    }
    let len = u32_at(header, LEN_AT) as usize;
    if len > MAX_PAYLOAD_LEN {
        return Err(FrameFault::TooLong(len));
    }
    if u32_at(header, PLACE_AT) != place(offset) {
        return Err(FrameFault::ParameterPlace);
    }
    Ok(len)
}

/// Returns the offset in bytes for which a header was written, modulo its range.
pub fn stored_place(header: &[u8; FRAME_HEADER_LEN]) -> u64 {
    u64::from(u32_at(header, PLACE_AT)) * FRAME_ALIGN as u64
}

/// Checks the frame at `offset` at the start of `bytes` and returns its header.
///
/// # Errors
/// The first fault found.
#[inline]
pub fn check(bytes: &[u8], file_crc: u32, offset: u64) -> Result<FrameHeader, FrameFault> {
    let header = bytes.first_chunk().ok_or(FrameFault::Short)?;
    let len = payload_len(header, offset)?;
    let frame = bytes.get(..frame_len(len)).ok_or(FrameFault::Short)?;
    if crc32c::crc32c_append(file_crc, &frame[MARK_AT..]) != u32_at(header, CRC_AT) {
        return Err(FrameFault::Crc);
    }
    let code = header[KIND_AT];
    let kind = FrameKind::from_code(code).ok_or(FrameFault::Kind(code))?;
    let arg = header[ARG_AT..]
        .first_chunk()
        .expect("the argument ends the header");
    Ok(FrameHeader {
        kind,
        len,
        arg: u64::from_le_bytes(*arg),
    })
}

/// Returns `offset` in units of 8 bytes, modulo 2^32.
#[inline]
fn place(offset: u64) -> u32 {
    (offset / FRAME_ALIGN as u64) as u32
}

#[inline]
fn u32_at(header: &[u8; FRAME_HEADER_LEN], at: usize) -> u32 {
    let field = header[at..]
        .first_chunk()
        .expect("fields end before byte 24");
    u32::from_le_bytes(*field)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: FrameHeader = FrameHeader {
        kind: FrameKind::Block,
        len: 11,
        arg: 0x0000_0002_0000_0001,
    };

    fn frame() -> Vec<u8> {
        let mut bytes = encode(&HEADER, 5, 64, [b"hello ", b"world"]).to_vec();
        bytes.extend_from_slice(b"hello world");
        bytes.extend_from_slice(padding(11));
        bytes
    }

    #[test]
    fn a_frame_survives_encoding() {
        let bytes = frame();
        assert_eq!(bytes.len(), frame_len(11));
        assert_eq!(check(&bytes, 5, 64), Ok(HEADER));
        assert_eq!(ring_and_tenancy(HEADER.arg), (1, 2));
        assert_eq!(block_arg(1, 2), HEADER.arg);
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        for bit in 0..frame().len() * 8 {
            let mut bytes = frame();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let checked = check(&bytes, 5, 64);
            assert!(checked.is_err(), "bit {bit}: {checked:?}");
        }
    }

    #[test]
    fn a_frame_of_another_place_or_file_is_refused() {
        assert_eq!(check(&frame(), 5, 72), Err(FrameFault::ParameterPlace));
        assert_eq!(check(&frame(), 6, 64), Err(FrameFault::Crc));
    }

    #[test]
    fn a_frame_cut_anywhere_is_short() {
        let bytes = frame();
        for cut in 0..bytes.len() {
            assert_eq!(check(&bytes[..cut], 5, 64), Err(FrameFault::Short));
        }
    }
}
