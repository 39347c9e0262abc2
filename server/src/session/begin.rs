//! How a session begins: the program to start or attach to, the recording's folder, and the observer of the start.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use debuginfo::Diagnostic;
use recorder::live::{Live, LiveOptions, Stdio};
use recorder::{OnFull, RecordOptions, SnapshotTimes, Surroundings, Target};
use serde::{Deserialize, Serialize};
use store::recording::{may_be_created, with_suffix};

use super::warnings::Warnings;
use super::{AtStops, Follow, LiveSession, Probes, Selection, Sessions, of_recorder};
use crate::os_text::OsText;
use crate::output::{Output, Stream};
use crate::protocol::{Code, Failure, Notice, NoticeKind};
use crate::verbs::Call;

/// What to record, and in which folder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Recording {
    /// The folder. Default: the program's name in the client's folder, with a number if the name is taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<OsText>,
    /// Patterns of functions to trace. Default: all functions of the program itself.
    pub include: Vec<String>,
    /// Patterns of functions not to trace.
    pub exclude: Vec<String>,
    /// Keep the raw log.
    pub keep_log: bool,
    /// What a thread does when the recorder cannot keep up.
    pub on_full: OnFull,
    /// When the program's memory is copied.
    pub snapshot: SnapshotTimes,
    /// Keep all general registers at each enter, leave and logpoint.
    pub regs: bool,
    /// How many bytes of the stack to keep at the same events, 8 to 16384; 0 for none.
    pub stack: u32,
    /// Keep the text of string arguments.
    pub strings: bool,
    /// Keep what pointer and reference arguments point to.
    pub pointees: bool,
    /// What is recorded besides calls of the chosen functions.
    pub besides: Besides,
    /// Expressions whose values are kept at each enter and leave of their scopes.
    pub watch: Vec<String>,
    /// Probes that are set before the program runs.
    pub probes: Probes,
    /// Give a started program and its libraries the same addresses in each run.
    pub no_aslr: bool,
    /// The file that a started program reads as its standard input, by its whole path. Default: `/dev/null`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stdin: Option<OsText>,
}

/// What is recorded besides calls of the chosen functions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Besides {
    /// System calls.
    pub syscalls: bool,
    /// Calls that allocate and free memory.
    pub memory: bool,
    /// Calls that take and give locks, or wait.
    pub locks: bool,
}

/// A program to start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Launch {
    /// The program and its arguments.
    pub argv: Vec<OsText>,
    /// The client's folder, which becomes the program's.
    pub cwd: OsText,
    /// The client's environment, which becomes the program's.
    pub env: Vec<(OsText, OsText)>,
    /// What to record.
    #[serde(default)]
    pub recording: Recording,
}

/// A process to attach to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attach {
    /// The process id.
    pub pid: i32,
    /// The client's folder, for the recording.
    pub cwd: OsText,
    /// What to record.
    #[serde(default)]
    pub recording: Recording,
}

/// How a session began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The program was started.
    Started(Launch),
    /// A running program was attached to.
    Attached(Attach),
}

impl LiveSession {
    /// Begins a session. With `stop_on_entry` a started program stays at its entry point; an attached program keeps
    /// running. With `number` the session replaces the one that has this number.
    ///
    /// # Errors
    /// The program cannot be started or attached to, or the recording cannot be created.
    pub fn begin(
        call: &Call<'_>,
        origin: Origin,
        stop_on_entry: bool,
        number: Option<u32>,
    ) -> Result<Arc<LiveSession>, Failure> {
        let observer = Arc::new(Announcer {
            notify: Mutex::new(Some(Arc::clone(&call.notify))),
            warnings: Arc::default(),
        });
        let sessions = call.sessions;
        let live = open(sessions, &origin, stop_on_entry, &observer);
        // Later notices do not belong to this answer.
        observer.forget_client();
        let live = live?;
        let id = number.unwrap_or_else(|| sessions.next_id());
        let output = Output::new(sessions.output_limits);
        output.tell(sessions.output_of(id));
        if let Some((stdout, stderr)) = live.take_output() {
            output.feed(Stream::Stdout, stdout);
            output.feed(Stream::Stderr, stderr);
        }
        let session = sessions.insert(LiveSession {
            id,
            program: origin.program(),
            folder: origin.cwd(),
            origin,
            live,
            output,
            question_time: call.config.question_time(),
            selection: Mutex::new(Selection::default()),
            warnings: Arc::clone(&observer.warnings),
            watched: Mutex::default(),
            opened: Mutex::default(),
            last_shown: Mutex::default(),
            at_stops: AtStops::default(),
            follow: Follow::default(),
        });
        session.follow_exec(sessions);
        Ok(session)
    }

