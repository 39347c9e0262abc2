//! Result types of line queries: the code of a line, the line of an address, and why there is none.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// A place in the source.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SourceLine {
    /// The file: absolute if its unit states a directory.
    pub file: Arc<str>,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1; 0 if the line table has none.
    pub column: u32,
}

/// One copy of a source line in the machine code, where a breakpoint on the line is set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinePlace {
    /// The start of the copy's first statement, or the end of the prologue if the line is the first of a function.
    pub address: u64,
    /// The file, as the line table names it.
    pub file: Arc<str>,
    /// The line. It differs from the requested line if that has no code.
    pub line: u32,
    /// The column of the statement, from 1; 0 if the line table has none.
    pub column: u32,
    /// The function that the copy belongs to. For an inlined copy, this is the inlined function, not the one around it.
    pub function: Option<Arc<str>>,
    /// The copy was inlined into another function.
    pub inlined: bool,
    /// The number of its module.
    pub module: u32,
}

/// A function with machine code of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionPlace {
    /// Readable name, as in [`crate::Function::name`].
    pub name: String,
    /// The address of its first instruction.
    pub entry: u64,
    /// The first address at which its parameters can be read, after the code that sets up the frame. Equals the entry
    /// if nothing states it.
    pub after_prologue: u64,
    /// All its parts, the one with the entry first; empty if nothing states its size.
    pub ranges: Vec<Range<u64>>,
    /// The file that declares it.
    pub file: Option<Arc<str>>,
    /// The line of the declaration.
    pub line: Option<u32>,
    /// The number of its module.
    pub module: u32,
}

/// A copy of a function's code that is inlined into another function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InlinedCopy {
    /// All its parts, the one with its first instruction first; never empty.
    pub ranges: Vec<Range<u64>>,
    /// The first instruction of the function whose code it is part of.
    pub function_entry: u64,
    /// The number of inlined calls around its code, its own included: at least 1.
    pub inline_depth: usize,
}

/// A call whose callee's code is inlined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InlinedCall {
    /// The function that calls, or the inlined copy of one. Readable name, as in [`crate::Function::name`].
    pub caller: Arc<str>,
    /// The function that is called.
    pub callee: Arc<str>,
    /// The line of the call, if it is stated.
    pub at: Option<SourceLine>,
}

/// Why a source line has no place in the machine code.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum LineError {
    /// No module has line tables.
    NoLineTables,
    /// No line table names such a file.
    UnknownFile {
        /// The requested file.
        file: String,
        /// The files with the most similar names, best first.
        nearest: Vec<Arc<str>>,
    },
    /// The line has no code, and none follows it.
    NoCode {
        /// The requested file.
        file: String,
        /// The requested line.
        line: u32,
        /// The nearest lines with code, in order.
        valid: Vec<u32>,
    },
    /// The query has a column, but the line table has none.
    NoColumns {
        /// The requested file.
        file: String,
        /// The line.
        line: u32,
    },
}

impl fmt::Display for LineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LineError::NoLineTables => f.write_str("no loaded module has line tables"),
            LineError::UnknownFile { file, nearest } if nearest.is_empty() => {
                write!(f, "No source file {file} in any loaded module")
            }
            LineError::UnknownFile { file, nearest } => write!(
                f,
                "No source file {file} in any loaded module. Nearest: {}",
                joined(nearest)
            ),
            LineError::NoCode { file, line, valid } if valid.is_empty() => {
                write!(
                    f,
                    "No code at {file}:{line}. The file has no lines with code"
                )
            }
            LineError::NoCode { file, line, valid } => {
                write!(
                    f,
                    "No code at {file}:{line}. Valid lines: {}",
                    joined(valid)
                )
            }
            LineError::NoColumns { file, line } => {
                write!(f, "the line table has no columns for {file}:{line}")
            }
        }
    }
}

impl LineError {
    /// Returns what to do about it, if the message does not already say so.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            LineError::NoLineTables => {
                Some("compile the program with -g or install its debug files")
            }
            LineError::UnknownFile { nearest, .. } if nearest.is_empty() => {
                Some("compile it with -g, or wait until its library is loaded")
            }
            LineError::NoColumns { .. } => Some("leave the column out"),
            LineError::UnknownFile { .. } | LineError::NoCode { .. } => None,
        }
    }
}

impl std::error::Error for LineError {}

fn joined<T: fmt::Display>(list: &[T]) -> String {
    let texts: Vec<String> = list.iter().map(T::to_string).collect();
    texts.join(", ")
}
