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

fn main() -> ExitCode {
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
