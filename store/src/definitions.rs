//! Reads the definitions of a recording: functions, modules and probes that could not be armed.

use std::path::Path;

use crate::control::Control;
use crate::error::{Error, Result};
use crate::file_header::FileHeader;
use crate::format::FrameKind;
use crate::log::frame::FrameFault;
use crate::log::frame_reader::FrameReader;

/// Reads the first `len` bytes of a file of definitions and passes each one to `each`, in the order of the log.
///
/// # Errors
/// Those of [`FileHeader::decode`] and [`FileHeader::expect`]; [`Error::Corrupt`] or [`Error::Truncated`] naming the
/// offset.
pub fn read_file(
    path: &Path,
    header: FileHeader,
    len: u64,
    mut each: impl FnMut(Control),
) -> Result<()> {
    let mut reader = FrameReader::open(path, &header)?;
    while reader.offset() < len {
        let offset = reader.offset();
        let frame = match reader.next_frame()? {
            Ok(frame) => frame,
            Err(FrameFault::Short) => {
                return Err(Error::Truncated {
                    path: path.to_path_buf(),
                    offset,
                    what: format!("{len} bytes were written"),
                });
            }
            Err(fault) => return Err(Error::corrupt(path, offset, fault.to_string())),
        };
        let decoded = rmp_serde::from_slice::<Control>(frame.payload);
        match decoded {
            Ok(control) if frame.header.kind == FrameKind::Control && control.is_definition() => {
                each(control);
            }
            _ => {
                return Err(Error::corrupt(
                    path,
                    offset,
                    "something else than a definition",
                ));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reader::Reader;
    use crate::recording::Recording;
    use crate::seal::{Ending, SealOptions, Sealer};
    use crate::synth::Synth;

    fn read(recording: &Recording) -> Result<Vec<Control>> {
        let temp_dir = tempfile::tempdir().unwrap();
        let mut definitions = Vec::new();
        let reader = Reader::open(recording.dir(), temp_dir.path())?;
        reader.definitions(|control| definitions.push(control))?;
        Ok(definitions)
    }

    fn names(recording: &Recording) -> Vec<String> {
        let definitions = read(recording).unwrap().into_iter();
        let names = definitions.filter_map(|control| match control {
            Control::Function(function) => Some(function.name),
            _ => None,
        });
        names.collect()
    }

    #[test]
    fn definitions_are_the_same_before_and_after_sealing() {
        let dir = tempfile::tempdir().unwrap();
        let mut synth = Synth::new();
        let f = synth.function("f");
        synth.thread(1).enter(f, 0x7f00).leave(0x7f00).watermark();
        let g = synth.function("g");
        synth.thread(1).enter(g, 0x7f00).leave(0x7f00);
        let recording = synth.record(&dir.path().join("run")).unwrap();
        assert_eq!(names(&recording), ["f", "g"]);
        let sealer = Sealer::own(&recording, SealOptions::default()).unwrap();
        sealer.finish(Ending::Close, |_| {}).unwrap();
        assert_eq!(names(&recording), ["f", "g"]);
    }

    #[test]
    fn a_file_that_is_too_short_or_changed_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let mut synth = Synth::new();
        synth.function("f");
        let recording = synth.record(&dir.path().join("run")).unwrap();
        let sealer = Sealer::own(&recording, SealOptions::default()).unwrap();
        sealer.finish(Ending::Close, |_| {}).unwrap();
        let path = recording.definitions_path();
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, &whole[..whole.len() - 8]).unwrap();
        let cut = read(&recording);
        assert!(
            matches!(cut, Err(Error::Truncated { offset: 64, .. })),
            "{cut:?}"
        );
        let mut changed = whole.clone();
        changed[70] ^= 1;
        std::fs::write(&path, &changed).unwrap();
        let changed = read(&recording);
        assert!(
            matches!(changed, Err(Error::Corrupt { offset: 64, .. })),
            "{changed:?}"
        );
    }
}
