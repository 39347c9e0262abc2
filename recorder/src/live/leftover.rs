//! Traps that would outlive us: a handler in the program's runtime passes them until the guardian has taken them away.
//!
//! While we live, we trace the program and no trap reaches the handler. A program that handles SIGTRAP itself keeps its own
//! handler, and gets the traps should we be killed.

use debuginfo::Mapped;

use super::{
    error::{LiveError, LiveResult},
    tracer::Tracer,
};

/// Where the runtime's handler and what it returns to are, in the program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Handler {
    pub handler: u64,
    pub restorer: u64,
}

impl Handler {
    /// Finds them in the runtime's library.
    pub fn find(runtime: &Mapped) -> Option<Handler> {
        let symbols = runtime.module.symbols();
        let address = |name: &str| {
            let symbol = symbols.iter().find(|symbol| symbol.linkage == name)?;
            Some(runtime.address(symbol.svma))
        };
        Some(Handler {
            handler: address("hs_on_trap")?,
            restorer: address("hs_trap_return")?,
        })
    }
}

impl Tracer {
    /// Makes the program handle what we leave behind, unless it handles SIGTRAP itself.
    pub fn handle_leftovers(&mut self, handler: Handler) -> LiveResult<()> {
        const SA_SIGINFO: u64 = 4;
        const SA_RESTORER: u64 = 0x0400_0000;
        const SA_ONSTACK: u64 = 0x0800_0000;
        if self.handles(libc::SIGTRAP) {
            return Ok(());
        }
        let flags = SA_SIGINFO | SA_RESTORER | SA_ONSTACK;
        self.set_action([handler.handler, flags, handler.restorer, 0])?;
        self.passes_leftovers = true;
        Ok(())
    }

    /// Undoes it: no traps are left.
    pub fn forget_leftovers(&mut self) -> LiveResult<()> {
        if std::mem::take(&mut self.passes_leftovers) {
            self.set_action([0; 4])?;
        }
        Ok(())
    }

    /// Sets what the program does about SIGTRAP: the words of the kernel's `struct sigaction`.
    fn set_action(&mut self, words: [u64; 4]) -> LiveResult<()> {
        const MASK_BYTES: u64 = 8;
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let at = self.spare(bytes.len() as u64)?;
        self.memory
            .write_raw(at, &bytes)
            .map_err(|_| LiveError::Memory {
                address: at,
                len: bytes.len(),
            })?;
        let arguments = [libc::SIGTRAP as u64, at, 0, MASK_BYTES, 0, 0];
        match self.system_call(libc::SYS_rt_sigaction as u64, arguments)? {
            0 => Ok(()),
            error => Err(LiveError::System {
                action: "make the program pass traps that outlive us",
                source: std::io::Error::from_raw_os_error((error as i64).unsigned_abs() as i32),
            }),
        }
    }
}
