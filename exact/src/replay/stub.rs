//! The smallest program there is: a process to put the memory of another into.

use std::ffi::CString;
use std::io::Write;
use std::os::fd::{AsRawFd, FromRawFd};

use crate::error::{Context, Result};
use crate::record::{Options, start};

/// Where its one page lies: below everything that programs are linked to, but for those that ask for it.
pub(super) const AT: u64 = 0x7d00_0000_0000;
const HEADERS: u64 = 64 + 56;

/// An ELF file with one page of code, which jumps to itself (System V ABI, chapters 4 and 5).
fn image() -> Vec<u8> {
    let mut file = Vec::new();
    file.extend_from_slice(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
    for (value, bytes) in [
        (2, 2),  // ET_EXEC
        (62, 2), // EM_X86_64
        (1, 4),
        (AT + HEADERS, 8), // the entry point
        (64, 8),           // program headers
        (0, 8),
        (0, 4),
        (64, 2),
        (56, 2),
        (1, 2),
        (0, 2),
        (0, 2),
        (0, 2),
        // The program header: PT_LOAD, readable and executable, the whole file.
        (1, 4),
        (5, 4),
        (0, 8),
        (AT, 8),
        (AT, 8),
        (HEADERS + 2, 8),
        (HEADERS + 2, 8),
        (4096, 8),
    ] {
        file.extend_from_slice(&u64::to_le_bytes(value)[..bytes]);
    }
    file.extend_from_slice(&[0xeb, 0xfe]);
    file
}

/// Starts it; returns its id when it is about to execute its first instruction.
pub(super) fn start() -> Result<i32> {
    // SAFETY: the name is a C string, and the descriptor is ours.
    let mut file = unsafe {
        let descriptor = libc::memfd_create(c"hindsight-replay".as_ptr(), 0);
        if descriptor < 0 {
            return Err(std::io::Error::last_os_error()).context("make a file in memory");
        }
        std::fs::File::from_raw_fd(descriptor)
    };
    file.write_all(&image()).context("write a file in memory")?;
    let path = CString::new(format!("/proc/self/fd/{}", file.as_raw_fd())).expect("no zero in it");
    let options = Options {
        fixed_addresses: true,
        environment: Some(Vec::new()),
        ..Options::default()
    };
    start::start(&path, &["hindsight-replay".into()], &options)
}
