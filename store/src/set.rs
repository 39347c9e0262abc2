//! The processes of a program that was recorded with its children: one file of lines in the folder that holds their
//! recordings.
//!
//! Several recorders append to it, each line with one write. A line is one fact about a process, in the order of
//! events. Readers skip an incomplete line.

use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions},
    io::Write,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::{
    error::{Error, Result},
    labels::Changes,
    recording::{check_free, check_name},
    storage::{self, FILE_MODE},
};

/// The file with the processes.
pub const PROCESSES_FILE: &str = "processes.jsonl";
/// An empty file: facts are missing in the other one, because they could not be written.
const CUT_FILE: &str = "processes.cut";
/// Ending of the name of a set's folder.
pub const SET_SUFFIX: &str = ".children";

/// What happened to a process. Times are nanoseconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "lowercase")]
pub enum Fact {
    /// It was created, as a copy of its parent.
    Begin {
        /// Its id.
        pid: i32,
        /// Its parent's id.
        parent: i32,
        /// When.
        unix_ns: i64,
        /// Its command line, which is its parent's.
        argv: Vec<String>,
    },
    /// It executes a program.
    Image {
        /// Its id.
        pid: i32,
        /// When.
        unix_ns: i64,
        /// Its command line.
        argv: Vec<String>,
    },
    /// The program that it executes is recorded.
    Recorded {
        /// Its id.
        pid: i32,
        /// The recording's folder in the set.
        recording: String,
    },
    /// The program that it executes is not recorded. If its recording had begun, nothing is left of that.
    Unrecorded {
        /// Its id.
        pid: i32,
        /// Why not.
        why: String,
    },
    /// It ended.
    End {
        /// Its id.
        pid: i32,
        /// When.
        unix_ns: i64,
        /// Its exit code.
        code: Option<i32>,
        /// The signal that ended it.
        signal: Option<i32>,
    },
    /// Its recording was removed later.
    Pruned {
        /// Its id.
        pid: i32,
        /// The recording's folder in the set.
        recording: String,
    },
    /// The set got labels, or lost those without a value.
    Labels {
        /// By key.
        labels: Changes,
    },
    /// Something that the user should know about its recording.
    Warning {
        /// Its id.
        pid: i32,
        /// The text.
        text: String,
        /// The recording's folder in the set: the process may execute another program by now. `None` before there is one.
        #[serde(default)]
        recording: Option<String>,
    },
}

impl Fact {
    fn pid(&self) -> i32 {
        match self {
            Self::Begin { pid, .. }
            | Self::Image { pid, .. }
            | Self::Recorded { pid, .. }
            | Self::Unrecorded { pid, .. }
            | Self::End { pid, .. }
            | Self::Pruned { pid, .. }
            | Self::Warning { pid, .. } => *pid,
            Self::Labels { .. } => 0,
        }
    }
}

/// A program that a process executed; or a process that executed none, as a copy of its parent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Process {
    /// Its id.
    pub pid: i32,
    /// Its parent's id; `None` if that is not known.
    pub parent: Option<i32>,
    /// Its command line.
    pub argv: Vec<String>,
    /// When the process began or, if it executed a program before, when it executed this one.
    pub start_unix_ns: i64,
    /// When it executed this program; `None`: it is a copy of its parent.
    pub image_unix_ns: Option<i64>,
    /// When it ended, or executed the next program; `None` while it runs, or if its end was not seen.
    pub end_unix_ns: Option<i64>,
    /// Whether it executed another program, which is the next one with its id.
    pub became_another: bool,
    /// Its exit code.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub exit_signal: Option<i32>,
    /// Its recording's folder in the set.
    pub recording: Option<String>,
    /// Whether its recording was removed later.
    pub is_pruned: bool,
    /// Why it has none, or what to know about it.
    pub notes: Vec<String>,
}

