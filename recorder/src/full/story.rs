//! The events of a recording with every instruction: what its log tells, and the program's state at its end.

use std::path::{Path, PathBuf};

use exact::{Outline, Replay, Summary};
use store::control::Control;

use super::{
    calls::Functions,
    ending,
    finish::Logged,
    modules::{self, FileMapping},
    parts,
    probing::Probing,
};
use crate::{Death, Result};

/// An entry of the auxiliary vector (getauxval(3)).
const AT_ENTRY: u64 = 9;
/// Most words of arguments and environment that are passed over to find it.
const MOST_WORDS: u64 = 1 << 20;

/// What becomes of a run.
pub(super) struct Story {
    pub controls: Vec<Control>,
    pub death: Option<Death>,
    /// Whose calls are to be found.
    pub functions: Functions,
    /// What was to be logged.
    pub probing: Probing,
    /// What the log says of the whole run.
    pub outline: Outline,
    /// Why the state at the end is not known, though it should be.
    pub problem: Option<String>,
}

impl Story {
    /// Tells what the log in `folder` holds. `summary`: what was seen of the end, which the log may not have.
    pub fn of(folder: &Path, what: &Logged, summary: Option<&Summary>) -> Result<Story> {
        let mut outline = exact::outline(folder)?;
        if let Some(summary) = summary {
            outline.lost.clone_from(&summary.lost);
            (outline.code, outline.signal) = (summary.code, summary.signal);
        }
        let mut replay = Replay::open(folder)?;
        let mappings = mappings(&outline);
        let exe = match &outline.before {
            Some((_, program)) => PathBuf::from(program),
            None => exe(&replay, &mappings),
        };
        let found = modules::find(&mappings, &exe);
        let functions = Functions::choose(&found, &what.filter);
        let mut story = Story {
            controls: vec![Control::ProcessStart {
                ticks: 0,
                pid: outline.pid.cast_unsigned(),
                argv: what.argv.clone(),
                exe: exe.to_string_lossy().into_owned(),
                cwd: what.cwd.clone(),
                attached: false,
            }],
            death: None,
            functions,
            probing: Probing::new(&what.first, &found),
            outline,
            problem: None,
        };
        story.controls.extend(modules::controls(&found));
        story.controls.extend(story.probing.controls());
        let before = story.outline.before.as_ref().map(|(time, _)| *time);
        story
            .controls
            .extend(parts::warnings(before, &story.outline.gaps));
        // Of events of one time the first is the one that was told first.
        story
            .controls
            .sort_by_key(|control| control.ticks().unwrap_or(0));
        story.define();
        let is_recorded = ending::is_recorded(&story.outline);
        if let Some(signal) = story.outline.signal.filter(|_| is_recorded) {
            let stop = ending::stop(&mut replay, &story.outline, |at| modules::space(&found, at));
            let pause = match stop {
                Ok((death, pause)) => {
                    story.death = Some(death);
                    Some(Control::Pause(Box::new(pause)))
                }
                Err(error) => {
                    story.problem = Some(error.one_line());
                    None
                }
            };
            let exception = ending::exception(&story.outline, signal);
            story.controls.push(Control::Exception(exception));
            story.controls.extend(pause);
        }
        story.end();
        Ok(story)
    }

    /// Adds the definitions of each module's functions after its mapping.
    fn define(&mut self) {
        let controls = std::mem::take(&mut self.controls);
        for control in controls {
            let mapped = match &control {
                Control::ModuleLoad { module, .. } => Some(*module),
                _ => None,
            };
            self.controls.push(control);
            let all = self.functions.definitions.iter();
            let own = all.filter(|function| Some(function.module) == mapped);
            self.controls.extend(own.cloned().map(Control::Function));
        }
    }

    fn end(&mut self) {
        let outline = &self.outline;
        let ticks = outline.end;
        let said = outline.lost.iter().chain(&self.problem);
        let warnings = said.map(|message| Control::Warning {
            ticks,
            message: message.clone(),
        });
        let warnings: Vec<Control> = warnings.collect();
        let end = match (outline.code, outline.signal) {
            // Nobody has seen it, or another recording has.
            (None, None) if outline.is_cut || outline.executed.is_some() => None,
            (None, None) => Some(Control::Detached { ticks }),
            (code, signal) => Some(Control::ProcessExit {
                ticks: ending::ticks(outline),
                code,
                signal,
            }),
        };
        let signal = outline.signal.filter(|_| !ending::is_recorded(outline));
        let exception = signal.map(|signal| ending::exception(outline, signal));
        self.controls.extend(warnings);
        self.controls.extend(exception.map(Control::Exception));
        self.controls.extend(end);
    }
}

fn mappings(outline: &Outline) -> Vec<FileMapping> {
    let mappings = outline.mappings.iter().map(|mapping| FileMapping {
        from: mapping.from,
        until: mapping.until,
        range: mapping.file.start..mapping.file.end,
        offset: mapping.file.offset,
        path: PathBuf::from(&mapping.file.path),
    });
    mappings.collect()
}

/// The file that was mapped where the program begins.
fn exe(replay: &Replay, mappings: &[FileMapping]) -> PathBuf {
    let entry = auxiliary(replay, AT_ENTRY);
    let here = mappings
        .iter()
        .find(|mapping| mapping.from == 0 && entry.is_some_and(|at| mapping.range.contains(&at)));
    here.map(|mapping| mapping.path.clone()).unwrap_or_default()
}

/// An entry of the auxiliary vector, at the start of the program.
fn auxiliary(replay: &Replay, wanted: u64) -> Option<u64> {
    let word = |at: u64| {
        let mut bytes = [0; 8];
        (replay.read(at, &mut bytes) == 8).then(|| u64::from_le_bytes(bytes))
    };
    let mut at = replay.registers().ok()?.rsp + 8;
    // Arguments and environment end with zero each.
    for _ in 0..2 {
        let mut passed = 0;
        while word(at)? != 0 {
            at += 8;
            passed += 1;
            if passed > MOST_WORDS {
                return None;
            }
        }
        at += 8;
    }
    loop {
        match word(at)? {
            0 => return None,
            entry if entry == wanted => return word(at + 8),
            _ => at += 16,
        }
    }
}
