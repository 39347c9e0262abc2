//! `gcore`: writes a core file of the stopped program, which gdb and `hindsight open` read.

use std::ffi::OsString;
use std::path::PathBuf;

use recorder::live::ThreadState;
use serde::{Deserialize, Serialize};

use super::{Call, Command, Does, Form, Needs, Text, Verb, Word};
use crate::os_text::OsText;
use crate::protocol::{Code, Failure};
use crate::quantity::count;

/// The `gcore` verb.
pub struct Gcore;

/// The arguments of `gcore`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GcoreArgs {
    /// The file, which must not exist. Default: `core.PID` in the client's folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<OsText>,
}

/// The reply of `gcore`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GcoreReply {
    /// The file.
    #[serde(with = "store::os_path")]
    pub file: PathBuf,
    /// Its length in bytes; memory that was never touched takes no room on the disk.
    pub bytes: u64,
    /// How many threads it has.
    pub threads: usize,
    /// How many bytes of memory could not be read: they are zero in the file.
    #[serde(default)]
    pub unreadable: u64,
}

impl Verb for Gcore {
    const NAME: &'static str = "gcore";
    const DOC: &'static str = "Write a core file of the stopped program\n\n  gcore     gcore /tmp/app.core\n\nAll threads must be stopped: pause. The file has the program's memory without the traps and patches of recording. gdb reads it, and so does hindsight open.";
    const NEEDS: Needs = Needs::StoppedProgram;
    const DOES: Does = Does::Look;
    type Args = GcoreArgs;
    type Reply = GcoreReply;

    fn run(call: &Call<'_>, args: GcoreArgs) -> Result<GcoreReply, Failure> {
        let session = call.live()?;
        let stop = session.stopped()?;
        let threads = session.live.threads();
        let runs = threads
            .iter()
            .find(|thread| thread.state == ThreadState::Running);
        if let Some(runs) = runs {
            let message = format!("thread {} is running, so its memory could change", runs.tid);
            return Err(Failure::new(Code::NotStopped, message).hint("stop all threads: pause"));
        }
        let name = match &args.file {
            Some(file) => PathBuf::from(OsString::from(file)),
            None => PathBuf::from(format!("core.{}", session.live.pid())),
        };
        let file = call.folder().join(name);
        let dumped = session.live.dump_core(&file, stop.tid).map_err(|error| {
            let message = format!(
                "the core file {} cannot be written: {error}",
                file.display()
            );
            let failure = Failure::new(Code::Failed, message);
            match error.kind() {
                std::io::ErrorKind::AlreadyExists => failure.hint("name another file: gcore FILE"),
                _ => failure,
            }
        })?;
        Ok(GcoreReply {
            file,
            bytes: dumped.len,
            threads: dumped.threads,
            unreadable: dumped.unreadable,
        })
    }
}

impl Command for Gcore {
    const WORDS: &'static [Word] = &[Word::new(
        "file",
        "FILE",
        Form::Path,
        "The new file [default: core.PID in this folder]",
    )
    .optional()];

    fn text(reply: &GcoreReply, _: &GcoreArgs) -> Text {
        let mut text = Text::line(format!(
            "{}: {}, {} bytes",
            reply.file.display(),
            count(reply.threads as u64, "thread"),
            reply.bytes
        ));
        if reply.unreadable > 0 {
            text.push(format!(
                "({} bytes could not be read and are zero in it)",
                reply.unreadable
            ));
        }
        text
    }
}
