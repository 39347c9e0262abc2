//! Addresses of thread-local variables (ELF Handling for Thread-Local Storage, section 3.4.6: variant II, x86-64).
//!
//! The program's storage ends at the thread pointer. The dynamic linker chooses the place of a library's storage, and a
//! word of the library's global offset table states it.

use std::sync::Arc;

use super::{FrameContext, bias_of};
use crate::elf::{TlsSegment, TlsSlot};
use crate::machine::{Certainty, Register, Unknown};
use crate::module::Module;

/// The entry in a thread's table for storage that is not allocated yet (glibc: `TLS_DTV_UNALLOCATED`).
const NOT_YET: u64 = u64::MAX;
/// Arrays of the dynamic linker's list of modules, at most.
const MAX_LISTS: usize = 64;

/// Returns the address of byte `offset` of the thread-local storage of `module`, for the site's thread.
pub(super) fn address(
    site: &FrameContext<'_>,
    module: &Arc<Module>,
    offset: u64,
) -> Result<(u64, Certainty), Unknown> {
    let (thread, certainty) = site.machine.register(Register::FS_BASE)?;
    let name = module.path().display();
    let none = || Unknown::because(format!("{name} has no thread-local storage"));
    let TlsSegment { size, align, .. } = module.files.tls().ok_or_else(none)?;
    let (start, start_certainty) = if module.is_library() {
        library(site, module, thread)?
    } else {
        let size = size.checked_next_multiple_of(align.max(1));
        (
            thread.wrapping_sub(size.ok_or_else(none)?),
            Certainty::Known,
        )
    };
    Ok((start.wrapping_add(offset), certainty.and(start_certainty)))
}

/// Converts a word of `.debug_addr` to an offset in the thread-local storage of `module`.
///
/// gcc requests the variable's address there (`R_X86_64_64`) although it should request the offset
/// (`R_X86_64_DTPOFF64`). The GNU linker then writes the address to the file; other linkers write the offset.
pub(super) fn indexed(module: &Module, word: u64) -> Result<u64, Unknown> {
    let Some(tls) = module.files.tls() else {
        return Ok(word);
    };
    let from_address = word.checked_sub(tls.vaddr).filter(|at| *at < tls.size);
    match (word < tls.size, from_address) {
        (true, Some(_)) => Err(Unknown::because(
            "gcc's split debug information does not tell a place from an address in so much thread-local storage",
        )),
        (_, from_address) => Ok(from_address.unwrap_or(word)),
    }
}

/// Returns the generation of glibc's modules in which the module with this number was loaded. `None` if the dynamic
/// linker does not say: another C library, or an older glibc.
fn generation(site: &FrameContext<'_>, number: u64) -> Result<Option<(u64, Certainty)>, Unknown> {
    // What glibc tells debuggers about its structures: 32-bit numbers, the third is an offset in bytes.
    const DESCRIBED: &str = "_thread_db_rtld_global__dl_tls_dtv_slotinfo_list";
    const LINKER: &str = "_rtld_global";
    let mut modules = site.space.modules().iter();
    let offset = modules.find_map(|mapped| {
        let svma = mapped.module.code.data().exported(DESCRIBED)?;
        let bytes = mapped.module.files.main.at(svma.0, 12)?;
        Some(u32::from_le_bytes(bytes[8..].try_into().ok()?))
    });
    let mut modules = site.space.modules().iter();
    let linker = modules.find_map(|mapped| {
        let svma = mapped.module.code.data().exported(LINKER)?;
        Some(mapped.address(svma))
    });
    let (Some(offset), Some(linker)) = (offset, linker) else {
        return Ok(None);
    };
    let mut certainty = Certainty::Known;
    let mut word = |address: u64| {
        let mut bytes = [0; 8];
        certainty = certainty.and(site.machine.memory(address, &mut bytes)?);
        Ok::<_, Unknown>(u64::from_le_bytes(bytes))
    };
    // A list of arrays: the number of entries, the next array, then for each module its generation and a pointer.
    let mut list = word(linker.wrapping_add(u64::from(offset)))?;
    let mut at = number;
    for _ in 0..MAX_LISTS {
        if list == 0 {
            break;
        }
        let count = word(list)?;
        if at < count {
            let entry = list.wrapping_add(16).wrapping_add(at.wrapping_mul(16));
            let made = word(entry)?;
            return Ok(Some((made, certainty)));
        }
        at -= count;
        list = word(list.wrapping_add(8))?;
    }
    Err(Unknown::because(
        "the dynamic linker's list of thread-local storage has no such module",
    ))
}

/// Returns the start of a library's storage.
fn library(
    site: &FrameContext<'_>,
    module: &Arc<Module>,
    thread: u64,
) -> Result<(u64, Certainty), Unknown> {
    let name = module.path().display();
    let word = |address: u64| {
        let mut bytes = [0; 8];
        let certainty = site.machine.memory(address, &mut bytes)?;
        Ok::<_, Unknown>((u64::from_le_bytes(bytes), certainty))
    };
    let of_file = |svma: u64| word(svma.wrapping_add(bias_of(site, module)));
    match module.files.tls_slot() {
        None => Err(Unknown::because(format!(
            "it is not known where the thread-local storage of {name} is: no code in it tells"
        ))),
        Some(TlsSlot::Distance { at, offset }) => {
            let (distance, certainty) = of_file(at)?;
            let byte = thread.wrapping_add(distance);
            Ok((byte.wrapping_sub(offset), certainty))
        }
        Some(TlsSlot::Number(at)) => {
            let (number, numbered) = of_file(at)?;
            if number == 0 {
                return Err(Unknown::because(format!("{name} is not linked yet")));
            }
            // glibc: the second word of the thread control block points to the thread's table, which has two words for
            // each module. Two words before the table, its capacity in modules is stored.
            let (table, tabled) = word(thread.wrapping_add(8))?;
            let (room, roomed) = word(table.wrapping_sub(16))?;
            let not_yet = || {
                Unknown::because(format!(
                    "the thread has not used thread-local variables of {name} yet"
                ))
            };
            if number > room {
                return Err(not_yet());
            }
            let (start, started) = word(table.wrapping_add(number.wrapping_mul(16)))?;
            if start == NOT_YET || start == 0 {
                return Err(not_yet());
            }
            let mut certainty = numbered.and(tabled).and(roomed).and(started);
            if let Some((made, stated)) = generation(site, number)? {
                // The first entry of the table is the generation of the others.
                let (seen, aged) = word(table)?;
                certainty = certainty.and(stated).and(aged);
                // An older entry belongs to a library that had the number before and was unloaded.
                if seen < made {
                    return Err(not_yet());
                }
            }
            Ok((start, certainty))
        }
    }
}
