//! Instructions as text, with the names of their targets and their source lines.

use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Formatter, IntelFormatter, Mnemonic, OpKind, Register,
};

use crate::address_space::AddressSpace;
use crate::lines::SourceLine;
use crate::machine::{Machine, Unknown};

const MAX_INSTRUCTION_BYTES: usize = 15;
/// Bytes read at once. A page remains readable even if the next one is not.
const CHUNK_BYTES: usize = 256;
/// Bytes decoded of one function, at most.
const MAX_FUNCTION_BYTES: u64 = 256 << 10;

/// One instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instruction {
    /// Its address.
    pub address: u64,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Mnemonic and operands in Intel's syntax; `(bad)` for bytes that are not an instruction.
    pub text: String,
    /// The name of what it calls, jumps to or refers to relative to rip, as `name` or `name+0x10`, if a symbol names
    /// it.
    pub target: Option<String>,
    /// The line it comes from.
    pub source: Option<SourceLine>,
}

/// Decodes `count` instructions, starting at `address`.
///
/// # Errors
/// The memory at `address` cannot be read. If memory ends later, fewer instructions are returned.
pub fn disassemble(
    space: &AddressSpace,
    machine: &dyn Machine,
    address: u64,
    count: usize,
) -> Result<Vec<Instruction>, Unknown> {
    let mut found = Vec::new();
    let mut at = address;
    while found.len() < count {
        let bytes = match readable(machine, at, MAX_INSTRUCTION_BYTES) {
            Ok(bytes) => bytes,
            Err(why) if found.is_empty() => return Err(why),
            Err(_) => break,
        };
        let instruction = decode(space, at, &bytes);
        let length = instruction.bytes.len() as u64;
        found.push(instruction);
        match at.checked_add(length) {
            Some(next) => at = next,
            None => break,
        }
    }
    Ok(found)
}

/// Decodes the whole function around `address`, split-off parts included, in address order.
///
/// # Errors
/// No function is known there, or its memory cannot be read.
pub fn disassemble_function(
    space: &AddressSpace,
    machine: &dyn Machine,
    address: u64,
) -> Result<Vec<Instruction>, Unknown> {
    let mut ranges = parts(space, address).ok_or_else(|| no_function(address))?;
    ranges.sort_unstable();
    let mut found = Vec::new();
    for (from, to) in ranges {
        found.extend(range(space, machine, from, to)?);
    }
    Ok(found)
}

/// Finds the return addresses of the calls made by the function around `address`, in its module's file. The result has
/// one list in ascending order for each part of the function (some parts are split off) and is empty if no function is
/// known.
#[must_use]
pub fn return_addresses(space: &AddressSpace, address: u64) -> Vec<Vec<u64>> {
    let Some(mapped) = space.at(address) else {
        return Vec::new();
    };
    let parts = parts(space, address).unwrap_or_default().into_iter();
    let behind_calls = parts.map(|(from, to)| {
        let len = to.saturating_sub(from).min(MAX_FUNCTION_BYTES);
        let code = &mapped.module.code;
        let bytes = code.bytes(mapped.svma(from).0, len as usize);
        let mut decoder = Decoder::with_ip(64, bytes, from, DecoderOptions::NONE);
        let is_call = |instruction: &iced_x86::Instruction| {
            let flow = instruction.flow_control();
            matches!(flow, FlowControl::Call | FlowControl::IndirectCall)
        };
        let calls = decoder.iter().filter(is_call);
        calls.map(|instruction| instruction.next_ip()).collect()
    });
    behind_calls.collect()
}

/// Decodes `bytes` as if they were at `address`.
#[must_use]
pub fn disassemble_bytes(space: &AddressSpace, address: u64, bytes: &[u8]) -> Vec<Instruction> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let end = bytes.len().min(at + MAX_INSTRUCTION_BYTES);
        let instruction = decode(space, address.wrapping_add(at as u64), &bytes[at..end]);
        at += instruction.bytes.len();
        found.push(instruction);
    }
    found
}

