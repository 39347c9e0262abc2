//! Lines that run when a breakpoint stops the program (`commands`), and breakpoints saved as a file of lines (`save
//! breakpoints`). The prompt keeps the lines until it ends.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write;

use server::session::ReasonReport;
use server::verbs::{InfoBreakpoints, InfoBreakpointsReply, PageArgs, ProbeKind, ProbeReport};

use super::Session;
use crate::commands::live::{self, Common, Patience};
use crate::error::Error;
use crate::exit;

/// The lines of each breakpoint.
#[derive(Debug, Default)]
pub struct AtStops {
    lines: BTreeMap<u32, Vec<String>>,
    /// The breakpoint whose lines are being entered.
    open: Option<(u32, Vec<String>)>,
    /// Lines are running: a stop that they cause runs none.
    is_running: bool,
}

impl AtStops {
    /// Takes a line, while lines are being entered: up to `end`.
    pub fn take(&mut self, text: &str) -> bool {
        let Some((id, lines)) = &mut self.open else {
            return false;
        };
        match text {
            "end" => {
                let (id, lines) = (*id, std::mem::take(lines));
                self.open = None;
                match lines.is_empty() {
                    true => self.lines.remove(&id),
                    false => self.lines.insert(id, lines),
                };
            }
            // In gdb this hides the stop itself; here it is always shown.
            "silent" => {}
            line => lines.push(line.to_owned()),
        }
        true
    }
}

impl Session {
    /// Begins the lines of a breakpoint: of the one with this number, or of the last one.
    pub(super) fn commands(&mut self, words: &[String]) -> Result<u8, Error> {
        let known = self.all_probes("commands")?;
        let wanted = match words {
            [] => known.last().map(|probe| probe.id),
            [word] => word.parse().ok(),
            _ => None,
        };
        let found = known.iter().find(|probe| Some(probe.id) == wanted);
        let Some(found) = found else {
            let numbers: Vec<String> = known.iter().map(|probe| probe.id.to_string()).collect();
            return Err(Error::usage(
                "commands takes the number of a breakpoint",
                Some(match numbers.is_empty() {
                    true => "set one first: break LOCATION".to_owned(),
                    false => format!("there are: {}", numbers.join(", ")),
                }),
            ));
        };
        let id = found.id;
        self.at_stops.open = Some((id, Vec::new()));
        if self.is_typed {
            println!("Lines to run when {id} stops the program, up to: end");
        }
        Ok(exit::DONE)
    }

    /// Runs the lines of the breakpoint that has stopped the program.
    pub(super) fn run_at_stop(&mut self) -> Result<u8, Error> {
        if self.at_stops.is_running || self.at_stops.lines.is_empty() || !self.is_live() {
            return Ok(exit::DONE);
        }
        let report = match &self.present {
            Some(present) => present.report()?,
            None => None,
        };
        let stop = report.and_then(|report| report.stop);
        let probe = stop.and_then(|stop| match stop.reason {
            ReasonReport::Breakpoint { probe, .. }
            | ReasonReport::Watch { probe, .. }
            | ReasonReport::Throw { probe, .. }
            | ReasonReport::Happened { probe, .. } => Some(probe),
            _ => None,
        });
        let lines = probe.and_then(|probe| self.at_stops.lines.get(&probe).cloned());
        self.at_stops.is_running = true;
        let mut result = Ok(exit::DONE);
        for line in lines.into_iter().flatten() {
            match self.run(&line) {
                Ok((_, exit::DONE)) => {}
                Ok((_, code)) => {
                    result = Ok(code);
                    break;
                }
                Err(error) => {
                    result = Err(error);
                    break;
                }
            }
        }
        self.at_stops.is_running = false;
        result
    }

    /// Writes the breakpoints as lines to a new file.
    pub(super) fn save(&mut self, words: &[String]) -> Result<u8, Error> {
        let ["breakpoints", file] = &words.iter().map(String::as_str).collect::<Vec<_>>()[..]
        else {
            return Err(Error::usage(
                "only breakpoints are saved",
                Some("write: save breakpoints FILE".to_owned()),
            ));
        };
        let known = self.all_probes("save breakpoints")?;
        let text: String = known.iter().map(line_of).collect();
        let failed = |source| Error::io(format!("write {file}"), source);
        let mut options = OpenOptions::new();
        let mut out = options
            .write(true)
            .create_new(true)
            .open(file)
            .map_err(failed)?;
        out.write_all(text.as_bytes()).map_err(failed)?;
        live::write(&format!(
            "{file}: {}; hindsight repl --script {file} sets them\n",
            server::quantity::count(known.len() as u64, "line")
        ))?;
        Ok(exit::DONE)
    }

    fn all_probes(&self, verb: &str) -> Result<Vec<ProbeReport>, Error> {
        let common = Common::default();
        let asked = live::fetch::<InfoBreakpoints>(
            &common,
            &self.link,
            &PageArgs::default(),
            Patience::Answer,
        )?;
        match asked {
            InfoBreakpointsReply::Program { probes, .. } => Ok(probes),
            InfoBreakpointsReply::Recorded { .. } => Err(Error::usage(
                format!("{verb} is for the breakpoints of a live program"),
                Some("in the past of one, return to it first: goto live".to_owned()),
            )),
        }
    }
}

/// Writes the line that sets a probe.
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
        line += &format!(" --hit-count {}", probe.hit_count);
    }
    if probe.all_threads && probe.kind == ProbeKind::Breakpoint {
        line += " --all-threads";
    }
    if probe.once {
        line += " --once";
    }
    match (&probe.condition, probe.kind) {
        (Some(condition), ProbeKind::Breakpoint) => line += &format!(" if {condition}"),
        (Some(condition), _) => line += &format!(" --condition '{condition}'"),
        (None, _) => {}
    }
    match probe.enabled {
        true => format!("{line}\n"),
        false => format!("# disabled: {line}\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_taken_up_to_the_end() {
        let mut at = AtStops::default();
        assert!(!at.take("p x"), "nothing was begun");
        at.open = Some((2, Vec::new()));
        for line in ["silent", "p x", "c", "end"] {
            assert!(at.take(line), "{line}");
        }
        assert_eq!(at.lines[&2], ["p x", "c"]);
        assert!(!at.take("end"));
        at.open = Some((2, Vec::new()));
        assert!(at.take("end"));
        assert!(at.lines.is_empty(), "no lines remove those of before");
    }

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
}
