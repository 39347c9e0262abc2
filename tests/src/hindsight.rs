//! Finds or builds the `hindsight` binary, and offers its commands as functions.

use crate::process::{Ended, Program, Running, Status};
use crate::recording::Recording;
use crate::scratch::{Scratch, target_dir, workspace_dir};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Prefix of the lines that `record` itself writes to standard error.
const OWN_PREFIX: &str = "hindsight: ";

/// The program under test.
pub struct Hindsight;

impl Hindsight {
    /// Finds the binary: `$HINDSIGHT_BIN`, or else one built from this workspace in the release profile.
    ///
    /// # Panics
    /// If it does not build.
    pub fn path() -> &'static Path {
        static PATH: OnceLock<PathBuf> = OnceLock::new();
        PATH.get_or_init(|| std::env::var_os("HINDSIGHT_BIN").map_or_else(build, PathBuf::from))
    }

    /// A `hindsight` command, run in the test's folder.
    #[must_use]
    pub fn command(scratch: &Scratch, args: &[&str]) -> Program {
        Program::new(Self::path(), scratch.path()).args(args)
    }

    /// `hindsight record` of a program, into `NAME.hindsight` in the test's folder.
    #[must_use]
    pub fn record_command(
        scratch: &Scratch,
        name: &str,
        options: &[&str],
        program: &Program,
    ) -> Program {
        let mut args: Vec<OsString> = vec!["record".into(), "-o".into(), scratch.join(name).into()];
        args.extend(options.iter().map(OsString::from));
        args.push("--".into());
        program.wrapped(Self::path(), args)
    }

    /// Records a program to its end.
    ///
    /// # Panics
    /// If nothing was recorded.
    #[must_use]
    pub fn record(scratch: &Scratch, options: &[&str], program: &Program) -> (Ended, Recording) {
        let ended = Self::record_command(scratch, "rec", options, program).run();
        let folder = scratch.join("rec.hindsight");
        assert!(folder.is_dir(), "no recording was made: {ended:?}");
        (ended, Recording::new(folder))
    }

    /// Records a program, into `NAME.hindsight` in the test's folder.
    ///
    /// # Panics
    /// If it does not end with 0, or nothing was recorded.
    pub fn recorded(
        scratch: &Scratch,
        name: &str,
        options: &[&str],
        program: &Program,
    ) -> Recording {
        let ended = Self::record_command(scratch, name, options, program).run();
        assert_eq!(ended.status, Status::Code(0), "{}", ended.errors());
        let folder = scratch.join(&format!("{name}.hindsight"));
        assert!(folder.is_dir(), "no recording was made: {ended:?}");
        Recording::new(folder)
    }

    /// Starts `hindsight record` in the background.
    #[must_use]
    pub fn start_recording(
        scratch: &Scratch,
        options: &[&str],
        program: &Program,
    ) -> (Running, Recording) {
        let running = Self::record_command(scratch, "rec", options, program).start();
        (running, Recording::new(scratch.join("rec.hindsight")))
    }
}

/// Splits standard error of `record` into the program's part and Hindsight's own lines.
#[must_use]
pub fn split_own_lines(stderr: &[u8]) -> (Vec<u8>, Vec<String>) {
    let (mut theirs, mut own) = (Vec::new(), Vec::new());
    for line in stderr.split_inclusive(|b| *b == b'\n') {
        if line.starts_with(OWN_PREFIX.as_bytes()) {
            own.push(String::from_utf8_lossy(line).trim_end().to_owned());
        } else {
            theirs.extend_from_slice(line);
        }
    }
    (theirs, own)
}

fn build() -> PathBuf {
    let done = Command::new(env!("CARGO"))
        .args(["build", "--release", "--quiet", "-p", "repl"])
        .current_dir(workspace_dir())
        .output()
        .expect("cargo can be started");
    assert!(
        done.status.success(),
        "hindsight does not build:\n{}",
        String::from_utf8_lossy(&done.stderr)
    );
    target_dir().join("release/hindsight")
}
