//! Machine code as text.

use debuginfo::{AddressSpace, Diagnostic, Instruction, Machine, Unknown};
use serde::{Deserialize, Serialize};

use super::{hex_bytes, source_line};
use crate::protocol::{Code, Failure};

/// An instruction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstructionReport {
    /// In hexadecimal.
    pub address: String,
    /// In hexadecimal.
    pub bytes: String,
    /// Mnemonic and operands.
    pub text: String,
    /// What it refers to, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// The function it belongs to, and how far in it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub symbol: Option<String>,
    /// Its source file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Its line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The text of that line, where it begins and if it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The thread stands here.
    pub is_current: bool,
}

/// Instructions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeReport {
    /// The function, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// In the order of their addresses.
    pub instructions: Vec<InstructionReport>,
}

/// No answer has more instructions.
const MAX_INSTRUCTIONS: usize = 100_000;

/// Returns `count` instructions from `address` on. `current` is where the thread stands; `sources` adds the lines' texts.
///
/// # Errors
/// The memory is not known, or too many were asked for.
pub fn disassemble(
    space: &AddressSpace,
    machine: &dyn Machine,
    address: u64,
    count: usize,
    current: Option<u64>,
    sources: bool,
) -> Result<CodeReport, Failure> {
    if count == 0 || count > MAX_INSTRUCTIONS {
        return Err(Failure::bad_request(format!(
            "ask for 1 to {MAX_INSTRUCTIONS} instructions, not {count}"
        )));
    }
    let found = debuginfo::disassemble(space, machine, address, count)
        .map_err(|unknown| unreadable(address, unknown))?;
    Ok(report(space, found, address, current, sources))
}

/// Returns the whole function around `address`.
///
/// # Errors
/// No function is known there, or its memory is not.
pub fn disassemble_around(
    space: &AddressSpace,
    machine: &dyn Machine,
    address: u64,
    current: Option<u64>,
    sources: bool,
) -> Result<CodeReport, Failure> {
    let found = debuginfo::disassemble_function(space, machine, address)
        .map_err(|unknown| unreadable(address, unknown))?;
    Ok(report(space, found, address, current, sources))
}

fn unreadable(address: u64, unknown: Unknown) -> Failure {
    let what = Diagnostic::from(unknown);
    Failure::of(
        Code::ReadFailed,
        what.map(|why| format!("cannot disassemble at {address:#x}: {why}")),
    )
}

fn report(
    space: &AddressSpace,
    found: Vec<Instruction>,
    address: u64,
    current: Option<u64>,
    sources: bool,
) -> CodeReport {
    let mut last = None;
    let mut lines = |instruction: &Instruction| {
        let place = instruction.source.as_ref()?;
        let key = (place.file.clone(), place.line);
        let is_new = last.as_ref() != Some(&key);
        last = Some(key);
        match sources && is_new {
            true => source_line(&place.file, place.line),
            false => None,
        }
    };
    CodeReport {
        function: super::function_name(space, address),
        instructions: found
            .iter()
            .map(|instruction| InstructionReport {
                address: format!("{:#x}", instruction.address),
                bytes: hex_bytes(&instruction.bytes),
                text: instruction.text.clone(),
                target: instruction.target.clone(),
                symbol: symbol(space, instruction.address),
                file: instruction.source.as_ref().map(|s| s.file.to_string()),
                line: instruction.source.as_ref().map(|s| s.line),
                source: lines(instruction),
                is_current: current == Some(instruction.address),
            })
            .collect(),
    }
}

fn symbol(space: &AddressSpace, address: u64) -> Option<String> {
    let (name, start) = space.symbol_at(address)?;
    Some(format!("{name}+{}", address.wrapping_sub(start)))
}
