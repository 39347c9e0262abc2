//! The history of prompts, in `~/.local/share/hindsight` or under `XDG_DATA_HOME`. Only its owner can read it.

use std::fs::{DirBuilder, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustyline::Config;
use rustyline::config::Builder;
use rustyline::error::ReadlineError;
use rustyline::history::{FileHistory, History};

use crate::error::Error;

/// The maximum number of lines in the history.
const MOST_LINES: usize = 5_000;

/// Returns the settings of a prompt with a history.
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

/// Reads the history called `name`. Also returns its file, if the history can be saved.
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

/// Converts an error of rustyline.
pub fn terminal_error(error: ReadlineError) -> Error {
    Error::io("use the terminal", std::io::Error::other(error))
}

/// Returns the file of the history called `name`.
fn file(name: &str) -> Option<PathBuf> {
    let folders = directories::ProjectDirs::from("", "", "hindsight")?;
    Some(folders.data_dir().join(name))
}

/// Creates the file, readable only by its owner. Returns whether it can be used.
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
