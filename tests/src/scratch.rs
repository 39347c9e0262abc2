//! A folder for one test, removed when the test passes and kept (and named) when it fails.

use std::path::{Path, PathBuf};

/// A test's own folder. It is below `target/`, because recordings can be large and `/tmp` may be in memory.
pub struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// Creates an empty folder for the test called `name`.
    ///
    /// # Panics
    /// If it cannot be created: no test can run then.
    #[must_use]
    pub fn new(name: &str) -> Self {
        let parent = target_dir().join("e2e");
        std::fs::create_dir_all(&parent).expect("the target folder is writable");
        let folder = tempfile::Builder::new()
            .prefix(&format!("{name}-"))
            .tempdir_in(&parent)
            .expect("the target folder is writable");
        Self {
            path: folder.keep(),
        }
    }

    /// The folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A path inside the folder.
    #[must_use]
    pub fn join(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the test's files are kept in {}", self.path.display());
        } else {
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

/// The workspace's folder.
#[must_use]
pub fn workspace_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the crate lies in the workspace")
        .to_path_buf()
}

/// Cargo's target folder.
pub(crate) fn target_dir() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| workspace_dir().join("target"), PathBuf::from)
}
