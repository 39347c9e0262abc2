//! Frames, as they are on the wire.

use std::ops::Range;

use debuginfo::{AddressSpace, Backtrace, Frame, short_name_at};
use serde::{Deserialize, Serialize};

use super::values::VariableReport;

/// A frame.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FrameReport {
    /// Its number, counted from 0 for the innermost frame.
    pub index: usize,
    /// The address of the next instruction, in hexadecimal.
    pub address: String,
    /// Its function.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// Its short name, if that differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub short_name: Option<String>,
    /// The offset of `address` from the function's entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// Its source file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The column, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    /// The module's file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub module: Option<String>,
    /// The frame is an inlined call.
    pub inlined: bool,
    /// It has jumped to the function of the frame inside it, so nothing returns to it.
    pub is_tail_call: bool,
    /// The kernel's frame for calling a signal handler.
    pub is_signal: bool,
    /// Only the function is known, not the position in it: the address is that of its first instruction.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub somewhere: bool,
    /// Frames may be missing between this one and the one before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub after_gap: bool,
    /// This frame is selected.
    pub selected: bool,
    /// The arguments, if requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Vec<VariableReport>>,
    /// All variables in scope, if requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub locals: Option<Vec<VariableReport>>,
}

/// Frames of a thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StackReport {
    /// The frames, innermost first.
    pub frames: Vec<FrameReport>,
    /// There are more frames.
    pub more: bool,
    /// Why the stack ends before the outermost frame.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<String>,
}

/// Describes the frames that are `wanted`, by their indices.
#[must_use]
pub fn stack(
    space: &AddressSpace,
    backtrace: &Backtrace,
    selected: usize,
    wanted: Range<usize>,
) -> StackReport {
    let more = backtrace.frames.len() > wanted.end;
    let shown = backtrace.frames.iter().enumerate();
    let shown = shown.take(wanted.end).skip(wanted.start);
    StackReport {
        frames: shown
            .map(|(index, frame)| FrameReport::of(space, frame, index, index == selected))
            .collect(),
        more,
        end: match more {
            true => None,
            false => backtrace.end.as_ref().map(ToString::to_string),
        },
    }
}

impl FrameReport {
    /// Describes a frame.
    #[must_use]
    pub fn of(space: &AddressSpace, frame: &Frame, index: usize, selected: bool) -> FrameReport {
        let source = frame.source.as_ref();
        FrameReport {
            index,
            address: format!("{:#x}", frame.pc),
            function: frame.function.clone(),
            short_name: frame
                .function
                .as_deref()
                .and_then(|name| short_function(space, frame.lookup_pc, name)),
            offset: match frame.inlined {
                true => None,
                false if !frame.pc_is_known => None,
                false => frame
                    .function_entry
                    .and_then(|entry| frame.pc.checked_sub(entry)),
            },
            file: source.map(|source| source.file.to_string()),
            line: source.map(|source| source.line),
            column: source.map(|source| source.column).filter(|c| *c > 0),
            module: space.at(frame.lookup_pc).map(|mapped| {
                let path = mapped.module.path();
                path.to_string_lossy().into_owned()
            }),
            inlined: frame.inlined,
            is_tail_call: frame.is_tail_call,
            is_signal: frame.is_signal,
            somewhere: !frame.pc_is_known,
            after_gap: false,
            selected,
            args: None,
            locals: None,
        }
    }
}

/// Returns the short name of the function called `name` around `address`, if it is another one.
#[must_use]
pub fn short_function(space: &AddressSpace, address: u64, name: &str) -> Option<String> {
    let is_closure = name.ends_with(['}', ')']);
    let place = is_closure.then(|| space.function_at(address)).flatten();
    // The inlined function there is another one.
    let place = place.filter(|place| place.name == name);
    let (file, line) = match &place {
        Some(place) => (place.file.as_deref(), place.line),
        None => (None, None),
    };
    let short = short_name_at(name, file, line);
    (short != name).then_some(short)
}

/// Returns the name of the function that contains `address`, from the debug information or a symbol.
#[must_use]
pub fn function_name(space: &AddressSpace, address: u64) -> Option<String> {
    let described = space.function_at(address).map(|function| function.name);
    described.or_else(|| Some(space.symbol_at(address)?.0))
}
