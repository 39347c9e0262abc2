//! Options for additional captures, shared by `record` and sessions.

use recorder::Captures;

/// What is kept besides with calls.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Captured {
    /// Keep all general registers at each enter and leave; in a session, also at logpoints
    #[arg(long)]
    pub regs: bool,
    /// Keep this many bytes of the stack at each enter and leave, 8 to 16384
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(8..=16384))]
    pub stack: Option<u32>,
    /// Keep the text of string arguments (char*, &str, String, std::string), up to 256 bytes of each
    #[arg(long)]
    pub strings: bool,
    /// Keep what pointer and reference arguments point to, at each enter and leave, up to 256 bytes of each
    #[arg(long)]
    pub pointees: bool,
    /// Keep the value of an expression at each enter and leave: one over global or thread-local variables always, one over
    /// a function's variables (`push::q->len`, `main::total`) from its entry until it returns; may be repeated
    #[arg(long, value_name = "EXPRESSION")]
    pub watch: Vec<String>,
}

impl From<Captured> for Captures {
    fn from(captured: Captured) -> Self {
        Self {
            registers: captured.regs,
            stack_len: captured.stack.unwrap_or(0),
            texts: captured.strings,
            pointees: captured.pointees,
            system_calls: false,
            memory: false,
            locks: false,
            watches: captured.watch,
        }
    }
}

impl Captured {
    /// Returns whether any of the options is given.
    pub fn is_given(&self) -> bool {
        let has_calls = self.strings || self.pointees || !self.watch.is_empty();
        self.regs || self.stack.is_some() || has_calls
    }
}