impl Process {
    /// Notes its end. Two may have seen it: the first one knows when, and one of them how.
    fn end(&mut self, unix_ns: i64, code: Option<i32>, signal: Option<i32>) {
        let first = self.end_unix_ns.map_or(unix_ns, |known| known.min(unix_ns));
        self.end_unix_ns = Some(first);
        if self.exit_code.is_none() && self.exit_signal.is_none() {
            (self.exit_code, self.exit_signal) = (code, signal);
        }
    }
}

/// A set that recorders write to.
#[derive(Debug)]
pub struct ProcessLog {
    dir: PathBuf,
    file: File,
}

impl ProcessLog {
    /// Creates a set's folder: `NAME.children`, or if that is taken and `is_numbered`, `NAME-2.children` and so on.
    ///
    /// # Errors
    /// [`Error::BadName`], [`Error::Exists`], [`Error::NotCreated`] or [`Error::Io`].
    pub fn create(name: &Path, is_numbered: bool) -> Result<Self> {
        check_name(name, SET_SUFFIX)?;
        let mut number = 1;
        let dir = loop {
            let dir = folder(name, number);
            match storage::create_dir(&dir) {
                Ok(()) => break dir,
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                    if !is_numbered {
                        return Err(Error::Exists { path: dir });
                    }
                    number += 1;
                }
                Err(source) => return Err(Error::NotCreated { path: dir, source }),
            }
        };
        Self::open(&dir)
    }

    /// Opens the set in `dir` to add to it.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn open(dir: &Path) -> Result<Self> {
        let dir = dir.canonicalize().map_err(Error::io("find", dir))?;
        let path = dir.join(PROCESSES_FILE);
        let mut options = OpenOptions::new();
        let file = options
            .append(true)
            .create(true)
            .mode(FILE_MODE)
            .open(&path)
            .map_err(Error::io("open", &path))?;
        Ok(Self { dir, file })
    }

    /// Returns the set's folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Removes the recording of a process.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn prune(&self, process: &Process) -> Result<()> {
        let Some(name) = &process.recording else {
            return Ok(());
        };
        let path = self.dir.join(name);
        fs::remove_dir_all(&path).map_err(Error::io("remove", &path))?;
        self.add(&Fact::Pruned {
            pid: process.pid,
            recording: name.clone(),
        })
    }

    /// Adds a fact. If that fails, readers learn that the list lacks some, as far as the disk takes even that.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn add(&self, fact: &Fact) -> Result<()> {
        let path = self.dir.join(PROCESSES_FILE);
        let line =
            serde_json::to_string(fact).map_err(|error| Error::io("write", &path)(error.into()))?;
        // The last line may have been cut.
        let before = if is_cut(&self.dir) { "\n" } else { "" };
        let added = (&self.file).write_all(format!("{before}{line}\n").as_bytes());
        added.map_err(|error| {
            // An empty file usually has room on a full disk.
            let mut options = OpenOptions::new();
            options.write(true).create(true).mode(FILE_MODE);
            let _ = options.open(self.dir.join(CUT_FILE));
            Error::io("write", &path)(error)
        })
    }
}

fn is_cut(set: &Path) -> bool {
    set.join(CUT_FILE).exists()
}

/// Returns why the list of a set's processes lacks facts; `None` if it is whole, as far as is known.
#[must_use]
pub fn why_incomplete(set: &Path) -> Option<String> {
    let why =
        "some facts about its processes could not be written, probably because the disk was full";
    is_cut(set).then(|| why.to_owned())
}

/// Deletes the list of a set's processes.
///
/// # Errors
/// [`Error::Io`].
pub fn remove_list(set: &Path) -> Result<()> {
    let list = set.join(PROCESSES_FILE);
    let _ = fs::remove_file(set.join(CUT_FILE));
    fs::remove_file(&list).map_err(Error::io("remove", &list))
}

/// Checks in advance whether a set of that name can be made; returns its folder, with the ending.
///
/// # Errors
/// [`Error::BadName`], [`Error::Exists`], or [`Error::NotCreated`] if the parent folder is missing or read-only.
pub fn may_be_created(path: &Path) -> Result<PathBuf> {
    check_name(path, SET_SUFFIX)?;
    check_free(folder(path, 1))
}

