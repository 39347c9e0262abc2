//! What else is known where two threads parted: local variables of the function that did it, watched expressions, and what the
//! program had printed last.

use debuginfo::location::at_frame;
use debuginfo::value::Look;
use debuginfo::{AddressSpace, Frame, Machine, variables_at};
use replay::{Event, Moment, Places};
use serde::Serialize;
use store::columns::ReadEvent;
use values::{RenderOptions, render_known};

use super::output::normal;
use super::parted::Sight;
use super::side::Side;
use crate::error::Result;
use crate::overview::told;
use crate::state::innermost_value;

/// Most variables of one kind that are told.
const MOST: usize = 100;
/// What settings have before a watched expression.
const WATCH: &str = "watch ";
/// Most writes of a stream that are read for its last line.
const WRITES: usize = 64;

/// What something is that has a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HeldKind {
    /// A variable of the function, or a parameter as it is then.
    Local,
    /// A watched expression.
    Watched,
    /// The last line that the program had written, by the name of the stream.
    Printed,
}

/// Something whose value is known on one side at least.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Held {
    /// What it is.
    pub kind: HeldKind,
    /// The variable or the expression.
    pub name: String,
    /// In the first recording, if it is known.
    pub a: Option<String>,
    /// In the second recording, if it is known.
    pub b: Option<String>,
    /// Both are known and differ in more than addresses and numbers of processes.
    pub differs: bool,
}

impl Held {
    /// Tells whether both sides know it.
    pub fn is_on_both(&self) -> bool {
        self.a.is_some() && self.b.is_some()
    }
}

/// Returns what is known where two threads parted.
///
/// # Errors
/// A recording cannot be read.
pub fn held(a: (&Side<'_>, &Sight), b: (&Side<'_>, &Sight)) -> Result<Vec<Held>> {
    let locals = (locals(a.0, a.1)?, locals(b.0, b.1)?);
    let mut found = both(HeldKind::Local, locals.0, locals.1, a.0);
    let watched = (watched(a.0, a.1)?, watched(b.0, b.1)?);
    found.extend(both(HeldKind::Watched, watched.0, watched.1, a.0));
    let printed = (printed(a.0, a.1)?, printed(b.0, b.1)?);
    found.extend(both(HeldKind::Printed, printed.0, printed.1, a.0));
    Ok(found)
}

/// Puts the values of both sides together, in the order of the first one.
fn both(
    kind: HeldKind,
    own: Vec<(String, String)>,
    mut other: Vec<(String, String)>,
    side: &Side<'_>,
) -> Vec<Held> {
    let mut found = Vec::new();
    for (name, a) in own {
        let twin = other.iter().position(|(twin, _)| *twin == name);
        let b = twin.map(|at| other.remove(at).1);
        let normal = |text: &str| normal(text, side.numbers_of_runs());
        let differs = b.as_ref().is_some_and(|b| normal(&a) != normal(b));
        found.push(Held {
            kind,
            name,
            a: Some(a),
            b,
            differs,
        });
    }
    found.extend(other.into_iter().map(|(name, b)| Held {
        kind,
        name,
        a: None,
        b: Some(b),
        differs: false,
    }));
    found.truncate(MOST);
    found
}

/// Returns the variables that are known of the function that parted. It called another one, or has just returned.
fn locals(side: &Side<'_>, sight: &Sight) -> Result<Vec<(String, String)>> {
    let Some(timeline) = side.source.timeline() else {
        return Ok(Vec::new());
    };
    match told(timeline.event(sight.seq))? {
        Event::Enter(_) if sight.function.is_some() => {
            let moment = told(Moment::at(timeline, sight.seq, sight.tid, 2))?;
            let frames = &moment.trace.backtrace.frames;
            let is_known = frames.get(1).is_some_and(|frame| frame.pc_is_known);
            Ok(match is_known {
                true => {
                    let line = frames[1].source.as_ref().map(|source| source.line);
                    let machine = moment.machine();
                    variables(&moment.space, &machine, (frames, 1), line)
                }
                false => Vec::new(),
            })
        }
        Event::Leave(_) => {
            let moment = told(Moment::at(timeline, sight.seq, sight.tid, 1))?;
            let found = moment.in_left_call(|machine, frames| {
                variables(&moment.space, machine, (frames, 0), None)
            });
            Ok(told(found)?.unwrap_or_default())
        }
        _ => Ok(Vec::new()),
    }
}

