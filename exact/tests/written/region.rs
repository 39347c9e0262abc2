//! Memory with a pattern, in which system calls find their buffers, and after which comes a page that nobody may use.

use std::cell::Cell;

use exact::system_calls::written::{Finished, Memory, Written, written};

const PAGE: usize = 4096;
const LEN: usize = 64 * PAGE;

pub struct Region {
    base: u64,
    used: Cell<u64>,
}

/// The memory of this process, read so that nothing faults.
struct Own;

impl Memory for Own {
    fn read(&self, address: u64, into: &mut [u8]) -> usize {
        let local = libc::iovec {
            iov_base: into.as_mut_ptr().cast(),
            iov_len: into.len(),
        };
        let remote = libc::iovec {
            iov_base: address as *mut _,
            iov_len: into.len(),
        };
        // SAFETY: the kernel checks the remote address; the local one is that of a slice.
        let read = unsafe { libc::process_vm_readv(libc::getpid(), &local, 1, &remote, 1, 0) };
        usize::try_from(read).unwrap_or(0)
    }
}

impl Region {
    pub fn new() -> Region {
        // SAFETY: a new mapping.
        let base = unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let rights = libc::PROT_READ | libc::PROT_WRITE;
            let base = libc::mmap(std::ptr::null_mut(), LEN + PAGE, rights, flags, -1, 0);
            assert_ne!(base, libc::MAP_FAILED);
            let guard = base.cast::<u8>().add(LEN);
            assert_eq!(libc::mprotect(guard.cast(), PAGE, libc::PROT_NONE), 0);
            base as u64
        };
        let region = Region {
            base,
            used: Cell::new(base),
        };
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        for at in (0..LEN as u64).step_by(8) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            region.put_at(base + at, &state.to_le_bytes());
        }
        region
    }

    /// Room for so many bytes, with the pattern in it and after it.
    pub fn room(&self, len: usize) -> u64 {
        let address = self.used.get().next_multiple_of(16);
        self.used.set(address + len as u64 + 64);
        assert!(
            self.used.get() < self.base + (LEN - PAGE) as u64,
            "it is full"
        );
        address
    }

    pub fn put(&self, bytes: &[u8]) -> u64 {
        let address = self.room(bytes.len());
        self.put_at(address, bytes);
        address
    }

    pub fn put_at(&self, address: u64, bytes: &[u8]) {
        assert!(address >= self.base && address + bytes.len() as u64 <= self.end());
        // SAFETY: it lies in the mapping, to which there are no references.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), address as *mut u8, bytes.len());
        }
    }

    /// Numbers of 8 bytes, as addresses and lengths are.
    pub fn put_words(&self, words: &[u64]) -> u64 {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.put(&bytes)
    }

    pub fn put_int(&self, value: u32) -> u64 {
        self.put(&value.to_le_bytes())
    }

    /// A path or a name.
    pub fn text(&self, text: &str) -> u64 {
        self.put(&[text.as_bytes(), &[0]].concat())
    }

    pub fn int(&self, address: u64) -> i32 {
        let mut bytes = [0; 4];
        assert_eq!(Own.read(address, &mut bytes), 4);
        i32::from_le_bytes(bytes)
    }

    /// Where the page begins that cannot be used.
    pub fn end(&self) -> u64 {
        self.base + LEN as u64
    }

    fn copy(&self) -> Vec<u8> {
        let mut bytes = vec![0; LEN];
        assert_eq!(Own.read(self.base, &mut bytes), LEN);
        bytes
    }

    /// Makes a call, and checks that all that changed is in the list. Gives the result and how many bytes are in the list.
    pub fn call(&self, number: i64, args: &[u64]) -> (i64, Option<u64>) {
        let mut all = [0; 6];
        all[..args.len()].copy_from_slice(args);
        let before = self.copy();
        let [a, b, c, d, e, f] = all;
        // SAFETY: the callers give addresses in the region and descriptors of their own.
        let result = unsafe {
            match libc::syscall(number, a, b, c, d, e, f) {
                -1 => -i64::from(*libc::__errno_location()),
                result => result,
            }
        };
        let after = self.copy();
        let finished = Finished {
            number: number as u64,
            args: all,
            result,
        };
        let Written::Exactly(ranges) = written(&finished, &Own) else {
            return (result, None);
        };
        for at in (0..LEN).filter(|&at| before[at] != after[at]) {
            let address = self.base + at as u64;
            assert!(
                ranges
                    .iter()
                    .any(|&(start, len)| (start..start + len).contains(&address)),
                "call {number} ({args:x?}) = {result} wrote at {address:x}, not in {ranges:x?}"
            );
        }
        (result, Some(ranges.iter().map(|(_, len)| len).sum()))
    }

    /// A call that succeeds, with so many bytes in the list. Gives the result.
    pub fn ok(&self, number: i64, args: &[u64], bytes: u64) -> u64 {
        let (result, claimed) = self.call(number, args);
        assert!(result >= 0, "call {number} ({args:x?}) = {result}");
        assert_eq!(claimed, Some(bytes), "call {number} ({args:x?}) = {result}");
        result as u64
    }

    /// A call that fails so, with so many bytes in the list.
    pub fn fails(&self, number: i64, args: &[u64], error: i32, bytes: u64) {
        let (result, claimed) = self.call(number, args);
        assert_eq!(result, -i64::from(error), "call {number} ({args:x?})");
        assert_eq!(claimed, Some(bytes), "call {number} ({args:x?}) = {result}");
    }

    /// A call of which nothing is said. Gives the result.
    pub fn unknown(&self, number: i64, args: &[u64]) -> i64 {
        let (result, claimed) = self.call(number, args);
        assert_eq!(claimed, None, "call {number} ({args:x?}) = {result}");
        result
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: the mapping is this region's own.
        unsafe {
            libc::munmap(self.base as *mut _, LEN + PAGE);
        }
    }
}
