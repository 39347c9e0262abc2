//! `hindsight repl`: a prompt for moving through time in a recording or a live program.

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead, BufReader, IsTerminal};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use crate::commands::live::{Common, Launching, Link};
use crate::commands::target;
use crate::error::Error;
use crate::recording::{OfCore, locate};
use crate::render::Terminal;
use crate::travel::{self, Aliases, Present, ScriptInput, Session};

const EXAMPLES: &str = "\
Examples:
  hindsight repl app                                a prompt on app.hindsight; Tab completes, help explains
  hindsight repl ./app -- --port 80                 start a program and stop before its first instruction
  hindsight repl --break parse ./app                start it and stop where parse is entered
  hindsight repl                                    a prompt on the live session; --session N where there are several
  hindsight repl app --cmd 'goto last' --cmd where  run verbs and leave
  hindsight repl app --script look.txt              the same from a file
  echo 'break parse
  continue
  args' | hindsight repl ./app                      or from stdin

A recording's verbs: goto, step, next, finish, continue and each of them back;
where, backtrace, locals, args, print, registers, memory, source, disassemble,
threads, calls, history, last-write, why, object, watch, output, note, notes. A
live program has all verbs of the command line, and goto into its own past. A
line that begins with SELECT, WITH or EXPLAIN is SQL. Leaving ends a program
that was started here.";

/// Step through a recording or a live program, forwards and backwards
///
/// Opens a prompt at a recording's first event, or on a live program that it starts or that is already under control. A
/// name with a slash is a program if it can be executed, unless it is the folder of a recording. Any other name is looked
/// up as a recording first.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The recording, with or without .hindsight; or a program; its arguments follow --
    #[arg(value_name = "RECORDING|PROGRAM")]
    target: Vec<OsString>,
    /// Look at this live session [default without RECORDING|PROGRAM: the only one]
    #[arg(long, value_name = "N", conflicts_with = "target")]
    session: Option<u32>,
    #[command(flatten)]
    launching: Launching,
    /// Run this line and exit; may be repeated
    #[arg(long, value_name = "LINE", conflicts_with = "script")]
    cmd: Vec<String>,
    /// Run the lines of this file and exit
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,
    /// Print replies as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    core: OfCore,
}

/// Runs the command and returns the exit code.
///
/// # Errors
/// When the recording or the script cannot be read, or the program not be started.
pub fn run(args: Args, terminal: &Terminal) -> Result<u8, Error> {
    // Open the script before a program is started, so that a wrong name does not cost a start.
    let script = args.script.as_deref().map(opened).transpose()?;
    let mut session = match &args.target[..] {
        [] if args.launching.is_given() => {
            return Err(Error::usage(
                "these options are for a program that is started, and none is named",
                Some("write: hindsight repl PROGRAM [-- ARGUMENTS]".to_owned()),
            ));
        }
        [] => {
            let link = Rc::new(Link::of_prompt(terminal));
            let present = Present::find(args.session, &link)?;
            Session::live(present, link, Aliases::load()?, args.json)
        }
        target if is_program(target, &args.launching) => {
            return started(args, script, terminal);
        }
        [recording, ..] => {
            let path = args.core.locate(Path::new(recording))?;
            Session::open(&path, terminal, args.json)?
        }
    };
    let code = lines(&mut session, &args.cmd, script, terminal)?;
    session.leave()?;
    Ok(code)
}

/// Starts a program and continues at its prompt.
fn started(args: Args, script: Option<Script>, terminal: &Terminal) -> Result<u8, Error> {
    let link = Rc::new(Link::of_prompt(terminal));
    let aliases = Aliases::load()?;
    let common = Common {
        session: None,
        json: args.json,
    };
    let launching = match args.launching.stops() {
        true => args.launching,
        // A user who opens a prompt wants to type before the program runs.
        false => args.launching.stopping_on_entry(),
    };
    let code = launching.start(&common, &link, &args.target)?;
    let Some(begun) = link.take_begun() else {
        return Ok(code);
    };
    let present = Present::begun(begun, &link);
    // A Ctrl-C during the first wait has ended that wait.
    link.take_interrupted();
    let mut session = Session::live(present, link, aliases, args.json);
    let code = lines(&mut session, &args.cmd, script, terminal);
    session.leave()?;
    code
}

/// The name of a script, and its lines.
type Script = (String, BufReader<File>);

fn opened(path: &Path) -> Result<Script, Error> {
    let name = path.display().to_string();
    let file = File::open(path).map_err(|source| Error::io(format!("read {name}"), source))?;
    Ok((name, BufReader::new(file)))
}

fn lines(
    session: &mut Session,
    cmd: &[String],
    script: Option<Script>,
    terminal: &Terminal,
) -> Result<u8, Error> {
    if !cmd.is_empty() {
        return session.lines(
            &ScriptInput::Options,
            cmd.iter().map(|line| Ok(line.clone())),
        );
    }
    match script {
        Some((name, file)) => session.lines(&ScriptInput::File(name), file.lines()),
        None if std::io::stdin().is_terminal() && terminal.interactive => {
            travel::interactive(session)
        }
        None => session.lines(&ScriptInput::Stdin, std::io::stdin().lock().lines()),
    }
}

/// Returns whether the target is a program: there are arguments or options for one, or the name is a program's and not a
/// recording's.
fn is_program(target: &[OsString], launching: &Launching) -> bool {
    let [name, rest @ ..] = target else {
        return false;
    };
    let path = Path::new(name);
    if debuginfo::is_core_file(path).unwrap_or(false) {
        return false;
    }
    if !rest.is_empty() || launching.is_given() {
        return true;
    }
    let is_folder_of_one = path.join(store::format::MANIFEST_FILE).is_file();
    let is_path = name.as_bytes().contains(&b'/');
    match (is_folder_of_one, is_path) {
        (true, _) => false,
        (false, true) => path
            .metadata()
            .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0),
        // As in a shell, a program in the current folder is not found by its bare name.
        (false, false) => locate(path).is_err() && target::check_program(name).is_ok(),
    }
}
