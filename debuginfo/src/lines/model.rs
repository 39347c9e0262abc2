//! The words of the answers about lines: where a line's code is, what line an address belongs to, why there is none.

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

/// One copy of a source line in the machine code: where a breakpoint on the line goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinePlace {
    /// Where the copy's first statement begins; behind the prologue if the line is the first of a function.
    pub address: u64,
    /// The file, as the line table names it.
    pub file: Arc<str>,
    /// The line: another one than was asked for if that has no code.
    pub line: u32,
    /// The column of the statement, from 1; 0 if the line table has none.
    pub column: u32,
    /// The function that the copy belongs to; for an inlined one, that function, not the one around it.
    pub function: Option<Arc<str>>,
    /// The copy was inlined into another function.
    pub inlined: bool,
    /// The number of the module it lies in.
    pub module: u32,
}

/// A function with machine code of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionPlace {
    /// Readable name, as in [`crate::Function::name`].
    pub name: String,
    /// Its first instruction.
    pub entry: u64,
    /// Where its parameters can be read: behind the code that sets up the frame. The entry, if nothing tells.
    pub after_prologue: u64,
    /// All its parts, the one with the entry first; empty if nothing states its size.
    pub ranges: Vec<Range<u64>>,
    /// The file that declares it.
    pub file: Option<Arc<str>>,
    /// The line of the declaration.
    pub line: Option<u32>,
    /// The number of the module it lies in.
    pub module: u32,
}

/// Why a source line has no place in the machine code.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum LineError {
    /// No module has line tables.
    NoLineTables,
    /// No line table names such a file.
    UnknownFile {
        /// The file that was asked for.
        file: String,
        /// The files with the most similar names, best first.
        nearest: Vec<Arc<str>>,
    },
    /// The line has no code, and none follows it.
    NoCode {
        /// The file that was asked for.
        file: String,
        /// The line that was asked for.
        line: u32,
        /// The nearest lines with code, in order.
        valid: Vec<u32>,
    },
    /// A column was asked for, and the line table has none.
    NoColumns {
        /// The file that was asked for.
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
    /// Returns what to do about it, where there is something that the message does not say.
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