/// Returns the folder of the set that `path` names, with its ending, or without it: then the newest one of that name. `None`
/// if there is none.
pub fn resolve(path: &Path) -> Option<PathBuf> {
    let is_set = |dir: &PathBuf| dir.join(PROCESSES_FILE).is_file();
    if is_set(&path.to_path_buf()) {
        return Some(path.to_path_buf());
    }
    let first = folder(path, 1);
    if first == path {
        return None;
    }
    let own = is_set(&first).then(|| (started(&first).unwrap_or(i64::MIN), 1, first));
    let all = own.into_iter().chain(numbered_of(path));
    all.max_by_key(|(started, number, _)| (*started, *number))
        .map(|(_, _, dir)| dir)
}

/// When the first process of a set began.
fn started(dir: &Path) -> Option<i64> {
    let first = processes(dir).ok()?.into_iter().next()?;
    Some(first.start_unix_ns)
}

/// Returns the sets `NAME-2.children` and so on of the program `name`, with their start and number. Only sets that are called
/// after their program are numbered.
fn numbered_of(name: &Path) -> Vec<(i64, u32, PathBuf)> {
    let Some(text) = name.file_name().and_then(|name| name.to_str()) else {
        return Vec::new();
    };
    let parent = name
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let Ok(entries) = fs::read_dir(parent.unwrap_or(Path::new("."))) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for entry in entries.flatten() {
        let number = entry.file_name().to_str().and_then(|file_name| {
            let stem = file_name.strip_suffix(SET_SUFFIX)?;
            let number = stem.strip_prefix(text)?.strip_prefix('-')?;
            number.parse::<u32>().ok()
        });
        let Some(number) = number else { continue };
        let dir = name.with_file_name(entry.file_name());
        let first = processes(&dir).ok().and_then(|all| all.into_iter().next());
        let Some(first) = first else { continue };
        let program = first.argv.first().map(Path::new).and_then(Path::file_name);
        if program.is_some_and(|program| program == text) {
            found.push((first.start_unix_ns, number, dir));
        }
    }
    found
}

/// Returns how many processes there are: one that executed another program counts once.
pub fn number(processes: &[Process]) -> usize {
    let all = processes.iter();
    all.filter(|process| !process.became_another).count()
}

/// Reads the processes of the set in `dir`, in the order in which they began.
///
/// # Errors
/// [`Error::Io`] if the file cannot be read.
pub fn processes(dir: &Path) -> Result<Vec<Process>> {
    let mut table = Table::default();
    facts(dir)?.into_iter().for_each(|fact| table.add(fact));
    Ok(table.rows)
}

/// Returns the labels that the set in `dir` got as a whole: `None` where one was removed.
///
/// # Errors
/// [`Error::Io`] if the file cannot be read.
pub fn labels(dir: &Path) -> Result<Changes> {
    let mut all = Changes::new();
    for fact in facts(dir)? {
        if let Fact::Labels { labels } = fact {
            all.extend(labels);
        }
    }
    Ok(all)
}

fn facts(dir: &Path) -> Result<Vec<Fact>> {
    let path = dir.join(PROCESSES_FILE);
    let bytes = fs::read(&path).map_err(Error::io("read", &path))?;
    // A full disk may have cut a line in the middle of a character.
    let text = String::from_utf8_lossy(&bytes);
    Ok(text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect())
}

#[derive(Default)]
struct Table {
    rows: Vec<Process>,
    /// Of each id, its last row.
    last: BTreeMap<i32, usize>,
}

