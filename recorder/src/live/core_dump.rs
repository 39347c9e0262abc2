//! Writes a core file of the stopped program: its threads and its memory, without our traps, patches and mappings.
//!
//! It has the same contents as the kernel's: private memory that is anonymous or modified, shared memory without a
//! file, and the first page of each mapped ELF file. The rest is in the mapped files.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::ops::Range;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use agent::shared::SHADOWS;
use debuginfo::{
    CORE_REGISTERS, CoreImage, CoreMapping, ImageSegment, ImageThread, Machine, write_head,
};

use super::model::{Reason, ThreadState};
use super::{Live, Tid};
use crate::process::{Mapping, Maps};
use crate::stop::Registers;

const PAGE: u64 = 4096;
/// Memory that is read at once.
const CHUNK: u64 = 1 << 20;
/// Bits of `/proc/PID/pagemap`: present, swapped out, of a file.
const PRESENT: u64 = 1 << 63;
const SWAPPED: u64 = 1 << 62;
const OF_FILE: u64 = 1 << 61;

/// A core file that was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dumped {
    /// Its length in bytes.
    pub len: u64,
    /// How many threads it has.
    pub threads: usize,
    /// How many bytes could not be read: they are zero in the file.
    pub unreadable: u64,
}

/// A mapping, and what a core file has of it.
struct Dumpable<'a>(&'a Mapping);

impl Live {
    /// Writes a core file at `path`, which must not exist. All threads must be stopped; `first` comes first.
    ///
    /// # Errors
    /// The file cannot be written, or a thread runs.
    pub fn dump_core(&self, path: &Path, first: Tid) -> io::Result<Dumped> {
        let image = self.core_image(first)?;
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)?;
        let written = self.write_core(&image, first, &mut file);
        if written.is_err() {
            // A partial core file is useless.
            let _ = fs::remove_file(path);
        }
        written
    }

    fn core_image(&self, first: Tid) -> io::Result<CoreImage> {
        let pid = self.pid();
        let read = |name: &str| fs::read(format!("/proc/{pid}/{name}"));
        let text =
            |name: &str| read(name).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let mut threads = Vec::new();
        let mut views = self.threads();
        views.sort_by_key(|view| (view.tid != first, view.tid));
        for view in &views {
            threads.push(self.image_thread(view.tid, &view.state)?);
        }
        let maps = Maps::parse(&text("maps")?);
        let pages = File::open(format!("/proc/{pid}/pagemap"))?;
        let mut image = CoreImage {
            pid: pid as u32,
            parent: parent(&text("stat")?),
            name: text("comm")?.trim_end().to_owned(),
            arguments: text("cmdline")?.trim_end_matches('\0').replace('\0', " "),
            auxv: read("auxv")?,
            threads,
            ..CoreImage::default()
        };
        let mappings = maps
            .mappings
            .iter()
            .map(|mapping| (mapping, Dumpable(mapping)));
        for (mapping, dumpable) in mappings.filter(|(_, dumpable)| !dumpable.is_ours()) {
            if dumpable.is_file() {
                image.mappings.push(CoreMapping {
                    range: mapping.range.clone(),
                    offset: mapping.offset,
                    path: mapping.path.trim_end_matches(" (deleted)").into(),
                });
            }
            image.segments.push(ImageSegment {
                range: mapping.range.clone(),
                written: dumpable.written(&pages)?,
                flags: dumpable.flags(),
            });
        }
        Ok(image)
    }

    fn image_thread(&self, tid: Tid, state: &ThreadState) -> io::Result<ImageThread> {
        let ThreadState::Stopped(stop) = state else {
            return Err(io::Error::other(format!("thread {tid} is running")));
        };
        let machine = self.machine(tid).map_err(io::Error::other)?;
        let floating = self.ask(move |tracer| {
            let stopped = tracer.tracee.stopped(tid).map_err(io::Error::other)?;
            stopped.extended_state()
        });
        let floating = floating.map_err(io::Error::other)??;
        Ok(ImageThread {
            tid: tid as u32,
            signal: match &stop.reason {
                Reason::Signal { signal, .. } => *signal,
                _ => 0,
            },
            registers: words(&machine.registers.general),
            floating,
        })
    }

    fn write_core(&self, image: &CoreImage, first: Tid, file: &mut File) -> io::Result<Dumped> {
        let machine = self.machine(first).map_err(io::Error::other)?;
        let pages = File::open(format!("/proc/{}/pagemap", self.pid()))?;
        let head = write_head(image);
        file.write_all(&head)?;
        let (mut at, mut unreadable) = (head.len() as u64, 0);
        for segment in &image.segments {
            let end = segment.range.start + segment.written;
            for start in (segment.range.start..end).step_by(CHUNK as usize) {
                let len = CHUNK.min(end - start);
                // Memory that was never touched has no pages: it stays a hole in the file.
                if has_pages(&pages, &(start..start + len))? {
                    let mut bytes = vec![0; len as usize];
                    unreadable += read(&machine, start, &mut bytes);
                    if bytes.iter().any(|byte| *byte != 0) {
                        file.seek(SeekFrom::Start(at))?;
                        file.write_all(&bytes)?;
                    }
                }
                at += len;
            }
        }
        file.set_len(at)?;
        Ok(Dumped {
            len: at,
            threads: image.threads.len(),
            unreadable,
        })
    }
}