fn no_function(address: u64) -> Unknown {
    Unknown::because(format!("no function is known at {address:#x}"))
        .with_hint("ask for a number of instructions from an address instead")
}

/// Returns the parts of the function around `address`, or the range of the unwind tables if nothing else is known.
pub(crate) fn parts(space: &AddressSpace, address: u64) -> Option<Vec<(u64, u64)>> {
    if let Some(function) = space.function_at(address) {
        let ranges = function.ranges.iter().map(|r| (r.start, r.end));
        let ranges: Vec<_> = ranges.collect();
        if ranges
            .iter()
            .any(|(from, to)| (*from..*to).contains(&address))
        {
            return Some(ranges);
        }
    }
    let mapped = space.at(address)?;
    let frame = mapped.module.frame_at(mapped.svma(address))?;
    Some(vec![(
        mapped.address(frame.start),
        mapped.address(frame.end),
    )])
}

fn range(
    space: &AddressSpace,
    machine: &dyn Machine,
    from: u64,
    to: u64,
) -> Result<Vec<Instruction>, Unknown> {
    let length = to.saturating_sub(from);
    if length > MAX_FUNCTION_BYTES {
        return Err(
            Unknown::because(format!("the function at {from:#x} has {length} bytes"))
                .with_hint("ask for a number of instructions instead"),
        );
    }
    let mut bytes = vec![0; length as usize];
    machine.memory(from, &mut bytes)?;
    Ok(disassemble_bytes(space, from, &bytes))
}

/// Reads up to `most` bytes at `address`: at least one, fewer if the memory ends.
fn readable(machine: &dyn Machine, address: u64, most: usize) -> Result<Vec<u8>, Unknown> {
    let mut bytes = vec![0; most.min(CHUNK_BYTES)];
    let mut refused = None;
    while !bytes.is_empty() {
        match machine.memory(address, &mut bytes) {
            Ok(_) => return Ok(bytes),
            Err(why) => refused = Some(why),
        }
        bytes.pop();
    }
    Err(refused.unwrap_or_else(|| Unknown::because("no instruction was requested")))
}

/// Decodes the first instruction of `bytes`, which must not be empty.
fn decode(space: &AddressSpace, address: u64, bytes: &[u8]) -> Instruction {
    let mut decoder = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE);
    let decoded = decoder.decode();
    let source = space.line_at(address);
    if decoded.is_invalid() {
        return Instruction {
            address,
            bytes: bytes[..1].to_vec(),
            text: "(bad)".to_owned(),
            target: None,
            source,
        };
    }
    let mut formatter = IntelFormatter::new();
    let options = formatter.options_mut();
    options.set_hex_prefix("0x");
    options.set_hex_suffix("");
    options.set_uppercase_hex(false);
    options.set_space_after_operand_separator(false);
    options.set_rip_relative_addresses(true);
    options.set_branch_leading_zeros(false);
    options.set_small_hex_numbers_in_decimal(false);
    // `faddp st(1),st` and `fxch st(1)`, as in objdump: not without operands.
    options.set_use_pseudo_ops(!names_stack(&decoded));
    Instruction {
        address,
        bytes: bytes[..decoded.len()].to_vec(),
        text: text(&mut formatter, &decoded),
        target: target(&decoded).and_then(|address| named(space, address)),
        source,
    }
}

/// Returns whether an operand is a register of the floating-point stack.
fn names_stack(instruction: &iced_x86::Instruction) -> bool {
    let mut operands = 0..instruction.op_count();
    operands.any(|operand| {
        instruction.op_kind(operand) == OpKind::Register && instruction.op_register(operand).is_st()
    })
}

