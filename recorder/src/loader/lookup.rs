//! How the runtime's code finds a thread's data: by the base of gs or, twice as fast, by a pointer in the C library's block
//! of the thread.

use std::ops::Range;

use agent::runtime::{BLOCK_TID_GLIBC, LOCAL_TID};

use super::{Failure, inside::Inside};

/// `struct hs_lookup`: where the code is, where it continues for a thread without data, and for one with data. Each is
/// relative to its own address.
const ENTRY_BYTES: usize = 12;
const NUMBER_BYTES: u64 = 4;

/// What the runtime says about it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Lookup {
    /// The pointer's distance from the base of fs; 0: the blocks have none.
    pub slot: u64,
    /// Addresses of the table of places in the code.
    pub table: Range<u64>,
}

/// A place in the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Site {
    code: u64,
    none: u64,
    found: u64,
}

impl Lookup {
    /// Makes the runtime's code read the pointer. No thread runs that code yet.
    pub fn shorten(&self, inside: &mut Inside<'_>) -> Result<(), Failure> {
        // A deleted key of the program may have left a value there.
        inside.clear_in_blocks(self.slot)?;
        let bytes = inside.bytes(self.table.start, self.table.end)?;
        for site in sites(self.table.start, &bytes) {
            if let Some(code) = by_slot(site, self.slot) {
                inside.write(site.code, &code)?;
            }
        }
        Ok(())
    }
}

/// Reads the table, which lies at `start`.
fn sites(start: u64, bytes: &[u8]) -> Vec<Site> {
    let (entries, _) = bytes.as_chunks::<ENTRY_BYTES>();
    let at = (start..).step_by(ENTRY_BYTES);
    let site = |(at, entry): (u64, &[u8; ENTRY_BYTES])| {
        let (numbers, _) = entry.as_chunks::<{ NUMBER_BYTES as usize }>();
        let address = |n: usize| {
            let own = at + n as u64 * NUMBER_BYTES;
            own.wrapping_add_signed(i32::from_le_bytes(numbers[n]).into())
        };
        Site {
            code: address(0),
            none: address(1),
            found: address(2),
        }
    };
    at.zip(entries).map(site).collect()
}

/// Returns the code that reads the pointer to rcx, unless it is another thread's; `None`: a distance is too large for it.
fn by_slot(site: Site, slot: u64) -> Option<Vec<u8>> {
    let mut code = vec![0x64, 0x48, 0x8b, 0x0c, 0x25]; // mov %fs:slot, %rcx
    code.extend(i32::try_from(slot).ok()?.to_le_bytes());
    code.extend([0x48, 0x85, 0xc9]); // test %rcx, %rcx
    code.extend(jump(site, &code, 0x74, site.none)?); // jz
    code.extend([0x64, 0x8b, 0x14, 0x25]); // mov %fs:tid, %edx
    code.extend(BLOCK_TID_GLIBC.to_le_bytes());
    code.extend([0x39, 0x51, LOCAL_TID]); // cmp %edx, tid(%rcx)
    code.extend(jump(site, &code, 0x74, site.found)?); // je
    code.extend(jump(site, &code, 0xeb, site.none)?);
    (site.code + code.len() as u64 <= site.none).then_some(code)
}

/// Returns a short jump that follows `code`.
fn jump(site: Site, code: &[u8], opcode: u8, to: u64) -> Option<[u8; 2]> {
    let next = site.code + code.len() as u64 + 2;
    let distance = i8::try_from(to.wrapping_sub(next).cast_signed()).ok()?;
    Some([opcode, distance.cast_unsigned()])
}

#[cfg(test)]
mod tests {
    use iced_x86::{Decoder, DecoderOptions};

    use super::*;

    #[test]
    fn the_table_is_relative_to_its_own_numbers() {
        let mut bytes = Vec::new();
        for number in [-0x1000i32, -0x0f00, -0x0e00, 16, 20, 24] {
            bytes.extend(number.to_le_bytes());
        }
        let expected = [
            Site {
                code: 0x4000,
                none: 0x4104,
                found: 0x4208,
            },
            Site {
                code: 0x501c,
                none: 0x5024,
                found: 0x502c,
            },
        ];
        assert_eq!(sites(0x5000, &bytes), expected);
    }

    #[test]
    fn the_code_reads_the_pointer_and_branches_on_it() {
        let site = Site {
            code: 0x1000,
            none: 0x1025,
            found: 0x102c,
        };
        let code = by_slot(site, 0x318).unwrap();
        let decoder = Decoder::with_ip(64, &code, site.code, DecoderOptions::NONE);
        let texts: Vec<String> = decoder.into_iter().map(|i| i.to_string()).collect();
        let expected = [
            "mov rcx,fs:[318h]",
            "test rcx,rcx",
            "je short 0000000000001025h",
            "mov edx,fs:[2D0h]",
            "cmp [rcx+70h],edx",
            "je short 000000000000102Ch",
            "jmp short 0000000000001025h",
        ];
        assert_eq!(texts, expected);
    }

    #[test]
    fn code_that_does_not_fit_is_not_made() {
        let site = Site {
            code: 0x1000,
            none: 0x101c,
            found: 0x1023,
        };
        assert_eq!(by_slot(site, 0x318), None, "too little room");
        let far = Site {
            none: 0x1020,
            found: 0x1100,
            ..site
        };
        assert_eq!(by_slot(far, 0x318), None, "too far");
    }
}
