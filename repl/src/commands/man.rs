//! `hindsight man`: the manual pages, made from the same descriptions as the help.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap_mangen::Man;

use crate::cli::Cli;
use crate::error::Error;
use crate::exit;
use crate::output::{self, to_stdout};

const EXAMPLES: &str = "\
Examples:
  hindsight man | man -l -
  hindsight man --to /usr/local/share/man/man1";

/// Write the manual pages
///
/// Without --to, prints the page hindsight(1). With it, writes that page and one for each command, such as
/// hindsight-record.1, into the folder.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The folder for the pages; it is created if there is none
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,
}

/// Runs the command and returns the exit code.
///
/// # Errors
/// When a page cannot be written.
pub fn run(args: &Args) -> Result<u8, Error> {
    let program = Cli::whole();
    let Some(folder) = &args.to else {
        let mut out = output::stdout();
        let written = out.write_all(&page(program));
        written.and_then(|()| out.flush()).map_err(to_stdout)?;
        return Ok(exit::DONE);
    };
    std::fs::create_dir_all(folder).map_err(|source| cannot_write(folder, source))?;
    let commands = program
        .get_subcommands()
        .filter(|command| !command.is_hide_set());
    let pages = commands.map(|command| {
        let name = format!("hindsight-{}", command.get_name());
        // clap keeps names for the whole run; there are some sixty.
        let name: &'static str = name.leak();
        command.clone().name(name).bin_name(name).display_name(name)
    });
    for command in pages.chain([program.clone()]) {
        let path = folder.join(format!("{}.1", command.get_name()));
        std::fs::write(&path, page(command)).map_err(|source| cannot_write(&path, source))?;
    }
    Ok(exit::DONE)
}

fn page(mut command: clap::Command) -> Vec<u8> {
    command.build();
    let mut bytes = Vec::new();
    // Writing to memory cannot fail.
    _ = Man::new(command).render(&mut bytes);
    bytes
}

fn cannot_write(path: &Path, source: std::io::Error) -> Error {
    Error::io(format!("write {}", path.display()), source)
}
