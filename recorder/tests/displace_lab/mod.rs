//! Runs machine code: provides writable executable memory, and a way to enter code with every register chosen and to
//! get every register back.

use std::ops::Range;

/// General registers (in encoding order: rax rcx rdx rbx rsp rbp rsi rdi r8..r15), arithmetic flags, two vector
/// registers.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct State {
    pub general: [u64; 16],
    pub flags: u64,
    pub xmm: [[u64; 2]; 2],
}

pub const RAX: usize = 0;
pub const RCX: usize = 1;
pub const RSP: usize = 4;
pub const RBP: usize = 5;
pub const RDI: usize = 7;

/// CF PF AF ZF SF OF
pub const FLAGS: u64 = 0x8d5;

/// Readable, writable and executable memory.
pub struct Memory {
    start: u64,
    len: usize,
}

impl Memory {
    /// Maps `len` bytes, at `at` if not 0.
    pub fn map(at: u64, len: usize) -> Memory {
        let fixed = if at == 0 {
            0
        } else {
            libc::MAP_FIXED_NOREPLACE
        };
        // SAFETY: a new private mapping replaces nothing (MAP_FIXED_NOREPLACE).
        let start = unsafe {
            libc::mmap(
                at as *mut libc::c_void,
                len,
                libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | fixed,
                -1,
                0,
            )
        };
        assert_ne!(start, libc::MAP_FAILED, "mmap at {at:#x}");
        Memory {
            start: start as u64,
            len,
        }
    }

    pub fn start(&self) -> u64 {
        self.start
    }

    fn check(&self, at: u64, len: usize) {
        let range: Range<u64> = self.start..self.start + self.len as u64;
        assert!(range.contains(&at) && at + len as u64 <= range.end);
    }

    pub fn write(&self, at: u64, bytes: &[u8]) {
        self.check(at, bytes.len());
        // SAFETY: the range is inside our mapping, which no Rust reference points into.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), at as *mut u8, bytes.len()) };
    }

    pub fn read(&self, at: u64, len: usize) -> Vec<u8> {
        self.check(at, len);
        // SAFETY: the range is inside our mapping, which only this thread writes to.
        unsafe { std::slice::from_raw_parts(at as *const u8, len) }.to_vec()
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours and nothing refers to it any more.
        unsafe { libc::munmap(self.start as *mut libc::c_void, self.len) };
    }
}

/// Machine code that loads a [`State`], jumps to a target, and saves the state when control comes back.
pub struct Lab {
    code: Memory,
    back: u64,
}

/// Offsets in the lab's own memory.
const OLD_STACK: u64 = 0x800;
const STATE: u64 = 0x808;
const SCRATCH: u64 = 0x810;
const TARGET: u64 = 0x818;

impl Lab {
    pub fn new() -> Lab {
        let code = Memory::map(0, 0x1000);
        let (bytes, back) = lab_code(code.start());
        assert!((bytes.len() as u64) < OLD_STACK);
        code.write(code.start(), &bytes);
        Lab { code, back }
    }

    /// Returns the address to which the code under test must return.
    pub fn back(&self) -> u64 {
        self.back
    }

    /// Jumps to `target` with the registers of `state`. `state.general[RSP]` must lie in writable memory, with room
    /// below, and the code must return to [`back`](Lab::back).
    pub fn run(&self, target: u64, mut state: State) -> State {
        let start = self.code.start();
        self.code.write(start + TARGET, &target.to_le_bytes());
        // SAFETY: `start` holds a function of this signature. It runs the test's own code, which uses only its own
        // memory and returns.
        unsafe {
            let enter: extern "C" fn(*mut State) = std::mem::transmute(start);
            enter(&mut state);
        }
        state.flags &= FLAGS;
        state
    }
}

/// Emits bytes at a known address.
pub struct Emitter {
    start: u64,
    pub bytes: Vec<u8>,
}

impl Emitter {
    pub fn at(start: u64) -> Emitter {
        Emitter {
            start,
            bytes: Vec::new(),
        }
    }

    pub fn here(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }

    pub fn emit(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Emits `before`, the distance from the instruction's end to `target`, and `after`.
    pub fn emit_relative(&mut self, before: &[u8], target: u64, after: &[u8]) {
        self.emit(before);
        let next = self.here() + 4 + after.len() as u64;
        let distance = i32::try_from(target.wrapping_sub(next) as i64).expect("near");
        self.emit(&distance.to_le_bytes());
        self.emit(after);
    }
}

fn lab_code(start: u64) -> (Vec<u8>, u64) {
    let mut e = Emitter::at(start);
    // push rbx, rbp, r12..r15; mov [OLD_STACK], rsp; mov [STATE], rdi
    e.emit(&[0x53, 0x55, 0x41, 0x54, 0x41, 0x55, 0x41, 0x56, 0x41, 0x57]);
    e.emit_relative(&[0x48, 0x89, 0x25], start + OLD_STACK, &[]);
    e.emit_relative(&[0x48, 0x89, 0x3d], start + STATE, &[]);
    // movups xmm0, [rdi+136]; movups xmm1, [rdi+152]; mov rsp, [rdi+32]; push [rdi+128]; popfq
    e.emit(&[
        0x0f, 0x10, 0x87, 136, 0, 0, 0, 0x0f, 0x10, 0x8f, 152, 0, 0, 0,
    ]);
    e.emit(&[0x48, 0x8b, 0x67, 32, 0xff, 0xb7, 128, 0, 0, 0, 0x9d]);
    for register in (0..16).filter(|&r| r != RSP && r != RDI).chain([RDI]) {
        e.emit(&[0x48 | (register as u8 >> 3) << 2, 0x8b]);
        e.emit(&[0x47 | (register as u8 & 7) << 3, register as u8 * 8]);
    }
    e.emit_relative(&[0xff, 0x25], start + TARGET, &[]);
    let back = e.here();
    // mov [SCRATCH], rdi; mov rdi, [STATE]
    e.emit_relative(&[0x48, 0x89, 0x3d], start + SCRATCH, &[]);
    e.emit_relative(&[0x48, 0x8b, 0x3d], start + STATE, &[]);
    for register in (0..16).filter(|&r| r != RDI) {
        e.emit(&[0x48 | (register as u8 >> 3) << 2, 0x89]);
        e.emit(&[0x47 | (register as u8 & 7) << 3, register as u8 * 8]);
    }
    // movups [rdi+136], xmm0; movups [rdi+152], xmm1; pushfq; pop [rdi+128]; push [SCRATCH]; pop [rdi+56]
    e.emit(&[
        0x0f, 0x11, 0x87, 136, 0, 0, 0, 0x0f, 0x11, 0x8f, 152, 0, 0, 0,
    ]);
    e.emit(&[0x9c, 0x8f, 0x87, 128, 0, 0, 0]);
    e.emit_relative(&[0xff, 0x35], start + SCRATCH, &[]);
    e.emit(&[0x8f, 0x47, 56]);
    // mov rsp, [OLD_STACK]; cld; pop r15..r12, rbp, rbx; ret
    e.emit_relative(&[0x48, 0x8b, 0x25], start + OLD_STACK, &[]);
    e.emit(&[
        0xfc, 0x41, 0x5f, 0x41, 0x5e, 0x41, 0x5d, 0x41, 0x5c, 0x5d, 0x5b, 0xc3,
    ]);
    (e.bytes, back)
}
