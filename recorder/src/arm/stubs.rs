//! Builds the code placed near a module: for each armed function its probe, its stub and its displaced instructions.
//!
//! ```text
//! region:   enter address | enter_xmm address | enter_texts address | 0 | entries ...
//! entry:    probe (48 bytes, struct hs_probe) | stub | displaced instructions
//! stub:     push %r11 ; lea probe(%rip), %r11 ; jmp *enter(%rip)
//! of Go:    lea probe(%rip), %r13 ; jmp *enter(%rip)
//!
//! around a system call:
//! entry:    where the program goes on | return address | thunk | stub | displaced instructions
//! stub:     lea -128(%rsp), %rsp ; push return address ; lea entry(%rip), %r11 ; jmp *thunk(%rip)
//! before frames are left:
//! stub:     lea -128(%rsp), %rsp ; push %r11 ; push return address ; lea entry(%rip), %r11 ; jmp *thunk(%rip)
//! ```

use crate::displace::{Displacement, MAX_TRAMPOLINE_BYTES, Move, Refusal, Trampoline, patch_bytes};

const HEADER_BYTES: u64 = 32;
/// Distance from a probe to its stub, in bytes.
pub const PROBE_BYTES: u64 = 48;
const STUB_BYTES: u64 = 16;
const ALIGNMENT: u64 = 16;
/// Maximum size of an entry.
const ENTRY_BYTES: u64 = PROBE_BYTES + STUB_BYTES + MAX_TRAMPOLINE_BYTES as u64;

/// Distance from the data of a stub around a system call to the stub, and the length of that data, in bytes.
const CALL_BYTES: u64 = 24;
const CALL_STUB_BYTES: u64 = 24;
/// Length of the stub before frames are left.
const LEAVING_STUB_BYTES: u64 = 32;
/// Length of a displaced system call with the jump to the stub after it.
const SYSCALL_JUMP_BYTES: u64 = 7;

const ENTER_BYTES: u8 = 72;
const KIND_ENTER: u64 = store::wire::KIND_ENTER as u64;
const KIND_ENTER_ONLY: u64 = store::wire::KIND_ENTER_ONLY as u64;

/// A region being filled.
#[derive(Debug)]
pub struct Region {
    /// Its address in the process.
    pub base: u64,
    /// Its length in bytes.
    pub len: u64,
    bytes: Vec<u8>,
}

/// The patch that makes a function call the runtime.
#[derive(Clone, Debug)]
pub struct Patch {
    /// The function's first instruction.
    pub entry: u64,
    /// The bytes expected there.
    pub expected: Vec<u8>,
    /// The bytes to write.
    pub jump: [u8; 5],
    /// The copy of its first instructions.
    pub trampoline: Trampoline,
    /// What replaces the function shows unwinders the runtime, and calls the function whose address is here. The patch stays: when
    /// the recording ends, calls have still to return through the runtime.
    pub tells_unwinders: Option<u64>,
}

/// What the runtime knows about a function.
#[derive(Clone, Copy, Debug)]
pub struct Probe {
    /// Function id.
    pub id: u32,
    /// How many xmm argument registers to keep: 0, 2, 4 or 8.
    pub xmm_args: u8,
    /// Whether to keep xmm0 and xmm1 on return.
    pub ret_xmm: bool,
    /// How to find the strings that its integer arguments point to: `HS_TEXT_`, or 0.
    pub texts: [u8; 6],
    /// What to capture of the memory that its integer arguments point to: `HS_POINTEE_`, or 0.
    pub pointees: [u16; 6],
    /// Whether it is Go code; `enter` of the region is then the entry point for Go.
    pub is_go: bool,
}

impl Region {
    /// Returns the size in bytes of a region for `functions` functions, in whole pages.
    pub fn bytes_for(functions: usize) -> u64 {
        (HEADER_BYTES + functions as u64 * ENTRY_BYTES).next_multiple_of(4096)
    }

