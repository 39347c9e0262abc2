//! Code of the program, read in larger pieces: blocks that are translated at once lie near each other.

use std::cell::RefCell;

use super::Code;

const PAGE: u64 = 4096;
/// Bytes that are read at once.
const BYTES: usize = 4 * PAGE as usize;

/// Reads code by a window that moves.
pub(crate) struct Window<'a> {
    code: &'a dyn Code,
    /// What was read last, and from where on.
    last: RefCell<(u64, Vec<u8>)>,
}

impl<'a> Window<'a> {
    /// Nothing is read yet.
    pub(crate) fn new(code: &'a dyn Code) -> Window<'a> {
        let last = RefCell::default();
        Window { code, last }
    }

    /// As [`Code::read`].
    pub(crate) fn read(&self, address: u64, into: &mut [u8]) -> usize {
        if self.copy(address, into) < into.len() {
            self.move_to(address & !(PAGE - 1));
        }
        self.copy(address, into)
    }

    fn move_to(&self, start: u64) {
        let mut bytes = vec![0; BYTES];
        let count = self.code.read(start, &mut bytes);
        bytes.truncate(count);
        *self.last.borrow_mut() = (start, bytes);
    }

    /// Fills in as much as was read last.
    fn copy(&self, address: u64, into: &mut [u8]) -> usize {
        let (start, bytes) = &*self.last.borrow();
        let skipped = usize::try_from(address.wrapping_sub(*start)).unwrap_or(usize::MAX);
        let found = bytes.get(skipped..).unwrap_or_default();
        let count = found.len().min(into.len());
        into[..count].copy_from_slice(&found[..count]);
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Memory from 0x1000 up to 0x8000 whose bytes tell where they are.
    struct Memory;

    impl Code for Memory {
        fn read(&self, address: u64, into: &mut [u8]) -> usize {
            let count = into.len().min(0x8000_u64.saturating_sub(address) as usize);
            for (at, byte) in (address..).zip(&mut into[..count]) {
                *byte = (at / 7) as u8;
            }
            if address < 0x1000 { 0 } else { count }
        }
    }

    #[test]
    fn it_reads_what_is_there() {
        let window = Window::new(&Memory);
        for (address, count) in [
            (0x1ff0, 100),
            (0x1000, 8),
            (0x5ff0, 100),
            (0x7fff, 1),
            (0x8000, 0),
            (0xfff, 0),
        ] {
            let (mut own, mut other) = ([0; 100], [0; 100]);
            let found = window.read(address, &mut own);
            assert_eq!(found, Memory.read(address, &mut other), "{address:#x}");
            assert!(found >= count, "{address:#x}");
            assert_eq!(own[..found], other[..found], "{address:#x}");
        }
    }
}
