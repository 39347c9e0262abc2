//! Results that the optimiser removed.
//!
//! LLVM's DeadArgumentElimination removes the result, or a part of it, of a function that only its own module calls if no
//! caller uses it. The debug information still describes it, and its register then holds anything at the return. So the result
//! of such a function is known only if the code after a call reads it, or if nothing calls the function directly: LLVM leaves
//! a function as it is if its address is taken.

use std::collections::{HashMap, HashSet};

use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess,
    Register,
};

use crate::code::Code;
use crate::model::{Function, RetPlace, RetReg, ValueKind};

/// Instructions followed after one call, at most. Code that uses a result later than that is rare; its function's result then
/// counts as unknown.
const MAX_FOLLOWED: usize = 256;

/// A set of registers that carry results.
type Registers = u8;

const RAX: Registers = 1;
const RDX: Registers = 1 << 1;
const XMM0: Registers = 1 << 2;
const XMM1: Registers = 1 << 3;
const ST0: Registers = 1 << 4;

/// What the code after a call does with the registers of the result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Uses {
    read: Registers,
    /// They still hold the result when the calling function returns, so that its own callers decide.
    passed_on: Registers,
}

/// A call after which the calling function returns what the called one did.
struct Link {
    caller: usize,
    called: usize,
    passed_on: Registers,
}

/// Forgets the results that may have been removed. `functions` are sorted by address; `doubted` holds the addresses of those
/// whose results the optimiser was free to remove.
pub(super) fn forget_removed(functions: &mut [Function], doubted: &[u64], code: &Code) {
    let index = |svma: &u64| functions.binary_search_by_key(svma, |f| f.svma.0).ok();
    let doubted: HashMap<u64, usize> = doubted
        .iter()
        .filter_map(|svma| Some((*svma, index(svma)?)))
        .filter(|(_, index)| registers(functions[*index].ret_place) != 0)
        .collect();
    if doubted.is_empty() {
        return;
    }
    let mut called = HashSet::new();
    let mut used: HashMap<usize, Registers> = HashMap::new();
    let mut links = Vec::new();
    for (start, bytes) in code.sections() {
        let sites = memchr::memchr3_iter(0xe8, 0xe9, 0x0f, bytes);
        for (at, (target, is_call)) in
            sites.filter_map(|at| Some((at, transfer(bytes, start, at)?)))
        {
            let Some(&function) = doubted.get(&target) else {
                continue;
            };
            let caller = around(functions, start + at as u64);
            // A jump to its own start is a loop.
            if !is_call && caller == Some(function) {
                continue;
            }
            called.insert(function);
            let wanted = registers(functions[function].ret_place);
            let uses = match is_call {
                true => follow(bytes, start, at + 5, caller.map(|c| &functions[c]), wanted),
                false => Uses {
                    read: 0,
                    passed_on: wanted,
                },
            };
            *used.entry(function).or_default() |= uses.read;
            links.extend(caller.filter(|_| uses.passed_on != 0).map(|caller| Link {
                caller,
                called: function,
                passed_on: uses.passed_on,
            }));
        }
    }
    spread(functions, &links, &called, &mut used);
    for index in called {
        let function = &mut functions[index];
        if registers(function.ret_place) & !used.get(&index).copied().unwrap_or(0) != 0 {
            (function.ret, function.ret_place) = (ValueKind::Unknown, RetPlace::Unknown);
        }
    }
}

/// Adds what callers pass on to users of their own results.
fn spread(
    functions: &[Function],
    links: &[Link],
    called: &HashSet<usize>,
    used: &mut HashMap<usize, Registers>,
) {
    loop {
        let mut changed = false;
        for link in links {
            let of_caller = match called.contains(&link.caller) {
                true => used.get(&link.caller).copied().unwrap_or(0),
                // Whatever it declares is returned for someone to use.
                false => registers(functions[link.caller].ret_place),
            };
            let of_called = used.entry(link.called).or_default();
            let more = *of_called | link.passed_on & of_caller;
            changed |= more != *of_called;
            *of_called = more;
        }
        if !changed {
            return;
        }
    }
}

fn registers(place: RetPlace) -> Registers {
    let one = |register| match register {
        RetReg::Rax => RAX,
        RetReg::Rdx => RDX,
        RetReg::Xmm0 => XMM0,
        RetReg::Xmm1 => XMM1,
    };
    match place {
        RetPlace::Regs(first, second) => one(first) | second.map_or(0, |(second, _)| one(second)),
        RetPlace::X87 => ST0,
        _ => 0,
    }
}

/// Returns the target of the direct call or jump whose opcode is at `at`, and whether it is a call. Any byte may look like
/// one; that its target is the start of a function as well is very unlikely.
fn transfer(bytes: &[u8], start: u64, at: usize) -> Option<(u64, bool)> {
    let (length, is_call) = match (bytes[at], bytes.get(at + 1)?) {
        (0xe8, _) => (1, true),
        (0xe9, _) => (1, false),
        (0x0f, 0x80..=0x8f) => (2, false),
        _ => return None,
    };
    let distance = bytes.get(at + length..at + length + 4)?;
    let distance = i32::from_le_bytes(distance.try_into().ok()?);
    let next = start + (at + length + 4) as u64;
    Some((next.wrapping_add_signed(i64::from(distance)), is_call))
}