impl Table {
    fn add(&mut self, fact: Fact) {
        let pid = fact.pid();
        match fact {
            Fact::Begin {
                parent,
                unix_ns,
                argv,
                ..
            } => self.begin(Process {
                pid,
                parent: Some(parent),
                argv,
                start_unix_ns: unix_ns,
                ..Process::default()
            }),
            Fact::Image { unix_ns, argv, .. } => self.image(pid, unix_ns, argv),
            Fact::Labels { .. } => {}
            Fact::Recorded { recording, .. } => self.of(pid).recording = Some(recording),
            Fact::Pruned { recording, .. } => {
                let mut rows = self.rows.iter_mut();
                let is_it = |row: &&mut Process| row.recording.as_ref() == Some(&recording);
                if let Some(row) = rows.find(is_it) {
                    row.recording = None;
                    row.is_pruned = true;
                }
            }
            Fact::Unrecorded { why, .. } => {
                let row = self.of(pid);
                row.recording = None;
                row.notes.push(why);
            }
            Fact::Warning {
                text, recording, ..
            } => self.warn(pid, recording.as_deref(), text),
            Fact::End {
                unix_ns,
                code,
                signal,
                ..
            } => self.of(pid).end(unix_ns, code, signal),
        }
    }

    fn begin(&mut self, row: Process) {
        self.last.insert(row.pid, self.rows.len());
        self.rows.push(row);
    }

    /// A copy of its parent that executes a program is one row; each further program of a process is another.
    fn image(&mut self, pid: i32, unix_ns: i64, argv: Vec<String>) {
        let row = self.of(pid);
        if row.image_unix_ns.is_some() || row.recording.is_some() {
            row.end_unix_ns = Some(unix_ns);
            row.became_another = true;
            let parent = row.parent;
            self.begin(Process {
                pid,
                parent,
                start_unix_ns: unix_ns,
                ..Process::default()
            });
        }
        let row = self.of(pid);
        row.image_unix_ns = Some(unix_ns);
        row.argv = argv;
    }

    /// Notes a warning at the row of its recording, which is not the last one after an exec.
    fn warn(&mut self, pid: i32, recording: Option<&str>, text: String) {
        let is_its = |row: &Process| recording.is_some() && row.recording.as_deref() == recording;
        match self.rows.iter().position(is_its) {
            Some(at) => self.rows[at].notes.push(text),
            None => self.of(pid).notes.push(text),
        }
    }

    /// Returns the last row of a process; a new one if its beginning was not seen.
    fn of(&mut self, pid: i32) -> &mut Process {
        let index = self.last.get(&pid).copied().unwrap_or_else(|| {
            self.begin(Process {
                pid,
                ..Process::default()
            });
            self.rows.len() - 1
        });
        &mut self.rows[index]
    }
}

