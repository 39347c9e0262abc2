//! Defines the control events: what the recorder itself observed or decided, as the log's CONTROL frames hold it.

use serde::{Deserialize, Serialize};

pub use crate::wire::GapReason;

/// Largest function id plus one: ids have 28 bits.
pub const MAX_FUNCTIONS: u32 = 1 << 28;

/// One control event. `ticks` are what the time stamp counter showed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Control {
    /// The target runs from here on.
    ProcessStart {
        /// When.
        ticks: u64,
        /// Process id.
        pid: u32,
        /// Command line.
        argv: Vec<String>,
        /// Path of the executable.
        exe: String,
        /// Working directory.
        cwd: String,
        /// True when the process ran before the recording.
        attached: bool,
    },
    /// The target ended: exactly one of code and signal is known, or neither.
    ProcessExit {
        /// When.
        ticks: u64,
        /// Exit code.
        code: Option<i32>,
        /// Number of the killing signal.
        signal: Option<i32>,
    },
    /// The recorder let go of a running target.
    Detached {
        /// When.
        ticks: u64,
    },
    /// An ELF file was mapped, or was mapped already when the recording began.
    ModuleLoad {
        /// When.
        ticks: u64,
        /// Number of the module, dense from 0.
        module: u32,
        /// Path of the file.
        path: String,
        /// GNU build id in hex.
        build_id: Option<String>,
        /// Where it is mapped in the process.
        addr: u64,
        /// Bytes from the first to the last mapped one.
        size: u64,
        /// True for libraries of the system.
        system: bool,
    },
    /// A module was unmapped.
    ModuleUnload {
        /// When.
        ticks: u64,
        /// Number of the module.
        module: u32,
    },
    /// Defines a function id that records may name from here on. No event.
    Function(FunctionDef),
    /// A probe that was asked for but could not be armed. No event.
    Skipped {
        /// Number of the module.
        module: u32,
        /// Address inside the file.
        svma: u64,
        /// Name of the function.
        name: String,
        /// Why not.
        reason: String,
    },
    /// The recorder saw that a thread is gone.
    ThreadEnd {
        /// When it was seen.
        ticks: u64,
        /// The thread's ring.
        ring: u32,
        /// Which use of that ring.
        tenancy: u32,
        /// Thread id.
        tid: u32,
    },
    /// Events were lost outside any ring.
    Gap {
        /// When it was seen.
        ticks: u64,
        /// Thread id, 0 when not known.
        tid: u32,
        /// How many.
        lost: u64,
        /// Why.
        reason: GapReason,
    },
    /// Something the user should know.
    Warning {
        /// When.
        ticks: u64,
        /// A sentence.
        message: String,
    },
    /// The user's words.
    Note {
        /// When.
        ticks: u64,
        /// As given.
        text: String,
    },
}

impl Control {
    /// Returns when the event happened, or `None` for definitions, which are not events.
    pub fn ticks(&self) -> Option<u64> {
        match self {
            Self::ProcessStart { ticks, .. }
            | Self::ProcessExit { ticks, .. }
            | Self::Detached { ticks }
            | Self::ModuleLoad { ticks, .. }
            | Self::ModuleUnload { ticks, .. }
            | Self::ThreadEnd { ticks, .. }
            | Self::Gap { ticks, .. }
            | Self::Warning { ticks, .. }
            | Self::Note { ticks, .. } => Some(*ticks),
            Self::Function(_) | Self::Skipped { .. } => None,
        }
    }

    /// Returns whether the definitions file keeps this one: modules, functions and probes that could not be armed.
    pub fn is_definition(&self) -> bool {
        matches!(
            self,
            Self::Function(_) | Self::Skipped { .. } | Self::ModuleLoad { .. }
        )
    }
}

/// What a function id stands for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionDef {
    /// Function id, below [`MAX_FUNCTIONS`], dense from 0.
    pub id: u32,
    /// Number of its module.
    pub module: u32,
    /// Address inside the module's file.
    pub svma: u64,
    /// Length in bytes, 0 when not known.
    pub size: u64,
    /// Name for people, demangled.
    pub name: String,
    /// Name for the linker.
    pub linkage: String,
    /// Source file of the declaration.
    pub file: Option<String>,
    /// Source line of the declaration, from 1.
    pub line: Option<u32>,
    /// Parameters in order.
    pub params: Vec<Param>,
    /// What comes back.
    pub ret: ValueKind,
    /// False where no debug information tells the parameters and the return value.
    pub params_known: bool,
}

/// One parameter of a function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Param {
    /// Its name, empty when it has none.
    pub name: String,
    /// How to read its bits.
    pub kind: ValueKind,
    /// Where it lies when the function is entered.
    pub place: Place,
}

/// Where the System V calling convention puts a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Place {
    /// In rdi, rsi, rdx, rcx, r8, r9: 0 to 5.
    Int(u8),
    /// In xmm0 to xmm7: 0 to 7.
    Sse(u8),
    /// On the stack or behind a hidden pointer.
    Memory,
}

/// How to read the bits of a parameter or of a return value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ValueKind {
    /// Nothing comes back.
    Void,
    /// One byte, zero or not.
    Bool,
    /// One byte of text.
    Char,
    /// An integer.
    Int {
        /// 1, 2, 4, 8 or 16.
        bytes: u8,
        /// Whether it is sign-extended.
        signed: bool,
    },
    /// A floating point number.
    Float {
        /// 4, 8, 10 or 16.
        bytes: u8,
    },
    /// An address.
    Pointer,
    /// An integer with names for some of its values.
    Enum {
        /// 1, 2, 4 or 8.
        bytes: u8,
        /// Whether it is sign-extended.
        signed: bool,
        /// Value and name of each enumerator.
        names: Vec<(i64, String)>,
    },
    /// An aggregate.
    Struct {
        /// Its size.
        bytes: u64,
    },
    /// No debug information.
    Unknown,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_events_survive_messagepack() {
        let function = Control::Function(FunctionDef {
            id: 7,
            module: 1,
            svma: 0x1139,
            size: 40,
            name: "parse(int)".into(),
            linkage: "_Z5parsei".into(),
            file: Some("parse.cc".into()),
            line: None,
            params: vec![Param {
                name: "n".into(),
                kind: ValueKind::Enum {
                    bytes: 4,
                    signed: true,
                    names: vec![(-1, "none".into())],
                },
                place: Place::Int(0),
            }],
            ret: ValueKind::Struct { bytes: 24 },
            params_known: true,
        });
        let gap = Control::Gap {
            ticks: 5,
            tid: 0,
            lost: 3,
            reason: GapReason::Other(9),
        };
        for control in [function, gap, Control::Detached { ticks: 1 }] {
            let bytes = rmp_serde::to_vec(&control).unwrap();
            assert_eq!(rmp_serde::from_slice::<Control>(&bytes).unwrap(), control);
        }
    }
}
