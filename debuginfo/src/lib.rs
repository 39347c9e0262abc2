//! Answers questions about ELF files and their DWARF: what code a module has, what its functions take and return.
//!
//! A [`Module`] is one program or shared library together with its separate debug files. [`Module::functions`] lists
//! its functions. Without debug information, [`Module::symbols`] and [`Module::plt_entries`] list what is known. All
//! addresses are [`Svma`]s: as the file states them, without a load bias.
//!
//! The crate only reads files. It touches no process and no registers. Damaged input yields an [`Error`] if nothing can
//! be answered, and [`Warning`]s if the answer is incomplete. It never causes a panic.
//!
//! ```
//! let module = debuginfo::Module::open("/proc/self/exe")?;
//! let main = module.symbols().into_iter().find(|s| s.linkage == "main");
//! assert!(main.is_some());
//! # Ok::<(), debuginfo::Error>(())
//! ```
#![deny(unsafe_code)]

mod abi;
mod address_space;
mod cache;
mod code;
mod code_hash;
mod constants;
mod core_file;
mod demangle;
mod diagnostic;
mod dies;
mod disassemble;
mod dwarf;
mod elf;
mod entries;
mod error;
mod extended;
mod files;
mod frames;
mod functions;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod glob;
mod initial;
mod kept;
mod limit;
mod lines;
pub mod location;
mod machine;
mod map;
mod model;
mod module;
mod nesting;
mod own_code;
mod parallel;
mod plt;
pub mod prototypes;
pub mod scope;
mod separate;
mod shared_modules;
mod shared_variables;
mod symbols;
pub mod syscalls;
pub mod types;
mod units;
mod unwind;
pub mod value;
mod versions;

pub use address_space::{AddressSpace, Mapped};
pub use code_hash::{CodeHasher, CodePrint};
pub use core_file::{
    CORE_REGISTERS, CoreFile, CoreGap, CoreImage, CoreMapping, CorePiece, CoreProcess, CoreSignal,
    CoreThread, ImageSegment, ImageThread, is_core_file, write_head,
};
pub use demangle::{function_name, object_variant, type_name};
pub use diagnostic::{Diagnostic, with_causes};
pub use disassemble::{
    Instruction, disassemble, disassemble_bytes, disassemble_function, return_addresses,
};
pub use error::{Error, Result, Warning};
pub use extended::Extended;
pub use functions::{brief_name, short_name, short_name_at, told_apart, without_arguments};
pub use glob::Glob;
pub use limit::{GivenUp, Limit};
pub use lines::{
    CallAt, FunctionPlace, InlinedCall, InlinedCopy, LineError, LineGoal, LinePlace, Look,
    SourceCopies, SourceError, SourceLine, SourceText, Standing, StepLine, names_function,
    with_source_copies,
};
pub use location::ValuePlace;
pub use location::{FrameContext, at_frame};
pub use machine::{Ages, Cause, Certainty, EntryPlace, Machine, Register, RegisterPart, Unknown};
pub use model::{
    Binding, CodeRange, EntryFrame, Function, Functions, Param, ParameterPlace, PltEntry, RetPlace,
    RetReg, Segment, SegmentFlags, Svma, Symbol, SymbolKind, UsedXmm, ValueKind,
};
pub use module::{Module, OpenOptions};
pub use own_code::{is_library_source, is_system_path};
pub use scope::{
    Described, FullName, Variable, full_names_of_globals, full_names_of_types, global_names,
    has_variable, returned, variables_at,
};
pub use separate::{build_id_of, debuginfod_cache};
pub use shared_modules::shared_module;
pub use shared_variables::SharedVariables;
pub use types::{Near, Role, Type, TypeKind, find_type};
pub use unwind::{
    Backtrace, Frame, FrameLeaver, FrameMachine, FrameRegisters, Held, InnermostFrame, Wish,
    backtrace, backtrace_of_caller, innermost_call,
};
pub use value::{Value, ValueError};
