//! A process that has just executed a program: it runs to its entry point, where its libraries are loaded, and is parked there.

use std::{io, os::unix::fs::FileExt};

use super::process_memory;
use crate::{
    live::model::Tid,
    process::{
        Maps, Parked,
        spawn::{AT_ENTRY, INT3, PARK_FOR_ANOTHER, told_by_kernel},
        status::Seccomp,
    },
    session::{check_mapped, executable_of, way_into_running},
    stop::ptrace,
};

use super::why_refused;

/// The trap at the entry point, over a byte of the program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AtEntry {
    entry: u64,
    original: u8,
}

impl AtEntry {
    /// Makes a stopped process stop at its entry point. `usual`: the restrictions that it may have.
    ///
    /// # Errors
    /// Why it cannot be recorded.
    pub fn set(pid: Tid, usual: Seccomp) -> Result<AtEntry, String> {
        let exe = executable_of(pid).map_err(|error| error.to_string())?;
        way_into_running(pid, &exe).map_err(|error| why_refused(&error))?;
        if Seccomp::of(pid) > usual {
            return Err(
                "it runs in a sandbox (seccomp), which forbids what a recording takes".into(),
            );
        }
        let entry = told_by_kernel(pid, AT_ENTRY);
        let entry = entry.ok().flatten().ok_or("its entry point is not known")?;
        let set = || -> io::Result<u8> {
            let memory = process_memory(pid)?;
            let mut original = [0];
            memory.read_exact_at(&mut original, entry)?;
            memory.write_all_at(&[INT3], entry)?;
            Ok(original[0])
        };
        let original = set().map_err(|error| format!("its memory cannot be written: {error}"))?;
        Ok(AtEntry { entry, original })
    }

    /// Returns whether a thread has come to the trap.
    pub fn is_reached(&self, tid: Tid) -> bool {
        ptrace::registers(tid).is_ok_and(|registers| registers.rip == self.entry + 1)
    }

    /// Takes the trap away from a process that is at it, which is then at its entry point.
    ///
    /// # Errors
    /// Its memory or registers cannot be written.
    pub fn restore(&self, pid: Tid) -> Result<(), String> {
        let text = |error: io::Error| error.to_string();
        let memory = process_memory(pid).map_err(text)?;
        memory
            .write_all_at(&[self.original], self.entry)
            .map_err(text)?;
        ptrace::set_rip(pid, self.entry).map_err(text)
    }

    /// Parks a process that is at the trap or its entry point, and lets go of it. On failure it is at its entry point, or about to be killed.
    ///
    /// # Errors
    /// Why it cannot be recorded.
    pub fn park(&self, pid: Tid) -> Result<Parked, String> {
        self.restore(pid)?;
        let entry = self.entry;
        let text = |error: io::Error| error.to_string();
        let exe = executable_of(pid).map_err(text)?;
        let memory = process_memory(pid).map_err(text)?;
        let maps = Maps::read(pid).map_err(text)?;
        check_mapped(&exe, &maps).map_err(|error| why_refused(&error))?;
        let registers = ptrace::registers(pid).map_err(text)?;
        let mut original = [0; PARK_FOR_ANOTHER.len()];
        memory.read_exact_at(&mut original, entry).map_err(text)?;
        memory
            .write_all_at(&PARK_FOR_ANOTHER, entry)
            .map_err(text)?;
        let parked = Parked {
            pid,
            entry,
            original,
            registers,
            exe,
        };
        ptrace::detach(pid, 0).map_err(text)?;
        Ok(parked)
    }
}
