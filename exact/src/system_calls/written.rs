//! Which bytes of a program's memory the kernel has written with a system call that has returned.

/// The memory of the program, after the call.
pub trait Memory {
    /// Fills as much of `into` as can be read from `address` on; returns how many bytes that are.
    fn read(&self, address: u64, into: &mut [u8]) -> usize;
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

/// What a call wrote.
pub fn written(_call: &Finished, _memory: &dyn Memory) -> Written {
    Written::Unknown
}
