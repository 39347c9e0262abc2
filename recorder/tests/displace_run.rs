//! Patched functions compute what the unpatched ones do. Generated functions of many shapes are run as they are, then
//! with the patch leading straight to the copy (near, and beyond the reach of 32-bit distances); all registers, the
//! flags, the stack pointer and the data they write must be the same. Also a thread that stood at a displaced
//! instruction, and was moved to its copy, must end the same way.

mod displace_lab;

use std::collections::HashMap;

use displace_lab::{Emitter, FLAGS, Lab, Memory, RAX, RBP, RCX, RSP, State};
use iced_x86::{Decoder, DecoderOptions, Mnemonic, Register};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use recorder::displace::{
    Displacement, Limits, PATCH_BYTES, Refusal, Trampoline, patch_bytes, plan,
};

/// Registers that generated code changes. Not among them: rcx and r15 (loop counters), r12 (a function's address), r13
/// (the data page), rsp, rbp.
const FREE: [u8; 10] = [0, 2, 3, 6, 7, 8, 9, 10, 11, 14];

// Offsets of the bench's parts from its start.
const FUNCTION: u64 = 0x0;
const HELPERS: u64 = 0x1000;
const DATA: u64 = 0x2000;
const COPY: u64 = 0x3000;
const STUB: u64 = 0x3800;
const STACK_TOP: u64 = 0x7f00;
const BENCH_BYTES: usize = 0x8000;

const POPF: u8 = 0x9d;
const DATA_BYTES: usize = 256;
/// In the data page: pointers to the helpers.
const POINTERS: u64 = 128;
const FAR_AWAY: u64 = 0x1000_0000_0000;

/// An instruction without control flow that leaves the stack pointer alone.
#[derive(Debug, Clone)]
enum Simple {
    /// add or and sub xor cmp mov test, 64 or 32 bits wide
    Alu {
        opcode: u8,
        wide: bool,
        to: u8,
        from: u8,
    },
    SetImmediate {
        to: u8,
        value: i32,
        wide: bool,
    },
    Increment {
        to: u8,
    },
    Lea {
        to: u8,
        from: u8,
        distance: i8,
    },
    ShiftLeft {
        to: u8,
    },
    SetCondition {
        condition: u8,
        to: u8,
    },
    MoveIf {
        condition: u8,
        to: u8,
        from: u8,
    },
    Nop(u8),
    EndBranch,
    FlagsThroughStack,
    ThroughStack {
        to: u8,
    },
    RipLoad {
        to: u8,
        slot: u8,
    },
    RipStore {
        from: u8,
        slot: u8,
    },
    RipLea {
        to: u8,
        slot: u8,
    },
    RipCompare {
        slot: u8,
        value: u8,
    },
    RipAdd {
        slot: u8,
        value: i32,
    },
    RipVector {
        slot: u8,
    },
    RipVectorStore {
        slot: u8,
    },
    RipVex {
        slot: u8,
    },
}

#[derive(Debug, Clone)]
enum Call {
    Direct,
    ThroughRip,
    ThroughRegister,
    ThroughData,
    ThroughStack,
}

#[derive(Debug, Clone)]
enum Op {
    Simple(Simple),
    Push(u8),
    Frame,
    Reserve(u8),
    SkipIf {
        condition: u8,
        long: bool,
        body: Vec<Simple>,
    },
    SkipCount {
        ecx: bool,
        body: Vec<Simple>,
    },
    SkipAlways {
        long: bool,
        padding: u8,
    },
    ReturnIf {
        condition: u8,
    },
    Call(Call),
}

#[derive(Debug, Clone)]
enum Back {
    /// loop, loope, loopne
    Count(u8),
    /// dec r15; jne
    Decrement { long: bool },
}

#[derive(Debug, Clone)]
enum End {
    Return,
    ReturnPopping,
    JumpDirect,
    JumpThroughRip,
    JumpThroughRegister,
}

#[derive(Debug, Clone)]
struct Shape {
    ops: Vec<Op>,
    /// From the end of op .1 back to the start of op .0.
    back: Option<(usize, usize, Back)>,
    end: End,
    registers: [u64; 16],
    flags: u64,
}

fn free_register() -> impl Strategy<Value = u8> {
    prop::sample::select(&FREE[..])
}

