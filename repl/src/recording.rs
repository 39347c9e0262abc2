//! Finds a recording's folder: `app`, `app.hindsight` and `app.hindsight/` are the same recording.

use std::path::{Path, PathBuf};

use debuginfo::Diagnostic;
use query::runs::find;
use recorder::Observer;
use replay::CoreOptions;
use server::past::{completed_with, of_replay};
use store::format::{MANIFEST_FILE, RECORDING_SUFFIX as SUFFIX};
use store::recording;

use crate::error::Error;
use crate::progress::Progress;
use crate::render::{Terminal, escaped};
use crate::sets;
use crate::suggest;

/// Finds the folder of the recording called `name`.
///
/// # Errors
/// When there is none; the error names the most similar one in the same folder.
pub fn locate(name: &Path) -> Result<PathBuf, Error> {
    locate_with(name, &CoreOptions::default())
}

/// As [`locate`], for a recording that is about to be read: see [`complete`].
///
/// # Errors
/// As for both.
pub fn to_read(name: &Path) -> Result<PathBuf, Error> {
    let folder = locate(name)?;
    say_which(name, &folder);
    complete(&folder)?;
    Ok(folder)
}

/// Refuses to write other files into a recording: whoever removes, copies or packs it means the recording alone.
///
/// # Errors
/// `folder` is a recording, or lies in one.
pub fn refuse_within(folder: &Path) -> Result<(), Error> {
    around(folder).map_or(Ok(()), |recording| Err(lies_within(folder, &recording)))
}

/// Refuses to make a recording in another one.
///
/// # Errors
/// The folder in which `new` will be is a recording, or lies in one.
pub fn refuse_new_within(new: &Path) -> Result<(), Error> {
    let parent = new.parent().filter(|parent| !parent.as_os_str().is_empty());
    let recording = around(parent.unwrap_or(Path::new(".")));
    recording.map_or(Ok(()), |recording| Err(lies_within(new, &recording)))
}

fn lies_within(path: &Path, recording: &Path) -> Error {
    let (path, recording) = (path.display(), recording.display());
    Error::usage(
        format!("{path} lies in the recording {recording}"),
        Some("choose a folder outside it, such as one beside it".to_owned()),
    )
}

/// Returns the recording that a folder is or lies in. What does not exist yet will lie where its nearest folder that exists does.
fn around(folder: &Path) -> Option<PathBuf> {
    let folder = std::path::absolute(folder).ok()?;
    let there = folder
        .ancestors()
        .find_map(|there| there.canonicalize().ok())?;
    let is_recording = |folder: &&Path| {
        folder.to_string_lossy().ends_with(SUFFIX) && folder.join(MANIFEST_FILE).is_file()
    };
    there.ancestors().find(is_recording).map(Path::to_owned)
}

/// Says which of several recordings of one name is read: the newest one.
fn say_which(name: &Path, folder: &Path) {
    if let Some(older) = recording::older_than(folder, name) {
        let (folder, older) = (folder.display().to_string(), older.display().to_string());
        eprintln!(
            "hindsight: this is {}, which is newer than {}",
            escaped(&folder),
            escaped(&older)
        );
    }
}

/// Writes the events of a recording of every instruction whose recorder died, and says so.
///
/// # Errors
/// It has nothing that could be run again, or cannot be written.
pub fn complete(folder: &Path) -> Result<(), Error> {
    let told = OnStderr(Progress::new(&Terminal::detect()));
    let completed = completed_with(folder, &told);
    told.0.finish();
    completed.map_err(|failure| server::Error::from(failure).into())
}

/// Tells what takes time, and how far it is.
struct OnStderr(Progress);

impl Observer for OnStderr {
    fn finding_calls(&self, done: u64, total: u64) {
        self.0.finding_calls(done, total);
    }

    fn sealing(&self, done_events: u64, done_bytes: u64, total_bytes: u64) {
        self.0.sealing(done_events, done_bytes, total_bytes);
    }

    fn warning(&self, warning: &Diagnostic) {
        self.0.setup(&warning.one_line());
    }
}

/// As [`locate`], for what may be a core file: its recording is made in the user's cache.
///
/// # Errors
/// As for [`locate`], and when the core file cannot be read.
pub fn locate_with(name: &Path, options: &CoreOptions) -> Result<PathBuf, Error> {
    let found = replay::locate(name, options);
    found.map_err(|error| {
        if is_of_core(&error) {
            return Error::from(server::Error::from(of_replay(&error)));
        }
        if let Some(set) = sets::named(name) {
            return is_set(&set);
        }
        let folder = recording::with_suffix(name);
        for path in [name, &folder] {
            if let Some(source) = recording::denied(path) {
                return Error::io(format!("read {}", path.display()), source);
            }
        }
        match [name, &folder].into_iter().find(|path| path.exists()) {
            Some(path) => Error::NotARecording {
                path: path.to_owned(),
            },
            None => Error::NoRecording {
                near: near(&folder),
                path: name.to_owned(),
            },
        }
    })
}

