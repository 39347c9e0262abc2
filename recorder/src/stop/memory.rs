//! Reads and writes the memory of a stopped process, including read-only text.
//!
//! `/proc/PID/mem` transfers any length in one call. Kernels built to deny it writes to memory that the program cannot
//! write still allow ptrace to write, word by word; so that is the fallback.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;

use super::StopError;
use super::ptrace;

/// Reads up to `len` bytes of a process's memory file, fewer if the mapped memory ends before.
pub(crate) fn read_up_to(file: &File, address: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    let mut filled = 0;
    // File offsets are signed.
    while filled < len && address <= i64::MAX as u64 {
        match file.read_at(&mut bytes[filled..], address + filled as u64) {
            Ok(0) | Err(_) => break,
            Ok(count) => filled += count,
        }
    }
    bytes.truncate(filled);
    bytes
}

pub(super) struct Memory {
    pid: i32,
    file: File,
}

impl Memory {
    /// Opens the memory of `pid` through its live thread `tid`: a leader that has ended has none.
    pub(super) fn open(pid: i32, tid: i32) -> Result<Memory, StopError> {
        let path = format!("/proc/{pid}/task/{tid}/mem");
        let opened = OpenOptions::new().read(true).write(true).open(&path);
        let file = opened.map_err(|source| StopError::System {
            what: format!("open {path}"),
            source,
        })?;
        Ok(Memory { pid, file })
    }

    pub(super) fn read(&self, address: u64, bytes: &mut [u8]) -> Result<(), StopError> {
        let len = bytes.len();
        self.file
            .read_exact_at(bytes, address)
            .map_err(|source| self.error("read", address, len, source))
    }

    /// Reads up to `len` bytes, fewer if the mapped memory ends before.
    pub(super) fn read_up_to(&self, address: u64, len: usize) -> Vec<u8> {
        read_up_to(&self.file, address, len)
    }

    /// Writes through the stopped thread `tid` if the file does not allow it.
    pub(super) fn write(&self, tid: i32, address: u64, bytes: &[u8]) -> Result<(), StopError> {
        self.file
            .write_all_at(bytes, address)
            .or_else(|refused| poke_all(tid, address, bytes).map_err(|_| refused))
            .map_err(|source| self.error("write", address, bytes.len(), source))
    }

    fn error(
        &self,
        operation: &'static str,
        address: u64,
        len: usize,
        source: io::Error,
    ) -> StopError {
        StopError::Memory {
            pid: self.pid,
            operation,
            address,
            len,
            source,
        }
    }
}

/// Writes whole aligned words. The bytes around `bytes` keep their value, since nothing else runs.
fn poke_all(tid: i32, address: u64, bytes: &[u8]) -> io::Result<()> {
    let end = address + bytes.len() as u64;
    let mut word_at = address & !7;
    while word_at < end {
        let mut word = ptrace::peek(tid, word_at)?;
        for (at, byte) in (word_at..).zip(&mut word) {
            if (address..end).contains(&at) {
                *byte = bytes[(at - address) as usize];
            }
        }
        ptrace::poke(tid, word_at, word)?;
        word_at += 8;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::time::Duration;

    use super::super::while_stopped;
    use super::*;

    #[test]
    fn words_are_written_by_ptrace_where_the_file_does_not_allow_it() {
        let mut child = Command::new("sleep")
            .arg("1000")
            .spawn()
            .expect("it starts");
        let pid = child.id() as i32;
        while_stopped(pid, Duration::from_secs(10), |stopped| {
            let at = (stopped.regs(pid).expect("it is stopped").rsp & !7) - 64;
            stopped.write(at, &[0xaa; 32]).expect("the stack is mapped");
            poke_all(pid, at + 3, b"0123456789").expect("it is stopped");
            let mut bytes = [0; 32];
            stopped.read(at, &mut bytes).expect("the stack is mapped");
            let expected = [&[0xaa; 3][..], b"0123456789", &[0xaa; 19]].concat();
            assert_eq!(bytes[..], expected);
            poke_all(pid, 0x10, b"x").expect_err("nothing is mapped there");
        })
        .expect("our child can be stopped");
        child.kill().expect("it runs");
        child.wait().expect("it is our child");
    }
}
