//! Files of a recording with another format version in their headers, as from an older or a newer release.

use std::fs;
use std::path::Path;

const MAGIC: &[u8] = b"HNDSIGHT";
const VERSION_AT: usize = 8;
/// The header's length; the last four bytes are its checksum.
const HEADER_LEN: usize = 64;
const FRAME_HEADER_LEN: usize = 24;

/// CRC-32C.
fn crc32c(bytes: impl Iterator<Item = u8>) -> u32 {
    let bit = |crc: u32, _| (crc >> 1) ^ (0x82f6_3b78 * (crc & 1));
    let byte = |crc: u32, byte: u8| (0..8).fold(crc ^ u32::from(byte), bit);
    !bytes.fold(!0, byte)
}

fn header_checksum(bytes: &[u8]) -> [u8; 4] {
    crc32c(bytes[..HEADER_LEN - 4].iter().copied()).to_le_bytes()
}

/// Changes a file's format version, and replaces names in it by others of the same length. Recomputes checksums.
///
/// # Panics If it is not a file of a recording, or lacks one of the names.
pub fn change_version(file: &Path, version: u32, names: &[(&str, &str)]) {
    let mut bytes = fs::read(file).expect("a file of the recording");
    assert!(bytes.starts_with(MAGIC), "{}", file.display());
    assert_eq!(bytes[HEADER_LEN - 4..HEADER_LEN], header_checksum(&bytes));
    bytes[VERSION_AT..VERSION_AT + 4].copy_from_slice(&version.to_le_bytes());
    let checksum = header_checksum(&bytes);
    bytes[HEADER_LEN - 4..HEADER_LEN].copy_from_slice(&checksum);
    for (from, to) in names {
        assert_eq!(from.len(), to.len());
        // MessagePack: the length precedes a short text.
        let packed = |name: &str| [&[0xa0 | name.len() as u8], name.as_bytes()].concat();
        let (from, to) = (packed(from), packed(to));
        let at = bytes.windows(from.len()).position(|bytes| bytes == from);
        let at = at.expect("the name is there");
        bytes[at..at + to.len()].copy_from_slice(&to);
    }
    let mut at = HEADER_LEN;
    while at + FRAME_HEADER_LEN <= bytes.len() {
        assert_eq!(&bytes[at + 4..at + 6], b"hf", "{}: a frame", file.display());
        let len = bytes[at + 8..at + 12].try_into().expect("four bytes");
        let len = u32::from_le_bytes(len) as usize;
        let end = (at + FRAME_HEADER_LEN + len).next_multiple_of(8);
        let covered = bytes[..HEADER_LEN - 4].iter().chain(&bytes[at + 4..end]);
        let checksum = crc32c(covered.copied()).to_le_bytes();
        bytes[at..at + 4].copy_from_slice(&checksum);
        at = end;
    }
    fs::write(file, bytes).expect("the test's folder is writable");
}

/// Converts a recording to the first format, with a manifest that only has the fields of that time.
///
/// # Panics
/// If it is not a recording.
pub fn make_older(recording: &Path) {
    for entry in fs::read_dir(recording).expect("a recording") {
        let file = entry.expect("an entry").path();
        let is_ours = || fs::read(&file).is_ok_and(|bytes| bytes.starts_with(MAGIC));
        if !file.is_file() || !is_ours() {
            continue;
        }
        let newer = [
            "labels",
            "launch",
            "lineage",
            "captures",
            "no_aslr",
            "log_writes",
            "run_of",
        ];
        let renamed = newer.map(|name| format!("x{}", &name[1..]));
        let names: Vec<(&str, &str)> = match file.ends_with("manifest") {
            true => newer
                .into_iter()
                .zip(renamed.iter().map(String::as_str))
                .collect(),
            false => Vec::new(),
        };
        change_version(&file, 1, &names);
    }
}