/// Reads memory, page by page if not all of it can be read. Returns the number of unreadable bytes.
fn read(machine: &dyn Machine, start: u64, bytes: &mut [u8]) -> u64 {
    if machine.memory(start, bytes).is_ok() {
        return 0;
    }
    let mut unreadable = 0;
    for (number, page) in bytes.chunks_mut(PAGE as usize).enumerate() {
        let at = start + number as u64 * PAGE;
        if machine.memory(at, page).is_err() {
            page.fill(0);
            unreadable += page.len() as u64;
        }
    }
    unreadable
}

fn entries(pages: &File, range: &Range<u64>) -> io::Result<Vec<u64>> {
    let count = (range.end - range.start).div_ceil(PAGE);
    let mut bytes = vec![0; (count * 8) as usize];
    pages.read_exact_at(&mut bytes, range.start / PAGE * 8)?;
    let (words, _) = bytes.as_chunks::<8>();
    Ok(words.iter().map(|word| u64::from_le_bytes(*word)).collect())
}

fn has_pages(pages: &File, range: &Range<u64>) -> io::Result<bool> {
    let entries = entries(pages, range)?;
    Ok(entries.iter().any(|entry| entry & (PRESENT | SWAPPED) != 0))
}

impl Dumpable<'_> {
    /// Mappings that recording made, and those of the kernel that cannot be read.
    fn is_ours(&self) -> bool {
        let overlaps = |base: u64, bytes: u64| {
            self.0.range.start < base.saturating_add(bytes) && base < self.0.range.end
        };
        SHADOWS
            .iter()
            .any(|shadow| overlaps(shadow.base, shadow.bytes))
            || self.0.path.starts_with("/memfd:hindsight")
            || self.0.path.starts_with("[vvar")
            || self.0.path == "[vsyscall]"
    }

    fn is_file(&self) -> bool {
        self.0.path.starts_with('/') && !self.0.path.starts_with("/memfd:")
    }

    fn flags(&self) -> u32 {
        let bit = |letter, bit| {
            if self.0.access.contains(letter) {
                bit
            } else {
                0
            }
        };
        bit('r', 4) | bit('w', 2) | bit('x', 1)
    }

    /// How many bytes of it are written.
    fn written(&self, pages: &File) -> io::Result<u64> {
        let len = self.0.range.end - self.0.range.start;
        let is_shared = self.0.access.ends_with('s');
        if !self.0.access.starts_with('r') {
            return Ok(0);
        }
        Ok(match (self.is_file(), is_shared) {
            (false, _) => len,
            (true, true) => 0,
            (true, false) if self.0.access.contains('w') || self.was_changed(pages)? => len,
            (true, false) if self.0.offset == 0 => PAGE.min(len),
            (true, false) => 0,
        })
    }

    /// Some of its pages are no longer those of the file.
    fn was_changed(&self, pages: &File) -> io::Result<bool> {
        for start in self.0.range.clone().step_by(CHUNK as usize) {
            let part = start..self.0.range.end.min(start + CHUNK);
            let is_own =
                |entry: &u64| entry & SWAPPED != 0 || entry & PRESENT != 0 && entry & OF_FILE == 0;
            if entries(pages, &part)?.iter().any(is_own) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// The parent's number: the fourth field, after the name in parentheses.
fn parent(stat: &str) -> u32 {
    let behind = stat.rsplit_once(')').map_or("", |(_, behind)| behind);
    let field = behind.split_whitespace().nth(1);
    field.and_then(|field| field.parse().ok()).unwrap_or(0)
}

/// The registers in the kernel's order.
fn words(registers: &Registers) -> [u64; CORE_REGISTERS] {
    let r = registers;
    [
        r.r15, r.r14, r.r13, r.r12, r.rbp, r.rbx, r.r11, r.r10, r.r9, r.r8, r.rax, r.rcx, r.rdx,
        r.rsi, r.rdi, r.orig_rax, r.rip, r.cs, r.eflags, r.rsp, r.ss, r.fs_base, r.gs_base, r.ds,
        r.es, r.fs, r.gs,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_files_and_ours_is_told_apart() {
        let maps = Maps::parse(
            "7f10-8f20 r-xp 00001000 fe:00 12   /usr/lib/a b.so (deleted)
1000-2000 rw-p 00000000 00:00 0\u{20}
200000000000-200000001000 rw-p 00000000 00:00 0
",
        );
        let [file, anonymous, ours] = &maps.mappings[..] else {
            panic!("{maps:?}");
        };
        assert_eq!(file.range, 0x7f10..0x8f20);
        assert_eq!((file.offset, Dumpable(file).flags()), (0x1000, 5));
        assert_eq!(file.path, "/usr/lib/a b.so (deleted)");
        assert!(Dumpable(file).is_file() && !Dumpable(file).is_ours());
        assert_eq!(anonymous.path, "");
        assert!(!Dumpable(anonymous).is_file());
        assert!(Dumpable(ours).is_ours());
    }

    #[test]
    fn a_name_may_have_brackets() {
        assert_eq!(parent("12 (a) b) S 7 1 1"), 7);
        assert_eq!(parent(""), 0);
    }
}