/// Writes an instruction with those operands that objdump writes.
fn text(formatter: &mut IntelFormatter, instruction: &iced_x86::Instruction) -> String {
    let mut text = String::new();
    let count = formatter.operand_count(instruction);
    let written = (0..count).filter(|operand| !is_implied(formatter, instruction, *operand));
    let written: Vec<u32> = written.collect();
    if written.len() == count as usize {
        formatter.format(instruction, &mut text);
        return text;
    }
    formatter.format_mnemonic(instruction, &mut text);
    for (number, operand) in written.into_iter().enumerate() {
        match number {
            0 => text.push(' '),
            _ => formatter.format_operand_separator(instruction, &mut text),
        }
        // It fails only for an operand that does not exist.
        _ = formatter.format_operand(instruction, &mut text, operand);
    }
    text
}

/// Returns whether an operand is the top of the floating-point stack and goes without saying: `fld st(1)`, not `fld st,st(1)`.
fn is_implied(
    formatter: &mut IntelFormatter,
    instruction: &iced_x86::Instruction,
    operand: u32,
) -> bool {
    let own = formatter.get_instruction_operand(instruction, operand);
    let is_encoded = !matches!(own, Ok(None));
    let names_one = matches!(
        instruction.mnemonic(),
        Mnemonic::Fcom | Mnemonic::Fcomp | Mnemonic::Fucom | Mnemonic::Fucomp | Mnemonic::Fxch
    );
    if is_encoded && !names_one {
        return false;
    }
    let mut text = String::new();
    let written = formatter.format_operand(instruction, &mut text, operand);
    written.is_ok() && text == "st"
}

/// Returns the address that an instruction branches or refers to.
fn target(instruction: &iced_x86::Instruction) -> Option<u64> {
    let is_branch = matches!(
        instruction.flow_control(),
        FlowControl::Call
            | FlowControl::ConditionalBranch
            | FlowControl::UnconditionalBranch
            | FlowControl::XbeginXabortXend
    );
    let is_near = instruction.op0_kind() == OpKind::NearBranch64;
    if is_branch && is_near {
        return Some(instruction.near_branch64());
    }
    let is_relative = instruction.memory_base() == Register::RIP;
    is_relative.then(|| instruction.memory_displacement64())
}

/// Returns `name` or `name+0x10` if a symbol names the code at `address`.
fn named(space: &AddressSpace, address: u64) -> Option<String> {
    let (name, start) = space.symbol_at(address)?;
    Some(match address.wrapping_sub(start) {
        0 => name,
        offset => format!("{name}+{offset:#x}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What objdump -M intel writes, in small letters.
    #[test]
    fn the_top_of_the_floating_point_stack_is_written_where_objdump_writes_it() {
        let space = AddressSpace::new(Vec::new());
        for (bytes, expected) in [
            (&[0xdb, 0x6d, 0xf0][..], "fld tbyte ptr [rbp-0x10]"),
            (&[0xdb, 0x7d, 0xf0], "fstp tbyte ptr [rbp-0x10]"),
            (&[0xd9, 0xc1], "fld st(1)"),
            (&[0xdd, 0xda], "fstp st(2)"),
            (&[0xdf, 0x28], "fild qword ptr [rax]"),
            (&[0xdf, 0x38], "fistp qword ptr [rax]"),
            (&[0xd8, 0x00], "fadd dword ptr [rax]"),
            (&[0xd8, 0xd2], "fcom st(2)"),
            (&[0xdd, 0xeb], "fucomp st(3)"),
            (&[0xdf, 0xea], "fucomip st,st(2)"),
            (&[0xd9, 0xc9], "fxch st(1)"),
            (&[0xd8, 0xc1], "fadd st,st(1)"),
            (&[0xdc, 0xc1], "fadd st(1),st"),
            (&[0xde, 0xc1], "faddp st(1),st"),
            (&[0xda, 0xc2], "fcmovb st,st(2)"),
            (&[0xd9, 0xe0], "fchs"),
            (&[0xdf, 0xe0], "fnstsw ax"),
            (&[0xf3, 0x0f, 0xc2, 0xc1, 0x01], "cmpltss xmm0,xmm1"),
        ] {
            let found = disassemble_bytes(&space, 0x1000, bytes);
            let texts: Vec<&str> = found.iter().map(|one| one.text.as_str()).collect();
            assert_eq!(texts, [expected]);
        }
    }
}
