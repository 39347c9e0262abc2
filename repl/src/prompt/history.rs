//! Where the lines of prompts are kept: `~/.local/share/hindsight`, or under `XDG_DATA_HOME`, readable by their owner only.

use std::fs::{DirBuilder, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustyline::Config;
use rustyline::config::Builder;
use rustyline::error::ReadlineError;
use rustyline::history::{FileHistory, History};

use crate::error::Error;

/// As many lines are kept.
const MOST_LINES: usize = 5_000;

/// Returns the settings of a prompt that remembers what it is told to.
///
/// # Errors
/// When the terminal cannot be used.
pub fn configured(builder: Builder) -> Result<Config, Error> {
    let config = builder
        .history_ignore_dups(true)
        .and_then(|builder| builder.max_history_size(MOST_LINES))
        .map_err(terminal_error)?
        .history_ignore_space(true)
        .auto_add_history(false)
        .build();
    Ok(config)
}

/// Reads the history called `name`; returns it and its file, if it can be kept.
pub fn read(name: &str, config: &Config) -> (FileHistory, Option<PathBuf>) {
    let mut history = FileHistory::with_config(config);
    let file = file(name).filter(|path| prepare(path));
    if let Some(path) = &file
        && let Err(error) = history.load(path)
    {
        tracing::debug!(%error, path = %path.display(), "history not read");
    }
    (history, file)
}

/// Makes an error of rustyline's one of ours.
pub fn terminal_error(error: ReadlineError) -> Error {
    Error::io("use the terminal", std::io::Error::other(error))
}

/// Returns where the history called `name` lies.
fn file(name: &str) -> Option<PathBuf> {
    let folders = directories::ProjectDirs::from("", "", "hindsight")?;
    Some(folders.data_dir().join(name))
}

/// Makes the file, readable by its owner only; says whether it can be used.
fn prepare(path: &Path) -> bool {
    let folder = path.parent().expect("`file` joins a folder and a name");
    let made = DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .and_then(|()| {
            OpenOptions::new()
                .create(true)
                .append(true)
                .mode(0o600)
                .open(path)
        });
    if let Err(error) = &made {
        tracing::debug!(%error, path = %path.display(), "no history");
    }
    made.is_ok()
}