    /// Starts a region at `base` whose stubs jump to the addresses `enter`: of functions without vector arguments or
    /// results, of those with them, and of those whose texts are kept.
    pub fn new(base: u64, len: u64, enter: [u64; 3]) -> Self {
        let mut bytes = Vec::new();
        for address in enter.into_iter().chain([0]) {
            bytes.extend_from_slice(&address.to_le_bytes());
        }
        Self { base, len, bytes }
    }

    /// Returns the bytes to write at `base`.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Adds a function whose calls are recorded.
    ///
    /// # Errors
    /// If the region is out of the function's reach.
    pub fn add_probe(
        &mut self,
        displacement: &Displacement,
        code: &[u8],
        probe: Probe,
    ) -> Result<Patch, Refusal> {
        let stub_at = self.base + self.bytes.len() as u64 + PROBE_BYTES;
        let trampoline = displacement.encode(stub_at + STUB_BYTES)?;
        let jump = patch_bytes(displacement.entry(), stub_at)?;
        self.probe_and_stub(probe, trampoline.at);
        self.finish(displacement, code, jump, trampoline)
    }

    /// Adds the recording of a function that is also replaced. The returned patch takes the place of `replacement`.
    ///
    /// # Errors
    /// If the region is out of the function's reach.
    pub fn add_probe_of(&mut self, replacement: &Patch, probe: Probe) -> Result<Patch, Refusal> {
        let stub_at = self.base + self.bytes.len() as u64 + PROBE_BYTES;
        let jump = patch_bytes(replacement.entry, stub_at)?;
        self.probe_and_stub(probe, replacement.trampoline.at - STUB_BYTES);
        Ok(Patch {
            jump,
            ..replacement.clone()
        })
    }

    /// Adds the probe and the stub. `calls` is the address at which the thunk continues.
    fn probe_and_stub(&mut self, probe: Probe, calls: u64) {
        let at = self.base + self.bytes.len() as u64;
        let stub_at = at + PROBE_BYTES;
        let with_xmm = probe.xmm_args != 0 || probe.ret_xmm;
        let id = u64::from(probe.id);
        let kind = match probe.is_go {
            true => KIND_ENTER_ONLY,
            false => KIND_ENTER,
        };
        self.word((id & 0xfff) << 8 | u64::from(probe.xmm_args) << 4 | kind);
        self.word(id >> 12 << 48);
        self.word(calls);
        self.bytes
            .extend_from_slice(&[ENTER_BYTES + 8 * probe.xmm_args, with_xmm.into()]);
        self.bytes.extend_from_slice(&probe.texts);
        for pointee in probe.pointees.into_iter().chain([0; 2]) {
            self.bytes.extend_from_slice(&pointee.to_le_bytes());
        }
        let load: &[u8] = match probe.is_go {
            true => &[0x4c, 0x8d, 0x2d],
            false => &[0x41, 0x53, 0x4c, 0x8d, 0x1d],
        };
        let keeps_texts = probe.texts != [0; 6] && !probe.is_go;
        let enter = match (keeps_texts, with_xmm) {
            (true, _) => 16,
            (false, true) => 8,
            (false, false) => 0,
        };
        self.stub(stub_at, load, at, self.base + enter);
    }

    /// Adds the code at `stub_at`. `load` ends in an instruction that takes the distance to `probe`. The code then
    /// jumps to the address in the word at `enter`.
    fn stub(&mut self, stub_at: u64, load: &[u8], probe: u64, enter: u64) {
        let relative = |to: u64, from: u64| ((to as i64 - from as i64) as i32).to_le_bytes();
        let loaded = stub_at + load.len() as u64 + 4;
        self.bytes.extend_from_slice(load);
        self.bytes.extend_from_slice(&relative(probe, loaded));
        self.bytes.extend_from_slice(&[0xff, 0x25]);
        self.bytes.extend_from_slice(&relative(enter, loaded + 6));
        let end = (stub_at + STUB_BYTES - self.base) as usize;
        self.bytes.resize(end, 0xcc);
    }

