//! The mappings of a process: /proc/PID/maps, by mapping and by module.

use std::{collections::BTreeMap, io, ops::Range, path::PathBuf};

pub use exact::maps::Mapping;

use crate::stop::procfs;

/// A mapped file with code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappedFile {
    /// Its path as the kernel shows it.
    pub path: PathBuf,
    /// From its first to its last mapped byte.
    pub range: Range<u64>,
    /// Its first mapping.
    pub first: Range<u64>,
    /// Device, as the kernel shows it, and inode. The file at the path may be another by now.
    pub identity: (String, u64),
}

/// All mappings of a process at one moment.
#[derive(Clone, Debug, Default)]
pub struct Maps {
    /// Lowest address first.
    pub mappings: Vec<Mapping>,
}

impl Maps {
    /// Reads the mappings of `pid`.
    ///
    /// # Errors
    /// If the process is gone or access is denied.
    pub fn read(pid: i32) -> io::Result<Self> {
        Ok(Self::parse(&procfs::text(format!("/proc/{pid}/maps"))?))
    }

    /// Parses the text of a maps file. Skips invalid lines.
    pub fn parse(text: &str) -> Self {
        Self {
            mappings: exact::maps::parse(text),
        }
    }

    /// Returns the occupied ranges.
    pub fn ranges(&self) -> Vec<Range<u64>> {
        self.mappings
            .iter()
            .map(|mapping| mapping.range.clone())
            .collect()
    }

    /// Returns the ranges mapped here and not in `before`, merged, largest first.
    pub fn since(&self, before: &Maps) -> Vec<Range<u64>> {
        let mut found: Vec<Range<u64>> = Vec::new();
        for mapping in &self.mappings {
            for range in without(mapping.range.clone(), &before.mappings) {
                match found.last_mut() {
                    Some(last) if last.end == range.start => last.end = range.end,
                    _ => found.push(range),
                }
            }
        }
        found.sort_by_key(|range| std::cmp::Reverse(range.end - range.start));
        found
    }

    /// Returns the number of bytes that are data here and were not mapped in `before`.
    pub fn data_since(&self, before: &Maps) -> u64 {
        let data = self.mappings.iter().filter(|mapping| mapping.is_data());
        data.flat_map(|mapping| without(mapping.range.clone(), &before.mappings))
            .map(|range| range.end - range.start)
            .sum()
    }

    /// Returns the end of the main thread's stack.
    pub fn stack_high(&self) -> Option<u64> {
        self.mappings
            .iter()
            .find(|mapping| mapping.path == "[stack]")
            .map(|mapping| mapping.range.end)
    }

    /// Returns the mapped files with code, lowest first. A file mapped twice, with other mappings in between, counts as
    /// two (dlmopen).
    pub fn files(&self) -> Vec<MappedFile> {
        let mut open: BTreeMap<(&str, u64, &str), MappedFile> = BTreeMap::new();
        let mut files = Vec::new();
        let mut executable = std::collections::BTreeSet::new();
        for mapping in self
            .mappings
            .iter()
            .filter(|mapping| mapping.path.starts_with('/'))
        {
            let key = (
                mapping.file.0.as_str(),
                mapping.file.1,
                mapping.path.as_str(),
            );
            let starts_over = mapping.offset == 0 && open.contains_key(&key);
            if starts_over && executable.remove(&key) {
                files.extend(open.remove(&key));
            }
            let file = open.entry(key).or_insert_with(|| MappedFile {
                path: mapping.path.trim_end_matches(" (deleted)").into(),
                range: mapping.range.clone(),
                first: mapping.range.clone(),
                identity: mapping.file.clone(),
            });
            file.range.end = mapping.range.end;
            if mapping.is_executable() {
                executable.insert(key);
            }
        }
        files.extend(
            open.into_iter()
                .filter(|(key, _)| executable.contains(key))
                .map(|(_, file)| file),
        );
        files.sort_by_key(|file| file.range.start);
        files
    }
}

/// Returns the parts of `range` that no mapping covers; `mappings` are lowest first.
fn without(range: Range<u64>, mappings: &[Mapping]) -> Vec<Range<u64>> {
    let mut parts = Vec::new();
    let mut from = range.start;
    for covered in mappings.iter().map(|mapping| &mapping.range) {
        if covered.end <= from || covered.start >= range.end {
            continue;
        }
        if from < covered.start {
            parts.push(from..covered.start);
        }
        from = covered.end;
    }
    if from < range.end {
        parts.push(from..range.end);
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
400000-401000 r--p 00000000 fe:00 11   /opt/with space/app
401000-402000 r-xp 00001000 fe:00 11   /opt/with space/app
402000-403000 rw-p 00000000 00:00 0
7f0000000000-7f0000001000 r--p 00000000 fe:00 12   /usr/lib/data.bin
7f0000002000-7f0000003000 r--p 00000000 fe:00 13   /usr/lib/libx.so
7f0000003000-7f0000004000 r-xp 00001000 fe:00 13   /usr/lib/libx.so
7f0000006000-7f0000007000 r--p 00000000 fe:00 13   /usr/lib/libx.so
7f0000007000-7f0000008000 r-xp 00001000 fe:00 13   /usr/lib/libx.so
7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0    [stack]
";

    #[test]
    fn files_with_code_are_modules_and_a_second_copy_is_another() {
        let maps = Maps::parse(TEXT);
        let files: Vec<_> = maps
            .files()
            .into_iter()
            .map(|file| (file.path, file.range))
            .collect();
        assert_eq!(
            files,
            [
                ("/opt/with space/app".into(), 0x400000..0x402000),
                ("/usr/lib/libx.so".into(), 0x7f0000002000..0x7f0000004000),
                ("/usr/lib/libx.so".into(), 0x7f0000006000..0x7f0000008000),
            ]
        );
        let last = &maps.files()[2];
        assert_eq!(last.first, 0x7f0000006000..0x7f0000007000);
        assert_eq!(last.identity, ("fe:00".to_owned(), 13));
        assert_eq!(maps.stack_high(), Some(0x7ffc00021000));
        assert_eq!(maps.ranges().len(), 9);
    }

    #[test]
    fn lines_that_are_none_are_passed_over() {
        assert!(
            Maps::parse("nonsense\n\n12-zz r 0 0 0\n")
                .mappings
                .is_empty()
        );
    }

    #[test]
    fn what_came_since_is_told_in_whole_ranges_the_largest_first() {
        let line = |range: &str| format!("{range} rw-p 00000000 00:00 0 \n");
        let parse = |ranges: &[&str]| {
            Maps::parse(&ranges.iter().map(|range| line(range)).collect::<String>())
        };
        let before = parse(&["1000-3000", "8000-9000"]);
        let after = parse(&["1000-4000", "4000-6000", "7000-a000"]);
        assert_eq!(
            after.since(&before),
            [0x3000..0x6000, 0x7000..0x8000, 0x9000..0xa000]
        );
        assert!(before.since(&after).is_empty());
    }
}
