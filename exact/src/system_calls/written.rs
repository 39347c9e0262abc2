//! Which bytes of a program's memory the kernel has written with a system call that has returned.
//!
//! A list may be longer than what was written, never shorter: what it names is read after the call. It may also reach past mapped
//! memory, for example where a socket's address is longer than the room for it; what cannot be read there was not written.
//!
//! Left to others: mappings that come, go or move; memory that is shared with a file or another process and changes through that (a
//! `write` to a mapped file or to `/proc/self/mem`); what the kernel writes when it delivers a signal, and when a thread
//! starts or ends (its number, its robust list).

use super::call::Call;
use super::{
    control, files, fixed, ioctl, ipc, memory, nothing, polling, processes, signals, sockets, time,
};

/// The memory of the program, after the call.
pub trait Memory {
    /// Fills as much of `into` as can be read from `address` on; returns how many bytes that are.
    fn read(&self, address: u64, into: &mut [u8]) -> usize;

    /// Whether the program can write all of it. Who knows the mappings should say so by them: reading is slow, and does not tell memory
    /// that can be read only.
    fn can_be_written(&self, address: u64, len: u64) -> bool {
        const BLOCK: u64 = 16 << 10;
        let mut bytes = [0; BLOCK as usize];
        (0..len).step_by(BLOCK as usize).all(|at| {
            let block = &mut bytes[..(len - at).min(BLOCK) as usize];
            let start = address.checked_add(at);
            start.is_some_and(|start| self.read(start, block) == block.len())
        })
    }
}

/// A system call that has returned.
pub struct Finished {
    pub number: u64,
    pub args: [u64; 6],
    /// As the kernel returned it: -4095 to -1 are errors.
    pub result: i64,
}

/// What is known of the bytes that a call wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Written {
    /// These and no others: addresses and lengths in bytes.
    Exactly(Vec<(u64, u64)>),
    /// The call, or this use of it, is not known here.
    Unknown,
}

/// The families: each says nothing of calls that are not its own.
const FAMILIES: [fn(&Call) -> Option<Written>; 10] = [
    files::written,
    sockets::written,
    polling::written,
    time::written,
    signals::written,
    processes::written,
    memory::written,
    control::written,
    ioctl::written,
    ipc::written,
];

/// What a call wrote.
///
/// Results of -512 to -516 mean that the kernel is about to repeat the call or to end it with `EINTR`; no other result follows in the
/// second case. What it wrote until then (the rest of a pause, for example) is in the list.
pub fn written(finished: &Finished, memory: &dyn Memory) -> Written {
    let call = Call::new(finished, memory);
    if nothing::is_written_by(call.number()) {
        return Written::Exactly(Vec::new());
    }
    if let Some(written) = fixed::written(&call) {
        return written;
    }
    // The kernel does not say how far it got before it met an address that it could not use.
    if call.failed_with(libc::EFAULT) {
        return Written::Unknown;
    }
    let said = FAMILIES.iter().find_map(|family| family(&call));
    said.unwrap_or_else(|| {
        if call.failed_with(libc::ENOSYS) {
            Written::Exactly(Vec::new())
        } else {
            Written::Unknown
        }
    })
}
