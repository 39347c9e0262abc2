//! `start` and `attach`, which share options with `record`; `detach` and `stop`, which can pack the recording
//! afterwards.

use std::ffi::OsString;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use server::location::Target;
use server::os_text::OsText;
use server::quantity::count;
use server::session::{Attach as AttachTo, Launch, Probes, Recording};
use server::verbs::{self, AttachArgs, EndReply, Nothing, StartArgs, Verb, session_text};

use super::Link;
use super::ask::{Common, Patience, answer, fetch};
use super::generic::written;
use super::link::Origin;
use crate::commands::captured::Captured;
use crate::commands::keeping::Keeping;
use crate::commands::probing::Probing;
use crate::commands::recorded::Besides;
use crate::commands::{pack, target};
use crate::duration;
use crate::error::Error;
use crate::progress::Progress;
use crate::render::{bytes, escaped};

/// What is recorded, and where to.
#[derive(Debug, Default, clap::Args)]
struct Kept {
    /// Where to write [default: the program's name with .hindsight, in this folder]
    #[arg(short, long, value_name = "NAME")]
    output: Option<PathBuf>,
    /// Record only functions that match: a name in the program (with * and ?), a whole name in any library, LIBRARY:NAME
    /// (libc.so.6:*printf), file:GLOB or module:GLOB; may be repeated
    #[arg(short = 'f', long = "function", value_name = "PATTERN")]
    include: Vec<String>,
    /// Do not record functions that match; may be repeated
    #[arg(short = 'x', long, value_name = "PATTERN")]
    exclude: Vec<String>,
    #[command(flatten)]
    keeping: Keeping,
    #[command(flatten)]
    captured: Captured,
    #[command(flatten)]
    besides: Besides,
}

impl Kept {
    fn recording(&self) -> Recording {
        Recording {
            output: self.output.as_ref().map(|path| path.as_os_str().into()),
            include: self.include.clone(),
            exclude: self.exclude.clone(),
            keep_log: self.keeping.keep_log,
            on_full: self.keeping.on_full.into(),
            snapshot: self.keeping.snapshot,
            regs: self.captured.regs,
            stack: self.captured.stack.unwrap_or(0),
            strings: self.captured.strings,
            pointees: self.captured.pointees,
            besides: server::session::Besides {
                syscalls: self.besides.syscalls,
                memory: self.besides.memory,
                locks: self.besides.locks,
            },
            watch: self.captured.watch.clone(),
            probes: Probes::default(),
            no_aslr: false,
            stdin: None,
        }
    }
}

/// How a program is started.
#[derive(Debug, Default, clap::Args)]
pub struct Launching {
    #[command(flatten)]
    kept: Kept,
    #[command(flatten)]
    probing: Probing,
    /// Load the program and its libraries at the same addresses in each run
    #[arg(long)]
    no_aslr: bool,
    /// Let the program read this file as its standard input [default: /dev/null]
    #[arg(long, value_name = "FILE")]
    stdin: Option<PathBuf>,
    /// Set a breakpoint before the program runs: function, file:line or 0xADDRESS; may be repeated
    #[arg(long = "break", value_name = "LOCATION")]
    breaks: Vec<String>,
    /// Show and record the value of an expression at every stop; may be repeated
    #[arg(long = "display", value_name = "EXPRESSION")]
    displays: Vec<String>,
    /// Stop before the program's own code runs
    #[arg(long)]
    stop_on_entry: bool,
    /// Let breakpoints, logpoints and logged variables wait for libraries that are loaded later
    #[arg(long)]
    pending: bool,
    /// How long to wait for the first stop
    #[arg(long, value_name = "SECONDS", value_parser = duration::seconds)]
    timeout: Option<f64>,
}

#[derive(Debug, clap::Args)]
pub struct Start {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    launching: Launching,
    /// The program and its arguments; put arguments that begin with a hyphen after --
    #[arg(value_name = "PROGRAM", required = true)]
    command: Vec<OsString>,
}

impl Start {
    pub fn run(&self, link: &Link) -> Result<u8, Error> {
        // A prompt may read its lines there.
        let redirected = match link.is_prompt() {
            true => None,
            false => redirected()?,
        };
        let launching = &self.launching;
        launching.start_reading(&self.common, link, &self.command, redirected)
    }
}

impl Launching {
    /// Returns whether an option is given that only applies to a program.
    pub fn is_given(&self) -> bool {
        let kept = &self.kept;
        self.stops()
            || self.pending
            || self.no_aslr
            || self.stdin.is_some()
            || self.probing.is_given()
            || !self.displays.is_empty()
            || self.timeout.is_some()
            || kept.output.is_some()
            || !kept.include.is_empty()
            || !kept.exclude.is_empty()
            || kept.keeping.is_given()
            || kept.captured.is_given()
            || kept.besides != Besides::default()
    }

    /// Returns whether the program stops without being asked to.
    pub fn stops(&self) -> bool {
        self.stop_on_entry || !self.breaks.is_empty()
    }

    /// Adds a stop at the entry point.
    pub fn stopping_on_entry(self) -> Launching {
        Launching {
            stop_on_entry: true,
            ..self
        }
    }

    /// Starts a program: the first word of `command`, with the others as its arguments.
    ///
    /// # Errors
    /// When the verb fails.
    pub fn start(&self, common: &Common, link: &Link, command: &[OsString]) -> Result<u8, Error> {
        self.start_reading(common, link, command, None)
    }

