//! The fixture `steady`: works until it is stopped, and shows its progress in a mapped file.

use crate::fixture::fixture_artifact;
use crate::process::Program;
use crate::scratch::Scratch;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// The mapped file of one run. Its words are named in `steady.c`.
pub struct Steady {
    path: PathBuf,
}

impl Steady {
    /// A new file in the test's folder.
    ///
    /// # Panics
    /// If it cannot be written.
    #[must_use]
    pub fn new(scratch: &Scratch) -> Self {
        let path = scratch.join("steady");
        std::fs::write(&path, [0; 4096]).expect("the test's folder is writable");
        Self { path }
    }

    /// The program; `rounds` 0 means until [`Steady::stop`].
    #[must_use]
    pub fn program(&self, scratch: &Scratch, rounds: u64) -> Program {
        self.built_as("steady", scratch, rounds)
    }

    /// The same, linked differently.
    #[must_use]
    pub fn built_as(&self, artifact: &str, scratch: &Scratch, rounds: u64) -> Program {
        Program::new(fixture_artifact("steady", artifact), scratch.path())
            .args([self.path.as_os_str(), rounds.to_string().as_ref()])
    }

    /// The program, until [`Steady::stop`], with pauses between its rounds: it writes megabytes a second, not
    /// gigabytes.
    #[must_use]
    pub fn unhurried(&self, scratch: &Scratch) -> Program {
        self.program(scratch, 0).args(["100"])
    }

    /// Rounds so far.
    #[must_use]
    pub fn rounds(&self) -> u64 {
        self.word(0)
    }

    /// Wrong results.
    #[must_use]
    pub fn wrong(&self) -> u64 {
        self.word(1)
    }

    /// Its process id; 0 until it has begun.
    #[must_use]
    pub fn pid(&self) -> i32 {
        self.word(2) as i32
    }

    /// The number of calls of `churn` from `main` by the main thread.
    #[must_use]
    pub fn begun(&self) -> u64 {
        self.word(5)
    }

    /// Whether it has ended correctly.
    #[must_use]
    pub fn has_finished(&self) -> bool {
        self.word(4) == 0x600d
    }

    /// Tells it to stop.
    ///
    /// # Panics If the file no longer exists.
    pub fn stop(&self) {
        let file = File::options()
            .write(true)
            .open(&self.path)
            .expect("the file is there");
        file.write_all_at(&1u64.to_le_bytes(), 3 * 8)
            .expect("the file is writable");
    }

    fn word(&self, index: u64) -> u64 {
        let mut bytes = [0; 8];
        let file = File::open(&self.path).expect("the file is there");
        file.read_exact_at(&mut bytes, index * 8)
            .expect("the file has its full length");
        u64::from_le_bytes(bytes)
    }
}
