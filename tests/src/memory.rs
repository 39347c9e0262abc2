//! The memory of a running process, compared with the files it was mapped from.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::process::Command;

/// The executable mappings of `pid` whose path ends with `name`, where memory differs from the file: `offset in file`
/// of each differing byte, at most 100.
///
/// # Panics
/// If the process or its file cannot be read, or maps no such file.
#[must_use]
pub fn changed_text(pid: i32, name: &str) -> Vec<u64> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).expect("the process is alive");
    let memory = File::open(format!("/proc/{pid}/mem")).expect("the process may be read");
    let (mut changed, mut seen) = (Vec::new(), false);
    for line in maps.lines().filter(|l| l.ends_with(name)) {
        let words: Vec<&str> = line.split_whitespace().collect();
        if !words[1].contains('x') {
            continue;
        }
        seen = true;
        let hex = |text: &str| u64::from_str_radix(text, 16).expect("maps has hexadecimal numbers");
        let (low, high) = words[0].split_once('-').expect("maps has ranges");
        let (low, high, offset) = (hex(low), hex(high), hex(words[2]));
        let length = usize::try_from(high - low).expect("it fits into memory");
        let (mut now, mut file) = (vec![0; length], vec![0; length]);
        memory
            .read_exact_at(&mut now, low)
            .expect("mapped memory can be read");
        // The last page may extend past the end of the file, where memory is zero.
        let image = File::open(words[5]).expect("the mapped file is there");
        let mut filled = 0;
        while let Ok(n @ 1..) = image.read_at(&mut file[filled..], offset + filled as u64) {
            filled += n;
        }
        let stays = staying(words[5]);
        let may_differ = |at: u64| stays.iter().any(|entry| (*entry..entry + 5).contains(&at));
        changed.extend(
            (0..length)
                .filter(|i| now[*i] != file[*i] && !may_differ(offset + *i as u64))
                .map(|i| offset + i as u64)
                .take(100),
        );
    }
    assert!(seen, "process {pid} maps no executable pages of {name}");
    changed
}

/// Where the patches are that a recording leaves in a library (docs/transparency.md), as offsets in the file.
fn staying(file: &str) -> Vec<u64> {
    let symbols = Command::new("readelf")
        .args(["--dyn-syms", "--wide", file])
        .output()
        .expect("readelf can be started");
    let text = String::from_utf8_lossy(&symbols.stdout).into_owned();
    let entry = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let name = words.get(7)?.split('@').next()?;
        let is_one = ["dl_iterate_phdr", "_dl_find_object"].contains(&name);
        // In the executable segment of glibc's libraries, addresses are offsets.
        u64::from_str_radix(words[1], 16).ok().filter(|_| is_one)
    };
    text.lines().filter_map(entry).collect()
}

/// The names of the threads of a process.
#[must_use]
pub fn thread_names(pid: i32) -> Vec<String> {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return Vec::new();
    };
    tasks
        .filter_map(|t| fs::read_to_string(t.ok()?.path().join("comm")).ok())
        .map(|name| name.trim_end().to_owned())
        .collect()
}