/// Returns `NAME.children` for 1, `NAME-2.children` for 2 and so on.
fn folder(name: &Path, number: u32) -> PathBuf {
    let mut text = name.components().as_path().as_os_str().to_os_string();
    if number == 1 && text.as_encoded_bytes().ends_with(SET_SUFFIX.as_bytes()) {
        return text.into();
    }
    if number > 1 {
        text.push(format!("-{number}"));
    }
    text.push(SET_SUFFIX);
    text.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn facts_become_processes() {
        let dir = tempfile::tempdir().unwrap();
        let log = ProcessLog::create(&dir.path().join("cc"), true).unwrap();
        assert!(log.dir().ends_with("cc.children"));
        let begin = |pid, parent, unix_ns| Fact::Begin {
            pid,
            parent,
            unix_ns,
            argv: words("cc a.c"),
        };
        let image = |pid, unix_ns, text| Fact::Image {
            pid,
            unix_ns,
            argv: words(text),
        };
        let facts = [
            begin(7, 1, 10),
            image(7, 11, "sh cc a.c"),
            image(7, 20, "cc a.c"),
            begin(8, 7, 30),
            begin(9, 7, 31),
            image(8, 32, "as a.s"),
            Fact::Recorded {
                pid: 8,
                recording: "as.hindsight".into(),
            },
            Fact::End {
                pid: 8,
                unix_ns: 40,
                code: Some(1),
                signal: None,
            },
            Fact::Unrecorded {
                pid: 7,
                why: "it is odd".into(),
            },
            // The number is used again.
            begin(8, 7, 50),
            Fact::Recorded {
                pid: 9,
                recording: "cc.hindsight".into(),
            },
        ];
        facts.iter().for_each(|fact| log.add(fact).unwrap());
        fs::create_dir(log.dir().join("cc.hindsight")).unwrap();
        log.prune(&processes(log.dir()).unwrap()[3]).unwrap();
        assert!(!log.dir().join("cc.hindsight").exists());
        fs::OpenOptions::new()
            .append(true)
            .open(log.dir().join(PROCESSES_FILE))
            .and_then(|mut file| file.write_all(b"{\"what\":\"end\",\"pi"))
            .unwrap();
        let found = processes(log.dir()).unwrap();
        let of = |row: &Process| (row.pid, row.parent, row.argv.join(" "), row.end_unix_ns);
        assert_eq!(
            found.iter().map(of).collect::<Vec<_>>(),
            [
                (7, Some(1), "sh cc a.c".to_owned(), Some(20)),
                (7, Some(1), "cc a.c".to_owned(), None),
                (8, Some(7), "as a.s".to_owned(), Some(40)),
                (9, Some(7), "cc a.c".to_owned(), None),
                (8, Some(7), "cc a.c".to_owned(), None),
            ]
        );
        assert_eq!(number(&found), 4);
        assert_eq!(
            (found[0].became_another, found[1].became_another),
            (true, false)
        );
        assert_eq!(found[1].notes, ["it is odd"]);
        assert_eq!(found[2].recording.as_deref(), Some("as.hindsight"));
        assert_eq!(found[2].exit_code, Some(1));
        assert_eq!(found[3].image_unix_ns, None);
        assert_eq!((&found[3].recording, found[3].is_pruned), (&None, true));
    }

    /// A recorder is done with a program after the process has executed the next one.
    #[test]
    fn a_warning_belongs_to_its_recording() {
        let dir = tempfile::tempdir().unwrap();
        let log = ProcessLog::create(&dir.path().join("sh"), true).unwrap();
        let image = |unix_ns, text| Fact::Image {
            pid: 7,
            unix_ns,
            argv: words(text),
        };
        let recorded = |name: &str| Fact::Recorded {
            pid: 7,
            recording: name.to_owned(),
        };
        let warning = |text: &str, recording: Option<&str>| Fact::Warning {
            pid: 7,
            text: text.to_owned(),
            recording: recording.map(str::to_owned),
        };
        let facts = [
            image(10, "sh a"),
            recorded("sh.hindsight"),
            image(20, "sh b"),
            warning("of the first", Some("sh.hindsight")),
            recorded("sh-2.hindsight"),
            warning("of the second", Some("sh-2.hindsight")),
            warning("of the last", None),
        ];
        facts.iter().for_each(|fact| log.add(fact).unwrap());
        // Older recorders did not say which recording they mean.
        let old = "{\"what\":\"warning\",\"pid\":7,\"text\":\"of an old recorder\"}\n";
        (&log.file).write_all(old.as_bytes()).unwrap();
        let found = processes(log.dir()).unwrap();
        let notes: Vec<_> = found.iter().map(|row| row.notes.clone()).collect();
        let second = ["of the second", "of the last", "of an old recorder"];
        assert_eq!(notes, [&["of the first"][..], &second]);
    }

    /// A process that is killed while its recording begins is seen by two, and one of them may not know how it ended.
    #[test]
    fn an_end_that_two_have_seen_is_known_from_both() {
        let dir = tempfile::tempdir().unwrap();
        let log = ProcessLog::create(&dir.path().join("sh"), true).unwrap();
        let end = |unix_ns, signal| Fact::End {
            pid: 7,
            unix_ns,
            code: None,
            signal,
        };
        let recorded = Fact::Recorded {
            pid: 7,
            recording: "sh.hindsight".to_owned(),
        };
        let unrecorded = Fact::Unrecorded {
            pid: 7,
            why: "it was killed".to_owned(),
        };
        for fact in [
            recorded,
            end(20, None),
            unrecorded,
            end(30, Some(9)),
            end(40, None),
        ] {
            log.add(&fact).unwrap();
        }
        let found = &processes(log.dir()).unwrap()[0];
        assert_eq!((found.end_unix_ns, found.exit_signal), (Some(20), Some(9)));
        assert_eq!(found.recording, None, "nothing is left of it");
        assert_eq!(found.notes, ["it was killed"]);
    }

    #[test]
    fn a_list_that_could_not_be_written_says_so_and_goes_on() {
        let dir = tempfile::tempdir().unwrap();
        let log = ProcessLog::create(&dir.path().join("sh"), true).unwrap();
        let image = |pid| Fact::Image {
            pid,
            unix_ns: 10,
            argv: words("sh a"),
        };
        log.add(&image(7)).unwrap();
        assert_eq!(why_incomplete(log.dir()), None);
        let full = ProcessLog {
            dir: log.dir().to_owned(),
            file: OpenOptions::new().write(true).open("/dev/full").unwrap(),
        };
        full.add(&image(8)).unwrap_err();
        // The disk took a part of the line.
        (&log.file)
            .write_all("{\"what\":\"ü".as_bytes().split_last().unwrap().1)
            .unwrap();
        log.add(&image(9)).unwrap();
        assert!(why_incomplete(log.dir()).is_some());
        let pids: Vec<i32> = processes(log.dir())
            .unwrap()
            .iter()
            .map(|row| row.pid)
            .collect();
        assert_eq!(pids, [7, 9]);
        remove_list(log.dir()).unwrap();
        fs::remove_dir(log.dir()).unwrap();
    }

    #[test]
    fn names_of_sets_are_numbered() {
        let dir = tempfile::tempdir().unwrap();
        let name = dir.path().join("a");
        let first = ProcessLog::create(&name, true).unwrap();
        let second = ProcessLog::create(&name, true).unwrap();
        assert!(first.dir().ends_with("a.children"));
        assert!(second.dir().ends_with("a-2.children"));
        assert!(matches!(
            ProcessLog::create(&name, false),
            Err(Error::Exists { .. })
        ));
        let begins = |set: &ProcessLog, program: &str, at: i64| {
            set.add(&Fact::Begin {
                pid: 1,
                parent: 0,
                unix_ns: at,
                argv: vec![program.to_owned()],
            })
            .unwrap();
        };
        begins(&first, "./a", 5);
        begins(&second, "/bin/a-2", 9);
        assert_eq!(resolve(&name), Some(dir.path().join("a.children")));
        let third = ProcessLog::create(&name, true).unwrap();
        begins(&third, "./a", 7);
        assert_eq!(resolve(&name), Some(dir.path().join("a-3.children")));
        let whole = dir.path().join("a.children");
        assert_eq!(resolve(&whole), Some(whole.clone()));
        assert_eq!(resolve(dir.path()), None);
    }

    #[test]
    fn a_set_needs_a_name_of_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir(at("taken")).unwrap();
        for name in ["", "/", ".", "..", ".children"] {
            let refused = may_be_created(Path::new(name));
            assert!(matches!(refused, Err(Error::BadName { .. })), "{refused:?}");
            let refused = ProcessLog::create(Path::new(name), true);
            assert!(matches!(refused, Err(Error::BadName { .. })), "{refused:?}");
        }
        // Without the slash, the set comes beside the folder.
        let refused = may_be_created(&at("taken/"));
        assert!(matches!(refused, Err(Error::BadName { .. })), "{refused:?}");
        assert_eq!(may_be_created(&at("taken")).unwrap(), at("taken.children"));
        assert_eq!(may_be_created(&at("new/")).unwrap(), at("new.children"));
        fs::create_dir(at("taken.children")).unwrap();
        for name in ["taken", "taken.children", "taken.children/"] {
            let refused = may_be_created(&at(name));
            assert!(matches!(refused, Err(Error::Exists { .. })), "{refused:?}");
        }
        let refused = may_be_created(&at("missing/new"));
        assert!(
            matches!(refused, Err(Error::NotCreated { .. })),
            "{refused:?}"
        );
    }
}
