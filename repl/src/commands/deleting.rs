//! Deletes recordings for `rm` and `runs prune`: asks first, refuses those that are in use, and keeps the lists of sets true.

use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};

use query::runs::find;
use serde_json::{Value, json};
use server::client::{Client, Wait};
use server::paths::Paths;
use server::quantity::count;
use server::verbs::{Nothing, Status};
use store::Recording;
use store::recording::{RecordingState, remove};
use store::set::{self, Fact, PROCESSES_FILE, ProcessLog};

use crate::error::Error;
use crate::output::Told;
use crate::recording::size_on_disk;
use crate::render::{Terminal, bytes, escaped};

/// Asks on a terminal whether to delete recordings of that size.
///
/// # Errors
/// When there is no terminal to ask on.
pub fn is_wanted(folders: &[PathBuf], terminal: &Terminal) -> Result<bool, Error> {
    let size: u64 = folders.iter().map(|folder| size_on_disk(folder)).sum();
    let what = format!("{} ({})", counted(folders), bytes(size));
    if !terminal.interactive {
        return Err(Error::usage(
            format!("{what} would be deleted, and there is no terminal to ask"),
            Some("add --yes to delete without being asked".to_owned()),
        ));
    }
    let answer = asked(folders, &what).map_err(|source| Error::io("ask", source))?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// Asks on the terminal, and returns the line that was typed.
fn asked(folders: &[PathBuf], what: &str) -> io::Result<String> {
    let mut out = io::stdout().lock();
    for folder in folders {
        writeln!(out, "{}", escaped(&folder.to_string_lossy()))?;
    }
    write!(out, "delete {what}? [y/N] ")?;
    out.flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(answer)
}

/// What was deleted, and what stays because it is not ours.
pub struct Deleted {
    path: PathBuf,
    /// Bytes of a recording's files.
    bytes: Option<u64>,
    left: Vec<String>,
}

impl Deleted {
    /// Says it.
    pub fn tell(&self, told: &mut Told) {
        let name = escaped(&self.path.to_string_lossy()).into_owned();
        match self.bytes {
            Some(size) => told.line(format_args!("deleted {name} ({})", bytes(size))),
            None if self.left.is_empty() => told.line(format_args!("deleted {name}")),
            None => {}
        }
        for left in &self.left {
            eprintln!("hindsight: {}", escaped(left));
        }
    }

    /// Returns it as JSON.
    pub fn as_json(&self) -> Value {
        json!({"path": crate::json::path(&self.path), "bytes": self.bytes, "notes": self.left})
    }
}

/// Counts recordings and sets of them.
pub fn counted(folders: &[PathBuf]) -> String {
    let sets = folders.iter().filter(|folder| is_set(folder)).count();
    let parts = [(folders.len() - sets, "recording"), (sets, "set")];
    let told = parts.iter().filter(|(number, _)| *number > 0);
    let told = told.map(|(number, what)| count(*number as u64, what));
    match folders.is_empty() {
        true => count(0, "recording"),
        false => told.collect::<Vec<_>>().join(" and "),
    }
}

fn is_set(folder: &Path) -> bool {
    folder.join(PROCESSES_FILE).is_file()
}

/// Deletes a recording, or a set with all of its recordings.
///
/// # Errors
/// As for [`delete`]; of a set then nothing is deleted if one of its recordings is in use or cannot be read.
pub fn delete_whole(folder: &Path) -> Result<Deleted, Error> {
    refuse_link(folder)?;
    if !is_set(folder) {
        return delete(folder);
    }
    let members = find(&[folder.to_owned()]).folders;
    for member in &members {
        refuse_used(member, &openable(member)?)?;
    }
    let mut whole = Deleted {
        path: folder.to_owned(),
        bytes: Some(0),
        left: Vec::new(),
    };
    for member in &members {
        let gone = delete(member)?;
        whole.left.extend(gone.left);
        whole.bytes = whole.bytes.map(|sum| sum + gone.bytes.unwrap_or(0));
    }
    let list = forget(folder)?;
    whole
        .left
        .extend(list.into_iter().flat_map(|list| list.left));
    Ok(whole)
}

/// Refuses to delete by way of a link what others know by its own name.
///
/// # Errors
/// When the folder is a symbolic link.
pub fn refuse_link(folder: &Path) -> Result<(), Error> {
    let Ok(target) = folder.read_link() else {
        return Ok(());
    };
    let word = |path: &Path| store::shell::word(&path.to_string_lossy());
    // A link is relative to where it is.
    let target = folder.parent().unwrap_or(Path::new("")).join(target);
    Err(Error::usage(
        format!(
            "{} is a symbolic link to {}",
            folder.display(),
            target.display()
        ),
        Some(format!(
            "name what is to be deleted: hindsight rm {}; or delete the link alone: rm {}",
            word(&target),
            word(folder)
        )),
    ))
}

fn openable(folder: &Path) -> Result<Recording, Error> {
    Recording::open_exact(folder).map_err(|source| Error::Store { source })
}

/// Refuses to delete what is being recorded, or open in a session.
fn refuse_used(folder: &Path, recording: &Recording) -> Result<(), Error> {
    if recording.state() == RecordingState::Live {
        return Err(Error::usage(
            format!("{} is being recorded", folder.display()),
            Some("wait until its program has ended, or stop it".to_owned()),
        ));
    }
    match session_with(folder) {
        None => Ok(()),
        Some(session) => Err(Error::usage(
            format!("{} is open in session {session}", folder.display()),
            Some(format!(
                "close it first: hindsight close --session {session}"
            )),
        )),
    }
}

/// Deletes the recording in a folder.
///
/// # Errors
/// When it is a link, is being recorded or open in a session, or a file cannot be deleted.
pub fn delete(folder: &Path) -> Result<Deleted, Error> {
    refuse_link(folder)?;
    let recording = openable(folder).map_err(|error| {
        let hint = format!(
            "to delete it anyway: rm -r {}",
            store::shell::word(&folder.to_string_lossy())
        );
        Error::usage(
            format!("which files are its own is not known: {error}"),
            Some(hint),
        )
    })?;
    refuse_used(folder, &recording)?;
    let removed = remove(&recording).map_err(|source| Error::Store { source })?;
    let left = removed.left.iter().map(|left| {
        let left = left.to_string_lossy();
        format!("{left} is no file of the recording and stays")
    });
    Ok(Deleted {
        path: folder.to_owned(),
        bytes: Some(removed.len_bytes),
        left: left.collect(),
    })
}

/// Says in the list of a set which recordings were deleted. With the last one, the list and its folder go, too: then they are
/// returned.
///
/// # Errors
/// When the list cannot be read, changed or deleted.
pub fn forget(set: &Path) -> Result<Option<Deleted>, Error> {
    let in_store = |source| Error::Store { source };
    let processes = set::processes(set).map_err(in_store)?;
    let recorded = processes
        .iter()
        .filter_map(|process| process.recording.as_ref());
    let (left, gone): (Vec<_>, Vec<_>) = recorded.partition(|name| set.join(name).exists());
    if left.is_empty() && find(&[set.to_owned()]).folders.is_empty() {
        set::remove_list(set).map_err(in_store)?;
        // What is not ours stays, and so does its folder.
        let left = match std::fs::remove_dir(set) {
            Ok(()) => Vec::new(),
            Err(_) => vec![format!("{} has other files and stays", set.display())],
        };
        return Ok(Some(Deleted {
            path: set.to_owned(),
            bytes: None,
            left,
        }));
    }
    let log = ProcessLog::open(set).map_err(in_store)?;
    for process in &processes {
        if let Some(recording) = process
            .recording
            .as_ref()
            .filter(|name| gone.contains(name))
        {
            let (pid, recording) = (process.pid, recording.clone());
            log.add(&Fact::Pruned { pid, recording })
                .map_err(in_store)?;
        }
    }
    Ok(None)
}

/// Returns the number of the daemon's session that has the recording open, if there is a daemon and such a session.
fn session_with(folder: &Path) -> Option<u32> {
    let real = folder.canonicalize().ok()?;
    let mut client = Client::connect(&Paths::of_environment()).ok()?;
    let wait = Wait {
        patience: None,
        notify: &mut |_| {},
    };
    let status = client.call::<Status>(&Nothing {}, None, wait).ok()?;
    let is_it = |path: &Path| path.canonicalize().is_ok_and(|path| path == real);
    let mut sessions = status.sessions.into_iter();
    let found = sessions.find(|session| is_it(&session.recording))?;
    Some(found.session)
}
