//! `hindsight completions`: the script that makes a shell complete commands, recordings and functions.

use std::io::Write;

use crate::cli;
use crate::error::Error;
use crate::exit;
use crate::output::{self, to_stdout};

const EXAMPLES: &str = "\
Examples:
  source <(hindsight completions bash)                                         in ~/.bashrc
  source <(hindsight completions zsh)                                          in ~/.zshrc
  hindsight completions fish > ~/.config/fish/completions/hindsight.fish";

/// What the script of bash lacks: the words of its line, and candidates that may be inserted.
const BASH_WORDS: &str = include_str!("completions/words.bash");

/// Print the completion script of a shell
///
/// With the script, the shell completes commands, options, recordings, the functions and source files of the current
/// session, and the numbers of breakpoints.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The shell
    #[arg(value_parser = ["bash", "zsh", "fish", "elvish", "powershell"])]
    shell: String,
}

/// Runs the command and returns the exit code.
///
/// # Errors
/// When the script cannot be written.
pub fn run(args: &Args) -> Result<u8, Error> {
    let script = cli::completion_script(&args.shell);
    let script = script.expect("the value parser admits known shells only");
    let more = match args.shell.as_str() {
        "bash" => BASH_WORDS,
        _ => "",
    };
    let mut out = output::stdout();
    let written = out
        .write_all(&script)
        .and_then(|()| out.write_all(more.as_bytes()))
        .and_then(|()| out.flush());
    written.map_err(to_stdout)?;
    Ok(exit::DONE)
}