    /// Adds a function that is replaced by another.
    ///
    /// # Errors
    /// If the region is out of the function's reach.
    pub fn add_replacement(
        &mut self,
        displacement: &Displacement,
        code: &[u8],
        by: u64,
    ) -> Result<Patch, Refusal> {
        let stub_at = self.base + self.bytes.len() as u64;
        let trampoline = displacement.encode(stub_at + STUB_BYTES)?;
        let jump = patch_bytes(displacement.entry(), stub_at)?;
        // jmp *(%rip), followed by the address
        self.bytes
            .extend_from_slice(&[0xff, 0x25, 2, 0, 0, 0, 0xcc, 0xcc]);
        self.word(by);
        self.finish(displacement, code, jump, trampoline)
    }

    /// Adds the stub that leads to `thunk`, which continues at `next`. Unwinders see `return_address`. Returns where
    /// it is.
    pub fn add_call_stub(&mut self, thunk: u64, next: u64, return_address: u64) -> u64 {
        let at = self.base + self.bytes.len() as u64;
        self.call_stub(thunk, next, return_address);
        self.align();
        at + CALL_BYTES
    }

    /// Adds a patch whose displaced instructions lead to `thunk`, and from there to their end.
    ///
    /// # Errors
    /// If the region is out of the code's reach.
    pub fn add_before(
        &mut self,
        displacement: Displacement,
        code: &[u8],
        thunk: u64,
    ) -> Result<Patch, Refusal> {
        let stub_at = self.base + self.bytes.len() as u64 + CALL_BYTES;
        let end = displacement.entry() + displacement.len_bytes() as u64;
        let displacement = displacement.leading_to(stub_at);
        let trampoline = displacement.encode(stub_at + CALL_STUB_BYTES)?;
        let jump = patch_bytes(displacement.entry(), trampoline.at)?;
        self.call_stub(thunk, end, end);
        self.finish(&displacement, code, jump, trampoline)
    }

    /// Adds a patch that leads to `thunk`, and from there to the displaced instructions.
    ///
    /// # Errors
    /// If the region is out of the code's reach.
    pub fn add_after(
        &mut self,
        displacement: &Displacement,
        code: &[u8],
        thunk: u64,
    ) -> Result<Patch, Refusal> {
        let stub_at = self.base + self.bytes.len() as u64 + CALL_BYTES;
        let trampoline = displacement.encode(stub_at + CALL_STUB_BYTES)?;
        let jump = patch_bytes(displacement.entry(), stub_at)?;
        self.call_stub(thunk, trampoline.at, displacement.entry());
        self.finish(displacement, code, jump, trampoline)
    }

    /// Adds a patch that leads to `thunk`, and from there to the displaced instructions, with all registers as they were.
    ///
    /// # Errors
    /// If the region is out of the code's reach.
    pub fn add_leaving(
        &mut self,
        displacement: &Displacement,
        code: &[u8],
        thunk: u64,
    ) -> Result<Patch, Refusal> {
        let stub_at = self.base + self.bytes.len() as u64 + CALL_BYTES;
        let trampoline = displacement.encode(stub_at + LEAVING_STUB_BYTES)?;
        let jump = patch_bytes(displacement.entry(), stub_at)?;
        self.word(trampoline.at);
        self.word(displacement.entry());
        self.word(thunk);
        // Distances from the ends of the instructions back to the words.
        self.bytes
            .extend_from_slice(&[0x48, 0x8d, 0x64, 0x24, 0x80, 0x41, 0x53, 0xff, 0x35]);
        self.bytes.extend_from_slice(&(-29i32).to_le_bytes());
        self.bytes.extend_from_slice(&[0x4c, 0x8d, 0x1d]);
        self.bytes.extend_from_slice(&(-44i32).to_le_bytes());
        self.bytes.extend_from_slice(&[0xff, 0x25]);
        self.bytes.extend_from_slice(&(-34i32).to_le_bytes());
        let end = (stub_at + LEAVING_STUB_BYTES - self.base) as usize;
        self.bytes.resize(end, 0xcc);
        self.finish(displacement, code, jump, trampoline)
    }