    /// Makes the session of a copy of a program, or of what it has executed. Its output is that of the program.
    pub(super) fn of_process(
        (id, live): (u32, Live),
        name: String,
        program: &LiveSession,
        observer: &Announcer,
    ) -> LiveSession {
        LiveSession {
            id,
            program: name,
            folder: program.folder.clone(),
            origin: program.origin.of_copy(live.pid()),
            live,
            output: Arc::clone(&program.output),
            question_time: program.question_time,
            selection: Mutex::new(Selection::default()),
            warnings: Arc::clone(&observer.warnings),
            watched: Mutex::default(),
            opened: Mutex::default(),
            last_shown: Mutex::default(),
            at_stops: AtStops::default(),
            follow: Follow::default(),
        }
    }
}

/// Opens the recording under the first free name, unless the user chose a name.
fn open(
    sessions: &Arc<Sessions>,
    origin: &Origin,
    stop_on_entry: bool,
    observer: &Arc<Announcer>,
) -> Result<Live, Failure> {
    let named = origin.recording().output.is_some();
    let mut number = 1;
    loop {
        let path = match named {
            true => may_be_created(&origin.chosen_path()).map_err(|e| of_recorder(&e.into()))?,
            false => origin.free_path(&mut number),
        };
        let options = origin.options(path, stop_on_entry, sessions.guardian.clone())?;
        let observer = Arc::clone(observer) as Arc<dyn recorder::Observer + Send + Sync>;
        match started(options, observer) {
            // Another process took the name since `free_path` checked it.
            Err(recorder::Error::Store(store::Error::Exists { .. })) if !named => number += 1,
            Err(error) => return Err(of_recorder(&error)),
            Ok(live) => return Ok(live),
        }
    }
}

/// Begins to record.
pub(super) fn started(
    options: LiveOptions,
    observer: Arc<dyn recorder::Observer + Send + Sync>,
) -> recorder::Result<Live> {
    let live = Live::start(options, observer)?;
    // A way to compare in-program conditions with the tracer's, and to fall back on the tracer if the former are in
    // doubt.
    if std::env::var_os("HINDSIGHT_TRACER_JUDGES").is_some() {
        live.compile_probes(false)?;
    }
    Ok(live)
}

impl Origin {
    /// Returns the program's name as the user gave it.
    fn program(&self) -> String {
        match self {
            Origin::Started(launch) => {
                let words = launch.argv.first().map(OsString::from);
                words.unwrap_or_default().to_string_lossy().into_owned()
            }
            Origin::Attached(attach) => std::fs::read_link(format!("/proc/{}/exe", attach.pid))
                .map_or_else(
                    |_| format!("process {}", attach.pid),
                    |path| path.to_string_lossy().into_owned(),
                ),
        }
    }

    fn recording(&self) -> &Recording {
        match self {
            Origin::Started(launch) => &launch.recording,
            Origin::Attached(attach) => &attach.recording,
        }
    }

    fn cwd(&self) -> PathBuf {
        let cwd = match self {
            Origin::Started(launch) => &launch.cwd,
            Origin::Attached(attach) => &attach.cwd,
        };
        OsString::from(cwd).into()
    }

    fn chosen_path(&self) -> PathBuf {
        match self.recording().output.as_ref().map(OsString::from) {
            // An empty path joined with the folder would name the folder itself.
            Some(chosen) if chosen.is_empty() => PathBuf::new(),
            chosen => self.cwd().join(chosen.unwrap_or_default()),
        }
    }

    /// Returns the path of the first free name, counting from `number`.
    fn free_path(&self, number: &mut u32) -> PathBuf {
        let program = PathBuf::from(self.program());
        let stem = program.file_name().map_or_else(
            || "program".to_owned(),
            |n| n.to_string_lossy().into_owned(),
        );
        loop {
            let name = match *number {
                1 => stem.clone(),
                number => format!("{stem}-{number}"),
            };
            let path = with_suffix(&self.cwd().join(name));
            if !path.exists() {
                return path;
            }
            *number += 1;
        }
    }

