//! The file format of speedscope.app: a profile per thread, in which calls open and close as they would if each path had
//! been called once.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Serialize;

use super::{Paths, Report};

const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct File<'a> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    name: &'a str,
    exporter: String,
    active_profile_index: usize,
    shared: Shared<'a>,
    profiles: Vec<Profile>,
}

#[derive(Serialize)]
struct Shared<'a> {
    frames: Vec<Frame<'a>>,
}

#[derive(Serialize)]
struct Frame<'a> {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Profile {
    r#type: &'static str,
    name: String,
    unit: &'static str,
    start_value: u64,
    end_value: u64,
    events: Vec<Event>,
}

#[derive(Serialize)]
struct Event {
    r#type: &'static str,
    frame: usize,
    at: u64,
}

impl Report {
    /// Writes a profile per thread, called `name`.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_speedscope(&self, out: &mut dyn Write, name: &str, raw: bool) -> io::Result<()> {
        let mut numbers = BTreeMap::new();
        let mut frames = Vec::new();
        let children = self.paths.children(raw);
        let mut profiles: Vec<Profile> = self
            .paths
            .threads
            .iter()
            .map(|(_, id)| {
                let mut number = |id: usize| {
                    let path = &self.paths.all[id];
                    *numbers.entry(path.function).or_insert_with(|| {
                        let of = path.function.and_then(|function| self.function(function));
                        frames.push(Frame {
                            name: self.path_name(&self.paths, id),
                            file: of.and_then(|of| of.file.as_deref()),
                            line: of.and_then(|of| of.line),
                        });
                        frames.len() - 1
                    })
                };
                Profile {
                    r#type: "evented",
                    name: self.path_name(&self.paths, *id),
                    unit: "nanoseconds",
                    start_value: 0,
                    end_value: self.paths.all[*id].times(raw).inclusive_ns,
                    events: events(&self.paths, &children, *id, raw, &mut number),
                }
            })
            .collect();
        profiles.sort_by_key(|profile| u64::MAX - profile.end_value);
        let file = File {
            schema: SCHEMA,
            name,
            exporter: format!("hindsight {}", env!("CARGO_PKG_VERSION")),
            active_profile_index: 0,
            shared: Shared { frames },
            profiles,
        };
        serde_json::to_writer(out, &file).map_err(io::Error::from)
    }
}

/// Opens and closes all paths below `root`; each path's own time comes before that of those that continue it.
fn events(
    paths: &Paths,
    children: &[Vec<usize>],
    root: usize,
    raw: bool,
    number: &mut dyn FnMut(usize) -> usize,
) -> Vec<Event> {
    let mut events = Vec::new();
    let mut now = 0;
    // A path to open, or one to close.
    let mut waiting: Vec<(usize, bool)> = Vec::new();
    let enter = |waiting: &mut Vec<(usize, bool)>, id: usize| {
        let some = children[id].iter().rev();
        let some = some.filter(|child| paths.all[**child].times(raw).inclusive_ns > 0);
        waiting.extend(some.map(|child| (*child, true)));
    };
    enter(&mut waiting, root);
    while let Some((id, opens)) = waiting.pop() {
        events.push(Event {
            r#type: if opens { "O" } else { "C" },
            frame: number(id),
            at: now,
        });
        if opens {
            now += paths.all[id].times(raw).self_ns;
            waiting.push((id, false));
            enter(&mut waiting, id);
        }
    }
    events
}
