//! A recording of every instruction whose recorder died has its log of instructions, and no events: they are written late.

use std::{fs, path::Path};

use store::{
    Recording,
    format::{INSTRUCTIONS_DIR, SPARE_FILES},
    recording::{OpenRecording, RecordingState},
};

use super::finish::{Logged, finish};
use crate::{
    Captures, Observer, Result,
    arm::{Also, Filter},
    live::FirstProbes,
};

/// Returns whether the events of the recording in a folder are still to be written.
#[must_use]
pub fn is_to_complete(dir: &Path) -> bool {
    let found = Recording::open_exact(dir).ok();
    found.is_some_and(|recording| {
        recording.state() == RecordingState::Interrupted
            && recording.manifest().settings.has_every_instruction()
    })
}

/// Writes the events of such a recording, as its recorder would have done at the end. `probes` reads the options that it was
/// made with. Others are left as they are. Returns whether it did so.
///
/// # Errors
/// The log of instructions cannot be run again, or the folder cannot be written.
pub fn complete(
    dir: &Path,
    probes: impl FnOnce(&[String]) -> FirstProbes,
    observer: &dyn Observer,
) -> Result<bool> {
    if !is_to_complete(dir) {
        return Ok(false);
    }
    // Before anything is removed.
    exact::outline(&dir.join(INSTRUCTIONS_DIR))?;
    for spare in SPARE_FILES {
        let _ = fs::remove_file(dir.join(INSTRUCTIONS_DIR).join(spare));
    }
    let Some(created) = OpenRecording::begin_anew(dir)? else {
        return Ok(false);
    };
    let message = format!(
        "the recorder of {} did not close it: its calls and events are written now",
        dir.display()
    );
    observer.warning(&message.into());
    let manifest = created.open.recording().manifest();
    let of = |option: &str| {
        let patterns = manifest.settings.filters.iter();
        let patterns = patterns.filter_map(|filter| filter.strip_prefix(option));
        patterns.map(str::to_owned).collect::<Vec<String>>()
    };
    let has = |name: &str| manifest.settings.captures.iter().any(|own| own == name);
    let captures = Captures {
        memory: has("memory"),
        locks: has("locks"),
        ..Captures::default()
    };
    let what = Logged {
        argv: manifest.argv.clone(),
        cwd: manifest.cwd.clone(),
        filter: Filter::new(&of("-f "), &of("-x "))?.and_also(Also::of(&captures)),
        first: manifest
            .launch
            .as_ref()
            .map(|launch| probes(&launch.options))
            .unwrap_or_default(),
        keep_log: manifest.settings.keep_log,
    };
    finish((created.open, created.log), &what, None, observer)?;
    Ok(true)
}