    fn options(
        &self,
        output: PathBuf,
        stop_on_entry: bool,
        guardian: Option<Vec<OsString>>,
    ) -> Result<LiveOptions, Failure> {
        let (target, stdio) = match self {
            Origin::Started(launch) => (
                Target::Spawn {
                    argv: launch.found_argv()?,
                },
                Stdio::Piped {
                    cwd: self.cwd(),
                    env: launch.env(),
                },
            ),
            Origin::Attached(attach) => (
                Target::Attach {
                    pid: attach.pid,
                    duration: None,
                },
                Stdio::Inherit,
            ),
        };
        Ok(LiveOptions {
            record: self.record_options(target, Some(output), guardian)?,
            stop_on_entry,
            stdio,
            first: self.recording().probes.parsed()?,
        })
    }

    /// Returns what is recorded, of this process.
    pub(super) fn record_options(
        &self,
        target: Target,
        output: Option<PathBuf>,
        guardian: Option<Vec<OsString>>,
    ) -> Result<RecordOptions, Failure> {
        let recording = self.recording();
        let is_started = matches!(target, Target::Spawn { .. });
        let stdin = recording.stdin.as_ref().filter(|_| is_started);
        let name = match self {
            Origin::Started(launch) if is_started => launch.argv.first().map(OsString::from),
            _ => None,
        };
        Ok(RecordOptions {
            output,
            include: recording.include.clone(),
            exclude: recording.exclude.clone(),
            on_full: recording.on_full,
            snapshots: recording.snapshot,
            keep_log: recording.keep_log,
            max_size: None,
            surroundings: Surroundings {
                no_aslr: recording.no_aslr,
                stdin: stdin.map(readable).transpose()?,
                name,
                ..Surroundings::default()
            },
            captures: recording.captures()?,
            guardian,
            labels: Default::default(),
            target,
        })
    }
}

/// Returns the file that a program is to read as its standard input, if that can be read. Opening a pipe would wait for
/// somebody else, and opening a terminal would make it the daemon's.
fn readable(stdin: &OsText) -> Result<PathBuf, Failure> {
    let path = PathBuf::from(OsString::from(stdin));
    let refused = |why: &str| {
        let message = format!("the program cannot read {}: {why}", path.display());
        Failure::new(Code::NotStarted, message)
            .hint("name a file that can be read; without one, the program reads /dev/null")
    };
    let kind = std::fs::metadata(&path).map_err(|error| refused(&error.to_string()))?;
    if !kind.is_file() && path != Path::new("/dev/null") {
        return Err(refused("it is not a file"));
    }
    std::fs::File::open(&path).map_err(|error| refused(&error.to_string()))?;
    Ok(path)
}

/// How many bytes of the stack can be kept with an event.
const STACK_BYTES: std::ops::RangeInclusive<u32> = 8..=16384;

impl Recording {
    fn captures(&self) -> Result<recorder::Captures, Failure> {
        if self.stack != 0 && !STACK_BYTES.contains(&self.stack) {
            let message = format!(
                "{} to {} bytes of the stack can be kept, not {}",
                STACK_BYTES.start(),
                STACK_BYTES.end(),
                self.stack
            );
            return Err(Failure::bad_request(message));
        }
        Ok(recorder::Captures {
            registers: self.regs,
            stack_len: self.stack,
            texts: self.strings,
            pointees: self.pointees,
            system_calls: self.besides.syscalls,
            memory: self.besides.memory,
            locks: self.besides.locks,
            watches: self.watch.clone(),
        })
    }
}

impl Launch {
    fn env(&self) -> Vec<(OsString, OsString)> {
        let pair = |(name, value): &(OsText, OsText)| (name.into(), value.into());
        self.env.iter().map(pair).collect()
    }

    /// Returns the arguments with the program's full path, because the daemon's folder and PATH differ from the
    /// client's.
    fn found_argv(&self) -> Result<Vec<OsString>, Failure> {
        let mut argv: Vec<OsString> = self.argv.iter().map(OsString::from).collect();
        let Some(program) = argv.first_mut() else {
            return Err(Failure::bad_request("argv is empty: name a program"));
        };
        let cwd = PathBuf::from(OsString::from(&self.cwd));
        let path = self.env().into_iter().find(|(name, _)| name == "PATH");
        *program = find_program(program, &cwd, path.map(|(_, value)| value))?;
        Ok(argv)
    }
}

