//! What a list of recordings shows of one, from its small files alone: the manifest, the labels and the progress of
//! sealing. No column and no definition is read.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

use crate::error::Result;
use crate::format::{FileKind, RECORDING_SUFFIX};
use crate::labels::{self, Labels};
use crate::manifest::{Launch, Manifest};
use crate::recording::{Recording, RecordingState};
use crate::seal::{BuildId, End, SealState};

/// A recording in a list.
#[derive(Clone, Debug)]
pub struct Summary {
    /// The recording.
    pub recording: Recording,
    /// Its labels as they are now.
    pub labels: Labels,
    /// What is known about it since it was closed; `None` while it is recorded, and if it was never closed.
    pub totals: Option<Totals>,
}

/// What is known about a closed recording.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Number of events.
    pub events: u64,
    /// Number of calls, unfinished ones included.
    pub calls: u64,
    /// How long the program was recorded, in ns.
    pub duration_ns: i64,
    /// How the program ended; `None` where that is not known.
    pub end: Option<End>,
    /// The builds that it consisted of, in the order of mapping; `None` in recordings of older releases.
    pub builds: Option<Vec<BuildId>>,
}

impl Summary {
    /// Reads the summary of the recording that `path` names.
    ///
    /// # Errors
    /// It is not a recording, or one of its small files is damaged.
    pub fn read(path: &Path) -> Result<Self> {
        Self::of(Recording::open(path)?)
    }

    /// Reads the summary of an opened recording.
    ///
    /// # Errors
    /// One of its small files is damaged.
    pub fn of(recording: Recording) -> Result<Self> {
        let labels = labels::read(&recording)?;
        let totals = match recording.state() {
            RecordingState::Closed => totals(&recording)?,
            RecordingState::Live | RecordingState::Interrupted => None,
        };
        Ok(Self {
            recording,
            labels,
            totals,
        })
    }

    /// Returns what is known about the recording as a whole.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        self.recording.manifest()
    }

    /// Returns the recording's folder.
    #[must_use]
    pub fn dir(&self) -> &Path {
        self.recording.dir()
    }
}

/// Returns the totals of a closed recording; `None` if it was closed before all of it was sealed.
fn totals(recording: &Recording) -> Result<Option<Totals>> {
    let header = recording.file_header(FileKind::SealState);
    let state = SealState::read(&recording.seal_state_path(), header)?;
    if !state.closed {
        return Ok(None);
    }
    let (began_ns, end, builds) = match state.outline {
        Some(outline) => (outline.began_ns, outline.end, Some(outline.builds)),
        None => (0, None, None),
    };
    Ok(Some(Totals {
        events: state.next_seq,
        calls: state.parts.iter().map(|part| part.calls).sum(),
        duration_ns: (state.last_ts_ns - began_ns).max(0),
        end,
        builds,
    }))
}

/// Returns the name of the recording in the folder `dir`: its last component, without the ending.
#[must_use]
pub fn name_of(dir: &Path) -> String {
    let name = match dir.file_name() {
        Some(name) => PathBuf::from(name),
        // "." and "..": the folder has a name nevertheless.
        None => dir
            .canonicalize()
            .ok()
            .and_then(|dir| dir.file_name().map(PathBuf::from))
            .unwrap_or_else(|| dir.to_path_buf()),
    };
    let name = name.to_string_lossy();
    name.strip_suffix(RECORDING_SUFFIX)
        .unwrap_or(&name)
        .to_owned()
}

/// Returns 32 hexadecimal digits that are equal for equal environments, in any order of their variables.
#[must_use]
pub fn environment_hash(launch: &Launch) -> String {
    let mut variables: Vec<&[u8]> = launch.env.iter().map(|pair| &pair[..]).collect();
    variables.sort_unstable();
    let mut hash = Xxh3::new();
    for variable in variables {
        hash.update(&(variable.len() as u64).to_le_bytes());
        hash.update(variable);
    }
    format!("{:032x}", hash.digest128())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::Control;
    use crate::manifest::{ByteBuf, Stdin};
    use crate::seal::{Ending, SealOptions, Sealer};
    use crate::synth::Synth;

    fn program(end: Control) -> Synth {
        let mut synth = Synth::new();
        synth.control(Control::ModuleLoad {
            ticks: 0,
            module: 0,
            path: "/bin/t".into(),
            build_id: Some("abcd".into()),
            addr: 0x1000,
            size: 0x1000,
            system: false,
        });
        let f = synth.function("f");
        synth.thread(1);
        for _ in 0..3 {
            synth.enter(f, 0x7f00).leave(0x7f00);
        }
        synth.control(end);
        synth
    }

    #[test]
    fn a_closed_recording_is_summarised_from_its_small_files() {
        let dir = tempfile::tempdir().unwrap();
        let (code, signal) = (None, Some(11));
        let end = Control::ProcessExit {
            ticks: 900,
            code,
            signal,
        };
        let recording = program(end).record(&dir.path().join("x")).unwrap();
        assert_eq!(
            Summary::of(recording.clone()).unwrap().totals,
            None,
            "not sealed"
        );
        let sealer = Sealer::own(&recording, SealOptions::default()).unwrap();
        sealer.finish(Ending::Close, |_| {}).unwrap();
        let columns = recording.columns_dir();
        for file in ["calls-000000.parquet", "events-000000.parquet"] {
            std::fs::write(columns.join(file), "damaged").unwrap();
        }
        let totals = Summary::read(recording.dir()).unwrap().totals.unwrap();
        assert_eq!(totals.calls, 3);
        assert_eq!(totals.end, Some(End::Signal("SIGSEGV".into())));
        let build = BuildId {
            path: "/bin/t".into(),
            build_id: "abcd".into(),
        };
        assert_eq!(totals.builds, Some(vec![build]));
    }

    #[test]
    fn equal_environments_have_equal_hashes() {
        let launch = |env: &[&str]| Launch {
            argv: Vec::new(),
            cwd: ByteBuf::from(b"/".to_vec()),
            env: env
                .iter()
                .map(|pair| ByteBuf::from(pair.as_bytes()))
                .collect(),
            stdin: Stdin::Once,
            options: Vec::new(),
        };
        let hash = |env: &[&str]| environment_hash(&launch(env));
        assert_eq!(hash(&["A=1", "B=2"]), hash(&["B=2", "A=1"]));
        assert_ne!(hash(&["A=1", "B=2"]), hash(&["A=1B=2"]));
        assert_eq!(hash(&[]).len(), 32);
    }

    #[test]
    fn names_have_no_ending() {
        assert_eq!(name_of(Path::new("runs/t-2.hindsight")), "t-2");
        assert_eq!(name_of(Path::new("runs/plain")), "plain");
    }
}