    /// As [`Launching::start`]. Without `--stdin` the program reads the file `redirected`, or else `/dev/null`.
    fn start_reading(
        &self,
        common: &Common,
        link: &Link,
        command: &[OsString],
        redirected: Option<PathBuf>,
    ) -> Result<u8, Error> {
        let named = self.stdin.as_deref().map(whole).transpose()?;
        let stdin = named.or(redirected);
        let terminal = link.terminal();
        if let Some(program) = command.first() {
            target::check_program(program)?;
        }
        let argv: Vec<OsText> = command.iter().map(|word| word.as_os_str().into()).collect();
        let pair = |(name, value): (OsString, OsString)| {
            (name.as_os_str().into(), value.as_os_str().into())
        };
        let args = StartArgs {
            launch: Launch {
                argv,
                cwd: cwd()?,
                env: std::env::vars_os().map(pair).collect(),
                recording: Recording {
                    probes: self.probing.probes(self.pending),
                    no_aslr: self.no_aslr,
                    stdin: stdin.map(|path| path.as_os_str().into()),
                    ..self.kept.recording()
                },
            },
            breaks: self.breaks.iter().cloned().map(Target::Text).collect(),
            displays: self.displays.clone(),
            stop_on_entry: self.stop_on_entry,
            pending: self.pending,
            timeout_secs: self.timeout,
        };
        let patience = Patience::Start(self.timeout);
        let reply = fetch::<verbs::Start>(common, link, &args, patience);
        if let Ok(report) = &reply {
            link.begun(report, Origin::Started);
        }
        answer::<verbs::Start>(common, reply, |reply| {
            written(&session_text(reply), terminal)
        })
    }
}

/// Returns the whole path of a file that the program is to read.
fn whole(file: &Path) -> Result<PathBuf, Error> {
    let failed = |source| Error::io(format!("read {}", file.display()), source);
    file.canonicalize().map_err(failed)
}

/// Returns the file that the command's standard input is, as in `start PROGRAM < FILE`. The daemon, which starts the
/// program, opens it again, so it must still have a name.
fn redirected() -> Result<Option<PathBuf>, Error> {
    let open = Path::new("/proc/self/fd/0");
    let Ok(file) = open.metadata() else {
        return Ok(None);
    };
    if !file.is_file() {
        return Ok(None);
    }
    let path = open.read_link().unwrap_or_default();
    let is_it = |named: Metadata| (named.dev(), named.ino()) == (file.dev(), file.ino());
    match path.metadata().is_ok_and(is_it) {
        true => Ok(Some(path)),
        false => Err(Error::usage(
            "the file on standard input has no name any more, so the program cannot read it",
            Some(
                "write it to a file: --stdin FILE; or give the program nothing: < /dev/null"
                    .to_owned(),
            ),
        )),
    }
}

#[derive(Debug, clap::Args)]
pub struct Attach {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    kept: Kept,
    /// The process
    #[arg(value_name = "PID")]
    pid: i32,
}

impl Attach {
    pub fn run(&self, link: &Link) -> Result<u8, Error> {
        let terminal = link.terminal();
        target::check_process(self.pid)?;
        let args = AttachArgs {
            attach: AttachTo {
                pid: self.pid,
                cwd: cwd()?,
                recording: self.kept.recording(),
            },
        };
        let patience = Patience::Start(None);
        let reply = fetch::<verbs::Attach>(&self.common, link, &args, patience);
        if let Ok(report) = &reply {
            link.begun(report, Origin::Found);
        }
        answer::<verbs::Attach>(&self.common, reply, |reply| {
            written(&session_text(reply), terminal)
        })
    }
}

fn cwd() -> Result<OsText, Error> {
    let cwd = std::env::current_dir().map_err(|source| Error::io("find this folder", source))?;
    Ok(cwd.as_os_str().into())
}

/// Says how a session has ended.
pub fn ended(reply: &EndReply) -> String {
    let mut text = format!(
        "The program {}. {}: {}, {}\n",
        reply.exit.text,
        escaped(&reply.recording.to_string_lossy()),
        count(reply.calls, "call"),
        bytes(reply.bytes_on_disk)
    );
    if reply.lost > 0 {
        let lost = count(reply.lost, "record");
        text += &format!("Lost: {lost} (--on-full drop); the table gaps says where\n");
    }
    if let Some(reason) = &reply.incomplete {
        text += &format!("The recording is incomplete: {}\n", escaped(reason));
    }
    text
}

/// How a session is closed.
#[derive(Debug, clap::Args)]
struct Closing {
    #[command(flatten)]
    common: Common,
    /// Copy the program's modules, debug files and sources into the recording, as hindsight pack does
    #[arg(long)]
    portable: bool,
}

impl Closing {
    fn run<V: Verb<Args = Nothing, Reply = EndReply>>(&self, link: &Link) -> Result<u8, Error> {
        let terminal = link.terminal();
        let patience = Patience::Start(None);
        let reply = fetch::<V>(&self.common, link, &Nothing {}, patience);
        if let (true, Ok(reply)) = (self.portable, &reply) {
            pack::pack_or_warn(&reply.recording, &Progress::new(terminal));
        }
        answer::<V>(&self.common, reply, ended)
    }
}

#[derive(Debug, clap::Args)]
pub struct Detach {
    #[command(flatten)]
    closing: Closing,
}

impl Detach {
    pub fn run(&self, link: &Link) -> Result<u8, Error> {
        self.closing.run::<verbs::Detach>(link)
    }
}

#[derive(Debug, clap::Args)]
pub struct Stop {
    #[command(flatten)]
    closing: Closing,
}

impl Stop {
    pub fn run(&self, link: &Link) -> Result<u8, Error> {
        self.closing.run::<verbs::Stop>(link)
    }
}