fn find_program(program: &OsStr, cwd: &Path, path: Option<OsString>) -> Result<OsString, Failure> {
    let not_found = |next: &str| {
        let name = program.to_string_lossy();
        Failure::new(Code::NotStarted, format!("there is no program {name}")).hint(next)
    };
    if program.as_bytes().contains(&b'/') {
        let whole = cwd.join(program);
        return match whole.is_file() {
            true => Ok(whole.into()),
            false => Err(not_found("check the path")),
        };
    }
    let path = path.unwrap_or_else(|| "/bin:/usr/bin".into());
    let found = std::env::split_paths(&path)
        .map(|folder| cwd.join(folder).join(program))
        .find(|file| is_executable(file));
    found
        .map(PathBuf::into_os_string)
        .ok_or_else(|| match cwd.join(program).is_file() {
            true => not_found(&format!(
                "it is not in PATH; for the one in this folder write ./{}",
                program.to_string_lossy()
            )),
            false => not_found("it is not in PATH"),
        })
}

fn is_executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    let meta = file.metadata();
    meta.is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// Forwards the recorder's messages to the waiting client and to the session.
pub(super) struct Announcer {
    notify: Mutex<Option<Arc<dyn Fn(Notice) + Send + Sync>>>,
    warnings: Arc<Warnings>,
}

impl Announcer {
    /// Makes the observer of a start for which no client waits.
    pub(super) fn for_nobody() -> Announcer {
        Announcer {
            notify: Mutex::new(None),
            warnings: Arc::default(),
        }
    }

    fn forget_client(&self) {
        *self.notify.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Tells the client that waits for the start; false: none waits.
    fn tell(&self, notice: Notice) -> bool {
        let client = self.notify.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(notify) = &*client else {
            return false;
        };
        notify(notice);
        true
    }
}

impl recorder::Observer for Announcer {
    fn setup(&self, message: &str) {
        self.tell(Notice::new(NoticeKind::Progress, message.to_owned()));
    }

    fn created(&self, recording: &Path) {
        if let Err(error) = store::catalog::tell(recording) {
            tracing::debug!(%error, "the catalog of runs does not know the recording");
        }
    }

    fn warning(&self, warning: &Diagnostic) {
        tracing::warn!("{}", warning.one_line());
        self.warnings.add(warning.clone());
        if self.tell(Notice::warning(warning.clone())) {
            self.warnings.take_untold();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch(program: &str, cwd: &Path) -> Launch {
        Launch {
            argv: vec![OsText::Text(program.to_owned())],
            cwd: cwd.as_os_str().into(),
            env: vec![(
                OsText::Text("PATH".into()),
                OsText::Text("/bin:/usr/bin".into()),
            )],
            recording: Recording::default(),
        }
    }

    #[test]
    fn programs_are_found_from_the_clients_folder_and_path() {
        let root = Path::new("/");
        let argv = launch("bin/sh", root).found_argv().unwrap();
        assert_eq!(argv, ["/bin/sh"]);
        let argv = launch("sh", Path::new("/tmp")).found_argv().unwrap();
        assert_eq!(argv, ["/bin/sh"]);
    }

    #[test]
    fn a_program_that_is_not_there_is_told_with_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("app"), "").unwrap();
        let refused = launch("app", folder.path()).found_argv().unwrap_err();
        assert_eq!(refused.code, Code::NotStarted);
        assert!(refused.hint.unwrap().contains("./app"));
        let refused = launch("./none", folder.path()).found_argv().unwrap_err();
        assert_eq!(refused.message, "there is no program ./none");
        let nothing = Launch {
            argv: vec![],
            ..launch("x", folder.path())
        };
        assert_eq!(nothing.found_argv().unwrap_err().code, Code::BadRequest);
    }

    #[test]
    fn a_recordings_name_is_the_first_free_one_in_the_clients_folder() {
        let folder = tempfile::tempdir().unwrap();
        let origin = Origin::Started(launch("./app", folder.path()));
        let free = || origin.free_path(&mut 1);
        assert_eq!(free(), folder.path().join("app.hindsight"));
        std::fs::create_dir(folder.path().join("app.hindsight")).unwrap();
        std::fs::create_dir(folder.path().join("app-2.hindsight")).unwrap();
        assert_eq!(free(), folder.path().join("app-3.hindsight"));
    }
}
