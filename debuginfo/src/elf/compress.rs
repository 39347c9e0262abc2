//! Decompresses debug sections. Never allocates more memory than a section plausibly needs.

use std::borrow::Cow;
use std::io::Read;

use object::LittleEndian;
use object::elf;
use object::read::{CompressedData, CompressionFormat};

/// Largest accepted ratio of decompressed to compressed bytes. Real debug data shrinks to a third or a tenth.
const MAX_RATIO: u64 = 256;
/// Sections up to this size are accepted at any ratio.
const SMALL_BYTES: u64 = 1 << 20;

type Answer<'a> = Result<Cow<'a, [u8]>, String>;

/// Returns the bytes of a section. `compressed`: its header has `SHF_COMPRESSED` (zlib or zstd).
pub(super) fn section(raw: &[u8], compressed: bool) -> Answer<'_> {
    if !compressed {
        return Ok(Cow::Borrowed(raw));
    }
    const HEADER_BYTES: usize = size_of::<elf::CompressionHeader64<LittleEndian>>();
    let (header, data) = raw
        .split_at_checked(HEADER_BYTES)
        .ok_or("compression header is cut off")?;
    let word = |at: usize| {
        header[at..at + 4]
            .iter()
            .rev()
            .fold(0, |v, b| v << 8 | u32::from(*b))
    };
    let size = u64::from(word(8)) | u64::from(word(12)) << 32;
    check_size(data, size)?;
    match word(0) {
        elf::ELFCOMPRESS_ZLIB => zlib(data, size),
        elf::ELFCOMPRESS_ZSTD => zstd(data, size),
        other => Err(format!("unknown compression {other}")),
    }
}

/// Returns the bytes of a `.zdebug_` section: `ZLIB`, the size as a big-endian u64, then a zlib stream.
pub(super) fn old_section(raw: &[u8]) -> Answer<'_> {
    let (header, data) = raw
        .split_at_checked(12)
        .filter(|(header, _)| header.starts_with(b"ZLIB"))
        .ok_or("no ZLIB header")?;
    let size = header[4..].iter().fold(0, |v, b| v << 8 | u64::from(*b));
    check_size(data, size)?;
    zlib(data, size)
}

fn check_size(data: &[u8], size: u64) -> Result<(), String> {
    let limit = (data.len() as u64)
        .saturating_mul(MAX_RATIO)
        .max(SMALL_BYTES);
    if size <= limit {
        return Ok(());
    }
    Err(format!("{} bytes cannot hold {size}", data.len()))
}

fn zlib(data: &[u8], size: u64) -> Answer<'_> {
    let data = CompressedData {
        format: CompressionFormat::Zlib,
        data,
        uncompressed_size: size,
    };
    data.decompress().map_err(|e| e.to_string())
}

fn zstd(data: &[u8], size: u64) -> Answer<'_> {
    let text = |e: &dyn std::fmt::Display| format!("zstd: {e}");
    let decoder = ruzstd::decoding::StreamingDecoder::new(data).map_err(|e| text(&e))?;
    let mut out = Vec::new();
    out.try_reserve_exact(usize::try_from(size).map_err(|e| text(&e))?)
        .map_err(|e| text(&e))?;
    decoder
        .take(size)
        .read_to_end(&mut out)
        .map_err(|e| text(&e))?;
    if out.len() as u64 != size {
        return Err(format!("zstd: {} bytes instead of {size}", out.len()));
    }
    Ok(Cow::Owned(out))
}