/// Returns the variables of a frame. With the line that runs, those that are declared there or later are left out: they have
/// no value yet, and their memory has one of something else.
fn variables(
    space: &AddressSpace,
    machine: &dyn Machine,
    (frames, index): (&[Frame], usize),
    running: Option<u32>,
) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    let look = Look { space, machine };
    at_frame(space, machine, frames, index, |site| {
        for variable in variables_at(site) {
            let lines = variable.line.zip(running);
            let has_begun = variable.is_parameter || lines.is_none_or(|(own, now)| own < now);
            if has_begun && !variable.shadowed {
                let value = variable.read(site);
                let text = render_known(&value, &RenderOptions::default(), &look);
                found.extend(text.map(|text| (variable.name.clone(), text)));
            }
        }
    });
    found
}

/// Returns the watched expressions whose values are known.
fn watched(side: &Side<'_>, sight: &Sight) -> Result<Vec<(String, String)>> {
    let mut found = Vec::new();
    let manifest = side.source.session().reader().recording().manifest();
    let captures = manifest.settings.captures.iter();
    let Some(timeline) = side.source.timeline() else {
        return Ok(found);
    };
    let mut places = Places::default();
    for text in captures.filter_map(|capture| capture.strip_prefix(WATCH)) {
        let Ok(expression) = expr::parse(text) else {
            continue;
        };
        let event = told(timeline.event(sight.seq))?;
        let value = innermost_value(&mut places, timeline, (sight.seq, event), &expression);
        found.extend(told(value)?.map(|value| (text.to_owned(), value)));
    }
    Ok(found)
}

/// Returns the last line of each stream before the difference, also if it had no end yet.
fn printed(side: &Side<'_>, sight: &Sight) -> Result<Vec<(String, String)>> {
    let Some(timeline) = side.source.timeline() else {
        return Ok(Vec::new());
    };
    let writes = told(timeline.output_before(sight.seq, WRITES))?;
    let mut found = Vec::new();
    for stream in ["stdout", "stderr"] {
        let own = writes.iter().filter(|event| event.kind == stream);
        let texts = own.map(text_of);
        let (mut line, is_whole) = last_line(texts);
        // One stream may have had nothing for long. A query takes far longer than the writes that are near.
        if !is_whole && writes.len() == WRITES {
            line = last_line(asked(side, stream, sight.seq)?).0;
        }
        found.extend(line.map(|line| (stream.to_owned(), line)));
    }
    Ok(found)
}

fn text_of(event: &ReadEvent) -> String {
    let bytes = event.bytes.as_deref().unwrap_or_default();
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns the last writes of a stream before an event, the newest first.
fn asked(side: &Side<'_>, stream: &str, before: u64) -> Result<impl Iterator<Item = String>> {
    let sql = format!(
        "select text from output where stream = '{stream}' and seq < {before} order by seq desc limit {WRITES}"
    );
    let rows = side.source.ask(&sql)?.into_iter();
    Ok(rows.map(|row| row.text(0).unwrap_or_default().to_owned()))
}

/// Returns the last line of writes, the newest of which comes first, and whether the line's beginning is among them.
fn last_line(writes: impl Iterator<Item = String>) -> (Option<String>, bool) {
    let mut text = String::new();
    let mut is_whole = false;
    for write in writes {
        text.insert_str(0, &write);
        is_whole = text.trim_end_matches('\n').contains('\n');
        if is_whole {
            break;
        }
    }
    let line = text.trim_end_matches('\n').rsplit('\n').next();
    let line = line.filter(|line| !line.is_empty());
    (line.map(str::to_owned), is_whole)
}

#[cfg(test)]
mod tests {
    use super::last_line;

    #[test]
    fn a_line_may_be_of_several_writes() {
        let line = |writes: &[&str]| last_line(writes.iter().map(|&write| write.to_owned()));
        assert_eq!(line(&[]), (None, false));
        assert_eq!(line(&["\n"]), (None, false));
        assert_eq!(
            line(&["end\n", "its ", "over\nof "]),
            (Some("of its end".to_owned()), true)
        );
        assert_eq!(
            line(&["open", "half "]),
            (Some("half open".to_owned()), false)
        );
    }
}
