//! The `hindsight` binary: parses the command line, runs a command, and reports its error with a message and an exit
//! code.
#![forbid(unsafe_code)]
// Comments on arguments are their help texts, in which `v[5]` is an expression and not a link.
#![allow(rustdoc::broken_intra_doc_links)]

/// As the standard library's, but without a panic if nobody reads standard error: the exit code still counts.
macro_rules! eprint {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = write!(std::io::stderr(), $($text)*);
    }};
}
/// A line for [`eprint`].
macro_rules! eprintln {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($text)*);
    }};
}

mod ask;
mod cli;
mod commands;
mod duration;
mod error;
mod exit;
mod facts;
mod format;
mod json;
mod listing;
mod output;
mod progress;
mod prompt;
mod recording;
mod render;
mod report;
mod sets;
mod size;
mod spelling;
mod statement;
mod suggest;
mod travel;

use std::io::IsTerminal;
use std::process::ExitCode;

use tracing_subscriber::EnvFilter;

use crate::render::Terminal;

/// Less stack than this is too little for parsing the command line, in bytes.
const LEAST_STACK: u64 = 1 << 20;
/// What it gets then: as much as is usual.
const STACK: usize = 8 << 20;

fn main() -> ExitCode {
    let stack = rustix::process::getrlimit(rustix::process::Resource::Stack);
    if stack.current.is_none_or(|bytes| bytes >= LEAST_STACK) {
        return run();
    }
    // The limit (ulimit -s) is the program's, which inherits it. It does not hold for the stacks of other threads.
    match std::thread::Builder::new().stack_size(STACK).spawn(run) {
        Ok(thread) => {
            // Signals are to interrupt the thread that waits for the program.
            recorder::leave_signals_to_other_threads();
            thread.join().unwrap_or(ExitCode::from(exit::FAILED))
        }
        Err(error) => {
            eprintln!("error: cannot start a thread with {STACK} bytes of stack: {error}");
            ExitCode::from(exit::FAILED)
        }
    }
}

fn run() -> ExitCode {
    cli::complete();
    let mut terminal = Terminal::detect();
    start_log();
    match cli::Cli::run_args(&mut terminal) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            report::answer(&error, &terminal);
            ExitCode::from(error.exit_code())
        }
    }
}

/// Logs to stderr according to `HINDSIGHT_LOG`, such as `debug` or `query=debug,store=trace`; nothing by default.
fn start_log() {
    let filter = EnvFilter::builder()
        .with_env_var("HINDSIGHT_LOG")
        .with_default_directive(tracing::level_filters::LevelFilter::OFF.into())
        .from_env_lossy();
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .init();
}
