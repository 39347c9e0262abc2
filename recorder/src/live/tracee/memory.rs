//! The program's memory as it would be without us: bytes that we have changed read as the original ones.

use std::{
    collections::BTreeMap,
    fs::{File, OpenOptions},
    io,
    os::unix::fs::FileExt,
    sync::{Arc, PoisonError, RwLock},
};

use super::hooks::{Hooks, SharedHooks};
use crate::{guardian::Announcer, return_trampoline::unhook, stop::memory::read_up_to};

/// A byte of the program that one of our own covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Covered {
    pub original: u8,
    pub ours: u8,
}

/// Bytes covered by traps and jumps, by address.
pub(crate) type Traps = BTreeMap<u64, Covered>;

/// Memory of a process that may run. Cheap to clone.
#[derive(Clone)]
pub(crate) struct LiveMemory {
    file: Arc<File>,
    pub hooks: Arc<SharedHooks>,
    pub traps: Arc<RwLock<Traps>>,
    /// Announces each trap to the guardian before it is written.
    pub guardian: Option<Announcer>,
}

impl LiveMemory {
    pub fn open(
        pid: i32,
        hooks: Arc<SharedHooks>,
        guardian: Option<Announcer>,
    ) -> io::Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(format!("/proc/{pid}/mem"))?;
        Ok(Self {
            file: Arc::new(file),
            hooks,
            traps: Arc::default(),
            guardian,
        })
    }

    /// Reads the actual bytes.
    pub fn read_raw(&self, address: u64, bytes: &mut [u8]) -> io::Result<()> {
        if address > i64::MAX as u64 {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        self.file.read_exact_at(bytes, address)
    }

    /// Writes the actual bytes, even to memory that the program cannot write. A single byte is written atomically:
    /// running threads see the old or the new one.
    pub fn write_raw(&self, address: u64, bytes: &[u8]) -> io::Result<()> {
        if address > i64::MAX as u64 {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        self.file.write_all_at(bytes, address)
    }

    /// Fills `bytes` with the program's own.
    pub fn read(&self, address: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.read_raw(address, bytes)?;
        self.mask(address, bytes);
        Ok(())
    }

    /// Puts the program's own bytes in place of ours in `bytes`, which were read at `address`.
    pub fn mask(&self, address: u64, bytes: &mut [u8]) {
        self.hooks_now().mask(address, bytes);
        let end = address.saturating_add(bytes.len() as u64);
        let traps = self.traps.read().unwrap_or_else(PoisonError::into_inner);
        for (at, covered) in traps.range(address..end) {
            bytes[(at - address) as usize] = covered.original;
        }
    }

    /// The memory as a file of the actual bytes.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// As [`Self::read`], with the program's return addresses in place of ours, even if only part of one is read.
    pub fn read_unhooked(&self, address: u64, bytes: &mut [u8]) -> io::Result<()> {
        let before = (address % 8) as usize;
        let mut words = vec![0; (before + bytes.len()).next_multiple_of(8)];
        let start = address - before as u64;
        self.read(start, &mut words)?;
        unhook(&self.file, self.hooks_now().leave(), start, &mut words);
        bytes.copy_from_slice(&words[before..before + bytes.len()]);
        Ok(())
    }

    /// Reads up to `len` bytes, fewer if the mapped memory ends before.
    pub fn read_up_to(&self, address: u64, len: usize) -> Vec<u8> {
        read_up_to(&self.file, address, len)
    }

    /// As [`Self::read_up_to`], with the program's return addresses in place of ours.
    pub fn read_stack(&self, address: u64, len: usize) -> Vec<u8> {
        let mut bytes = self.read_up_to(address, len);
        unhook(&self.file, self.hooks_now().leave(), address, &mut bytes);
        bytes
    }

    /// Writes the program's own bytes. Traps and jumps stay in place, over the new bytes.
    pub fn write(&self, address: u64, bytes: &[u8]) -> io::Result<()> {
        let end = address.saturating_add(bytes.len() as u64);
        let mut traps = self.traps.write().unwrap_or_else(PoisonError::into_inner);
        let mut written = bytes.to_vec();
        for (at, covered) in traps.range_mut(address..end) {
            let index = (at - address) as usize;
            covered.original = bytes[index];
            written[index] = covered.ours;
        }
        self.write_raw(address, &written)
    }

    pub fn word(&self, address: u64) -> io::Result<u64> {
        let mut word = [0; 8];
        self.read(address, &mut word)?;
        Ok(u64::from_le_bytes(word))
    }

    pub fn hooks_now(&self) -> std::sync::RwLockReadGuard<'_, Hooks> {
        self.hooks.read().unwrap_or_else(PoisonError::into_inner)
    }
}
