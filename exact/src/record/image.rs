//! The program's memory at its start, and what file mappings hold.

use crate::error::{Context, Result};
use crate::log::{Bytes, MappedFile, Span};
use crate::tracee::{Tracee, proc_text};

const PAGE: usize = 4096;
/// Pages that are read at once.
const AT_ONCE: usize = 256 * PAGE;

/// The address space, without what the kernel provides.
pub(crate) fn spans(pid: i32) -> Result<Vec<Span>> {
    let text = proc_text(format!("/proc/{pid}/maps")).context("read the program's mappings")?;
    Ok(text.lines().filter_map(span).collect())
}

pub(super) fn span(line: &str) -> Option<Span> {
    let mut parts = line.split_whitespace();
    let (start, end) = parts.next()?.split_once('-')?;
    let mode = parts.next()?.as_bytes();
    if line.ends_with("[vsyscall]") || line.ends_with("[vvar]") || line.ends_with("[vvar_vclock]") {
        return None;
    }
    let bit = |index: usize, letter: u8, value: i32| {
        if mode.get(index) == Some(&letter) {
            value
        } else {
            0
        }
    };
    let protection = bit(0, b'r', libc::PROT_READ)
        | bit(1, b'w', libc::PROT_WRITE)
        | bit(2, b'x', libc::PROT_EXEC);
    Some(Span {
        start: u64::from_str_radix(start, 16).ok()?,
        end: u64::from_str_radix(end, 16).ok()?,
        protection: protection as u32,
    })
}

/// The files among the mappings.
pub(super) fn files(pid: i32) -> Result<Vec<MappedFile>> {
    let text = proc_text(format!("/proc/{pid}/maps")).context("read the program's mappings")?;
    let files = text.lines().filter_map(|line| {
        let span = span(line)?;
        let path = line.get(line.find('/')?..)?;
        let offset = u64::from_str_radix(line.split_whitespace().nth(2)?, 16).ok()?;
        Some(MappedFile {
            start: span.start,
            end: span.end,
            offset,
            protection: span.protection,
            path: path.to_owned(),
        })
    });
    Ok(files.collect())
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
