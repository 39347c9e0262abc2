//! The shapes of generated functions: instructions, skips, calls, a branch back, an end, and the registers at entry.

use proptest::prelude::*;

use super::displace_lab::RCX;

/// Registers that generated code changes. It keeps rcx and r15 (loop counters), r12 (a function's address), r13 (the
/// data page), rsp, and rbp.
const FREE: [u8; 10] = [0, 2, 3, 6, 7, 8, 9, 10, 11, 14];

/// An instruction without control flow that leaves the stack pointer alone.
#[derive(Debug, Clone)]
pub enum Simple {
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
pub enum Call {
    Direct,
    ThroughRip,
    ThroughRegister,
    ThroughData,
    ThroughStack,
}

#[derive(Debug, Clone)]
pub enum Op {
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
pub enum Back {
    /// loop, loope, loopne
    Count(u8),
    /// dec r15; jne
    Decrement { long: bool },
}

#[derive(Debug, Clone)]
pub enum End {
    Return,
    ReturnPopping,
    JumpDirect,
    JumpThroughRip,
    JumpThroughRegister,
}

#[derive(Debug, Clone)]
pub struct Shape {
    pub ops: Vec<Op>,
    /// From the end of op .1 back to the start of op .0.
    pub back: Option<(usize, usize, Back)>,
    pub end: End,
    pub registers: [u64; 16],
    pub flags: u64,
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

pub fn shape() -> impl Strategy<Value = Shape> {
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
