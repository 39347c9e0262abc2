//! Where the lines of prompts are kept: `~/.local/share/hindsight`, or under `XDG_DATA_HOME`, readable by their owner only.

use std::fs::{DirBuilder, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Returns where the history called `name` lies.
pub fn file(name: &str) -> Option<PathBuf> {
    let folders = directories::ProjectDirs::from("", "", "hindsight")?;
    Some(folders.data_dir().join(name))
}

/// Makes the file, readable by its owner only; says whether it can be used.
pub fn prepare(path: &Path) -> bool {
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
