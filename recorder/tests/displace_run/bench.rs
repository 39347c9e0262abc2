//! The bench that runs functions: their code, helpers, data and stack, and a distant place for copies.

use recorder::displace::{Displacement, PATCH_BYTES, Refusal, Trampoline, patch_bytes};

use super::displace_lab::{FLAGS, Lab, Memory, RAX, RBP, RSP, State};
use super::shape::Shape;

// Offsets of the bench's parts from its start.
pub const FUNCTION: u64 = 0x0;
pub const HELPERS: u64 = 0x1000;
pub const DATA: u64 = 0x2000;
pub const COPY: u64 = 0x3000;
const STUB: u64 = 0x3800;
const STACK_TOP: u64 = 0x7f00;
const BENCH_BYTES: usize = 0x8000;

const DATA_BYTES: usize = 256;
/// In the data page: pointers to the helpers.
pub const POINTERS: u64 = 128;
const FAR_AWAY: u64 = 0x1000_0000_0000;

/// The result of a run.
#[derive(Debug, PartialEq)]
pub struct Outcome {
    state: State,
    data: Vec<u8>,
}

pub struct Bench {
    lab: Lab,
    pub near: Memory,
    pub far: Memory,
}

impl Bench {
    pub fn new() -> Bench {
        let near = Memory::map(0, BENCH_BYTES);
        let far = Memory::map(near.start() - FAR_AWAY, 0x1000);
        let bench = Bench {
            lab: Lab::new(),
            near,
            far,
        };
        // The helper shows its inputs: rdx += CF, rax ^= return address, and the resulting flags.
        // sbb rdx, 0; xor rax, [rsp]; ret
        let helper = [0x48, 0x83, 0xda, 0x00, 0x48, 0x33, 0x04, 0x24, 0xc3];
        bench.near.write(bench.at(HELPERS), &helper);
        bench
    }

    pub fn at(&self, offset: u64) -> u64 {
        self.near.start() + offset
    }

    /// Runs from `target` as if `pushed` bytes had been pushed by the code before it.
    pub fn run(&self, target: u64, shape: &Shape, pushed: u64) -> Outcome {
        let slot = self.at(STACK_TOP);
        let mut stack = vec![0x11; 0x100];
        stack[..8].copy_from_slice(&self.lab.back().to_le_bytes());
        self.near.write(slot, &stack);
        // All pushed words are the function's address in r12, which calls through the stack rely on.
        let word = self.at(HELPERS).to_le_bytes();
        self.near
            .write(slot - pushed, &word.repeat(pushed as usize / 8));
        let mut data: Vec<u8> = (0..DATA_BYTES).map(|i| (i * 37) as u8).collect();
        let pointers = POINTERS as usize;
        data[pointers..pointers + 8].copy_from_slice(&self.at(HELPERS).to_le_bytes());
        self.near.write(self.at(DATA), &data);
        let mut general = shape.registers;
        general[RSP] = slot - pushed;
        general[RBP] = slot - 8;
        general[12] = self.at(HELPERS);
        general[13] = self.at(DATA);
        let flags = shape.flags & FLAGS | 2;
        let xmm = [[general[RAX], 7], [general[3], 9]];
        let state = self.lab.run(
            target,
            State {
                general,
                flags,
                xmm,
            },
        );
        let data = self.near.read(self.at(DATA), DATA_BYTES);
        Outcome { state, data }
    }

    /// Puts the copy at `at` in `memory`, patches the function to lead there (through a stub if it is far), and removes
    /// the displaced bytes after the patch.
    pub fn patch(
        &self,
        plan: &Displacement,
        memory: &Memory,
        at: u64,
    ) -> Result<Trampoline, Refusal> {
        let copy = plan.encode(at)?;
        memory.write(at, &[0xcc; 256]);
        memory.write(at, &copy.bytes);
        let stub = [&[0xff, 0x25, 0, 0, 0, 0][..], &at.to_le_bytes()].concat();
        self.near.write(self.at(STUB), &stub);
        let entry = self.at(FUNCTION);
        let mut patch = vec![0xcc; plan.len_bytes()];
        let jump = patch_bytes(entry, self.at(STUB)).expect("all is near");
        patch[..PATCH_BYTES].copy_from_slice(&jump);
        self.near.write(entry, &patch);
        Ok(copy)
    }

    pub fn place(&self, code: &[u8]) {
        self.near.write(self.at(FUNCTION), &[0xcc; 0x1000]);
        self.near.write(self.at(FUNCTION), code);
    }
}