/// Returns the index of the function whose code includes `svma`.
fn around(functions: &[Function], svma: u64) -> Option<usize> {
    let after = functions.partition_point(|f| f.svma.0 <= svma);
    let index = after.checked_sub(1)?;
    holds(&functions[index], svma).then_some(index)
}

fn holds(function: &Function, svma: u64) -> bool {
    let mut ranges = function.ranges.iter();
    ranges.any(|range| range.start.0 <= svma && svma < range.end.0)
}

/// Follows all paths from the offset `at` of a section on, until each of the `wanted` registers was read or overwritten.
fn follow(
    bytes: &[u8],
    start: u64,
    at: usize,
    caller: Option<&Function>,
    wanted: Registers,
) -> Uses {
    let mut uses = Uses::default();
    let mut info = InstructionInfoFactory::new();
    let mut seen = HashSet::new();
    let mut paths = vec![(at, wanted)];
    let mut left = MAX_FOLLOWED;
    while let Some((mut at, mut held)) = paths.pop() {
        while held & !uses.read != 0 && seen.insert((at, held)) {
            left = match left.checked_sub(1) {
                Some(left) => left,
                None => return uses,
            };
            let Some(rest) = bytes.get(at..) else {
                break;
            };
            let ip = start + at as u64;
            let instruction = Decoder::with_ip(64, rest, ip, DecoderOptions::NONE).decode();
            if instruction.is_invalid() {
                break;
            }
            let (read, overwritten) = access(&instruction, &mut info, held);
            uses.read |= read;
            held &= !(read | overwritten);
            at += instruction.len();
            let target = inside(&instruction, caller, start);
            match instruction.flow_control() {
                FlowControl::Next => {}
                FlowControl::ConditionalBranch => paths.extend(target.map(|target| (target, held))),
                FlowControl::UnconditionalBranch => match target {
                    Some(target) => at = target,
                    None => break,
                },
                FlowControl::Return => {
                    uses.passed_on |= held;
                    break;
                }
                // A call overwrites them; other ways out are not followed.
                _ => break,
            }
        }
    }
    uses
}

/// Returns the offset in the section of a jump's target if it is in the same function.
fn inside(instruction: &Instruction, caller: Option<&Function>, start: u64) -> Option<usize> {
    let target = instruction.near_branch_target();
    let is_inside = caller.is_some_and(|caller| holds(caller, target));
    is_inside
        .then(|| target.checked_sub(start))
        .flatten()
        .and_then(|offset| usize::try_from(offset).ok())
}

/// Returns which of the `held` registers an instruction reads, and which it overwrites without that.
fn access(
    instruction: &Instruction,
    info: &mut InstructionInfoFactory,
    held: Registers,
) -> (Registers, Registers) {
    if held & ST0 != 0 {
        return access_x87(instruction, info);
    }
    let (mut read, mut overwritten) = (0, 0);
    for used in info.info(instruction).used_registers() {
        let register = match used.register().full_register() {
            Register::RAX => RAX,
            Register::RDX => RDX,
            Register::ZMM0 => XMM0,
            Register::ZMM1 => XMM1,
            _ => continue,
        };
        match used.access() {
            // Parts of 8 or 16 bits leave the others as they are.
            OpAccess::Write if used.register().size() >= 4 => overwritten |= register,
            OpAccess::ReadWrite if keeps_upper_part(instruction, used.register()) => {
                overwritten |= register;
            }
            OpAccess::Read | OpAccess::CondRead | OpAccess::ReadWrite | OpAccess::ReadCondWrite => {
                read |= register;
            }
            _ => {}
        }
    }
    (read & held, overwritten & held & !read)
}

/// Returns whether an instruction "reads" a vector register only to leave its upper part as it is.
fn keeps_upper_part(instruction: &Instruction, register: Register) -> bool {
    let is_partial = matches!(
        instruction.mnemonic(),
        Mnemonic::Movss
            | Mnemonic::Movsd
            | Mnemonic::Cvtsi2sd
            | Mnemonic::Cvtsi2ss
            | Mnemonic::Cvtss2sd
            | Mnemonic::Cvtsd2ss
            | Mnemonic::Sqrtsd
            | Mnemonic::Sqrtss
            | Mnemonic::Roundsd
            | Mnemonic::Roundss
            | Mnemonic::Rcpss
            | Mnemonic::Rsqrtss
    );
    let is_source = (1..instruction.op_count()).any(|o| instruction.op_register(o) == register);
    is_partial && instruction.op_register(0) == register && !is_source
}

/// The first x87 instruction after the call decides: code that does not use a result pops it.
fn access_x87(
    instruction: &Instruction,
    info: &mut InstructionInfoFactory,
) -> (Registers, Registers) {
    // A result would have been moved before anything else is pushed.
    if instruction.fpu_stack_increment_info().increment() < 0 {
        return (0, ST0);
    }
    let used = info.info(instruction).used_registers();
    let is_read = |access| {
        matches!(
            access,
            OpAccess::Read | OpAccess::CondRead | OpAccess::ReadWrite | OpAccess::ReadCondWrite
        )
    };
    let mut top = used.iter().filter(|used| used.register() == Register::ST0);
    let is_popped = instruction.mnemonic() == Mnemonic::Fstp && instruction.op0_register().is_st();
    match top.clone().next() {
        None => (0, 0),
        Some(_) if is_popped => (0, ST0),
        Some(_) if top.any(|used| is_read(used.access())) => (ST0, 0),
        Some(_) => (0, ST0),
    }
}