/// Returns whether the error is about a core file, or about its program.
fn is_of_core(error: &replay::Error) -> bool {
    use replay::Error::{EmptyFile, NoCore, NoProgram};
    matches!(error, NoCore { .. } | EmptyFile { .. } | NoProgram { .. })
}

/// Says that a word means a set where one recording is wanted.
fn is_set(set: &Path) -> Error {
    let name = store::shell::word(&set.to_string_lossy());
    let is_empty = find(&[set.to_owned()]).folders.is_empty();
    let set = set.display();
    if is_empty {
        return Error::usage(
            format!("{set} is a set without recordings: they were removed, or never made"),
            Some(format!("its processes: hindsight processes {name}")),
        );
    }
    Error::usage(
        format!("{set} is a set of recordings, and one of them is wanted"),
        Some(format!(
            "`hindsight ls {name}` lists them; name one as {set}/NAME"
        )),
    )
}

/// The option of commands that open a recording or a core file.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct OfCore {
    /// With a core file: the program, if it is not where the core file says
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
}

impl OfCore {
    /// Finds the folder of a recording, or makes that of a core file.
    ///
    /// # Errors
    /// As for [`locate_with`].
    pub fn locate(&self, name: &Path) -> Result<PathBuf, Error> {
        let options = CoreOptions {
            program: self.program.clone(),
        };
        let folder = locate_with(name, &options)?;
        say_which(name, &folder);
        complete(&folder)?;
        Ok(folder)
    }
}

/// Returns the size of the files in `folder`, in bytes. Unreadable files count as 0.
pub fn size_on_disk(folder: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return 0;
    };
    let size = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(meta) if meta.is_dir() => size_on_disk(&entry.path()),
        Ok(meta) => meta.len(),
        Err(_) => 0,
    };
    entries.flatten().map(size).sum()
}

/// Returns the name of the recording that a word may be meant for: it names one, or nearly so.
pub fn like(name: &Path) -> Option<String> {
    if locate(name).is_ok() {
        return Some(name.to_string_lossy().into_owned());
    }
    let folder = recording::with_suffix(name);
    let near = near(&folder)?.with_extension("");
    let (own, other) = (name.file_name()?.to_str()?, near.file_name()?.to_str()?);
    suggest::nearest(own, [other])?;
    Some(near.to_string_lossy().into_owned())
}

/// Returns the recording in the same folder with the most similar name, or the only one there.
fn near(name: &Path) -> Option<PathBuf> {
    let folder = match name.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let stem = |path: &Path| {
        path.file_name()
            .map(|n| n.to_string_lossy().trim_end_matches(SUFFIX).to_owned())
    };
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .ok()?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.to_string_lossy().ends_with(SUFFIX))
        .filter_map(|path| stem(&path))
        .collect();
    names.sort();
    let nearest = match names.as_slice() {
        [only] => Some(only.as_str()),
        _ => suggest::nearest(&stem(name)?, names.iter().map(String::as_str)),
    };
    Some(name.with_file_name(format!("{}{SUFFIX}", nearest?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder_with(recordings: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for name in recordings {
            std::fs::create_dir(folder.path().join(name)).unwrap();
            std::fs::write(folder.path().join(name).join("manifest"), "").unwrap();
        }
        folder
    }

    #[test]
    fn a_word_may_be_meant_for_a_recording() {
        let folder = folder_with(&["app.hindsight"]);
        let like = |name: &str| like(&folder.path().join(name));
        let app = folder.path().join("app").to_string_lossy().into_owned();
        assert_eq!(like("app"), Some(app.clone()));
        assert_eq!(like("appp"), Some(app));
        assert_eq!(like("something_else_entirely"), None);
    }

    #[test]
    fn suffix_and_trailing_slash_are_optional() {
        let folder = folder_with(&["app.hindsight", "plain"]);
        let expected = folder.path().join("app.hindsight");
        for name in ["app", "app/", "app.hindsight", "app.hindsight/", "./app"] {
            assert_eq!(
                locate(&folder.path().join(name)).unwrap().file_name(),
                expected.file_name(),
                "{name}"
            );
        }
        assert_eq!(
            locate(&folder.path().join("plain")).unwrap(),
            folder.path().join("plain")
        );
    }

    #[test]
    fn a_mistyped_name_finds_the_near_one() {
        let folder = folder_with(&["server.hindsight", "client.hindsight"]);
        let error = locate(&folder.path().join("sever")).unwrap_err();
        assert!(matches!(&error, Error::NoRecording { near: Some(near), .. }
            if *near == folder.path().join("server.hindsight")));
        let error = locate(&folder.path().join("xyz")).unwrap_err();
        assert!(matches!(error, Error::NoRecording { near: None, .. }));
    }

    #[test]
    fn any_other_folder_is_no_recording() {
        let folder = folder_with(&[]);
        assert!(matches!(
            locate(folder.path()).unwrap_err(),
            Error::NotARecording { .. }
        ));
    }
}
