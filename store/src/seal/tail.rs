//! Gives a reader the whole recording as columns, sealed parts and tail, even while a recorder seals it.

use std::fs::File;
use std::path::Path;

use super::sealer::Sealer;
use super::state::SealState;
use super::terms::{Ending, Progress, SealOptions, Sealed};
use crate::error::{Error, Result};
use crate::format::{FileKind, MANIFEST_FILE};
use crate::recording::{Recording, RecordingState};

/// How often the recorder may overtake a reader before that is an error.
const ATTEMPTS: u32 = 8;

/// Goes on with sealing a closed recording whose sealer was left, as long as `goes_on` returns true. Returns whether
/// everything is sealed now: not of a recording that was not closed, or that another process seals or this one cannot
/// write.
///
/// # Errors
/// [`Error::SealingLeft`]; the next call goes on from there.
pub fn seal_rest_while(
    recording: &Recording,
    goes_on: impl FnMut(&Progress) -> bool,
) -> Result<bool> {
    let header = recording.file_header(FileKind::SealState);
    let is_sealed = || SealState::read(&recording.seal_state_path(), header).map(|s| s.closed);
    if recording.state() != RecordingState::Closed || is_sealed()? {
        return Ok(recording.state() == RecordingState::Closed);
    }
    let manifest = File::open(recording.dir().join(MANIFEST_FILE));
    let Some(_locked) = manifest.ok().filter(|file| file.try_lock().is_ok()) else {
        return Ok(false);
    };
    let options = SealOptions {
        keep_log: recording.manifest().settings.keep_log,
        ..SealOptions::default()
    };
    let sealed = Sealer::own(recording, options)
        .and_then(|sealer| sealer.finish_while(Ending::Close, goes_on));
    match sealed {
        Err(Error::SealingLeft) => Err(Error::SealingLeft),
        // A reader seals the rest in a folder of its own, or says what is wrong.
        sealed => Ok(sealed.is_ok()),
    }
}

/// Seals the unsealed rest of the recording into the empty folder `out_dir`, and writes nothing to the recording.
///
/// In a live recording, that is everything older than the last watermark, otherwise everything. When the recorder
/// removes a segment that is being read, the reader starts over from the recorder's newer checkpoint.
///
/// It goes on as long as `goes_on`, which is called from time to time, returns true.
///
/// # Errors
/// When the state, the log or the folder cannot be used; [`Error::SealingLeft`].
pub fn seal_tail(
    recording: &Recording,
    out_dir: &Path,
    options: SealOptions,
    mut goes_on: impl FnMut(&Progress) -> bool,
) -> Result<Sealed> {
    let path = recording.seal_state_path();
    let header = recording.file_header(FileKind::SealState);
    let ending = match recording.state() {
        RecordingState::Live => Ending::LiveTail,
        RecordingState::Closed | RecordingState::Interrupted => Ending::Close,
    };
    let mut attempt = 0;
    loop {
        attempt += 1;
        let before = SealState::read(&path, header)?;
        let sealer = Sealer::aside(recording, out_dir, options)?;
        let sealed = sealer.finish_while(ending, &mut goes_on);
        let after = SealState::read(&path, header)?;
        let overtaken = match &sealed {
            Ok(sealed) => after.next_seq > sealed.events,
            Err(Error::SegmentMissing { .. }) => after != before,
            Err(_) => false,
        };
        if !overtaken || attempt == ATTEMPTS {
            return sealed;
        }
    }
}
