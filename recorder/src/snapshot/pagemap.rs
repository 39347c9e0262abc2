//! Queries which pages of a process exist, and how many: /proc/PID/pagemap (Documentation/admin-guide/mm/pagemap.rst).
//! Terabytes of reserved and mostly untouched memory are skipped if the kernel can find pages itself.

use std::{
    fs::{self, File},
    io,
    ops::Range,
    os::{fd::AsRawFd, unix::fs::FileExt},
};

use store::memory::PAGE_LEN;

/// In an entry: the page is in memory or in swap.
pub(super) const HAS_PAGE: u64 = 0b11 << 62;
/// In an entry: the page belongs to a file, or is shared. A written private page of a file mapping is neither.
pub(super) const IS_OF_FILE: u64 = 1 << 61;

/// Categories of pages: in memory, in swap.
const PRESENT_OR_SWAPPED: u64 = 1 << 3 | 1 << 4;
/// `_IOWR('f', 16, struct pm_scan_arg)`
const PAGEMAP_SCAN: libc::Ioctl = (3 << 30 | (size_of::<ScanArg>() << 16) | 0x66 << 8 | 16) as _;

/// `struct pm_scan_arg` of linux/fs.h.
#[repr(C)]
#[derive(Default)]
struct ScanArg {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    vec: u64,
    vec_len: u64,
    max_pages: u64,
    category_inverted: u64,
    category_mask: u64,
    category_anyof_mask: u64,
    return_mask: u64,
}

/// `struct page_region` of linux/fs.h.
#[repr(C)]
#[derive(Default)]
struct PageRegion {
    start: u64,
    end: u64,
    categories: u64,
}

/// Returns the entries of `count` pages starting at `page`.
pub(super) fn entries(pagemap: &File, page: u64, count: usize) -> io::Result<Vec<u64>> {
    let mut bytes = vec![0; count * 8];
    pagemap.read_exact_at(&mut bytes, page / PAGE_LEN * 8)?;
    let (entries, _) = bytes.as_chunks();
    let entry = |entry: &[u8; 8]| u64::from_le_bytes(*entry);
    Ok(entries.iter().map(entry).collect())
}

/// Returns whether this kernel finds pages itself, as Linux does since 6.7.
pub(super) fn can_find_pages(pagemap: &File) -> bool {
    first_page(pagemap, 0..0).is_ok()
}

/// Returns the first existing page in a range. `pagemap` is the /proc/PID/pagemap of the process.
pub(super) fn first_page(pagemap: &File, range: Range<u64>) -> io::Result<Option<u64>> {
    let mut found = PageRegion::default();
    let mut arg = ScanArg {
        size: size_of::<ScanArg>() as u64,
        start: range.start,
        end: range.end,
        vec: &raw mut found as u64,
        vec_len: 1,
        max_pages: 1,
        category_anyof_mask: PRESENT_OR_SWAPPED,
        return_mask: PRESENT_OR_SWAPPED,
        ..ScanArg::default()
    };
    // SAFETY: the kernel reads and writes `arg`, whose size it knows, and writes at most one region to `found`.
    let count = unsafe { libc::ioctl(pagemap.as_raw_fd(), PAGEMAP_SCAN, &raw mut arg) };
    match count {
        0 => Ok(None),
        1.. => Ok(Some(found.start)),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Returns how many bytes of private memory the process has in core, excluding files and our rings.
pub(crate) fn resident(pid: i32) -> io::Result<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/statm"))?;
    let mut pages = text.split(' ').skip(1).map(|word| word.parse().ok());
    let (resident, shared): (Option<u64>, Option<u64>) =
        (pages.next().flatten(), pages.next().flatten());
    let own = resident
        .zip(shared)
        .map(|(all, shared)| all - shared.min(all));
    own.map(|pages| pages * PAGE_LEN)
        .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
}

#[cfg(test)]
mod tests {
    use std::ptr;

    use super::*;

    const PAGE: usize = 4096;

    /// The only test of the call itself. Older kernels refuse it, and do so at once.
    #[test]
    fn pages_of_a_terabyte_are_found_one_after_the_other() {
        let pagemap = File::open("/proc/self/pagemap").unwrap();
        let len = 1 << 40;
        // SAFETY: new memory of our own.
        let base = unsafe {
            libc::mmap(
                ptr::null_mut(),
                len,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        assert_ne!(base, libc::MAP_FAILED);
        let touched = [7 * PAGE, 1 << 33, len - PAGE];
        for offset in touched {
            // SAFETY: within the mapping.
            unsafe { base.cast::<u8>().add(offset).write_volatile(1) };
        }
        let (start, end) = (base as u64, base as u64 + len as u64);
        let mut found = Vec::new();
        let mut from = start;
        let scanned = loop {
            match first_page(&pagemap, from..end) {
                Ok(Some(page)) => {
                    found.push(page);
                    from = page + PAGE as u64;
                }
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        // SAFETY: mapped above, and nothing points into it.
        unsafe { libc::munmap(base, len) };
        match scanned {
            Ok(()) => {
                let expected = touched.map(|offset| start + offset as u64);
                // Huge pages exist as a whole.
                let of_touched = |page: &&u64| expected.contains(page);
                assert_eq!(found.iter().filter(of_touched).count(), 3, "{found:x?}");
                assert!(found.len() <= 3 * 512, "{}", found.len());
                assert!(can_find_pages(&pagemap));
            }
            Err(error) => {
                assert_eq!(error.raw_os_error(), Some(libc::ENOTTY));
                assert!(!can_find_pages(&pagemap));
            }
        }
    }
}
