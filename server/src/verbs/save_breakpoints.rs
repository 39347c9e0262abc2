//! `save_breakpoints`: writes the lines that set all breakpoints again.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{Call, Command, Does, Form, Needs, ProbeKind, ProbeReport, Text, Verb, Word};
use crate::os_text::OsText;
use crate::past::{Break, WatchLine};
use crate::protocol::{Code, Failure};
use crate::quantity::count;
use crate::session::{AtStops, Session};

/// The `save_breakpoints` verb.
pub struct SaveBreakpoints;

/// The arguments of `save_breakpoints`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SaveBreakpointsArgs {
    /// The file, which must not exist. A relative path is one in the client's folder.
    pub file: OsText,
}

/// The reply of `save_breakpoints`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SaveBreakpointsReply {
    /// The file.
    #[serde(with = "store::os_path")]
    pub file: PathBuf,
    /// How many breakpoints, watchpoints, catchpoints and logpoints it has.
    pub saved: usize,
}

impl Verb for SaveBreakpoints {
    const NAME: &'static str = "save_breakpoints";
    const DOC: &'static str = "Save the commands that set all breakpoints to a new file: save breakpoints FILE\n\nhindsight repl --script FILE sets them again. Their lines (commands) are in it too.";
    const NEEDS: Needs = Needs::Session;
    const DOES: Does = Does::Look;
    type Args = SaveBreakpointsArgs;
    type Reply = SaveBreakpointsReply;

    fn run(call: &Call<'_>, args: SaveBreakpointsArgs) -> Result<SaveBreakpointsReply, Failure> {
        let session = call.target()?;
        let lines = all(&session);
        let file = call
            .folder()
            .join(PathBuf::from(OsString::from(&args.file)));
        let written = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&file)
            .and_then(|mut out| out.write_all(lines.concat().as_bytes()));
        written.map_err(|error| {
            let message = format!("cannot write {}: {error}", file.display());
            let failure = Failure::new(Code::Failed, message);
            match error.kind() {
                std::io::ErrorKind::AlreadyExists => {
                    failure.hint("name another file: save breakpoints FILE")
                }
                _ => failure,
            }
        })?;
        Ok(SaveBreakpointsReply {
            file,
            saved: lines.len(),
        })
    }
}

impl Command for SaveBreakpoints {
    const WORDS: &'static [Word] = &[Word::new("file", "FILE", Form::Path, "The new file")];

    fn text(reply: &SaveBreakpointsReply, _: &SaveBreakpointsArgs) -> Text {
        let file = reply.file.display();
        Text::line(match reply.saved {
            0 => format!("{file}: empty, there are no breakpoints"),
            saved => format!(
                "{file}: {}; hindsight repl --script {file} sets them",
                count(saved as u64, "breakpoint")
            ),
        })
    }
}

/// Returns the text that sets each of them.
fn all(session: &Session) -> Vec<String> {
    let at_stops = session.at_stops();
    match session {
        Session::Live(session) => {
            let probes = session.live.probes();
            let probes = probes.iter().map(ProbeReport::of);
            probes
                .map(|probe| line_of(&probe) + &lines_of(at_stops, probe.id))
                .collect()
        }
        Session::Recorded(past) => {
            let breaks = past.all_breaks();
            let breaks = breaks
                .iter()
                .map(|known| line_of_break(known) + &lines_of(at_stops, known.id));
            let watches = past.all_watches().watches;
            let watches = watches
                .iter()
                .map(|watch| line_of_watch(watch) + &lines_of(at_stops, watch.id));
            breaks.chain(watches).collect()
        }
    }
}

/// Returns the lines that give a breakpoint its lines.
fn lines_of(at_stops: &AtStops, id: u32) -> String {
    let lines = at_stops.of(id);
    let inner: String = lines.iter().map(|line| format!("  {line}\n")).collect();
    match inner.is_empty() {
        true => inner,
        false => format!("commands\n{inner}end\n"),
    }
}