fn simple() -> impl Strategy<Value = Simple> {
    let register = free_register;
    let alu = prop::sample::select(vec![0x01u8, 0x09, 0x21, 0x29, 0x31, 0x39, 0x89, 0x85]);
    prop_oneof![
        4 => (alu, any::<bool>(), register(), register())
            .prop_map(|(opcode, wide, to, from)| Simple::Alu { opcode, wide, to, from }),
        1 => (register(), any::<i32>(), any::<bool>())
            .prop_map(|(to, value, wide)| Simple::SetImmediate { to, value, wide }),
        1 => register().prop_map(|to| Simple::Increment { to }),
        1 => (register(), register(), any::<i8>())
            .prop_map(|(to, from, distance)| Simple::Lea { to, from, distance }),
        1 => register().prop_map(|to| Simple::ShiftLeft { to }),
        1 => (0u8..16, register()).prop_map(|(condition, to)| Simple::SetCondition { condition, to }),
        1 => (0u8..16, register(), register())
            .prop_map(|(condition, to, from)| Simple::MoveIf { condition, to, from }),
        1 => (1u8..=9).prop_map(Simple::Nop),
        1 => Just(Simple::EndBranch),
        1 => Just(Simple::FlagsThroughStack),
        1 => register().prop_map(|to| Simple::ThroughStack { to }),
        1 => (register(), 0u8..16).prop_map(|(to, slot)| Simple::RipLoad { to, slot }),
        1 => (register(), 0u8..16).prop_map(|(from, slot)| Simple::RipStore { from, slot }),
        1 => (register(), 0u8..16).prop_map(|(to, slot)| Simple::RipLea { to, slot }),
        1 => (0u8..16, any::<u8>()).prop_map(|(slot, value)| Simple::RipCompare { slot, value }),
        1 => (0u8..16, any::<i32>()).prop_map(|(slot, value)| Simple::RipAdd { slot, value }),
        1 => (0u8..15).prop_map(|slot| Simple::RipVector { slot }),
        1 => (0u8..15).prop_map(|slot| Simple::RipVectorStore { slot }),
        1 => (0u8..15).prop_map(|slot| Simple::RipVex { slot }),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    let body = || prop::collection::vec(simple(), 0..3);
    let call = prop_oneof![
        Just(Call::Direct),
        Just(Call::ThroughRip),
        Just(Call::ThroughRegister),
        Just(Call::ThroughData),
        Just(Call::ThroughStack),
    ];
    prop_oneof![
        8 => simple().prop_map(Op::Simple),
        3 => (0u8..16).prop_filter("rsp and rbp have their own", |r| *r != 4 && *r != 5).prop_map(Op::Push),
        2 => (1u8..15).prop_map(|words| Op::Reserve(words * 8)),
        3 => (0u8..16, any::<bool>(), body())
            .prop_map(|(condition, long, body)| Op::SkipIf { condition, long, body }),
        1 => (any::<bool>(), body()).prop_map(|(ecx, body)| Op::SkipCount { ecx, body }),
        1 => (any::<bool>(), 0u8..4).prop_map(|(long, padding)| Op::SkipAlways { long, padding }),
        2 => (0u8..16).prop_map(|condition| Op::ReturnIf { condition }),
        2 => call.prop_map(Op::Call),
    ]
}

fn shape() -> impl Strategy<Value = Shape> {
    let end = prop_oneof![
        3 => Just(End::Return),
        1 => Just(End::ReturnPopping),
        1 => Just(End::JumpDirect),
        1 => Just(End::JumpThroughRip),
        1 => Just(End::JumpThroughRegister),
    ];
    let back = prop_oneof![
        (0xe0u8..=0xe2).prop_map(Back::Count),
        any::<bool>().prop_map(|long| Back::Decrement { long }),
    ];
    (
        any::<Option<bool>>(),
        prop::collection::vec(op(), 0..8),
        prop::option::of((0usize..4, 0usize..8, back)),
        end,
        any::<[u64; 16]>(),
        any::<u64>(),
        (1u64..5, 1u64..5),
    )
        .prop_map(
            |(prologue, mut ops, back, end, mut registers, flags, counts)| {
                match prologue {
                    Some(true) => ops.insert(0, Op::Frame),
                    Some(false) => ops.insert(0, Op::Simple(Simple::EndBranch)),
                    None => {}
                }
                registers[RCX] = counts.0;
                registers[15] = counts.1;
                Shape {
                    ops,
                    back,
                    end,
                    registers,
                    flags,
                }
            },
        )
}

/// Assembles a shape at its place in the bench.
struct Assembler {
    e: Emitter,
    base: u64,
    pops: Vec<Vec<u8>>,
}

impl Assembler {
    fn assemble(shape: &Shape, base: u64) -> Vec<u8> {
        let mut a = Assembler {
            e: Emitter::at(base + FUNCTION),
            base,
            pops: Vec::new(),
        };
        let mut starts = Vec::new();
        for (index, op) in shape.ops.iter().enumerate() {
            starts.push((a.e.here(), a.pops.len()));
            a.op(op);
            if let Some((to, from, back)) = &shape.back
                && *from == index
            {
                a.branch_back(&starts, *to, back);
            }
        }
        a.end(&shape.end);
        a.e.bytes
    }

    fn slot(&self, slot: u8) -> u64 {
        self.base + DATA + u64::from(slot) * 8
    }

    fn rex(wide: bool, reg: u8, rm: u8) -> u8 {
        0x40 | u8::from(wide) << 3 | (reg >> 3) << 2 | rm >> 3
    }

    fn modrm(reg: u8, rm: u8) -> u8 {
        0xc0 | (reg & 7) << 3 | rm & 7
    }

    /// An instruction with a register and a rip-relative operand.
    fn rip(&mut self, wide: bool, opcode: &[u8], reg: u8, target: u64, after: &[u8]) {
        let mut bytes = vec![Self::rex(wide, reg, 0)];
        bytes.extend_from_slice(opcode);
        bytes.push(0x05 | (reg & 7) << 3);
        self.e.emit_relative(&bytes, target, after);
    }

    fn simple(&mut self, simple: &Simple) {
        match *simple {
            Simple::Alu {
                opcode,
                wide,
                to,
                from,
            } => {
                self.e
                    .emit(&[Self::rex(wide, from, to), opcode, Self::modrm(from, to)]);
            }
            Simple::SetImmediate {
                to,
                value,
                wide: true,
            } => {
                self.e
                    .emit(&[Self::rex(true, 0, to), 0xc7, Self::modrm(0, to)]);
                self.e.emit(&value.to_le_bytes());
            }
            Simple::SetImmediate {
                to,
                value,
                wide: false,
            } => {
                if to >= 8 {
                    self.e.emit(&[0x41]);
                }
                self.e.emit(&[0xb8 | to & 7]);
                self.e.emit(&value.to_le_bytes());
            }
            Simple::Increment { to } if to < 8 => self.e.emit(&[0xff, Self::modrm(0, to)]),
            Simple::Increment { to } => self.e.emit(&[0x41, 0xff, Self::modrm(0, to)]),
            Simple::Lea { to, from, distance } => {
                let modrm = 0x40 | (to & 7) << 3 | from & 7;
                self.e
                    .emit(&[Self::rex(true, to, from), 0x8d, modrm, distance as u8]);
            }
            Simple::ShiftLeft { to } => {
                self.e
                    .emit(&[Self::rex(true, 0, to), 0xd1, Self::modrm(4, to)]);
            }
            Simple::SetCondition { condition, to } => {
                self.e.emit(&[
                    Self::rex(false, 0, to),
                    0x0f,
                    0x90 | condition,
                    Self::modrm(0, to),
                ]);
            }
            Simple::MoveIf {
                condition,
                to,
                from,
            } => {
                let modrm = Self::modrm(to, from);
                self.e
                    .emit(&[Self::rex(true, to, from), 0x0f, 0x40 | condition, modrm]);
            }
            Simple::Nop(length) => self.e.emit(NOPS[usize::from(length) - 1]),
            Simple::EndBranch => self.e.emit(&[0xf3, 0x0f, 0x1e, 0xfa]),
            Simple::FlagsThroughStack => self.e.emit(&[0x9c, 0x9d]),
            Simple::ThroughStack { to } if to < 8 => self.e.emit(&[0x50 | to, 0x58 | to]),
            Simple::ThroughStack { to } => {
                self.e.emit(&[0x41, 0x50 | to & 7, 0x41, 0x58 | to & 7]);
            }
            Simple::RipLoad { to, slot } => self.rip(true, &[0x8b], to, self.slot(slot), &[]),
            Simple::RipStore { from, slot } => self.rip(true, &[0x89], from, self.slot(slot), &[]),
            Simple::RipLea { to, slot } => self.rip(true, &[0x8d], to, self.slot(slot), &[]),
            Simple::RipCompare { slot, value } => {
                self.rip(false, &[0x80], 7, self.slot(slot), &[value]);
            }
            Simple::RipAdd { slot, value } => {
                self.rip(true, &[0x81], 0, self.slot(slot), &value.to_le_bytes());
            }
            // movups xmm0, [..]; movups [..], xmm1; vpaddd xmm1, xmm0, [..]
            Simple::RipVector { slot } => {
                self.e
                    .emit_relative(&[0x0f, 0x10, 0x05], self.slot(slot), &[]);
            }
            Simple::RipVectorStore { slot } => {
                self.e
                    .emit_relative(&[0x0f, 0x11, 0x0d], self.slot(slot), &[]);
            }
            Simple::RipVex { slot } => {
                self.e
                    .emit_relative(&[0xc5, 0xf9, 0xfe, 0x0d], self.slot(slot), &[]);
            }
        }
    }

    fn body(&self, body: &[Simple], after: u64) -> Vec<u8> {
        let mut inner = Assembler {
            e: Emitter::at(self.e.here() + after),
            base: self.base,
            pops: Vec::new(),
        };
        body.iter().for_each(|simple| inner.simple(simple));
        inner.e.bytes
    }

    fn op(&mut self, op: &Op) {
        match op {
            Op::Simple(simple) => self.simple(simple),
            Op::Push(register) if *register < 8 => {
                self.e.emit(&[0x50 | register]);
                self.pops.push(vec![0x58 | register]);
            }
            Op::Push(register) => {
                self.e.emit(&[0x41, 0x50 | register & 7]);
                self.pops.push(vec![0x41, 0x58 | register & 7]);
            }
            Op::Frame => {
                self.e.emit(&[0x55, 0x48, 0x89, 0xe5]);
                self.pops.push(vec![0xc9]);
            }
            Op::Reserve(bytes) => {
                self.e.emit(&[0x48, 0x83, 0xec, *bytes]);
                self.pops.push(vec![0x48, 0x83, 0xc4, *bytes]);
            }
            Op::SkipIf {
                condition,
                long,
                body,
            } => {
                let body = self.body(body, if *long { 6 } else { 2 });
                if *long {
                    self.e
                        .emit(&[0x0f, 0x80 | condition, body.len() as u8, 0, 0, 0]);
                } else {
                    self.e.emit(&[0x70 | condition, body.len() as u8]);
                }
                self.e.emit(&body);
            }
            Op::SkipCount { ecx, body } => {
                let body = self.body(body, 2 + u64::from(*ecx));
                if *ecx {
                    self.e.emit(&[0x67]);
                }
                self.e.emit(&[0xe3, body.len() as u8]);
                self.e.emit(&body);
            }
            Op::SkipAlways { long, padding } => {
                if *long {
                    self.e.emit(&[0xe9, *padding, 0, 0, 0]);
                } else {
                    self.e.emit(&[0xeb, *padding]);
                }
                self.e.emit(&vec![0xcc; usize::from(*padding)]);
            }
            Op::ReturnIf { condition } => {
                let mut epilogue = self.epilogue();
                epilogue.push(0xc3);
                self.e.emit(&[0x70 | condition ^ 1, epilogue.len() as u8]);
                self.e.emit(&epilogue);
            }
            Op::Call(call) => self.call(call),
        }
    }

    fn call(&mut self, call: &Call) {
        let pointer = self.base + DATA + POINTERS;
        match call {
            Call::Direct => self.e.emit_relative(&[0xe8], self.base + HELPERS, &[]),
            Call::ThroughRip => self.e.emit_relative(&[0xff, 0x15], pointer, &[]),
            Call::ThroughRegister => self.e.emit(&[0x41, 0xff, 0xd4]),
            // r13 points to the data
            Call::ThroughData => {
                self.e.emit(&[0x41, 0xff, 0x95]);
                self.e.emit(&(POINTERS as u32).to_le_bytes());
            }
            // push r12; call [rsp]; lea rsp, [rsp+8]
            Call::ThroughStack => {
                self.e
                    .emit(&[0x41, 0x54, 0xff, 0x14, 0x24, 0x48, 0x8d, 0x64, 0x24, 0x08]);
            }
        }
    }

    fn epilogue(&self) -> Vec<u8> {
        self.pops.iter().rev().flatten().copied().collect()
    }

    /// Only back to where the stack is the same.
    fn branch_back(&mut self, starts: &[(u64, usize)], to: usize, back: &Back) {
        let depth = self.pops.len();
        let Some(&(target, _)) = starts.iter().skip(to).find(|(_, pushed)| *pushed == depth) else {
            return;
        };
        let short =
            |e: &Emitter, length: u64| i8::try_from(target as i64 - (e.here() + length) as i64);
        match back {
            Back::Count(opcode) => {
                if let Ok(distance) = short(&self.e, 2) {
                    self.e.emit(&[*opcode, distance as u8]);
                }
            }
            Back::Decrement { long } => {
                self.e.emit(&[0x49, 0xff, 0xcf]);
                match short(&self.e, 2) {
                    Ok(distance) if !long => self.e.emit(&[0x75, distance as u8]),
                    _ => self.e.emit_relative(&[0x0f, 0x85], target, &[]),
                }
            }
        }
    }

    fn end(&mut self, end: &End) {
        let epilogue = self.epilogue();
        self.e.emit(&epilogue);
        match end {
            End::Return => self.e.emit(&[0xc3]),
            End::ReturnPopping => self.e.emit(&[0xc2, 8, 0]),
            End::JumpDirect => self.e.emit_relative(&[0xe9], self.base + HELPERS, &[]),
            End::JumpThroughRip => {
                self.e
                    .emit_relative(&[0xff, 0x25], self.base + DATA + POINTERS, &[]);
            }
            End::JumpThroughRegister => self.e.emit(&[0x41, 0xff, 0xe4]),
        }
    }
}

const NOPS: [&[u8]; 9] = [
    &[0x90],
    &[0x66, 0x90],
    &[0x0f, 0x1f, 0x00],
    &[0x0f, 0x1f, 0x40, 0x00],
    &[0x0f, 0x1f, 0x44, 0x00, 0x00],
    &[0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00],
    &[0x0f, 0x1f, 0x80, 0x00, 0x00, 0x00, 0x00],
    &[0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00],
    &[0x66, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00],
];

/// What a run leaves behind.
#[derive(Debug, PartialEq)]
struct Outcome {
    state: State,
    data: Vec<u8>,
}

struct Bench {
    lab: Lab,
    near: Memory,
    far: Memory,
}

impl Bench {
    fn new() -> Bench {
        let near = Memory::map(0, BENCH_BYTES);
        let far = Memory::map(near.start() - FAR_AWAY, 0x1000);
        let bench = Bench {
            lab: Lab::new(),
            near,
            far,
        };
        // The helper tells what it sees: rdx += CF, rax ^= return address, flags as they come out.
        // sbb rdx, 0; xor rax, [rsp]; ret
        let helper = [0x48, 0x83, 0xda, 0x00, 0x48, 0x33, 0x04, 0x24, 0xc3];
        bench.near.write(bench.at(HELPERS), &helper);
        bench
    }

    fn at(&self, offset: u64) -> u64 {
        self.near.start() + offset
    }

    /// Runs from `target` as if `pushed` bytes had been pushed by the code before it.
    fn run(&self, target: u64, shape: &Shape, pushed: u64) -> Outcome {
        let slot = self.at(STACK_TOP);
        let mut stack = vec![0x11; 0x100];
        stack[..8].copy_from_slice(&self.lab.back().to_le_bytes());
        self.near.write(slot, &stack);
        // Whatever was pushed is taken to be the function's address in r12, which calls through the stack rely on.
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

    /// Puts the copy at `at` in `memory`, patches the function to lead there, through a stub if it is far, and takes
    /// away the displaced bytes behind the patch.
    fn patch(&self, plan: &Displacement, memory: &Memory, at: u64) -> Result<Trampoline, Refusal> {
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

    fn place(&self, code: &[u8]) {
        self.near.write(self.at(FUNCTION), &[0xcc; 0x1000]);
        self.near.write(self.at(FUNCTION), code);
    }
}

/// How many bytes are pushed when the function entered at `entry` comes to `address`. Behind a return or jump, that is
/// as many as where the branch over it was taken.
fn pushed_before(code: &[u8], entry: u64, address: u64) -> u64 {
    let mut pushed = 0;
    let mut pushed_at: HashMap<u64, i64> = HashMap::new();
    for instruction in &mut Decoder::with_ip(64, code, entry, DecoderOptions::NONE) {
        pushed = *pushed_at.get(&instruction.ip()).unwrap_or(&pushed);
        if instruction.ip() >= address {
            break;
        }
        if instruction.is_jcc_short_or_near() || instruction.is_jmp_short_or_near() {
            pushed_at.insert(instruction.near_branch_target(), pushed);
        }
        let explicit = instruction.op0_register() == Register::RSP;
        pushed += match instruction.mnemonic() {
            Mnemonic::Sub if explicit => instruction.immediate(1) as i64,
            Mnemonic::Add if explicit => -(instruction.immediate(1) as i64),
            Mnemonic::Lea if explicit => -(instruction.memory_displacement64() as i64),
            Mnemonic::Call => 0,
            _ => -i64::from(instruction.stack_pointer_increment()),
        };
    }
    pushed as u64
}

#[derive(Debug, Default)]
struct Counts {
    planned: u32,
    run_far: u32,
    moved: u32,
    refused: u32,
}

fn check_shape(bench: &Bench, shape: &Shape, counts: &mut Counts) -> Result<(), TestCaseError> {
    let entry = bench.at(FUNCTION);
    let code = Assembler::assemble(shape, bench.near.start());
    let padded = [&code[..], &[0xcc; 16][..]].concat();
    let size = code.len() as u64;
    let next_code = entry + size.next_multiple_of(16);
    let plan = match plan(&padded, entry, size, Limits::up_to(next_code)) {
        Ok(plan) => plan,
        Err(refusal) => {
            counts.refused += 1;
            return check_refusal(&refusal, &code, shape);
        }
    };
    counts.planned += 1;
    bench.place(&code);
    let expected = bench.run(entry, shape, 0);

    let copy = bench
        .patch(&plan, &bench.near, bench.at(COPY))
        .expect("all is near");
    prop_assert_eq!(&bench.run(entry, shape, 0), &expected);
    for step in &copy.moves {
        // `popf` takes what the instruction before it pushed: a run that begins there has pushed nothing.
        if code[(step.old - entry) as usize] == POPF {
            continue;
        }
        let pushed = pushed_before(&code, entry, step.old);
        bench.place(&code);
        let unmoved = bench.run(step.old, shape, pushed);
        bench
            .patch(&plan, &bench.near, bench.at(COPY))
            .expect("as before");
        prop_assert_eq!(&bench.run(step.new, shape, pushed), &unmoved);
        counts.moved += 1;
    }
    if bench.patch(&plan, &bench.far, bench.far.start()).is_ok() {
        prop_assert_eq!(&bench.run(entry, shape, 0), &expected);
        counts.run_far += 1;
    }
    Ok(())
}

/// Generated functions are refused only for what they can have.
fn check_refusal(refusal: &Refusal, code: &[u8], shape: &Shape) -> Result<(), TestCaseError> {
    let calls = shape.ops.iter().any(|op| matches!(op, Op::Call(_)));
    let branches_back = shape.back.is_some();
    let skips = |op: &Op| matches!(op, Op::SkipAlways { .. } | Op::ReturnIf { .. });
    let justified = match refusal {
        Refusal::ReturnIntoPatch { .. } => calls,
        Refusal::BranchIntoPatch { from, to } => branches_back && to < from,
        Refusal::TooShort { .. } => code.len() < 5,
        Refusal::HiddenCode { .. } => shape.ops.iter().any(skips),
        _ => false,
    };
    prop_assert!(justified, "{refusal} in {shape:?}");
    Ok(())
}

#[test]
fn generated_functions_compute_the_same_when_patched() {
    let bench = Bench::new();
    let mut runner = TestRunner::new(Config {
        cases: 10_000,
        failure_persistence: None,
        ..Config::default()
    });
    let counts = std::cell::RefCell::new(Counts::default());
    let result = runner.run(&shape(), |shape| {
        check_shape(&bench, &shape, &mut counts.borrow_mut())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    let counts = counts.into_inner();
    println!("{counts:?}");
    assert!(counts.planned > 8000, "{counts:?}");
    assert!(counts.run_far > 5000, "{counts:?}");
    assert!(counts.moved > 10_000, "{counts:?}");
}
