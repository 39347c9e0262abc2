//! Memory as bytes.

use debuginfo::{Certainty, Machine, Unknown};
use serde::{Deserialize, Serialize};

use crate::protocol::{Code, Failure};

/// Bytes that were read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryReport {
    /// The address of the first byte, in hexadecimal.
    pub address: String,
    /// The bytes, two hexadecimal digits each.
    pub bytes: String,
    /// If some bytes may have changed since they were seen: the oldest event that showed one of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stale_since: Option<u64>,
    /// Why there are fewer bytes than requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<String>,
}

/// Maximum number of bytes in an answer.
const MAX_BYTES: usize = 4 << 20;
/// Longer reads are not repeated word by word.
const MAX_RENEWED: usize = 4096;
const WORD_BYTES: usize = 4;
/// Memory is mapped in pages.
const PAGE_BYTES: u64 = 4096;

/// Reads up to `count` bytes, ending before the first unknown one.
///
/// # Errors
/// Nothing is known at `address`, or `count` is too large.
pub fn memory(machine: &dyn Machine, address: u64, count: usize) -> Result<MemoryReport, Failure> {
    if count == 0 || count > MAX_BYTES {
        return Err(Failure::bad_request(format!(
            "{count} bytes cannot be read at once: ask for 1 to {MAX_BYTES}"
        )));
    }
    let mut bytes = Vec::new();
    let mut certainty = Certainty::Known;
    let mut end = None;
    while bytes.len() < count {
        let Some(at) = address.checked_add(bytes.len() as u64) else {
            end = Some("the address space ends here".to_owned());
            break;
        };
        let in_page = (PAGE_BYTES - at % PAGE_BYTES) as usize;
        let chunk = in_page.min(count - bytes.len());
        match longest(machine, at, chunk) {
            Ok((mut found, known)) => {
                if known != Certainty::Known && count <= MAX_RENEWED {
                    renew(machine, at, &mut found);
                }
                bytes.extend(found);
                certainty = certainty.and(known);
            }
            Err(unknown) => {
                end = Some(unknown.to_string());
                break;
            }
        }
    }
    match end {
        Some(reason) if bytes.is_empty() => Err(Failure::new(
            Code::ReadFailed,
            format!("memory at {address:#x} cannot be read: {reason}"),
        )),
        end => Ok(MemoryReport {
            address: format!("{address:#x}"),
            bytes: hex_bytes(&bytes),
            stale_since: match certainty {
                Certainty::Known => None,
                Certainty::Stale { as_of } => Some(as_of),
            },
            end,
        }),
    }
}

/// Reads `len` bytes, halving the length until the read succeeds: recorded memory may end anywhere.
fn longest(machine: &dyn Machine, at: u64, len: usize) -> Result<(Vec<u8>, Certainty), Unknown> {
    let mut len = len;
    loop {
        let mut bytes = vec![0; len];
        match machine.memory(at, &mut bytes) {
            Ok(certainty) => return Ok((bytes, certainty)),
            Err(unknown) if len == 1 => return Err(unknown),
            Err(_) => len /= 2,
        }
    }
}

/// Reads bytes again, word by word. One read returns bytes of one moment, but each part of a piece of memory is shown
/// as last seen.
fn renew(machine: &dyn Machine, address: u64, bytes: &mut [u8]) {
    let first = (WORD_BYTES - (address % WORD_BYTES as u64) as usize) % WORD_BYTES;
    let (head, words) = bytes.split_at_mut(first.min(bytes.len()));
    let mut at = address;
    for word in std::iter::once(head).chain(words.chunks_mut(WORD_BYTES)) {
        let mut seen = vec![0; word.len()];
        if !word.is_empty() && machine.memory(at, &mut seen).is_ok() {
            word.copy_from_slice(&seen);
        }
        at = at.wrapping_add(word.len() as u64);
    }
}

/// Writes bytes as hexadecimal digits, in their order in memory.
#[must_use]
pub fn hex_bytes(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use debuginfo::Register;

    /// One page at 0x1000 and the last page of the address space. Each byte is the low byte of its address.
    struct TwoPages;

    impl Machine for TwoPages {
        fn memory(&self, address: u64, bytes: &mut [u8]) -> Result<Certainty, Unknown> {
            let page = address / PAGE_BYTES;
            if page != 1 && page != u64::MAX / PAGE_BYTES {
                return Err(Unknown::because(format!("no memory at {address:#x}")));
            }
            for (byte, at) in bytes.iter_mut().zip(address..=u64::MAX) {
                *byte = at as u8;
            }
            Ok(Certainty::Known)
        }
        fn register(&self, _: Register) -> Result<(u64, Certainty), Unknown> {
            Err(Unknown::because("a test has none"))
        }
        fn vector(&self, _: Register) -> Result<([u8; 16], Certainty), Unknown> {
            Err(Unknown::because("a test has none"))
        }
    }

    #[test]
    fn reading_ends_where_memory_does_and_says_so() {
        let read = memory(&TwoPages, 0x1ffe, 8).unwrap();
        assert_eq!(read.bytes, "feff");
        assert_eq!(read.end.as_deref(), Some("no memory at 0x2000"));
        let whole = memory(&TwoPages, 0x1000, 3).unwrap();
        assert_eq!((whole.bytes.as_str(), whole.end), ("000102", None));
        let last = memory(&TwoPages, u64::MAX, 4).unwrap();
        assert_eq!(last.bytes, "ff");
        assert!(last.end.unwrap().contains("address space"));
    }

    #[test]
    fn nothing_and_too_much_are_refused() {
        let code = |address, count| memory(&TwoPages, address, count).unwrap_err().code;
        assert_eq!(code(0x10, 1), Code::ReadFailed);
        assert_eq!(code(0x1000, 0), Code::BadRequest);
        assert_eq!(code(0x1000, MAX_BYTES + 1), Code::BadRequest);
    }
}
