//! The mappings of a process: the lines of /proc/PID/maps.

use std::io;
use std::ops::Range;

use crate::tracee::proc_text;

/// One line of /proc/PID/maps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Its addresses.
    pub range: Range<u64>,
    /// Its offset in the file.
    pub offset: u64,
    /// Device and inode: two files of the same path may differ.
    pub file: (String, u64),
    /// The file's path, or a name in brackets; empty for anonymous memory.
    pub path: String,
    /// What it allows, as the kernel shows it: `r-xp`.
    pub access: String,
}

impl Mapping {
    /// Returns whether it is executable.
    pub fn is_executable(&self) -> bool {
        self.access.contains('x')
    }

    /// Returns whether it has the path of a file.
    pub(crate) fn is_of_a_file(&self) -> bool {
        self.path.starts_with('/')
    }

    /// Returns whether it is writable and private: the kernel counts it as data, unless it grows down.
    pub fn is_data(&self) -> bool {
        self.access.contains('w') && self.access.ends_with('p')
    }
}

/// Returns the mappings of a process.
pub(crate) fn read(pid: i32) -> io::Result<Vec<Mapping>> {
    Ok(parse(&proc_text(format!("/proc/{pid}/maps"))?))
}

/// Parses the lines of /proc/PID/maps. Omits others.
pub fn parse(text: &str) -> Vec<Mapping> {
    text.lines().filter_map(mapping).collect()
}

/// Parses `559a0-559b0 r-xp 00001000 fe:00 123   /usr/bin/true`.
fn mapping(line: &str) -> Option<Mapping> {
    let mut rest = line;
    let mut word = || {
        rest = rest.trim_start();
        let (word, after) = rest.split_at(rest.find(' ').unwrap_or(rest.len()));
        rest = after;
        word
    };
    let (start, end) = word().split_once('-')?;
    let access = word().to_owned();
    let offset = u64::from_str_radix(word(), 16).ok()?;
    let device = word().to_owned();
    let inode = word().parse().ok()?;
    Some(Mapping {
        range: u64::from_str_radix(start, 16).ok()?..u64::from_str_radix(end, 16).ok()?,
        offset,
        file: (device, inode),
        access,
        path: rest.trim_start().to_owned(),
    })
}