    /// Adds a patch that displaces the system call at `at` with its neighbours: they lead to the first of `thunks`, then
    /// to the call, then to the second one.
    ///
    /// # Errors
    /// If the region is out of the code's reach.
    ///
    /// # Panics If the displacement cannot be split there.
    pub fn add_around(
        &mut self,
        displacement: &Displacement,
        code: &[u8],
        at: u64,
        thunks: [u64; 2],
    ) -> Result<Patch, Refusal> {
        let (before, after) = displacement
            .around(at)
            .expect("it was planned around that call");
        let begin = self.base + self.bytes.len() as u64;
        let first_stub = begin + CALL_BYTES;
        let first = match before {
            Some(before) => Some(
                before
                    .leading_to(first_stub)
                    .encode(first_stub + CALL_STUB_BYTES)?,
            ),
            None => None,
        };
        let first_bytes = first
            .as_ref()
            .map_or(&[][..], |first| first.bytes.as_slice());
        let call = first_stub + CALL_STUB_BYTES + first_bytes.len() as u64;
        let second_stub = call + SYSCALL_JUMP_BYTES + CALL_BYTES;
        let rest_at = second_stub + CALL_STUB_BYTES;
        let rest = match &after {
            Some(after) => Some(after.encode(rest_at)?),
            None => None,
        };
        // With nothing after it, the call returns to the program's own code.
        let next = if rest.is_some() { rest_at } else { at + 2 };
        let target = first.as_ref().map_or(first_stub, |first| first.at);
        let jump = patch_bytes(displacement.entry(), target)?;
        self.call_stub(thunks[0], call, at);
        self.bytes.extend_from_slice(first_bytes);
        self.bytes.extend_from_slice(&[0x0f, 0x05, 0xe9]);
        self.bytes
            .extend_from_slice(&(CALL_BYTES as i32).to_le_bytes());
        self.call_stub(thunks[1], next, at + 2);
        let moved = |old, new| Move { old, new };
        let mut moves = first.map_or(Vec::new(), |first| first.moves);
        moves.extend([moved(at, call), moved(at + 2, call + 2)]);
        if let Some(rest) = rest {
            self.bytes.extend_from_slice(&rest.bytes);
            moves.extend(rest.moves);
        }
        moves.dedup_by_key(|moved| moved.old);
        self.align();
        let from = (first_stub + CALL_STUB_BYTES - self.base) as usize;
        Ok(Patch {
            entry: displacement.entry(),
            expected: code.to_vec(),
            jump,
            trampoline: Trampoline {
                at: first_stub + CALL_STUB_BYTES,
                bytes: self.bytes[from..].to_vec(),
                moves,
            },
            tells_unwinders: None,
        })
    }

    fn call_stub(&mut self, thunk: u64, next: u64, return_address: u64) {
        self.word(next);
        self.word(return_address);
        self.word(thunk);
        // Distances from the ends of the instructions back to the words.
        self.bytes
            .extend_from_slice(&[0x48, 0x8d, 0x64, 0x24, 0x80]);
        self.bytes.extend_from_slice(&[0xff, 0x35]);
        self.bytes.extend_from_slice(&(-27i32).to_le_bytes());
        self.bytes.extend_from_slice(&[0x4c, 0x8d, 0x1d]);
        self.bytes.extend_from_slice(&(-42i32).to_le_bytes());
        self.bytes.extend_from_slice(&[0xff, 0x25]);
        self.bytes.extend_from_slice(&(-32i32).to_le_bytes());
    }

    fn align(&mut self) {
        self.bytes
            .resize(self.bytes.len().next_multiple_of(ALIGNMENT as usize), 0xcc);
        assert!(
            self.bytes.len() as u64 <= self.len,
            "regions are made for the longest entries"
        );
    }

    fn finish(
        &mut self,
        displacement: &Displacement,
        code: &[u8],
        jump: [u8; 5],
        trampoline: Trampoline,
    ) -> Result<Patch, Refusal> {
        self.bytes.extend_from_slice(&trampoline.bytes);
        self.align();
        let expected = code[..displacement.len_bytes()].to_vec();
        Ok(Patch {
            entry: displacement.entry(),
            expected,
            jump,
            trampoline,
            tells_unwinders: None,
        })
    }

    fn word(&mut self, word: u64) {
        self.bytes.extend_from_slice(&word.to_le_bytes());
    }
}
