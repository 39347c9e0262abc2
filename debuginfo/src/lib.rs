//! Answers about ELF files and their DWARF: what code a module has, what its functions take and return.
//!
//! A [`Module`] is one program or shared library together with its separate debug files. It is asked for
//! [`Module::functions`], and where there is no debug information for [`Module::symbols`] and
//! [`Module::plt_entries`]. All addresses are [`Svma`]s: as the file states them, without a load bias.
//!
//! The crate reads files and nothing else: no process, no registers. Damaged input gives an [`Error`] when nothing can
//! be answered and [`Warning`]s when less can; it never panics.
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
mod demangle;
mod diagnostic;
mod dies;
mod disassemble;
mod dwarf;
mod elf;
mod entries;
mod error;
mod files;
mod frames;
mod functions;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod glob;
mod kept;
mod lines;
pub mod location;
mod machine;
mod map;
mod model;
mod module;
mod nesting;
mod parallel;
mod plt;
pub mod scope;
mod separate;
mod symbols;
pub mod types;
mod units;
mod unwind;
pub mod value;

pub use address_space::{AddressSpace, Mapped};
pub use demangle::{function_name, type_name};
pub use diagnostic::{Diagnostic, with_causes};
pub use disassemble::{
    Instruction, disassemble, disassemble_before, disassemble_bytes, disassemble_function,
    return_addresses,
};
pub use error::{Error, Result, Warning};
pub use glob::Glob;
pub use lines::{
    CallAt, FunctionPlace, LineError, LinePlace, SourceCopies, SourceError, SourceLine, SourceText,
    Standing, StepLine, with_source_copies,
};
pub use location::ValuePlace;
pub use location::{FrameContext, at_frame};
pub use machine::{Ages, Cause, Certainty, EntryPlace, Machine, Register, Unknown};
pub use model::{
    Binding, CodeRange, EntryFrame, Function, Functions, Param, ParameterPlace, PltEntry, RetPlace,
    RetReg, Segment, SegmentFlags, Svma, Symbol, SymbolKind, UsedXmm, ValueKind,
};
pub use module::{Module, OpenOptions};
pub use scope::{Described, Variable, global_names, has_variable, returned, variables_at};
pub use types::{Near, Role, Type, TypeKind, find_type};
pub use unwind::{
    Backtrace, Frame, FrameMachine, FrameRegisters, InnermostFrame, Wish, backtrace,
    backtrace_of_caller, innermost_call,
};
pub use value::{Value, ValueError};
