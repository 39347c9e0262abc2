//! The program's memory at its start, and what file mappings hold.

use crate::error::{Context, Result};
use crate::log::{Bytes, MappedFile, Span};
use crate::maps::{self, Mapping};
use crate::tracee::Tracee;

const PAGE: usize = 4096;
/// Pages that are read at once.
const AT_ONCE: usize = 256 * PAGE;

/// The address space, without what the kernel provides.
pub(crate) fn spans(pid: i32) -> Result<Vec<Span>> {
    let maps = maps::read(pid).context("read the program's mappings")?;
    Ok(maps.iter().filter_map(span).collect())
}

pub(super) fn span(mapping: &Mapping) -> Option<Span> {
    if matches!(&*mapping.path, "[vsyscall]" | "[vvar]" | "[vvar_vclock]") {
        return None;
    }
    let bit = |letter: char, value: i32| match mapping.access.contains(letter) {
        true => value,
        false => 0,
    };
    let protection =
        bit('r', libc::PROT_READ) | bit('w', libc::PROT_WRITE) | bit('x', libc::PROT_EXEC);
    Some(Span {
        start: mapping.range.start,
        end: mapping.range.end,
        protection: protection as u32,
    })
}

/// The files among the mappings.
pub(super) fn files(pid: i32) -> Result<Vec<MappedFile>> {
    let maps = maps::read(pid).context("read the program's mappings")?;
    let files = maps.into_iter().filter(Mapping::is_of_a_file);
    let file = |mapping: Mapping| {
        let span = span(&mapping)?;
        Some(MappedFile {
            start: span.start,
            end: span.end,
            offset: mapping.offset,
            protection: span.protection,
            path: mapping.path,
        })
    };
    Ok(files.filter_map(file).collect())
}

/// What a stretch of memory holds, without pages of zeros and those that cannot be read.
pub(super) fn content(process: &Tracee, start: u64, end: u64) -> Vec<Bytes> {
    let mut found: Vec<Bytes> = Vec::new();
    let mut buffer = vec![0; AT_ONCE];
    let mut at = start;
    while at < end {
        let wanted = AT_ONCE.min((end - at) as usize);
        let count = process.read(at, &mut buffer[..wanted]);
        for (index, page) in buffer[..count].chunks(PAGE).enumerate() {
            let page_at = at + (index * PAGE) as u64;
            if page.iter().all(|byte| *byte == 0) {
                continue;
            }
            match found.last_mut() {
                Some(last) if last.at + last.bytes.len() as u64 == page_at => {
                    last.bytes.extend_from_slice(page)
                }
                _ => found.push(Bytes {
                    at: page_at,
                    bytes: page.to_vec(),
                }),
            }
        }
        // A page that cannot be read is skipped, and what follows it is tried.
        at += if count < wanted {
            (count - count % PAGE + PAGE) as u64
        } else {
            count as u64
        };
    }
    found
}
