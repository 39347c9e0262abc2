//! Which functions, events and processes a recording has: options of `record`.

use std::time::Duration;

use crate::duration::parse as parse_duration;

/// Which functions are recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq, clap::Args)]
pub struct Functions {
    /// Record only functions that match: a name in the program (with * and ?), a whole name in any library, LIBRARY:NAME
    /// (libc.so.6:*printf), file:GLOB or module:GLOB; may be repeated
    #[arg(short = 'f', long = "function", value_name = "PATTERN")]
    pub include: Vec<String>,
    /// Do not record functions that match; overrides --function; may be repeated
    #[arg(short = 'x', long, value_name = "PATTERN")]
    pub exclude: Vec<String>,
}

/// What is recorded besides them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::Args)]
pub struct Besides {
    /// Also record system calls with their decoded arguments, results and times, for the tables syscalls and files
    #[arg(long, overrides_with = "no_syscalls")]
    pub syscalls: bool,
    /// Record no system calls (the default); cancels an earlier --syscalls
    #[arg(long, overrides_with = "syscalls")]
    pub no_syscalls: bool,
    /// Also record calls that allocate and free memory, for the table allocations and report --memory
    #[arg(long)]
    pub memory: bool,
    /// Also record calls that acquire and release locks or wait, for the table locks and report --locks
    #[arg(long)]
    pub locks: bool,
}

/// A process that runs already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::Args)]
pub struct Attached {
    /// Attach to this running process instead of starting a program
    #[arg(long = "attach", value_name = "PID", conflicts_with = "command", value_parser = parse_pid)]
    pub pid: Option<i32>,
    /// With --attach: stop recording after this many seconds (or 500ms, 2m); the process keeps running
    #[arg(long = "for", value_name = "SECONDS", value_parser = parse_duration)]
    pub duration: Option<Duration>,
}

/// The processes that it starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::Args)]
pub struct Family {
    /// Also record all processes that the program starts, into a folder NAME.children with a recording of each program
    #[arg(long, conflicts_with_all = ["pid", "portable"])]
    pub children: bool,
    /// With --children: also record forked copies, from the fork on; each fork takes longer
    #[arg(long)]
    pub copies: bool,
    /// Record the process that standard input tells of
    #[arg(long, hide = true, conflicts_with_all = ["pid", "children", "command"])]
    pub parked: bool,
}

/// What becomes of the recording when it is done.
#[derive(Clone, Debug, Default, PartialEq, Eq, clap::Args)]
pub struct Kept {
    /// Label this run, KEY=VALUE; may be repeated. ls, info and the table runs show labels
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = store::labels::parse)]
    pub labels: Vec<(String, String)>,
    /// End the recording when it takes this much disk space (2GB, 500MB); the program continues unrecorded, at full speed
    #[arg(long, value_name = "SIZE", value_parser = crate::size::parse, conflicts_with_all = ["children", "parked"])]
    pub max_size: Option<usize>,
    /// When the program has ended, copy its modules, debug files and sources into the recording, as hindsight pack does
    #[arg(long)]
    pub portable: bool,
}

fn parse_pid(text: &str) -> Result<i32, String> {
    match text.parse() {
        Ok(pid) if pid > 0 => Ok(pid),
        _ => Err("write the number of a process, as ps shows it".to_owned()),
    }
}
