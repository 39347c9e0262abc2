//! Machine code as text.

use debuginfo::{AddressSpace, Diagnostic, Instruction, Machine, Unknown};
use serde::{Deserialize, Serialize};

use super::{hex_bytes, source_line};
use crate::protocol::{Code, Failure};

/// An instruction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstructionReport {
    /// Its address, in hexadecimal.
    pub address: String,
    /// Its bytes, in hexadecimal.
    pub bytes: String,
    /// Mnemonic and operands.
    pub text: String,
    /// The name of what it refers to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Its function, and the offset in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub symbol: Option<String>,
    /// Its source file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Its line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The text of that line, on its first instruction and only if requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The thread is at this instruction.
    pub is_current: bool,
}

/// Instructions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeReport {
    /// The function, if the instructions are those of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// The instructions, by address.
    pub instructions: Vec<InstructionReport>,
    /// If the address that was asked for may have changed since it was seen: the event that showed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stale_since: Option<u64>,
}

/// Maximum number of instructions in an answer.
const MAX_INSTRUCTIONS: usize = 100_000;

/// Returns `count` instructions from `address` on. `current` is the thread's position; `sources` adds the text of the
/// lines.
///
/// # Errors
/// The memory is not known, or `count` is too large.
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
        stale_since: None,
    }
}

fn symbol(space: &AddressSpace, address: u64) -> Option<String> {
    let (name, start) = space.symbol_at(address)?;
    Some(format!("{name}+{}", address.wrapping_sub(start)))
}
