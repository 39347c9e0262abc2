//! Every instruction: records what a program cannot compute by itself (what the kernel and the processor decided), and runs it again.

pub mod abi;
mod digest;
mod error;
mod log;
pub mod maps;
mod operands;
mod outline;
pub mod ptrace;
mod record;
mod replay;
pub mod system_calls;
mod tracee;
pub mod translate;

pub use error::{Error, Result};
pub use log::{Fatal, MappedFile, Registers, cut};
pub use outline::{Became, Gap, Mapping, Outline, ThreadSpan, outline};
pub use record::{
    Ahead, Choose, Ending, LONGEST_INSTRUCTION, Next, Options, Recorded, Standing, Stepped,
    Stepping, Summary, When, close_again, record,
};
pub use replay::{
    Access, Batch, Call, Called, Executed, Hints, Instruction, Leaver, Overseer, Region, Replay,
    Returned, Seek, Switcher, Traced, trace,
};
pub use replay::{Contradiction, Verdict, verify};
pub use translate::hooks::Hook;
