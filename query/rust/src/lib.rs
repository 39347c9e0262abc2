//! Opens recordings of Hindsight in Rust programs: SQL over one recording or several, and the state of the program at
//! any recorded event.
//!
//! The crate has no logic of its own, so its answers are those of `hindsight sql`, `print`, `locals` and `backtrace`.
//! It only reads, except that it completes a recording whose recorder died, as the program does.
//!
//! ```no_run
//! use hindsight::Recording;
//! use hindsight::arrow::util::pretty::print_batches;
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let recording = Recording::open("ten")?;
//!     let calls = "SELECT function, count(*) AS n FROM calls GROUP BY function";
//!     print_batches(&recording.sql(calls)?)?;
//!     let end = recording.goto("last")?;
//!     println!("n = {}", end.value("n")?.text);
//!     Ok(())
//! }
//! ```
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod answer;
mod error;
mod info;
mod moment;
mod recording;
mod recordings;

/// The Arrow library whose [`RecordBatch`](arrow::record_batch::RecordBatch) answers consist of.
///
/// ```
/// use hindsight::arrow::array::Int64Array;
///
/// let column = Int64Array::from(vec![7]);
/// assert_eq!(column.value(0), 7);
/// ```
pub use arrow;
/// How queries use the machine.
///
/// ```no_run
/// use hindsight::{Options, Recording};
///
/// let options = Options { memory_bytes: 1 << 30, ..Options::default() };
/// let recording = Recording::open_with("ten", options)?;
/// # Ok::<(), hindsight::Error>(())
/// ```
#[doc(inline)]
pub use query::Options;

pub use answer::Answer;
pub use error::{Error, Result};
pub use info::{End, Info, State};
pub use moment::{Backtrace, Certainty, Frame, Moment, Value, Variable};
pub use recording::Recording;
pub use recordings::Recordings;

/// The examples of the page are compiled.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/rust.md")]
struct Page;
