//! Parts of a run: from a moment on, or while a thread is in a call of chosen functions.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use debuginfo::Diagnostic;
use exact::{Gap, MappedFile, When};
use store::control::Control;

use super::{
    FullPart,
    calls::Functions,
    modules::{self, FileMapping, FoundModule},
};
use crate::{Error, Result, arm::Filter};

/// Most functions that are suggested.
const SUGGESTED: usize = 3;

/// What became of the patterns of functions, for the case that none was called.
#[derive(Default)]
pub(super) struct Matched {
    filter: Option<Filter>,
    /// Functions whose names end with a pattern that has matched none.
    near: Arc<Mutex<BTreeSet<String>>>,
}

/// How it is told to `exact`.
///
/// # Errors
/// A pattern is empty.
pub(super) fn when(part: &FullPart) -> Result<(When, Matched)> {
    let names = match part {
        FullPart::All => return Ok((When::Always, Matched::default())),
        FullPart::After(time) => {
            let after = When::After {
                time: *time,
                instructions: u64::MAX,
                times: 1,
            };
            return Ok((after, Matched::default()));
        }
        FullPart::Calls(names) => names,
    };
    let filter = Filter::new(names, &[])?;
    let matched = Matched {
        filter: Some(filter.clone()),
        near: Arc::default(),
    };
    let near = Arc::clone(&matched.near);
    let calls = When::Calls(Box::new(move |files| entries(files, &filter, &near)));
    Ok((calls, matched))
}

/// The addresses of the functions that a filter wants. `near`: receives those that it may have meant.
fn entries(files: &[MappedFile], filter: &Filter, near: &Mutex<BTreeSet<String>>) -> Vec<u64> {
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
    let entries = Functions::choose(&found, filter).entries().to_vec();
    let scoped = scoped(&found, &filter.unmatched());
    let mut near = near.lock().unwrap_or_else(PoisonError::into_inner);
    near.extend(scoped);
    entries
}

/// The program's functions whose names without scopes are among these.
fn scoped(modules: &[FoundModule], names: &[&str]) -> Vec<String> {
    if names.is_empty() {
        return Vec::new();
    }
    let own = modules.iter().filter(|module| !module.is_system);
    let files = own.filter_map(|module| module.file.as_deref());
    let functions = files.flat_map(|file| &file.functions().list);
    let is_one = |name: &str| {
        let short = name.rsplit_once("::").map(|(_, short)| short);
        short.is_some_and(|short| names.contains(&short))
    };
    let found = functions.filter(|function| is_one(&function.name));
    found.map(|function| function.name.clone()).collect()
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
pub(super) fn nothing(
    part: &FullPart,
    matched: &Matched,
    code: Option<i32>,
    signal: Option<i32>,
) -> Error {
    let end = match (code, signal) {
        (_, Some(signal)) => format!("signal {signal} ended the program"),
        (code, None) => format!("the program ended with exit code {}", code.unwrap_or(0)),
    };
    let (message, hint) = match part {
        FullPart::Calls(names) => not_called(&end, names, matched),
        FullPart::All | FullPart::After(_) => (
            format!("{end} before recording began"),
            "give a shorter time: --full=after:TIME".to_owned(),
        ),
    };
    Error::NothingRecorded {
        reason: Diagnostic {
            message,
            hint: Some(hint),
        },
    }
}

/// The message and the hint of functions that were not called, or do not exist.
fn not_called(end: &str, names: &[String], matched: &Matched) -> (String, String) {
    let unmatched = matched.filter.as_ref().map(Filter::unmatched);
    let unmatched = unmatched.unwrap_or_default();
    if unmatched.len() < names.len() {
        let missing = match unmatched.is_empty() {
            true => String::new(),
            false => format!("; no function matches {}", unmatched.join(", ")),
        };
        let called = names.iter().map(String::as_str);
        let called: Vec<&str> = called.filter(|name| !unmatched.contains(name)).collect();
        return (
            format!("{end}, and called none of: {}{missing}", called.join(", ")),
            "a function that is inlined everywhere has no calls".to_owned(),
        );
    }
    let near = matched.near.lock().unwrap_or_else(PoisonError::into_inner);
    let near: Vec<&str> = near.iter().take(SUGGESTED).map(String::as_str).collect();
    let hint = match near.is_empty() {
        true => "nm -C PROGRAM lists its functions; one that is inlined everywhere is none of them"
            .to_owned(),
        false => format!("write the scope too: --full={}", near.join(", --full=")),
    };
    (
        format!("{end}, and no function matches: {}", unmatched.join(", ")),
        hint,
    )
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