/// Returns the line that sets a probe.
fn line_of(probe: &ProbeReport) -> String {
    let place = probe.location.as_str();
    let mut line = match probe.kind {
        ProbeKind::Breakpoint if place.starts_with('*') && !place.starts_with("*0x") => {
            format!("break --function '{place}'")
        }
        ProbeKind::Breakpoint => format!("break {place}"),
        ProbeKind::Logpoint => {
            let template = probe.template.as_deref().unwrap_or_default();
            let quote = if template.contains('"') { '\'' } else { '"' };
            format!("logpoint {place} {quote}{template}{quote}")
        }
        ProbeKind::Watchpoint => {
            let (expression, how) = place.rsplit_once(" (").unwrap_or((place, ""));
            let access = match how.split(',').next() {
                Some("read") => " --read",
                Some("access") => " --access",
                _ => "",
            };
            format!("watch {expression}{access}")
        }
        ProbeKind::Catchpoint if place.starts_with("SIG") => format!("catch signal {place}"),
        ProbeKind::Catchpoint => format!("catch {place}"),
    };
    if probe.hit_count > 0 {
        // Writing to a String cannot fail.
        _ = write!(line, " --hit-count {}", probe.hit_count);
    }
    if probe.all_threads && probe.kind == ProbeKind::Breakpoint {
        line += " --all-threads";
    }
    if probe.once {
        line += " --once";
    }
    match (&probe.condition, probe.kind) {
        (Some(condition), ProbeKind::Breakpoint) => _ = write!(line, " if {condition}"),
        (Some(condition), _) => _ = write!(line, " --condition '{condition}'"),
        (None, _) => {}
    }
    switched(&line, probe.enabled) + &skipping(probe.skips)
}

/// Returns the line that sets a breakpoint of a recording.
fn line_of_break(known: &Break) -> String {
    let word = if known.caught.is_some() {
        "catch"
    } else {
        "break"
    };
    let mut line = format!("{word} {}", known.location);
    if known.hit_count > 0 {
        // Writing to a String cannot fail.
        _ = write!(line, " --hit-count {}", known.hit_count);
    }
    if known.once {
        line += " --once";
    }
    if let Some(condition) = &known.condition {
        _ = write!(line, " if {condition}");
    }
    switched(&line, !known.disabled) + &skipping(known.ignored)
}

/// A remark on the hits that were to be skipped: the number of the breakpoint, which `ignore` takes, is known only once it is set.
fn skipping(hits: u64) -> String {
    match hits {
        0 => String::new(),
        hits => format!("# it skipped its next hits: ignore NUMBER {hits}\n"),
    }
}

fn line_of_watch(watch: &WatchLine) -> String {
    format!("watch {}\n", watch.expression)
}

fn switched(line: &str, is_on: bool) -> String {
    match is_on {
        true => format!("{line}\n"),
        false => format!("# disabled: {line}\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_saved_line_is_one_that_sets_the_same() {
        let probe = |kind: &str, location: &str, more: serde_json::Value| {
            let mut probe = serde_json::json!({
                "id": 1, "kind": kind, "location": location, "verified": true, "enabled": true, "places": [],
                "hit_count": 0, "all_threads": false, "once": false, "hits": 0, "existed": false,
            });
            for (name, value) in more.as_object().expect("fields") {
                probe[name] = value.clone();
            }
            line_of(&serde_json::from_value(probe).expect("a probe"))
        };
        let none = serde_json::json!({});
        assert_eq!(probe("breakpoint", "a.c:3", none.clone()), "break a.c:3\n");
        assert_eq!(
            probe("breakpoint", "*_init", none.clone()),
            "break --function '*_init'\n"
        );
        let more = serde_json::json!({"condition": "n == \"x\"", "once": true});
        assert_eq!(
            probe("breakpoint", "f", more),
            "break f --once if n == \"x\"\n"
        );
        let more = serde_json::json!({"skips": 3});
        assert_eq!(
            probe("breakpoint", "f", more),
            "break f\n# it skipped its next hits: ignore NUMBER 3\n"
        );
        let more = serde_json::json!({"template": "n={n}", "enabled": false});
        assert_eq!(
            probe("logpoint", "f", more),
            "# disabled: logpoint f \"n={n}\"\n"
        );
        assert_eq!(
            probe("watchpoint", "a.b (access, 4 bytes)", none.clone()),
            "watch a.b --access\n"
        );
        assert_eq!(
            probe("catchpoint", "SIGUSR1", none.clone()),
            "catch signal SIGUSR1\n"
        );
        assert_eq!(probe("catchpoint", "panic", none), "catch panic\n");
    }

    #[test]
    fn lines_of_a_breakpoint_follow_it() {
        let at_stops = AtStops::default();
        assert_eq!(lines_of(&at_stops, 1), "");
        at_stops.set(1, vec!["print n".to_owned(), "continue".to_owned()]);
        assert_eq!(
            lines_of(&at_stops, 1),
            "commands\n  print n\n  continue\nend\n"
        );
    }
}
