//! The mark of a run that is being exported: beside the tables, it names the files of the run until all of them are there. If the
//! export is killed, the mark stays, and the next export of the run removes what it names.

use std::fs;
use std::path::{Component, Path};

use serde::{Deserialize, Serialize};

use crate::error::Error;

/// What a mark says.
#[derive(Debug, Serialize, Deserialize)]
pub struct Mark {
    /// The files of the run.
    pub keys: Vec<String>,
    /// Who writes them.
    writer: Writer,
}

/// A process of some machine.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Writer {
    host: String,
    pid: u32,
    /// When it began, as the kernel counts. Its number is used again.
    start: String,
    /// The running system, and the name space of its number. `None`: not known.
    system: Option<String>,
}

impl Mark {
    /// How the text of a mark begins.
    pub const BEGINNING: &str = "{\"keys\"";

    /// Makes the mark of this process.
    pub fn new(keys: &[String]) -> Mark {
        let pid = std::process::id();
        let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        Mark {
            keys: keys.to_vec(),
            writer: Writer {
                host: host.trim().to_owned(),
                pid,
                start: start_of(pid).unwrap_or_default(),
                system: this_system(),
            },
        }
    }

    /// Reads a mark, without names that lead out of the place of the export. `None`: it says nothing, because its writer was killed
    /// before.
    pub fn read(text: &str) -> Option<Mark> {
        let mut mark: Mark = serde_json::from_str(text).ok()?;
        let is_name = |part: Component<'_>| matches!(part, Component::Normal(_));
        mark.keys
            .retain(|key| Path::new(key).components().all(is_name));
        Some(mark)
    }

    /// Returns its text.
    ///
    /// # Errors
    /// When a name is not text.
    pub fn text(&self) -> Result<String, Error> {
        let text = serde_json::to_string(self);
        text.map_err(|error| Error::io("write which files are exported", error.into()))
    }

    /// Returns whether its process is known to have ended.
    pub fn is_left(&self) -> bool {
        let is_here = self.writer.system.is_some() && self.writer.system == this_system();
        is_here && start_of(self.writer.pid).as_ref() != Some(&self.writer.start)
    }

    /// Returns who writes, for a message.
    pub fn writer(&self) -> String {
        format!("process {} of {}", self.writer.pid, self.writer.host)
    }
}

fn this_system() -> Option<String> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let numbers = fs::read_link("/proc/self/ns/pid").ok()?;
    Some(format!("{} {}", boot.trim(), numbers.display()))
}

/// Returns when a process began; `None` if there is none, or it has ended.
fn start_of(pid: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut fields = after_name.split_whitespace();
    let state = fields.next()?;
    let start = fields.nth(18)?;
    (!matches!(state, "Z" | "X")).then(|| start.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_left_when_its_process_has_ended() {
        let mark = Mark::new(&["table=calls/run=a/part-0.parquet".to_owned()]);
        let mut read = Mark::read(&mark.text().unwrap()).unwrap();
        assert_eq!((&read.keys, &read.writer), (&mark.keys, &mark.writer));
        assert!(!read.is_left(), "this process lives");
        read.writer.start = "1".to_owned();
        assert!(read.is_left(), "its number is used again");
        read.writer.system = Some("another".to_owned());
        assert!(!read.is_left(), "whether its process lives is not known");
        read.writer.system = None;
        assert!(!read.is_left(), "whether its process lives is not known");
        assert!(Mark::read("").is_none());
        assert!(mark.text().unwrap().starts_with(Mark::BEGINNING));
    }

    #[test]
    fn a_mark_names_nothing_elsewhere() {
        let keys = ["table=calls/a", "../b", "/tmp/c", "d/../../e"];
        let text = Mark::new(&keys.map(str::to_owned)).text().unwrap();
        assert_eq!(Mark::read(&text).unwrap().keys, keys[..1]);
    }

    #[test]
    fn a_process_that_nobody_has_waited_for_has_ended() {
        let mut child = std::process::Command::new("/bin/true").spawn().unwrap();
        let pid = child.id();
        while start_of(pid).is_some() {
            std::thread::yield_now();
        }
        child.wait().unwrap();
    }
}
