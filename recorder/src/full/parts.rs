//! Parts of a run: from a moment on, or while a thread is in a call of chosen functions.

use std::path::PathBuf;

use debuginfo::Diagnostic;
use exact::{Gap, MappedFile, When};
use store::control::Control;

use super::{
    FullPart,
    calls::Functions,
    modules::{self, FileMapping},
};
use crate::{Error, Result, arm::Filter};

/// How it is told to `exact`.
///
/// # Errors
/// A pattern is empty.
pub(super) fn when(part: &FullPart) -> Result<When> {
    let names = match part {
        FullPart::All => return Ok(When::Always),
        FullPart::After(time) => {
            return Ok(When::After {
                time: *time,
                instructions: u64::MAX,
                times: 1,
            });
        }
        FullPart::Calls(names) => names,
    };
    let filter = Filter::new(names, &[])?;
    Ok(When::Calls(Box::new(move |files| entries(files, &filter))))
}

/// The addresses of the functions that a filter wants.
fn entries(files: &[MappedFile], filter: &Filter) -> Vec<u64> {
    let mappings = files.iter().map(|file| FileMapping {
        from: 0,
        until: None,
        range: file.start..file.end,
        offset: file.offset,
        path: PathBuf::from(&file.path),
    });
    let mappings: Vec<FileMapping> = mappings.collect();
    // The program lies below its libraries.
    let exe = mappings.first().map(|first| first.path.clone());
    let found = modules::find(&mappings, &exe.unwrap_or_default());
    Functions::choose(&found, filter).entries().to_vec()
}

/// The options that say so.
pub(super) fn words(part: &FullPart) -> Vec<String> {
    match part {
        FullPart::All => vec!["--full".to_owned()],
        FullPart::After(time) => vec![format!("--full=after:{}ms", time.as_millis())],
        FullPart::Calls(names) => names.iter().map(|name| format!("--full={name}")).collect(),
    }
}

/// Why nothing is recorded of a program that has ended.
pub(super) fn nothing(part: &FullPart, code: Option<i32>, signal: Option<i32>) -> Error {
    let end = match (code, signal) {
        (_, Some(signal)) => format!("signal {signal} ended the program"),
        (code, None) => format!("the program ended with exit code {}", code.unwrap_or(0)),
    };
    let (message, hint) = match part {
        FullPart::Calls(names) => (
            format!("{end}, and called none of: {}", names.join(", ")),
            "nm -C PROGRAM lists its functions; one that is inlined everywhere has no calls",
        ),
        FullPart::All | FullPart::After(_) => (
            format!("{end} before recording began"),
            "give a shorter time: --full=after:TIME",
        ),
    };
    Error::NothingRecorded {
        reason: Diagnostic {
            message,
            hint: Some(hint.to_owned()),
        },
    }
}

/// Why nothing is recorded where the disk had no room for the beginning.
pub(super) fn no_room(lost: &str) -> Error {
    Error::NothingRecorded {
        reason: Diagnostic {
            message: lost.to_owned(),
            hint: Some(super::image::MORE_ROOM.to_owned()),
        },
    }
}

/// What is said where the program was not recorded.
pub(super) fn warnings(before: Option<u64>, gaps: &[Gap]) -> Vec<Control> {
    let beginning = before.map(|nanoseconds| Control::Warning {
        ticks: 0,
        message: format!(
            "what the program did in the {} before is not recorded",
            time(nanoseconds)
        ),
    });
    let gaps = gaps.iter().map(|gap| Control::Warning {
        ticks: gap.at,
        message: match gap.nanoseconds {
            Some(nanoseconds) => format!(
                "what the program did in the next {} is not recorded; it counts as one instruction",
                time(nanoseconds)
            ),
            None => "what the program did from here to its end is not recorded".to_owned(),
        },
    });
    beginning.into_iter().chain(gaps).collect()
}

fn time(nanoseconds: u64) -> String {
    let milliseconds = nanoseconds as f64 / 1e6;
    match milliseconds {
        ..1000.0 => format!("{milliseconds:.3} ms"),
        _ => format!("{:.3} s", milliseconds / 1e3),
    }
}
