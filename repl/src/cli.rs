//! The command line: which commands there are, and `--help` and `--version` of the whole.

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::commands::{check, guard, info, record, setup, sql};
use crate::error::Error;
use crate::exit;
use crate::render::Terminal;

const ABOUT: &str = "Records a program while it runs, then answers SQL over everything it did";

const EXAMPLES: &str = "\
Examples:
  hindsight record ./app        run it and write app.hindsight
  hindsight info app            what was recorded
  hindsight sql app             a prompt: SQL, Tab completes, \\d lists the tables
  hindsight sql app \"select * from calls order by dur_ns desc limit 10\"
  hindsight sql app \"select * from calls\" -o calls.parquet
  hindsight check app           verify every checksum and rule
";

/// The whole command line.
#[derive(Debug, Parser)]
#[command(
    name = "hindsight",
    about = ABOUT,
    version,
    after_help = format!("{EXAMPLES}\n{}", exit::HELP),
    disable_help_subcommand = false,
    subcommand_required = true,
    arg_required_else_help = true,
)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Record(record::Args),
    Sql(sql::Args),
    Info(info::Args),
    Check(check::Args),
    Setup(setup::Args),
    #[command(hide = true)]
    Guard(guard::Args),
}

/// Help is never wider than this, and on a terminal not wider than that.
const HELP_COLUMNS: usize = 100;

impl Cli {
    /// Reads the command line; ends the program when it is wrong or asks for help.
    pub fn of_args(terminal: &Terminal) -> Cli {
        let columns = if terminal.stdout {
            Terminal::size().0.min(HELP_COLUMNS)
        } else {
            HELP_COLUMNS
        };
        let matches = Cli::command().term_width(columns).get_matches();
        Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
    }

    /// Runs the command and returns the exit code.
    ///
    /// # Errors
    /// Whatever the command fails with.
    pub fn run(self, terminal: &Terminal) -> Result<u8, Error> {
        match self.command {
            Command::Record(args) => record::run(args, terminal),
            Command::Sql(args) => sql::run(args, terminal),
            Command::Info(args) => info::run(&args, terminal),
            Command::Check(args) => check::run(&args, terminal),
            Command::Setup(args) => setup::run(&args, terminal),
            Command::Guard(args) => guard::run(&args),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
