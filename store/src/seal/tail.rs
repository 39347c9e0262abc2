//! Gives a reader the whole recording as columns, sealed parts and tail, even while a recorder seals it.

use std::path::Path;

use super::sealer::Sealer;
use super::state::SealState;
use super::terms::{Ending, Progress, SealOptions, Sealed};
use crate::error::{Error, Result};
use crate::format::FileKind;
use crate::recording::{Recording, RecordingState};

/// How often the recorder may overtake a reader before that is an error.
const ATTEMPTS: u32 = 8;

/// Seals the unsealed rest of the recording into the empty folder `out_dir`, and writes nothing to the recording.
///
/// In a live recording, that is everything older than the last watermark, otherwise everything. When the recorder
/// removes a segment that is being read, the reader starts over from the recorder's newer checkpoint.
///
/// # Errors
/// When the state, the log or the folder cannot be used.
pub fn seal_tail(
    recording: &Recording,
    out_dir: &Path,
    options: SealOptions,
    mut progress: impl FnMut(&Progress),
) -> Result<Sealed> {
    seal_tail_while(recording, out_dir, options, |step| {
        progress(step);
        true
    })
}

/// As [`seal_tail`], as long as `goes_on` returns true; it is called from time to time.
///
/// # Errors
/// As there; [`Error::SealingLeft`].
pub fn seal_tail_while(
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
